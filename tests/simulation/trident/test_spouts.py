"""Spouts: what is repeated, in which order partitions stand, what grows meanwhile, and what is remembered."""

from __future__ import annotations

import errno
import random
from collections import Counter

import pytest

from ardea import FailedException
from ardea.errors import StateError
from ardea.state import FileState
from ardea.state.envelope import Node, seal
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from ardea.trident import Attempt, BatchSpout, DirectorySpout, components, coordinators
from ardea.trident.partitioned import stored_positions
from ardea.trident.store import MemoryStore, StateManagerStore, StreamStore

from .parts import counted, counting, run_through, write_files


class Context:
    """What a spout asks of it."""

    this_task_index = 0
    this_component_id = "spout"

    def __init__(self, tasks=1):
        self.tasks = tasks

    def component_tasks(self, _):
        return range(self.tasks)


class Emitted(list):
    def emit(self, values):
        self.append(values[0])


@pytest.fixture(params=["memory", "files"])
def store(request, tmp_path):
    if request.param == "memory":
        yield StreamStore(MemoryStore(), "topology", "stream")
    else:
        store = StreamStore(StateManagerStore(FileState(tmp_path / "state")), "topology", "stream")
        yield store
        store.close()


def emit(emitter, txid, attempt, partitions):
    emitted = Emitted()
    emitter.emit_batch(Attempt(txid, attempt), partitions, emitted)
    return list(emitted)


def test_a_store_remembers(store):
    assert (store.get("a/1"), store.names("a"), store.transactions("a")) == (None, (), [])
    store.put("a/2", {"x": [1, None]})
    store.put("a/10", "b")
    store.put("a/2", 5)
    assert (store.get("a/2"), store.transactions("a")) == (5, [2, 10])
    assert [store.swap("c", None, 1), store.swap("c", None, 2), store.swap("c", 1, 3)] == [True, False, True]
    assert store.get("c") == 3
    store.delete("a/2")
    store.delete("a/2")
    assert store.transactions("a") == [10]


def test_a_store_notices_that_somebody_else_has_written(tmp_path):
    """It does not read again what it wrote itself."""
    one, other = (StreamStore(StateManagerStore(FileState(tmp_path)), "topology", "stream") for _ in range(2))
    assert one.swap("c", None, 1)
    other.put("c", 7)
    assert not one.swap("c", 1, 2)
    assert (one.get("c"), one.swap("c", 7, 8), other.get("c")) == (7, True, 8)
    other.delete("c")
    assert not one.swap("c", 8, 9)
    one.put("c", 9)
    assert other.get("c") == 9
    one.close()
    other.close()


@pytest.mark.parametrize("data", [b"bad", seal(Node(b'"\xff"', version=1))])
def test_a_damaged_node_counts_as_missing(tmp_path, caplog, data):
    state = FileState(tmp_path)
    store = StreamStore(StateManagerStore(state), "topology", "stream")
    store.put("meta/1", "good")
    (node,) = [path for path in (tmp_path / "trident").rglob("*") if path.is_file()]
    node.write_bytes(data)
    assert store.get("meta/1") is None
    assert "counts as missing" in caplog.text
    store.put("meta/1", "new")
    assert store.get("meta/1") == "new"
    store.close()


def test_a_node_that_cannot_be_read_now_is_not_missing(tmp_path, monkeypatch):
    """Else a process without free file descriptors would forget where it was."""
    store = StreamStore(StateManagerStore(FileState(tmp_path)), "topology", "stream")
    store.put("meta/1", "good")

    def refuse(self):
        raise OSError(errno.EMFILE, "Too many open files", str(self))

    with monkeypatch.context() as patch:
        patch.setattr(type(tmp_path), "read_bytes", refuse)
        with pytest.raises(StateError, match="Too many open files"):
            store.get("meta/1")
    assert store.get("meta/1") == "good"
    store.close()


class Numbers(BatchSpout):
    """One of the author's own, of so many batches."""

    outputs = ["line"]

    def __init__(self, batches):
        self.batches = batches

    def emit_batch(self, batch_id, collector):
        collector.emit(["a"])

    def is_ready(self, batch_id):
        return batch_id <= self.batches

    def finished(self, batch_id):
        return not self.is_ready(batch_id)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kind", "each"), [(None, 1), ("transactional", 1 + 2 * (1 + 2)), ("opaque", 1 + 2 * (1 + 2))])
