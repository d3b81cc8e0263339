"""What a spout and a state promise each other: which batches there are, and which pairs count each tuple once."""

from __future__ import annotations

import json
from operator import add

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from ardea import Spout
from ardea.errors import StateError
from ardea.testing import run
from ardea.trident import (
    Attempt,
    Count,
    CsvSpout,
    DirectorySpout,
    FixedBatchSpout,
    FolderState,
    JsonLinesSpout,
    LRUMemoryMapState,
    MemoryMapState,
    ParquetSpout,
    PlainSpout,
    RedisState,
    SqliteState,
    TridentTopology,
    redis,
)
from ardea.trident.folder import FolderMap
from ardea.trident.memory import LRUMemoryMap, MemoryMap
from ardea.trident.sqlite import SqliteMap
from ardea.trident.store import MemoryStore, StreamStore
from tests.sizes import share

from .parts import AT_ONCE, ONE_TASK, Emissions, counting, run_through, write_files


def lines(file, rows):
    file.with_suffix(".txt").write_text("".join(f"{row}\n" for row in rows))


def json_lines(file, rows):
    file.with_suffix(".jsonl").write_text("".join(json.dumps({"row": row}) + "\n" for row in rows))


def csv_records(file, rows):
    file.with_suffix(".csv").write_text("".join(f"{row}\n" for row in ["row", *rows]))


def parquet_rows(file, rows):
    parquet.write_table(pa.table({"row": pa.array(rows, pa.string())}), file.with_suffix(".parquet"), row_group_size=2)


SOURCES = {
    "lines": (lines, lambda folder, most: DirectorySpout.transactional(folder, lines=most, follow=True)),
    "opaque lines": (lines, lambda folder, most: DirectorySpout.opaque_transactional(folder, lines=most, follow=True)),
    "json": (json_lines, lambda folder, most: JsonLinesSpout.transactional(folder, "row", rows=most, follow=True)),
    "opaque json": (
        json_lines,
        lambda folder, most: JsonLinesSpout.opaque_transactional(folder, "row", rows=most, follow=True),
    ),
    "csv": (csv_records, lambda folder, most: CsvSpout.transactional(folder, "row", rows=most, follow=True)),
    "opaque csv": (
        csv_records,
        lambda folder, most: CsvSpout.opaque_transactional(folder, "row", rows=most, follow=True),
    ),
    "parquet": (parquet_rows, lambda folder, most: ParquetSpout.transactional(folder, "row", rows=most, follow=True)),
    "opaque parquet": (
        parquet_rows,
        lambda folder, most: ParquetSpout.opaque_transactional(folder, "row", rows=most, follow=True),
    ),
}
sizes = st.lists(st.integers(0, 9), min_size=1, max_size=4)
events = st.lists(st.sampled_from(["again", "next", "life", "more", "gone", "back"]), max_size=25)


@settings(max_examples=share(150))
@given(source=st.sampled_from(sorted(SOURCES)), sizes=sizes, events=events, most=st.integers(1, 4))
def test_batches_of_partitioned_spouts(tmp_path_factory, source, sizes, events, most):
    """Same transaction, same tuples (if it is not opaque); committed batches are disjoint, and all tuples are in one.

    Through new attempts, new lives, new partitions, and one that is gone for a while.
    """
    folder, away = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("away")
    write, make = SOURCES[source]
    everything = []

    def add(size):
        number = len(everything)
        everything.append([f"{number}-{place}" for place in range(size)])
        write(folder / str(number), everything[-1])

    for size in sizes:
        add(size)
    (first,) = folder.glob("0.*")
    spout = make(folder, most)
    emissions, seen, committed = Emissions(spout), {}, []
    for event in [*events, "back", *["next"] * 12]:
        if event == "gone" and first.exists():
            first.rename(away / first.name)
        if event == "back" and not first.exists():
            (away / first.name).rename(first)
        if event == "more" and len(everything) < 8:
            add(1)
        if event == "life":
            emissions.new_life()
        try:
            rows = emissions.emit()
        except StateError:
            assert not spout.opaque
            assert not first.exists(), "only a transactional batch waits, for what is gone"
            continue
        if not spout.opaque:
            assert rows == seen.setdefault(emissions.txid, rows)
        if event == "next":
            committed += rows
            emissions.commit()
    assert sorted(committed) == sorted(row for rows in everything for row in rows)


