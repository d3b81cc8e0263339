"""Whether a two-phase sink writes each interval once, whatever happens to the task that writes it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from ardea.context import TopologyContext
from ardea.plan.physical import PhysicalPlan
from ardea.scheduler.packing import packing_for
from ardea.sinks import Mark, Row, TwoPhaseSink, keep_rows
from ardea.snapshots import rows_file
from ardea.testing.components import CollectBolt, RowsSpout
from ardea.testing.sources import same
from ardea.topology import TopologyBuilder

NOTHING: Mapping[str, Any] = MappingProxyType({})


def check_sink(
    make_sink: Callable[[], TwoPhaseSink],
    read_back: Callable[[], Sequence[Any]],
    rows: Sequence[Row],
    *,
    config: Mapping[str, Any] = NOTHING,
) -> None:
    """Runs a sink through what may happen to it; each check that fails says what an author has to mend.

    Args:
        make_sink: makes one, as the engine does: its class, ``PostgresSink(…).spec().cls``.  They all write to the same
            place, which is empty.
        read_back: what lies there now, that committed readers see, in the order in which it was written.
        rows: six rows as ``row`` makes them, all different; what is read back equals them, as tuples, once they have
            been stored (docs/keys.md): a tuple in a row is a list.
        config: what ``initialize`` is given.

    Raises:
        AssertionError: the sink writes too little, too much, in another order, or too early.
        UserError: a value of ``rows`` cannot be stored.
    """
    if len(rows) != 6:
        raise ValueError(f"check_sink takes six rows, not {len(rows)}")
    _Check(make_sink, read_back, list(_Stored(rows)), config).run()


class _Stored:
    """Rows as the engine gives them to ``commit``: read anew each time that somebody goes through them.

    ``broken``: what is raised after the last.
    """

    def __init__(self, rows: Sequence[Row], broken: Exception | None = None) -> None:
        self._content = rows_file.head_of(_mark(1)) + rows_file.encode_rows(rows, "sink")
        self._broken = broken

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        yield from rows_file.rows_of(self._content, "check_sink")
        if self._broken is not None:
            raise self._broken


class _Check:
    """``expected``: what is to be outside now."""

    def __init__(
        self,
        make_sink: Callable[[], TwoPhaseSink],
        read_back: Callable[[], Sequence[Any]],
        rows: list[tuple[Any, ...]],
        config: Mapping[str, Any],
    ) -> None:
        self._make, self._read, self._rows, self._config = make_sink, read_back, rows, config
        self._expected: list[tuple[Any, ...]] = []
        self._sinks: list[TwoPhaseSink] = []

    def run(self) -> None:
        """All, one after the other: each goes on with what those before it have written."""
        try:
            self._steps()
        finally:
            for sink in self._sinks:
                sink.disconnect()

    def _steps(self) -> None:
        first, second, third, fourth, fifth, sixth = self._rows
        sink = self._sink()
        self._see([], "a sink that has committed nothing wrote something: nothing may be written before commit()")
        sink.commit(_mark(1), _Stored([first, second]))
        self._see([first, second], "an interval is not there, whole and in order, when commit() has returned")
        sink.commit(_mark(1), _Stored([first, second]))
        self._see([], "an interval that is committed twice is there twice: look at the mark in the same transaction")
        self._sink().commit(_mark(1), _Stored([first, second]))
        self._see([], "a task that was started again wrote an interval again: the mark is to be outside, not in memory")
        self._breaks(sink, third)
        self._see([], "a commit that failed in the middle has left rows: rows and mark are to be one transaction")
        sink.commit(_mark(3), _Stored([third]))
        self._see([third], "a commit that had failed was repeated and wrote nothing, or twice")
        sink.commit(_mark(4), _Stored([]))
        self._see([], "an interval without rows wrote some")
        successor = self._sink()  # while the former one is frozen
        successor.commit(_mark(5), _Stored([fourth]))
        self._see([fourth], "a new life of the task, which goes on while the former one is frozen, wrote nothing")
        self._wakes(sink, fourth)
        self._see([], "a former life of the task, which woke up, wrote an interval that is there")
        successor.commit(_mark(6, task=1), _Stored([fifth]))
        self._see([fifth], "rows of a task that is gone were not written: the number counts for mark.owner only")
        successor.commit(_mark(1, topology="check-2"), _Stored([sixth]))
        self._see([sixth], "rows of another submission were not written: the number counts for mark.owner only")
        successor.commit(_mark(6, task=1), _Stored([fifth]))
        self._see([], "an interval of another task was written twice")

    def _sink(self) -> TwoPhaseSink:
        sink = self._make()
        keep_rows(sink, _kept)
        sink.initialize({**self._config}, _context(self._config))
        self._sinks.append(sink)
        return sink

    def _breaks(self, sink: TwoPhaseSink, row: Row) -> None:
        broken = OSError("the store of snapshots cannot be read at present")
        try:
            sink.commit(_mark(3), _Stored([row], broken))
        except Exception as error:
            if broken in _chain(error):
                return
            raise
        raise AssertionError("commit() returned although its rows could not be read: let what they raise pass")

    def _wakes(self, sink: TwoPhaseSink, row: Row) -> None:
        """It may refuse, or see that there is nothing to do."""
        for number in (3, 5):
            with contextlib.suppress(Exception):
                sink.commit(_mark(number), _Stored([row]))

    def _see(self, more: list[tuple[Any, ...]], otherwise: str) -> None:
        self._expected += more
        found = [tuple(row) for row in self._read()]
        if not same(found, self._expected):
            raise AssertionError(f"{otherwise}\n  expected: {self._expected}\n  found:    {found}")


def _mark(number: int, *, topology: str = "check-1", task: int = 0) -> Mark:
    return Mark(topology, "sink", task, 1 << 32 | number)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """It, and what it was raised from, or after."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _kept(rows: Sequence[Row]) -> NoReturn:  # noqa: ARG001
    raise AssertionError("a sink that is only told to commit has processed rows")


def _context(config: Mapping[str, Any]) -> TopologyContext:
    """Of a task that stands where the sink would."""
    builder = TopologyBuilder("check_sink")
    builder.add_bolt("sink", CollectBolt, inputs=[builder.add_spout("rows", RowsSpout.of(["row"], []))])
    logical = builder.plan({})
    plan = PhysicalPlan.build(logical, packing_for(logical.config).pack(logical), 1)
    return TopologyContext(plan, plan.component_tasks["sink"][0], dict(config))
