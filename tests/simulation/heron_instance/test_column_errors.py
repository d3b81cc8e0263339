"""Columns that are wrong, do not fit or cannot be sent: what fails, and that nothing else does."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pyarrow as pa
import pytest

from ardea import Bolt, Grouping, Spout, Stream, TaskHook, Topology, TopologyError, UserError
from ardea.heron_instance.row_calls import read_rows
from ardea.plan.logical import StreamPlan
from ardea.protocol.arrow import encode_batch
from ardea.protocol.values import RowCodec
from ardea.protocol.wire_pb2 import ARROW, Header
from ardea.testing import CollectBolt, RowsSpout, run
from tests.simulation.heron_instance.numbered import PAIRS, TOTAL, Batches, Same, a_batch


@pytest.mark.parametrize(
    ("emit", "problem"),
    [
        (lambda bolt, c: bolt.emit_batch(c.batch.slice(1)), "nothing says whose trees"),
        (lambda bolt, c: bolt.emit_batch(c.batch, anchors=[0]), "1 anchors for 2 rows"),
        (lambda bolt, c: bolt.emit_batch(c.batch, anchors=[0, 2]), "from 0 to 2 of a batch of 2 rows"),
        (lambda bolt, c: bolt.emit_batch(c.batch, anchors=[-1, 0]), "from -1 to 0"),
        (lambda bolt, c: bolt.emit_batch(c.batch, anchors=[True, False]), "array of integers"),
        (lambda bolt, c: bolt.emit_batch(c.batch, anchors=pa.array([[0]])), "1 anchors for 2 rows"),
        (lambda bolt, c: bolt.emit_batch(c.batch, anchors={"c": [0, 1]}), "process_columns got"),
        (lambda bolt, c: bolt.emit_batch(pa.table(c.batch)), "got a Table"),
        (lambda bolt, c: bolt.emit_batch(c.batch.select(["n"])), "1 columns, the stream declares 2"),
        (lambda bolt, c: bolt.emit_batch(c.batch, "nowhere"), "Unknown stream ID"),
        (lambda bolt, c: bolt.emit_batch(c.batch, "direct"), "direct stream"),
        (lambda bolt, c: bolt.fail_batch(c, [2]), "from 2 to 2 of a batch of 2 rows"),
        (lambda bolt, c: bolt.ack_batch(c.batch), "take what process_columns got"),
        (lambda bolt, c: (bolt.fail_batch(c), bolt.emit_batch(c.batch)), "acked or failed already"),
    ],
)  # fmt: skip
def test_wrong_emits_are_errors(emit, problem):
    errors = []

    class Wrong(Bolt):
        outputs = [Stream(["n", "word"]), Stream(["n", "word"], "direct", direct=True)]

        def process_columns(self, columns):
            if not errors:
                try:
                    emit(self, columns)
                except UserError as error:
                    errors.append(f"{error.message}")

    class Two(Spout):
        outputs = ["n", "word"]

        def next_tuple(self):
            self.emit_batch(a_batch(0, 2), [0, 1])
            self.finish()

    class WrongTopology(Topology):
        spout = Two.spec()
        wrong = Wrong.spec(inputs=[spout])
        sink = CollectBolt.spec(inputs=[wrong])

    result = run(WrongTopology)
    assert (result.state, result.inputs("sink")) == ("SUCCEEDED", [])
    assert len(errors) == 1
    assert problem in errors[0]


def test_a_double_ack_is_ignored():
    class Acks(Bolt):
        auto_ack = False

        def process_columns(self, columns):
            self.ack_batch(columns, [0, 0])
            self.fail_batch(columns, [0])
            self.ack_batch(columns)
            self.ack_batch(columns)

    class Acking(Topology):
        spout = Batches.spec()
        acks = Acks.spec(inputs=[spout])

    result = run(Acking)
    assert (result.state, result.failed["spout"]) == ("SUCCEEDED", [])
    assert sorted(result.acked["spout"]) == list(range(TOTAL))


class TypedColumns(Bolt):
    column_types = {"n": "int32", "word": pa.string()}
    seen = []

    def process_columns(self, columns):
        self.seen += zip(columns["n"].to_pylist(), columns["word"].to_pylist(), strict=True)
        assert [f.type for f in columns.batch.schema] == [pa.int32(), pa.string()]


class InferredColumns(TypedColumns):
    column_types = {}

    def process_columns(self, columns):
        self.seen += zip(columns["n"].to_pylist(), columns["word"].to_pylist(), strict=True)


@pytest.mark.parametrize(
    ("bolt", "bad", "reason"),
    [
        (TypedColumns, [(2**40, "big"), ("text", "a"), (1, 7)], "does not fit into a column of"),
        (InferredColumns, [("text", "a"), (2.5, "b"), (b"raw", "c")], "does not fit into a column of int64"),
    ],
)
def test_rows_that_are_no_columns_fail_alone(bolt, bad, reason, caplog):
    """Their neighbours go on; the error names field and value's type."""
    good = [(n, f"w{n}") for n in range(12)]

    class Together(Spout):
        outputs = ["n", "word"]

        def next_tuple(self):
            for place, row in enumerate([*good[:3], *bad, *good[3:]]):
                self.emit(row, tup_id=place)
            self.finish()

    class Odd(Topology):
        spout = Together.spec()
        sink = bolt.spec("sink", inputs=[spout])
        config = {"topology.max.tuple.replays": 0, "topology.executor.batch.rows": 100}

    bolt.seen.clear()
    result = run(Odd)
    assert sum(reason in record.getMessage() for record in caplog.records) == len(bad)
    assert sorted(bolt.seen) == good
    assert result.state == "FAILED"
    assert sorted(set(result.failed["spout"])) == list(range(3, 3 + len(bad)))
    assert set(result.acked["spout"]) == set(range(12 + len(bad))) - set(range(3, 3 + len(bad)))