PAIRS = [("opaque", "transactional"), ("opaque", "non_transactional"), ("transactional", "non_transactional")]


@pytest.mark.parametrize(("spout", "state"), PAIRS)
def test_pairs_that_are_not_exact_are_told_when_they_are_built(tmp_path, spout, state, caplog):
    topology, _ = counting(tmp_path, spout, state)
    topology.build()
    kinds = f"stream files ({spout}) into state1 ({state.replace('_', '-')}) is not exactly once"
    assert kinds in caplog.text
    caplog.clear()
    counting(tmp_path, "opaque", "opaque")[0].build()
    counting(tmp_path, "transactional", "transactional")[0].build()
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("opaque", "state", "count"),
    [
        (True, "opaque", 2),
        (True, "transactional", 1),
        (True, "non_transactional", 3),
        (False, "transactional", 2),
        (False, "opaque", 2),
        (False, "non_transactional", 3),
    ],
)
def test_which_pairs_count_each_line_once(tmp_path, opaque, state, count):
    """The first attempt dies behind its write; a line is new before the second one begins."""
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "0.txt"
    file.write_text("a\n")
    kind = DirectorySpout.opaque_transactional if opaque else DirectorySpout.transactional
    emissions = Emissions(kind(tmp_path / "in", follow=True))
    counts = getattr(SqliteState, state)(tmp_path / "counts").make_state({}, 0, 1)

    def attempt():
        lines = emissions.emit()
        counts.begin_commit(emissions.txid)
        if lines:
            counts.multi_combine([("a",)], [len(lines)], add)
        counts.commit(emissions.txid)

    attempt()
    file.write_text("a\na\n")
    attempt()
    emissions.commit()
    attempt()
    assert counts.multi_get([("a",)]) == [count]
    counts.close()


class Queue(Spout):
    """What it gives away is gone."""

    outputs = ["word"]
    config = {"topology.spout.max.batch.size": 2}

    def initialize(self, config, context):
        self.words = config["words"]

    def next_tuple(self):
        if self.words:
            self.emit([self.words.pop()], tup_id=len(self.words))


@pytest.mark.parametrize("state", ["transactional", "opaque", "non_transactional"])
def test_a_plain_spout_is_told_to_be_exact_with_no_state(tmp_path, state, caplog):
    topology = TridentTopology("plain")
    counts = getattr(SqliteState, state)(tmp_path / "counts")
    topology.new_stream("queue", Queue).group_by("word").persistent_aggregate(counts, Count(), "n")
    topology.build()
    kinds = f"stream queue (non-transactional) into state1 ({state.replace('_', '-')}) is not exactly once"
    assert kinds in caplog.text


@pytest.mark.parametrize(
    ("state", "dies", "count"), [("transactional", 1, 2), ("opaque", 1, 1), ("non_transactional", 0, 5)]
)
def test_a_plain_spout_counts_wrong_with_each_state(tmp_path, state, dies, count):
    """Three words, two of them in the first attempt, which fails behind its write; perhaps the spout dies then."""
    config = {"words": ["a", "a", "a"], **Queue.config}
    counts = getattr(SqliteState, state)(tmp_path / "counts").make_state({}, 0, 1)
    store = StreamStore(MemoryStore(), "t", "s")
    emitter = PlainSpout(Queue).emitter(config, ONE_TASK, store)
    for attempt in (Attempt(1, 0), Attempt(1, 1), Attempt(2, 0)):
        emitted = []
        emitter.emit_batch(attempt, None, type("Kept", (), {"emit": emitted.append}))
        counts.begin_commit(attempt.txid)
        if emitted:
            counts.multi_combine([("a",)], [len(emitted)], add)
        counts.commit(attempt.txid)
        if dies:
            emitter = PlainSpout(Queue).emitter(config, ONE_TASK, store)
    assert counts.multi_get([("a",)]) == [count]
    counts.close()


