"""What ``emit_many`` says of rows that cannot be sent, its ids, its bounds, and classes with calls of their own."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from ardea import Bolt, Grouping, Spout, Stream, Topology
from ardea.errors import EncodingError, UserError
from ardea.testing import CollectBolt, RowsSpout, run
from tests.unit.heron_instance.bench import Bench

from .many_steps import FIELDS, BoltScript, Log, ReadError, SpoutScript, bench, of


def placed(script, step, **options):
    """What the log says of the rows that cannot be sent, and the rows that have left."""
    with Log() as log:
        made = bench(script, [step], ["shuffle"] * 3, many=True, **options)
        if not issubclass(script, Spout):
            made.arrives([(1,)])
        made.turn()
        made.now += 1.0
        made.turn()
    return [record.getMessage() for record in log.records], made.left()


@pytest.mark.parametrize("script", [BoltScript, SpoutScript])
@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("kind", ["list", "generator"])
@pytest.mark.parametrize(("rows", "needs"), [(1000, False), (1000, True), (1, False)])
def test_a_refused_row_is_told_by_its_place_in_the_call(script, single, kind, rows, needs):
    """Also where a part of the call has left before, and where two are refused."""
    some: list[Any] = [(n, "a") for n in range(9)]
    some[5:5] = [(1,), (5, {6})]
    config = {"topology.executor.batch.rows": rows, "topology.max.tuple.replays": 3}
    log, left = placed(script, of(kind=kind, rows=some, needs=needs), single=single, **config)
    assert sorted(set(left)) == [(n, "a") for n in range(9)]
    width = (
        "component made, stream default: a tuple has 1 values, the stream declares 2 (n, word); rows[5] of emit_many"
    )
    foreign = "component made, stream default, field word: a value of type set cannot be sent"
    assert [line.partition(" (no tup_id")[0].partition(" (while")[0] for line in log if "rows[5]" in line] == [width]
    assert [line for line in log if line.startswith(foreign) and "rows[6] of emit_many (" in line]
    assert len(log) == 2


def test_a_single_row_behind_a_call_has_no_place_in_it():
    class AlsoOne(BoltScript):
        def do(self):
            self.emit(("1",))
            super().do()
            self.emit(("2",))

    log, _ = placed(AlsoOne, of(rows=[(1, "a"), "3"]), single=True, **{"topology.max.tuple.replays": 3})
    assert [" of emit_many" in line for line in log] == [False, True, False]


class Numbered(Spout):
    """A call without an end."""

    outputs = ["n"]
    limit = 0

    def next_tuple(self):
        self.emit_many(self.numbers(), itertools.count())

    def numbers(self):
        output = self.bench.executor.task_output
        for n in itertools.count():
            Numbered.limit = max(Numbered.limit, output.waiting)
            if n == 5000:
                raise ReadError
            yield [n]


def test_rows_without_an_end_leave_inside_the_call():
    made = Numbered.spec("made")
    parts = {"made": made, "sink": CollectBolt.spec("sink", inputs=[made])}
    there = Bench(type("Line", (Topology,), parts), "made", **{"topology.executor.batch.rows": 10})
    Numbered.limit = 0
    with pytest.raises(ReadError):
        there.turn()
    assert there.left() == [(n,) for n in range(5000)]
    assert Numbered.limit < 40
    assert there.executor.runner.open_rows == 5000


TWO = [(1,), (2,)]


@pytest.mark.parametrize(
    ("rows", "ids", "emitted", "problem"),
    [
        (list, lambda: [7], 0, "emit_many got 1 tup_ids for 2 rows; none is emitted"),
        (list, lambda: [7, 8, 9], 0, "emit_many got 3 tup_ids for 2 rows; none is emitted"),
        (list, lambda: iter([7]), 1, "emit_many got fewer tup_ids than rows"),
        (iter, lambda: [7], 1, "emit_many got fewer tup_ids than rows"),
        (iter, lambda: [7, 8, 9], 2, None),
        (list, lambda: itertools.count(7), 2, None),
    ],
)
@pytest.mark.parametrize("outputs", [["n"], ["n", Stream(["n"], "other")]], ids=["one", "two"])
def test_an_id_for_each_row(rows, ids, emitted, problem, outputs):
    told = []

    class Source(Spout):
        def next_tuple(self):
            try:
                told.append(self.emit_many(rows(TWO), ids()))
            except UserError as error:
                told.append(error.message)
            self.finish()

    Source.outputs = outputs
    made = Source.spec("made")
    there = Bench(type("Line", (Topology,), {"made": made, "sink": CollectBolt.spec("sink", inputs=[made])}), "made")
    there.turn()
    there.now += 1.0
    there.turn()
    assert (there.left(), there.executor.runner.open_rows) == (TWO[:emitted], emitted)
    assert told == [None] if problem is None else problem in told[0]


def test_ids_that_are_left_go_to_the_rows_of_the_next_call():
    class Source(Spout):
        outputs = ["n"]

        def next_tuple(self):
            ids = itertools.count(1)
            self.emit_many([[0], [0]], ids)
            self.emit_many(([0] for _ in range(3)), ids)
            self.emit_many([[0]], ids)
            self.finish()

    made = Source.spec("made")
    result = run(type("Line", (Topology,), {"made": made, "sink": CollectBolt.spec("sink", inputs=[made])}))
    assert sorted(result.acked["made"]) == [1, 2, 3, 4, 5, 6]


def test_rows_that_a_list_gets_meanwhile_need_ids_as_well():
    """The author hears of a refused row while others wait to be emitted."""

    class Source(Spout):
        outputs = ["n"]
        rows: list = []

        def next_tuple(self):
            self.rows[:] = [[n] for n in range(8)]
            self.rows[1] = [{1}]
            try:
                self.emit_many(self.rows, list(range(8)))
            except UserError as error:
                self.told = error.message
            self.finish()

        def fail(self, tup_id):
            self.rows.append([99])
            return False

    made = Source.spec("made")
    parts = {"made": made, "sink": CollectBolt.spec("sink", inputs=[made])}
    there = Bench(type("Line", (Topology,), parts), "made", **{"topology.executor.batch.rows": 1})
    there.turn()
    there.now += 1.0
    there.turn()
    assert there.left() == [(n,) for n in range(8) if n != 1]
    assert "fewer tup_ids than rows" in there.component.told


class OwnEmit(Bolt):
    """Its own ``emit`` is what each row goes through; it may return and take what it likes."""

    outputs = [Stream(["n"], "other")]

    def emit(self, values, *args):
        super().emit([values[0] + 10], "other", *args)
        return True

    def process(self, tup):
        assert self.emit_many([n] for n in range(3)) is None


class OwnMany(Bolt):
    outputs = ["n"]

    def emit_many(self, rows, **options):
        return super().emit_many(([row[0] + 10] for row in rows), **options)

    def process(self, tup):
        assert self.emit_many([[0], [1], [2]], need_task_counts=True) == {self.sink: 3}

    def initialize(self, config, context):
        (self.sink,) = context.component_tasks("sink")


@pytest.mark.parametrize("script", [OwnEmit, OwnMany])
def test_a_class_may_have_its_own(script):
    source = RowsSpout.of(["n"], [[0]]).spec("source")
    made = script.spec("made", inputs=[source])
    sink = CollectBolt.spec("sink", inputs=[made["other"] if script is OwnEmit else made])
    result = run(type("Line", (Topology,), {"source": source, "made": made, "sink": sink}))
    assert (result.state, result.inputs("sink")) == ("SUCCEEDED", [(10,), (11,), (12,)])


def test_behind_a_head_a_row_without_a_key_is_an_error_before_any_is_emitted():
    told = []

    class Headed(Bolt):
        outputs = [Stream(FIELDS), Stream(FIELDS, "other")]

        def process(self, tup):
            try:
                self.emit_many([("a",), ({1},)], anchors=(), need_task_counts=True, head=(1,))
            except EncodingError as error:
                told.append(error.message)
            told.extend(self.emit_many([("b",)], anchors=(), need_task_counts=True, head=(1,)).values())

    source = RowsSpout.of(["n"], [[0]]).spec("source")
    made = Headed.spec("made", inputs=[source])
    sink = CollectBolt.spec("sink", par=2, inputs={made: Grouping.fields("word")})
    result = run(type("Line", (Topology,), {"source": source, "made": made, "sink": sink}))
    assert "field word: a value of type set cannot" in told[0]
    assert (told[1:], result.inputs("sink")) == ([1], [(1, "b")])


class Parts(Bolt):
    """Each row by ``emit_many``, in one of two ways."""

    outputs = ["n", "part"]

    def process(self, tup):
        parts = ((tup["n"], part) for part in range(5))
        self.emit_many(parts if tup["n"] % 2 else list(parts))


class FailsSome(Bolt):
    def initialize(self, config, context):
        self.failed = set()

    def process(self, tup):
        if tup["part"] == tup["n"] % 5 and tup["n"] not in self.failed:
            self.failed.add(tup["n"])
            self.fail(tup)


def test_each_tree_waits_for_all_of_its_rows():
    class Fed(Spout):
        outputs = ["n"]

        def next_tuple(self):
            self.emit_many([[n] for n in range(20)], range(20))
            self.finish()

    fed = Fed.spec("fed")
    parts = Parts.spec("parts", inputs=[fed])
    sink = FailsSome.spec("sink", inputs=[parts])
    result = run(type("Line", (Topology,), {"fed": fed, "parts": parts, "sink": sink}))
    assert (result.state, sorted(result.acked["fed"]), sorted(result.failed["fed"])) == (
        "SUCCEEDED",
        *[[*range(20)]] * 2,
    )
    assert Counter(result.inputs("sink")) == {(n, part): 2 for n in range(20) for part in range(5)}