def test_a_batch_costs_few_writes(tmp_path, kind, each):
    """One for the coordinator; with partitions, one for the metadata and one for each of the two tasks, and as many
    that forget what an earlier batch left.

    Before the first batch, two for the coordinator's new life and one for each task that takes over its part.
    """
    costs = {}
    for size in (3, 30):
        folder = tmp_path / str(size)
        write_files(folder / "in", [["a"] * size * 3] * 2)
        topology, _ = counting(folder, kind, spout=None if kind else Numbers(size))
        built = topology.build()
        cluster = run_through(built)
        memory = next(c.cls for c in built.plan() if c.name == "$mastercoord-bg0").memory
        committed = len([step for step in cluster.record.acked["$mastercoord-bg0"] if step.phase == "$commit"])
        assert committed >= size
        costs[committed] = memory.writes
    (few, first), (many, second) = sorted(costs.items())
    assert second - first <= (many - few) * each
    assert first <= few * each + 2 + 1 + 2
    left = Counter(path.split("/")[4] for path in memory.values)
    assert left["meta"] <= 2, "what earlier batches left is forgotten"
    assert left["positions"] <= 2 * 3


@pytest.mark.parametrize("damaged", [0, 1])
def test_a_damaged_record_of_the_coordinator_repeats_a_transaction(tmp_path, damaged):
    """Whichever of the two nodes is lost, the next run goes on and counts what is new, exactly."""
    plain = write_files(tmp_path / "in", [["a b", "c"] * 9])
    topology, counts = counting(tmp_path)
    built = topology.build()
    run_through(built)
    memory = next(c.cls for c in built.plan() if c.name == "$mastercoord-bg0").memory
    del memory.values[f"/trident/words-simulated/files/coordinator/{damaged}"]
    with (tmp_path / "in" / "0.txt").open("a") as file:
        file.write("a d\n")
    plain.update("ad")
    run_through(built)
    assert counted(counts) == plain


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("kind", "node"),
    [
        (kind, node)
        for kind in ("transactional", "opaque")
        for node in ("meta/2", "positions/2/0", "coordinator/0", "coordinator/1")
    ],
)
def test_a_topology_starts_over_a_damaged_node(tmp_path, monkeypatch, kind, node, caplog):
    """It counts as missing: without its last position a file goes on at the one before; nothing else does harm."""

    def open_files(context, memory, stream, part=None):
        return StreamStore(StateManagerStore(FileState(tmp_path / "state")), "words", stream, part)

    for module in (components, coordinators):
        monkeypatch.setattr(module, "open_store", open_files)
    first = ["a b", "c", "a b", "c"]
    plain = write_files(tmp_path / "in", [first, ["a", "d"]])
    run_through(counting(tmp_path, kind)[0])
    stored = tmp_path / "state" / "trident" / "words" / "files"
    (stored / f"{node}.node").write_bytes(b"\xff no node")
    with (tmp_path / "in" / "1.txt").open("a") as file:
        file.write("e\n")
    plain.update("e")
    if node.startswith("positions"):
        plain.update(first[3].split())
    topology, counts = counting(tmp_path, kind)
    cluster = run_through(topology)
    assert (cluster.state, cluster.record.errors) == ("SUCCEEDED", [])
    assert counted(counts) == plain
    assert f"/trident/words/files/{node} cannot be read and counts as missing" in caplog.text


def test_a_state_that_is_ahead_of_its_topology_says_so(tmp_path):
    write_files(tmp_path / "in", [["a"] * 20])
    run_through(counting(tmp_path)[0])
    with Cluster(counting(tmp_path)[0]) as cluster:
        cluster.run_until(lambda: len(cluster.record.failed["$mastercoord-bg0"]) > 3)
        errors = [Inside(cluster).error(f"b-0-{index}") for index in range(3)]
    assert any("is behind state's batch" in error for error in errors)


def test_a_transactional_batch_is_repeated_exactly_in_a_new_life_too(tmp_path, store):
    write_files(tmp_path / "in", [["a", "b", "c"]])
    spout = DirectorySpout.transactional(tmp_path / "in", lines=2, follow=True)
    emitter = spout.emitter({}, Context(), store)
    assert [emit(emitter, txid, 0, ["0.txt"]) for txid in (1, 2)] == [["a", "b"], ["c"]]
    with (tmp_path / "in" / "0.txt").open("a") as file:
        file.write("d\ne")
    again = spout.emitter({}, Context(), store)
    assert [emit(again, txid, 1, ["0.txt"]) for txid in (2, 3, 4)] == [["c"], ["d"], []]
    again.success(3)
    assert store.transactions("positions") == [2, 3, 4]


