"""Arrow record batches as payloads: the same tuples, trees and tasks as the row path, and their own codec."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ardea import Bolt, Grouping, Spout, Stream, TaskHook, Topology, UserError
from ardea.protocol.wire_pb2 import ARROW, ROWS
from ardea.testing import CollectBolt, RowsSpout, run

containers = pytest.mark.parametrize("containers", [1, 2])
TOTAL, EACH = 1000, 130
WORDS = [f"word {n % 37}" if n % 37 else None for n in range(TOTAL)]


def rows(start=0, end=TOTAL):
    return [(n, WORDS[n]) for n in range(start, end)]


def batch(pairs):
    return pa.record_batch(
        [pa.array([n for n, _ in pairs], pa.int64()), pa.array([w for _, w in pairs])], ["n", "word"]
    )


class Batches(Spout):
    """All rows, in batches of 130; every tracked row has its number as id."""

    outputs = ["n", "word"]
    tracked = True

    def initialize(self, config, context):
        self.next = 0

    def next_tuple(self):
        part = rows(self.next, min(self.next + EACH, TOTAL))
        if not part:
            self.finish()
            return
        self.emit_batch(batch(part), [n for n, _ in part] if self.tracked else None)
        self.next += EACH


class Untracked(Batches):
    tracked = False


class ByBatch(Bolt):
    """Reads batches whole."""

    outputs = ["n", "word"]

    def process_batch(self, rows):
        for tup in rows:
            self.emit([tup["n"], tup["word"]], anchors=[tup])


def sinks(spout, bolt=CollectBolt):
    """One bolt for each grouping; ``rows_by_key`` shares the same rows, sent one by one."""

    class Sinks(Topology):
        spout_ = spout.spec("spout")
        shuffled = bolt.spec(par=2, inputs=[spout_])
        by_key = bolt.spec(par=3, inputs={spout_: Grouping.fields("word")})
        everyone = bolt.spec(par=2, inputs={spout_: Grouping.ALL})
        first = bolt.spec(par=2, inputs={spout_: Grouping.GLOBAL})
        single = RowsSpout.of(["n", "word"], rows()).spec()
        rows_by_key = bolt.spec(par=3, inputs={single: Grouping.fields("word")})

    return Sinks


@pytest.mark.sampled(3)
@containers
@pytest.mark.parametrize("spout", [Batches, Untracked])
@pytest.mark.parametrize("bolt", [CollectBolt, ByBatch])
def test_groupings(spout, bolt, containers, headers):
    """Shuffled evenly, all to all, global to one, and equal keys to the place where the row path sends them."""
    result = run(sinks(spout, bolt), containers=containers)
    assert result.state == "SUCCEEDED"
    for sink in ("shuffled", "by_key", "first", "rows_by_key"):
        assert sorted(result.inputs(sink)) == rows()
    assert sorted(result.inputs("everyone")) == sorted(rows() * 2)
    tasks = {sink: sorted({r.task for r in result.received[sink]}) for sink in result.received}
    assert {sink: len(tasks[sink]) for sink in tasks} == {
        "shuffled": 2, "by_key": 3, "everyone": 2, "first": 1, "rows_by_key": 3
    }  # fmt: skip
    for task in tasks["shuffled"]:
        assert sum(r.task == task for r in result.received["shuffled"]) == TOTAL // 2
    places = [
        {r.values[1]: tasks[sink].index(r.task) for r in result.received[sink]} for sink in ("by_key", "rows_by_key")
    ]
    assert places[0] == places[1]
    assert sorted(result.acked["spout"]) == (list(range(TOTAL)) if spout.tracked else [])
    (spout_task,) = {r.source for r in result.received["first"]}
    data = [h for _, _, h in headers if h.kind == ROWS]
    assert {h.codec == ARROW for h in data if h.source == spout_task} == {True}
    assert {h.codec == ARROW for h in data if h.source != spout_task} == {False}


@pytest.mark.parametrize("grouping", [Grouping.GLOBAL, Grouping.SHUFFLE, Grouping.fields("word"), Grouping.ALL])
def test_what_the_record_says_of_a_batch(grouping):
    """The rows that a spout emitted as columns stand in the result as rows, whatever reads them."""

    class Recorded(Topology):
        spout = Untracked.spec()
        sink = CollectBolt.spec(par=2, inputs={spout: grouping})

    assert run(Recorded).tuples("spout") == rows()


@containers
def test_failed_rows_of_a_batch_are_sent_again(containers):
    """Only those, with their ids; the others of their batch are acked the first time."""

    class FailsOnce(Bolt):
        def initialize(self, config, context):
            self.failed = set()

        def process(self, tup):
            if tup["n"] % 10 == 3 and tup["n"] not in self.failed:
                self.failed.add(tup["n"])
                self.fail(tup)

    class Failing(Topology):
        spout = Batches.spec()
        sink = FailsOnce.spec(par=2, inputs={spout: Grouping.fields("word")})

    result = run(Failing, containers=containers)
    threes = list(range(3, TOTAL, 10))
    assert (result.state, sorted(result.acked["spout"])) == ("SUCCEEDED", list(range(TOTAL)))
    assert sorted(result.failed["spout"]) == threes
    assert sorted(n for n, _ in result.inputs("sink")) == sorted([*range(TOTAL), *threes])


@containers
def test_rows_and_batches_in_turn_keep_their_order(containers):
    """Rows before, between and behind batches, on two streams, some ids None: one task gets all as emitted."""

    class Mixed(Spout):
        outputs = [Stream(["n", "word"]), Stream(["n"], "other")]

        def initialize(self, config, context):
            self.n = 0

        def next_tuple(self):
            for size in (3, 1, 60):
                self.emit([self.n, "row"], tup_id=self.n)
                self.emit([self.n + 1], stream="other")
                part = [(n, "batch") for n in range(self.n + 2, self.n + 2 + size)]
                self.emit_batch(batch(part), [n if n % 2 else None for n, _ in part])
                self.emit([self.n + 2 + size, "row"])
                self.n += size + 3
            if self.n > 500:
                self.finish()

    class InTurn(Topology):
        spout = Mixed.spec()
        sink = CollectBolt.spec(inputs=[spout, spout["other"]])

    result = run(InTurn, containers=containers)
    got = [values[0] for values in result.inputs("sink")]
    assert (result.state, got) == ("SUCCEEDED", list(range(len(got))))
    batched = {values[0] for values in result.inputs("sink") if values[1:] == ("batch",)}
    tracked = {n for n in batched if n % 2}
    assert tracked <= set(result.acked["spout"])
    assert not (batched - tracked) & set(result.acked["spout"])


def test_an_empty_batch_is_nothing():
    """No rows: nothing leaves, nothing waits."""

    class Empty(Spout):
        outputs = ["n", "word"]

        def next_tuple(self):
            self.emit_batch(batch([]), [])
            self.emit_batch(batch([(0, "word")]), ["id"])
            self.finish()

    class EmptyTopology(Topology):
        spout = Empty.spec()
        sink = CollectBolt.spec(inputs=[spout])

    result = run(EmptyTopology)
    assert (result.state, result.inputs("sink"), result.acked["spout"]) == ("SUCCEEDED", [(0, "word")], ["id"])


@pytest.mark.parametrize("mode", [{"topology.reliability.mode": "ATMOST_ONCE"}, {"topology.acker.executors": 0}])
def test_batches_are_acked_at_once_without_acking(mode):
    """``ack`` hears of every id although columns leave inside the call."""

    class AtOnce(Topology):
        spout = Batches.spec()
        sink = CollectBolt.spec(inputs=[spout])

    result = run(AtOnce, config=mode)
    assert (result.state, result.acked["spout"], result.inputs("sink")) == ("SUCCEEDED", list(range(TOTAL)), rows())


@pytest.mark.parametrize(
    ("columns", "ids", "stream", "problem"),
    [
        (["n"], None, "default", "1 columns, the stream declares 2 (n, word)"),
        (["n", "word"], [1], "default", "1 tup_ids for a batch of 2 rows"),
        (["n", "word"], None, "nowhere", "Unknown stream ID: nowhere"),
        (["n", "word"], None, "direct", "direct stream direct"),
    ],
)
def test_wrong_batches_are_errors_at_the_emit(columns, ids, stream, problem):
    """Columns, ids, and streams that do not fit: UserError, and the rows emitted before are not lost."""
    errors = []

    class Wrong(Spout):
        outputs = [Stream(["n", "word"]), Stream(["n", "word"], "direct", direct=True)]

        def next_tuple(self):
            self.emit([1, "before"], tup_id=1)
            try:
                self.emit_batch(pa.record_batch({name: [1, 2] for name in columns}), ids, stream)
            except UserError as error:
                errors.append(error.message)
            self.finish()

    class WrongTopology(Topology):
        spout = Wrong.spec()
        sink = CollectBolt.spec(inputs=[spout])

    result = run(WrongTopology)
    assert (result.state, result.inputs("sink")) == ("SUCCEEDED", [(1, "before")])
    assert len(errors) == 1
    assert problem in errors[0]


def test_hooks_see_each_row_of_a_batch():
    """With its values and the tasks that got it."""
    seen = []

    class Watch(TaskHook):
        def emit(self, info):
            seen.append((tuple(info.values), info.stream, info.out_tasks))

    class Watched(Batches):
        def initialize(self, config, context):
            super().initialize(config, context)
            context.add_task_hook(Watch())

    class Hooked(Topology):
        spout = Watched.spec()
        sink = CollectBolt.spec(inputs=[spout])

    result = run(Hooked)
    assert result.state == "SUCCEEDED"
    assert [values for values, _, _ in seen] == rows()
    assert {stream for _, stream, _ in seen} == {"default"}
    assert all(len(tasks) == 1 for _, _, tasks in seen)
    assert sorted(result.inputs("sink")) == sorted(rows())
