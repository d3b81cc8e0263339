"""The way of one batch through a word count, step by step: Storm's order, and who hears of what."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ardea import FailedException
from ardea.testing import Cluster
from ardea.trident import Count, DirectorySpout, FixedBatchSpout, MemoryMapState, OpaqueMap, TridentTopology
from ardea.trident.components import Reporting, SpoutExecutor
from ardea.trident.coordinators import MasterBatchCoordinator, SpoutCoordinator
from ardea.trident.spout import Attempt
from ardea.trident.store import MemoryStore
from ardea.trident.transactions import LIVES

from .parts import AT_ONCE, write_files

SENTENCES = [["the cow"], ["the man"], ["a moon"], ["the moon"]]


@pytest.fixture
def trace(monkeypatch):
    """(what, transaction), as they happen in all tasks."""
    steps = []

    def note(cls, name, what):
        real = getattr(cls, name)

        def noting(self, *args, **kwargs):
            steps.append(what(self, *args, **kwargs))
            return real(self, *args, **kwargs)

        monkeypatch.setattr(cls, name, noting)

    note(MasterBatchCoordinator, "emit", lambda self, values, stream, tup_id=None: (stream, values[0]))
    note(SpoutCoordinator, "emit", lambda self, values, stream: ("metadata", values[0]))
    note(Reporting, "report", lambda self, group, batch, anchor: (type(self).__name__, batch.run.txid))
    note(OpaqueMap, "begin_commit", lambda self, txid: ("begin_commit", txid))
    note(OpaqueMap, "commit", lambda self, txid: ("commit", txid))
    return steps


def run_word_count(pending):
    topology = TridentTopology("words")
    lines = topology.new_stream("tester", FixedBatchSpout(["sentence"], SENTENCES, 2))
    words = lines.each("sentence", lambda tup: tup[0].split(), "word").group_by("word")
    words.persistent_aggregate(MemoryMapState(), Count(), "count").parallelism_hint(6)
    with Cluster(topology, containers=2, config={**AT_ONCE, "topology.max.spout.pending": pending}) as cluster:
        cluster.run_until(lambda: cluster.over)
        return cluster.record


def way_of(txid):
    commits = [("begin_commit", txid), ("commit", txid)] * 6
    before = [("$batch", txid), ("metadata", txid), ("SpoutExecutor", txid), ("SubtopologyBolt", txid)]
    return [*before, ("$commit", txid), *commits, ("$success", txid)]


def test_the_way_of_a_batch(trace):
    """All but the commits, then the commit of each task, then the news: one transaction behind the other."""
    record = run_word_count(pending=1)
    assert trace == [*way_of(1), *way_of(2)]
    emitted = {name: [(row.stream, row.values) for row in rows] for name, rows in record.emitted.items()}
    assert emitted["spout-tester"][:3] == [
        ("s1", (1, 0, "the cow")),
        ("s1", (1, 0, "the man")),
        ("$coord-bg0", (1, 0, 2)),
    ]
    first = emitted["b-1"][: 3 + 6]
    assert sorted(first[:3]) == [("s2", (1, 0, "cow", 1)), ("s2", (1, 0, "man", 1)), ("s2", (1, 0, "the", 2))]
    reports = [values for stream, values in first[3:] if stream == "$coord-bg0"]
    assert len(reports) == 6, "every task of the state hears how many rows it was sent, of none too"
    assert sum(count for _, _, count in reports) == 3


def test_batches_side_by_side_commit_one_behind_the_other(trace):
    run_word_count(pending=2)
    assert [step for step in trace if step in (("$batch", 2), ("$commit", 1))] == [("$batch", 2), ("$commit", 1)]
    assert [txid for what, txid in trace if what == "commit"] == [1] * 6 + [2] * 6
    assert trace.index(("$commit", 2)) > max(n for n, step in enumerate(trace) if step == ("commit", 1))


@pytest.fixture
def writes(trace, monkeypatch):
    """What is stored stands in the trace too, as (path, value)."""
    put = MemoryStore.put

    def noting(self, path, value, owner=None):
        put(self, path, value, owner)
        if "/owners/" not in path:
            trace.append((path.partition("/files/")[2], value))

    monkeypatch.setattr(MemoryStore, "put", noting)
    return trace


def stored_way_of(txid, position):
    """Of a batch of the one line of the one file: metadata and position before rows leave, the commit before news."""
    before, commit = way_of(txid)[:4], way_of(txid)[5:-1]
    return [
        before[0],
        (f"meta/{txid}", ["0.txt"]),
        before[1],
        (f"positions/{txid}/0", {"0.txt": position}),
        *before[2:],
        ("$commit", txid),
        *commit,
        (f"coordinator/{(txid + 1) % 2}", [txid + 1, 1]),
        ("$success", txid),
    ]


def run_files(folder, kills=()):
    """``kills``: the coordinator dies when so many batches were committed."""
    topology = TridentTopology("words")
    lines = topology.new_stream("files", DirectorySpout.transactional(folder, lines=1))
    words = lines.each("line", lambda tup: tup[0].split(), "word").group_by("word")
    words.persistent_aggregate(MemoryMapState(), Count(), "count").parallelism_hint(6)
    with Cluster(topology, config=AT_ONCE) as cluster:
        for committed in kills:
            cluster.run_until(lambda: len(cluster.record.tuples("$mastercoord-bg0", "$success")) >= committed)  # noqa: B023
            cluster.kill("$mastercoord-bg0-0")
        cluster.run_until(lambda: cluster.over)
        return cluster.record


def test_each_step_is_stored_before_it_is_told(tmp_path, writes):
    """So that no process, whenever it dies, is ahead of what its next life knows."""
    write_files(tmp_path, [["a b", "a c"]])
    run_files(tmp_path)
    begin = writes.index(("$batch", 1))
    assert ("coordinator/1", [1, 1]) in writes[:begin], "the number of this life, which attempts begin with"
    assert writes[begin:] == [*stored_way_of(1, [0, 4]), *stored_way_of(2, [4, 8])]


def test_a_life_is_stored_before_its_attempts_begin(tmp_path, writes):
    """Storm forgets the attempt on its way, and those of the next life are not above it."""
    write_files(tmp_path, [["a b", "a c"] * 9])
    record = run_files(tmp_path, kills=(3, 6))
    begun = iter(record.tuples("$mastercoord-bg0", "$batch"))
    lives, seen = 0, set()
    for what, value in writes:
        if what.startswith("coordinator/"):
            lives = value[1]
        elif what == "$batch":
            txid, attempt, *_ = next(begun)
            assert (txid, attempt // LIVES) == (value, lives - 1)
            seen.add(lives)
    assert list(begun) == []
    assert seen == {1, 2, 3}


@pytest.mark.parametrize(("attempt", "verdict"), [(4, "acked"), (5, "committed"), (6, "failed")])
def test_a_committing_spout_commits_the_attempt_that_it_emitted(attempt, verdict):
    """Of a former one the verdict interests nobody; in Storm the process dies of an unknown one."""
    heard = []
    task = SpoutExecutor()
    task._attempts = {7: 5}
    task._emitter = SimpleNamespace(commit=heard.append)
    task.ack = lambda tup: heard.append("acked")
    commit = SimpleNamespace(values=(7, attempt), stream="$commit")
    if verdict == "failed":
        with pytest.raises(FailedException, match="Received commit for different transaction attempt"):
            task.process(commit)
        assert heard == []
    else:
        task.process(commit)
        assert heard == [*([Attempt(7, 5)] if verdict == "committed" else []), "acked"]