def test_an_opaque_batch_begins_where_the_committed_one_ended(tmp_path, store):
    write_files(tmp_path / "in", [["a", "b", "c"]])
    spout = DirectorySpout.opaque_transactional(tmp_path / "in", lines=2, follow=True)
    emitter = spout.emitter({}, Context(), store)
    assert [emit(emitter, txid, 0, ["0.txt"]) for txid in (1, 2, 3)] == [["a", "b"], ["c"], []]
    emitter.commit(Attempt(1, 0))
    with (tmp_path / "in" / "0.txt").open("a") as file:
        file.write("d\n")
    assert [emit(emitter, txid, 1, ["0.txt"]) for txid in (2, 3)] == [["c", "d"], []]
    assert stored_positions(store) == {1: {"0.txt": [0, 4]}}
    again = spout.emitter({}, Context(), store)
    assert emit(again, 2, 2, ["0.txt"]) == ["c", "d"]


@pytest.mark.parametrize("kind", ["transactional", "opaque_transactional"])
def test_a_new_life_does_not_go_on_behind_a_batch_that_was_lost(tmp_path, store, kind):
    """Else transaction 3 would have the lines of 2, which comes again."""
    write_files(tmp_path / "in", [list("abcdef")])
    spout = getattr(DirectorySpout, kind)(tmp_path / "in", lines=2)
    first = spout.emitter({}, Context(), store)
    assert emit(first, 1, 0, ["0.txt"]) == ["a", "b"]
    first.commit(Attempt(1, 0))
    again = spout.emitter({}, Context(), store)
    with pytest.raises(FailedException, match="transaction 2 was lost, and 3 follows on it"):
        again.emit_batch(Attempt(3, 0, first=False), ["0.txt"], Emitted())
    assert emit(again, 2, 1, ["0.txt"]) == ["c", "d"]
    lines = Emitted()
    again.emit_batch(Attempt(3, 1, first=False), ["0.txt"], lines)
    assert lines == ["e", "f"]


@pytest.mark.parametrize("kind", ["transactional", "opaque_transactional"])
def test_an_emitter_that_was_replaced_writes_nothing(tmp_path, store, kind):
    """It read fewer lines, was frozen before it wrote so, and wakes up when its replacement has stored its own."""
    write_files(tmp_path / "in", [["a"]])
    tree, part = store._store, "0"
    spout = getattr(DirectorySpout, kind)(tmp_path / "in", follow=True)
    late = StreamStore(tree, "topology", "stream", part)
    former = spout.emitter({}, Context(), late)
    assert emit(former, 1, 0, ["0.txt"]) == ["a"]
    former.commit(Attempt(1, 0))
    frozen = former._known[1]
    with (tmp_path / "in" / "0.txt").open("a") as file:
        file.write("b\n")
    now = spout.emitter({}, Context(), StreamStore(tree, "topology", "stream", part))
    assert emit(now, 2, 1, ["0.txt"]) == ["b"]
    now.commit(Attempt(2, 1))
    former._known[2] = former._known[3] = frozen
    for write in (
        lambda: former.commit(Attempt(2, 0)),
        lambda: late.delete("positions/2/0"),
        lambda: former.success(3),
    ):
        with pytest.raises(FailedException, match="another process has taken"):
            write()
    again = spout.emitter({}, Context(), StreamStore(tree, "topology", "stream", part))
    assert emit(again, 3, 0, ["0.txt"]) == []


class Stumbling(DirectorySpout):
    """Cannot read once."""

    def emit_new(self, attempt, partition, last, collector):
        if attempt == (2, 0, False):
            raise OSError("unplugged")
        return super().emit_new(attempt, partition, last, collector)


def test_nothing_follows_on_a_batch_that_could_not_be_emitted(tmp_path, store):
    write_files(tmp_path / "in", [list("abcdef")])
    emitter = Stumbling.transactional(tmp_path / "in", lines=2).emitter({}, Context(), store)
    assert emit(emitter, 1, 0, ["0.txt"]) == ["a", "b"]
    with pytest.raises(OSError, match="unplugged"):
        emitter.emit_batch(Attempt(2, 0, first=False), ["0.txt"], Emitted())
    with pytest.raises(FailedException):
        emitter.emit_batch(Attempt(3, 0, first=False), ["0.txt"], Emitted())
    assert emit(emitter, 2, 1, ["0.txt"]) == ["c", "d"]