def test_arriving_columns_are_cast():
    """int64 to the declared int32 where that loses nothing; a row that would lose fails."""

    class Large(Batches):
        def next_tuple(self):
            self.emit_batch(pa.record_batch({"n": [1, 2**40, 3], "word": ["a", "b", "c"]}), [1, 2, 3])
            self.finish()

    class Casting(Topology):
        spout = Large.spec()
        sink = TypedColumns.spec(inputs=[spout])
        config = {"topology.max.tuple.replays": 0}

    TypedColumns.seen.clear()
    result = run(Casting)
    assert TypedColumns.seen == [(1, "a"), (3, "c")]
    assert (sorted(result.acked["spout"]), result.failed["spout"]) == ([1, 3], [2])


def test_columns_that_rows_cannot_have_end_the_task():
    """A row bolt cannot read nanoseconds; it says which column, and of whom, and no restart can help."""
    batch = pa.record_batch({"n": pa.array([1], pa.timestamp("ns")), "word": ["a"]})
    env = SimpleNamespace(task=SimpleNamespace(name="sink-0"))
    header, stream = Header(codec=ARROW, rows=1), StreamPlan("default", ("n", "word"))
    with pytest.raises(UserError) as caught:
        read_rows(env, RowCodec(), header, [encode_batch(batch)], "spout", stream)
    assert "sink-0, stream default of spout: column n of timestamp[ns]" in caught.value.message


@pytest.mark.parametrize("way", ["too large", "no key"])
def test_a_row_that_cannot_be_sent_leaves_the_others_columns(way, headers):
    """It fails its anchor, and only that; the rest of its batch travels as columns."""

    class Grows(Bolt):
        outputs = ["n", "word"]

        def process_columns(self, columns):
            numbers = columns["n"].to_pylist()
            if way == "too large":
                words = ["x" * 1_500_000 if n == 7 else "short" for n in numbers]
            else:
                words = [{"a": 1} if n == 7 else None for n in numbers]
            self.emit_batch(pa.record_batch({"n": numbers, "word": words}))

    class Growing(Topology):
        spout = RowsSpout.of(["n", "word"], PAIRS[:20]).spec()
        grows = Grows.spec(inputs=[spout])
        sink = CollectBolt.spec(par=2, inputs={grows: Grouping.fields("word")})
        config = {"topology.max.tuple.bytes": 1_200_000, "topology.max.tuple.replays": 1}

    result = run(Growing)
    assert result.state == "FAILED"
    assert sorted({n for n, _ in result.inputs("sink")}) == [n for n in range(20) if n != 7]
    assert set(result.failed["spout"]) == {7}
    assert set(result.acked["spout"]) == {*range(20)} - {7}


