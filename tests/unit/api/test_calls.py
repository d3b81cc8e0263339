"""Whether what an author writes can be called as it will be: said when the plan is made."""

from __future__ import annotations

import pytest

from ardea import Sink, Spout, TopologyBuilder, TopologyError, TwoPhaseSink


class Lines(Spout):
    outputs = ("line",)

    def next_tuple(self): ...


def topology(cls, grouping=None, config=None) -> TopologyBuilder:
    builder = TopologyBuilder("t")
    lines = builder.add_spout("lines", Lines)
    builder.add_bolt("b", cls, inputs=[lines] if grouping is None else {lines: grouping})
    builder.set_config(config or {})
    return builder


def problems(*args, **options) -> tuple[str, ...]:
    with pytest.raises(TopologyError) as caught:
        topology(*args, **options).plan()
    return caught.value.problems


class Writes(Sink):
    def write_batch(self, rows): ...


class Commits(TwoPhaseSink):
    def commit(self, mark, rows): ...


class Unwritten(Sink):
    def process(self, tup): ...


class Uncommitted(TwoPhaseSink):
    pass


class WritesAsync(Sink):
    async def write_batch(self, rows): ...


class WritesYielding(Sink):
    def write_batch(self, rows):
        yield from rows


class CommitsAsync(TwoPhaseSink):
    async def commit(self, mark, rows): ...


class WithoutMark(TwoPhaseSink):
    def commit(self, rows): ...


class Disconnects(Commits):
    async def disconnect(self): ...


class RowOfNothing(Writes):
    def row(self): ...


NOTHING = "called by the engine, it would do nothing"
SINKS = {
    Unwritten: "Unwritten has no write_batch(rows)",
    Uncommitted: "Uncommitted has no commit(mark, rows)",
    WritesAsync: f"WritesAsync.write_batch is async: {NOTHING}",
    WritesYielding: f"WritesYielding.write_batch is a generator: {NOTHING}",
    CommitsAsync: f"CommitsAsync.commit is async: {NOTHING}",
    WithoutMark: "the engine calls commit(mark, rows), which WithoutMark.commit does not take: too many positional"
    " arguments",
    Disconnects: f"Disconnects.disconnect is async: {NOTHING}",
    RowOfNothing: "the engine calls row(tup), which RowOfNothing.row does not take: too many positional arguments",
}


@pytest.mark.parametrize("cls", SINKS)
def test_the_methods_of_a_sink(cls):
    assert problems(cls) == (f"Component: [b]: {SINKS[cls]}",)


class Batches(TwoPhaseSink):
    def process_batch(self, rows): ...


class Columns(Sink):
    def process_columns(self, columns): ...


class Static(Writes):
    row = staticmethod(lambda tup: [tup["line"]])


@pytest.mark.parametrize("cls", [Writes, Commits, Batches, Columns, Static])
def test_sinks_that_can_be_called(cls):
    assert topology(cls).plan()["b"].cls is cls