def test_new_partitions_stand_behind_the_known_ones(tmp_path, store):
    """So that each keeps its task; a repeated transactional batch has the partitions that it had."""
    write_files(tmp_path / "in", [["a"], ["b"]])
    coordinator = DirectorySpout.transactional(tmp_path / "in").coordinator({}, Context(), store)
    first = coordinator.initialize_transaction(1, None, None)
    (tmp_path / "in" / "+.txt").write_text("c\n")
    assert first == ["0.txt", "1.txt"]
    assert coordinator.initialize_transaction(2, first, None) == ["0.txt", "1.txt", "+.txt"]
    assert coordinator.initialize_transaction(1, None, first) == first


def test_opaque_partitions_that_appear_while_batches_come_again_have_the_task_of_the_batch_before(tmp_path, store):
    """Else another task, which knows no position of theirs, would read them from the start."""
    write_files(tmp_path, [["a"]])
    spout = DirectorySpout.opaque_transactional(tmp_path, follow=True)
    coordinator = spout.coordinator({}, Context(), store)
    first = coordinator.initialize_transaction(1, None, None)
    (tmp_path / "2.txt").write_text("c\n")
    second = coordinator.initialize_transaction(2, first, None)
    (tmp_path / "1.txt").write_text("b\n")
    assert (first, second) == (["0.txt"], ["0.txt", "2.txt"])
    first = coordinator.initialize_transaction(1, None, first)
    assert first == coordinator.initialize_transaction(2, first, second) == ["0.txt", "1.txt", "2.txt"]


@pytest.mark.parametrize(("follow", "last"), [(False, ["b"]), (True, [])])
def test_a_line_without_an_end(tmp_path, store, follow, last):
    (tmp_path / "x").write_bytes(b"a\r\n\nb")
    spout = DirectorySpout.transactional(tmp_path, pattern="x", follow=follow)
    assert emit(spout.emitter({}, Context(), store), 1, 0, ["x", "missing"]) == ["a", "", *last]
    assert emit(spout.emitter({}, Context(), store), 1, 1, ["x"]) == ["a", "", *last]
    coordinator = spout.coordinator({}, Context(), store)
    assert (coordinator.is_ready(2), coordinator.finished(2)) == (False, not follow)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["transactional", "opaque_transactional"])
@pytest.mark.parametrize("seed", range(3))
def test_a_directory_that_grows_while_processes_die(tmp_path, kind, seed):
    """Files appear and grow, and batches are repeated after they did."""
    rng = random.Random(f"{kind} {seed}")
    folder = tmp_path / "in"
    plain = write_files(folder, [["a b", "c"], ["a"]])
    topology, counts = counting(
        tmp_path, state="opaque", spout=getattr(DirectorySpout, kind)(folder, lines=4, follow=True)
    )
    victims = ["$mastercoord-bg0-0", "spout-files-0", "spout-files-1", "b-0-0", "b-0-1", "b-1-0", "manager-2"]

    def grow(_):
        lines = [" ".join(rng.choices("abcdef", k=rng.randint(1, 4))) for _ in range(rng.randint(1, 9))]
        with (folder / f"{rng.randint(0, 4)}.txt").open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))
        plain.update(word for line in lines for word in line.split())

    cost = {"b-0": 0.005, "b-1": 0.01, "spout-files": 0.01}
    with Cluster(topology, containers=2, seed=seed, cost=cost, config={"topology.max.spout.pending": 2}) as cluster:
        for _ in range(12):
            cluster.at(rng.uniform(0, 3), grow)
        for _ in range(4):
            cluster.at(rng.uniform(0, 3), lambda c: c.kill(rng.choice(victims)))
        cluster.advance(3)
        cluster.run_until(lambda: Counter(counted(counts)).total() >= plain.total(), 120)
        cluster.advance(0.5)
        assert cluster.record.errors == []
        assert counted(counts) == plain
        before = cluster.record.emitted["$mastercoord-bg0"][:]
        cluster.advance(1)
        assert len(cluster.record.emitted["$mastercoord-bg0"]) == len(before), "no batch without lines"