def test_hooks_see_each_row():
    seen = Counter()

    class Watch(TaskHook):
        def emit(self, info):
            seen["emit", tuple(info.values)] += 1

        def bolt_execute(self, info):
            seen["execute", info.tup.values] += 1

        def bolt_ack(self, info):
            seen["ack", info.tup.values] += 1

    class Watched(Same):
        def initialize(self, config, context):
            context.add_task_hook(Watch())

    class Hooked(Topology):
        spout = Batches.spec()
        same = Watched.spec(inputs=[spout])
        sink = CollectBolt.spec(inputs=[same])

    result = run(Hooked)
    assert (result.state, sorted(result.inputs("sink"))) == ("SUCCEEDED", PAIRS)
    assert sorted(result.acked["spout"]) == list(range(TOTAL))
    assert seen == Counter({(what, pair): 1 for what in ("emit", "execute", "ack") for pair in PAIRS})


def test_an_exception_fails_the_batch():
    class Raises(Bolt):
        calls = 0

        def process_columns(self, columns):
            Raises.calls += 1
            if Raises.calls == 1:
                self.ack_batch(columns, [0])
                raise ValueError("no")

    class Raising(Topology):
        spout = Batches.spec()
        sink = Raises.spec(inputs=[spout])

    Raises.calls = 0
    result = run(Raising)
    assert (result.state, sorted(result.acked["spout"])) == ("SUCCEEDED", list(range(TOTAL)))
    failed = sorted(result.failed["spout"])
    assert failed == list(range(1, len(failed) + 1))


def test_an_empty_batch_is_nothing():
    """Whatever anchors it has; the rows behind it leave."""

    class Nothing(Spout):
        outputs = ["n", "word"]

        def next_tuple(self):
            self.emit_batch(a_batch(0, 0), range(0))
            self.emit([1, "one"], tup_id=1)
            self.finish()

    class Passes(Bolt):
        outputs = ["n", "word"]

        def process_columns(self, columns):
            nothing = columns.batch.slice(0, 0)
            self.emit_batch(nothing)
            self.emit_batch(nothing, anchors=pa.array([], pa.list_(pa.int64())))
            self.emit_batch(nothing, anchors={columns: []})
            self.emit([columns["n"][0].as_py(), "row"])

    class Empty(Topology):
        spout = Nothing.spec()
        passes = Passes.spec(inputs=[spout])
        sink = CollectBolt.spec(inputs=[passes])

    result = run(Empty)
    assert (result.state, result.inputs("sink"), result.acked["spout"]) == ("SUCCEEDED", [(1, "row")], [1])


def test_what_a_bolt_for_columns_cannot_read_is_refused_when_it_is_built():
    class Signals(Spout):
        outputs = [Stream(["n"]), Stream([], "signal")]

        def next_tuple(self):
            self.finish()

    class Misspelt(Bolt):
        column_types = {"n": "int64", "m": "int64"}

        def process_columns(self, columns): ...

    class Refused(Topology):
        spout = Signals.spec()
        sink = Misspelt.spec(inputs=[spout, spout["signal"]])

    with pytest.raises(TopologyError) as caught:
        run(Refused)
    assert list(caught.value.problems) == [
        "Component: [sink] reads columns, and stream: [signal] of component [spout] has no fields",
        "Component: [sink]: column_types of fields that no input has: [m]",
    ]


def test_what_is_no_type_ends_the_topology():
    class Wrong(Bolt):
        column_types = {"n": "int31"}

        def process_columns(self, columns): ...

    class NoType(Topology):
        spout = Batches.spec()
        sink = Wrong.spec(inputs=[spout])

    result = run(NoType)
    assert result.state == "FAILED"
    assert "sink-0: column_types: 'int31' is no name of an Arrow type" in result.reason
