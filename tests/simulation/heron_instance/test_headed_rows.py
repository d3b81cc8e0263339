"""Rows that have their first values in common: whoever reads them sees no difference, and the values travel once."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ardea import Bolt, Grouping, Stream, TaskHook, Topology
from ardea.component import DEFAULT_STREAM
from ardea.errors import ProtocolError
from ardea.protocol.headed import HeadedRows
from ardea.protocol.values import RowCodec
from ardea.protocol.wire_pb2 import ROWS
from ardea.testing import CollectBolt, RowsSpout, run
from ardea.tuples import TupleBatch
from tests.sizes import share

HEADS = [(), (1,), (2,), (1, "a"), (None, "a")]
ROW = (7, "a", "w")
MIXED = [("one", (1, "a"), [("u",), ("v",)]), ("one", (), None), ("one", (2,), [["b", "w"]])]


class Whole(Bolt):
    """Reads batches as they come."""

    outputs = ["n", "letter", "word"]

    def process_batch(self, rows):
        assert isinstance(rows, TupleBatch)
        for values, tup in zip(rows.rows, rows, strict=True):
            assert values == tup.values
            self.emit(values)


class Columns(Bolt):
    outputs = ["n", "letter", "word"]
    column_types = {"n": "int64", "letter": "string", "word": "string"}

    def process_columns(self, columns):
        self.emit_batch(columns.batch)


class Noisy(TaskHook):
    def emit(self, info):
        pass


def script(steps, hooked=False, single=False):
    """A bolt that takes these steps for its one input: (stream, head, rows behind it), a single row without a head.

    ``told`` is what it says that it sent, and where to.
    """

    class Script(Bolt):
        outputs = [Stream(["n", "letter", "word"], name) for name in ([DEFAULT_STREAM] if single else ["one", "two"])]
        told: list = []

        def initialize(self, config, context):
            if hooked:
                context.add_task_hook(Noisy())

        def process(self, tup):
            for stream, head, rows in steps:
                if rows is None:
                    self.emit(ROW, stream=stream)
                else:
                    counts = self.emit_many(rows, stream, (), need_task_counts=True, head=head)
                    Script.told.append((stream, counts))

    first = DEFAULT_STREAM if single else "one"

    class Headed(Topology):
        source = RowsSpout.of(["n"], [[0]]).spec()
        script = Script.spec(inputs=[source])
        rows = CollectBolt.spec(par=2, inputs={script[first]: Grouping.fields("word")})
        whole = Whole.spec(par=2, inputs={script[first]: Grouping.fields("letter", "word")})
        columns = Columns.spec(inputs=[script[first]])
        batches = CollectBolt.spec(inputs=[whole])
        unpacked = CollectBolt.spec(inputs=[columns])
        if not single:
            other = CollectBolt.spec(inputs=[script["two"]])

    return Script, Headed


def expected(steps, stream):
    return [(*head, *row) for s, head, rows in steps if s == stream for row in ([ROW] if rows is None else rows)]


def step(draw):
    stream = draw(st.sampled_from(["one", "one", "two"]))
    if draw(st.integers(0, 5)) == 0:
        return stream, (), None
    head = draw(st.sampled_from(HEADS))
    row = (st.integers(0, 9), st.sampled_from("ab"), st.sampled_from("uvw"))[len(head) :]
    kind = draw(st.sampled_from([list, tuple]))
    return stream, head, draw(st.lists(st.tuples(*row).map(kind), max_size=4))


steps_of = st.lists(st.composite(step)(), max_size=8)


@settings(max_examples=share(40), deadline=None, suppress_health_check=list(HealthCheck))
@example(steps=MIXED, hooked=False, limit=1000, containers=1)
@given(steps=steps_of, hooked=st.booleans(), limit=st.sampled_from([2, 1000]), containers=st.integers(1, 2))
def test_a_reader_sees_whole_rows_in_order(steps, hooked, limit, containers):
    emitter, topology = script(steps, hooked)
    result = run(topology, containers=containers, config={"topology.executor.batch.rows": limit})
    assert result.state == "SUCCEEDED"
    one = expected(steps, "one")
    assert result.inputs("other") == expected(steps, "two")
    assert result.inputs("unpacked") == one
    assert sorted(map(repr, result.inputs("batches"))) == sorted(map(repr, one))
    for task in {r.task for r in result.received["rows"]}:
        mine = [r.values for r in result.received["rows"] if r.task == task]
        words = {word for _, _, word in mine}
        assert mine == [row for row in one if row[2] in words]
    assert len(result.received["rows"]) == len(one)
    for stream, counts in emitter.told:
        assert sum(counts.values()) % (3 if stream == "one" else 1) == 0
    assert sum(sum(counts.values()) for stream, counts in emitter.told if stream == "one") == 3 * (
        len(one) - sum(s == "one" and rows is None for s, _, rows in steps)
    )


def of_script(result, headers):
    (task,) = {r.source for r in result.received["rows"]}
    return [header for _, _, header in headers if header.kind == ROWS and header.source == task]


def test_a_head_travels_once_a_message(headers):
    """Unlike one that only some of its rows have."""
    same = [("one", (1, "a"), [("u",), ("v",)]), ("one", (1, "a"), [("w",)])]
    found = of_script(run(script(same)[1]), headers)
    assert found
    assert {RowCodec().decode(header.head)[0] for header in found} == {(1, "a")}
    headers.clear()
    found = of_script(run(script([*same, ("one", (2, "a"), [("w",)])])[1]), headers)
    assert {header.head for header in found} == {b""}


def test_who_has_one_stream_may_emit_behind_a_head():
    """Its plain emits do not look at the head of what waits."""
    steps = [(DEFAULT_STREAM, (1, "a"), [("u",)]), (DEFAULT_STREAM, (), None)]
    result = run(script(steps, single=True)[1])
    assert result.inputs("unpacked") == [(1, "a", "u"), ROW]


@pytest.mark.parametrize(
    ("head", "bad", "problem"),
    [
        ((1, "a"), ({1},), "stream two, field word: a value of type set cannot be sent"),
        (("x" * 20_000_000, "a"), ("u",), "stream two: a tuple of 20,000,"),
        (({1}, "a"), ("u",), "stream two, field n: a value of type set cannot be sent"),
        ((1, "a"), ("u", 2), "a tuple has 4 values, the stream declares 3"),
        ((1, "a"), (), "a tuple has 2 values, the stream declares 3"),
    ],
)
def test_a_row_that_cannot_be_sent_is_told_as_a_whole(head, bad, problem, caplog):
    """Its neighbours arrive, unless it is the head that cannot be sent."""
    result = run(script([("two", head, [("u",), bad, ("v",)])])[1])
    whole = [] if head != (1, "a") else [(1, "a", "u"), (1, "a", "v")]
    assert result.inputs("other") == whole
    assert problem in result.reason or any(problem in record.getMessage() for record in caplog.records)


@given(st.tuples(st.integers(), st.text()), st.lists(st.tuples(st.integers()), max_size=5))
def test_they_are_a_sequence_of_whole_rows(head, body):
    rows, whole = HeadedRows(head, body), [(*head, *row) for row in body]
    assert (list(rows), len(rows), [rows[i] for i in range(len(rows))]) == (whole, len(whole), whole)
    assert list(rows[1:3]) == whole[1:3]


@pytest.mark.parametrize("head", [[], [(1,), (2,)], [(1, 2, 3, 4)]], ids=["none", "two", "long"])
def test_what_is_no_head_is_refused(head):
    codec = RowCodec()
    with pytest.raises(ProtocolError, match="MALFORMED_ROWS"):
        codec.decode_headed(codec.encode(head), codec.encode([("u",)]), 3)