BACKENDS = {
    "memory": (MemoryMap, lambda _: MemoryMapState()),
    "lru": (LRUMemoryMap, lambda _: LRUMemoryMapState(100)),
    "sqlite": (SqliteMap, lambda folder: SqliteState.opaque(folder / "state")),
    "cached": (SqliteMap, lambda folder: SqliteState.opaque(folder / "state", cache=3)),
    "folder": (FolderMap, lambda folder: FolderState.opaque(str(folder / "state"))),
}


def items(state):
    return state.values() if isinstance(state, MemoryMapState) else dict(state.items())


@pytest.mark.parametrize("backend", BACKENDS)
def test_updates_go_to_the_database_once_a_batch(tmp_path, monkeypatch, backend):
    """One read and one write for each partition and batch, whatever the number of keys."""
    (kept, make), calls = BACKENDS[backend], {"multi_get": 0, "multi_put": 0}
    for name in calls:
        real = getattr(kept, name)

        def counted_call(self, *args, name=name, real=real):
            calls[name] += bool(args[0])
            return real(self, *args)

        monkeypatch.setattr(kept, name, counted_call)
    plain = write_files(tmp_path / "in", [["a b c d e f g"] * 6])
    topology, counts = counting(tmp_path, counts=make(tmp_path))
    cluster = run_through(topology)
    committed = len([step for step in cluster.record.acked["$mastercoord-bg0"] if step.phase == "$commit"])
    assert {key[0]: value for key, value in items(counts).items()} == plain
    assert 0 < calls["multi_get"] <= 3 * committed
    assert 0 < calls["multi_put"] <= 3 * committed


class Server:
    """What a RedisMap asks of its client; ``commands``: what it asked for."""

    def __init__(self):
        self.commands, self.entries = [], {}

    def register_script(self, _):
        return self.put

    def put(self, keys, args):
        self.commands.append("script")
        self.entries.update(zip(args[3::2], args[4::2], strict=True))
        return 1

    def hmget(self, _, ids):
        self.commands.append("hmget")
        return [self.entries.get(id_) for id_ in ids]

    def hset(self, *_):
        self.commands.append("hset")

    def hget(self, *_):
        self.commands.append("hget")


def test_a_batch_costs_redis_one_read_and_one_script(monkeypatch):
    server = Server()
    monkeypatch.setattr(redis, "_connect", lambda _: (server, OSError))
    state = RedisState.opaque("redis://x", "counts").make_state({}, 0, 1)
    for txid in (1, 2, 3):
        server.commands.clear()
        state.begin_commit(txid)
        values = state.multi_combine([(number,) for number in range(50)], [1] * 50, add)
        state.commit(txid)
        assert values == [txid] * 50
        assert server.commands[-2:] == ["hmget", "script"]
        assert txid == 1 or len(server.commands) == 2, "a life begins with the partition's owner and its last keys"


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_backend_keeps_a_single_value_too(tmp_path, backend):
    topology, state = TridentTopology("single"), BACKENDS[backend][1](tmp_path)
    rows = topology.new_stream("rows", FixedBatchSpout(["n"], [[n] for n in range(30)], 4))
    rows.shuffle().persistent_aggregate(state, Count(), "n").parallelism_hint(2)
    assert run(topology.build(), containers=2, config=AT_ONCE).state == "SUCCEEDED"
    assert list(items(state).values()) == [30]
