"""Whether what an author writes can be called as it will be: said when the plan is made."""

from __future__ import annotations

import functools

import pytest

from ardea import (
    CustomStreamGrouping,
    Grouping,
    Sink,
    Source,
    SourceSpout,
    Spout,
    TaskHook,
    TopologyBuilder,
    TopologyError,
    TwoPhaseSink,
)
from ardea.trident import TridentTopology


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


class Line:
    def __init__(self, tup): ...


class Static(Writes):
    row = staticmethod(lambda tup: [tup["line"]])


class Given(Writes):
    row = functools.partial(lambda table, tup: [table, tup["line"]], "lines")


class Made(Writes):
    row = Line


class Found(Writes):
    @functools.cached_property
    def row(self): ...


@pytest.mark.parametrize("cls", [Writes, Commits, Batches, Columns, Static, Given, Made, Found])
def test_sinks_that_can_be_called(cls):
    assert topology(cls).plan()["b"].cls is cls


class Nowhere(CustomStreamGrouping):
    pass


class Storms(CustomStreamGrouping):
    def choose_tasks(self, task_id, values): ...


class PreparesAsync(CustomStreamGrouping):
    async def prepare(self, context, component, stream, target_tasks): ...

    def choose_tasks(self, values): ...


GROUPINGS = {
    Nowhere: "Nowhere has no choose_tasks(values)",
    Storms: "the engine calls choose_tasks(values), which Storms.choose_tasks does not take: missing a required"
    " argument: 'values'",
    PreparesAsync: f"PreparesAsync.prepare is async: {NOTHING}",
}


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_the_methods_of_a_grouping(grouping):
    where = "Component: [b] subscribes from stream: [default] of component [lines] by custom: "
    assert problems(Writes, Grouping.custom(grouping)) == (where + GROUPINGS[grouping],)


def test_trident_asks_them_likewise():
    with pytest.raises(TopologyError, match=r"partition\(\): Nowhere has no choose_tasks\(values\)"):
        TridentTopology("t").new_stream("lines", Lines).partition(Nowhere())


class Prepares(CustomStreamGrouping):
    def prepare(self, context, component, stream, target_tasks):
        self.always = target_tasks[0]


class Yields(CustomStreamGrouping):
    def choose_tasks(self, values):
        yield 1


@pytest.mark.parametrize("grouping", [Prepares, Yields])
def test_groupings_that_can_be_asked(grouping):
    assert topology(Writes, Grouping.custom(grouping)).plan()["b"].inputs[0].grouping.describe()


class AcksAsync(TaskHook):
    async def bolt_ack(self, info): ...


class EmitsNothing(TaskHook):
    def emit(self): ...


class Made(TaskHook):
    def __init__(self, path): ...


HOOKS = {
    AcksAsync: f"AcksAsync.bolt_ack is async: {NOTHING}",
    EmitsNothing: "the engine calls emit(info), which EmitsNothing.emit does not take: too many positional arguments",
    Made: "the engine calls Made() without arguments, and that fails: missing a required argument: 'path'",
}


@pytest.mark.parametrize("hook", HOOKS)
def test_the_methods_of_a_hook(hook):
    name = f"{__name__}:{hook.__qualname__}"
    found = problems(Writes, config={"topology.auto.task.hooks": [name]})
    assert found == (f"topology.auto.task.hooks: task hook {name!r}: {HOOKS[hook]}",)


class Unopened(Source):
    def list_partitions(self): ...


class FromNowhere(Unopened):
    def open(self, partition): ...


class OpensAsync(Unopened):
    async def open(self, partition, position): ...


class Unlisted(Source):
    def open(self, partition, position): ...


SOURCES = {
    Unopened: "Unopened has no open(partition, position)",
    FromNowhere: "the engine calls open(partition, position), which FromNowhere.open does not take: too many positional"
    " arguments",
    OpensAsync: f"OpensAsync.open is async: {NOTHING}",
    Unlisted: "Unlisted has no list_partitions()",
}


@pytest.mark.parametrize("source", SOURCES)
def test_the_methods_of_a_source(source):
    with pytest.raises(TopologyError) as caught:
        SourceSpout(source())
    assert caught.value.problems == (f"SourceSpout: {SOURCES[source]}",)
