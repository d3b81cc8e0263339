"""Sources with partitions and positions: what an author writes, and the spout that reads it (docs/sources.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import xxhash

from ardea.calls import left_out, wrong_calls
from ardea.collectors import Values
from ardea.component import DEFAULT_STREAM, Inputs, Outputs, Spec, Spout, Stream
from ardea.errors import TopologyError
from ardea.watermarks import Timestamps


class END:
    """What :meth:`PartitionReader.read` returns, as it is, when its partition has ended."""


class PositionLost(Exception):  # noqa: N818 -- says what is, not that somebody erred
    """Raised by a source's ``open`` or ``read``: what lies at the position is not there any more.  Its text says why.

    The topology ends, with an error that names partition and position.
    """


class PartitionReader(Protocol):
    """Reads one partition, from the position that :meth:`Source.open` was given on."""

    def read(self, most: int) -> Sequence[Values] | Any:
        """The next rows, at most so many: a list, or a ``pyarrow.RecordBatch``; empty: none for now.

        :class:`END`: the partition has ended, and nothing more will ever come.  Waits for nothing: the task answers
        nobody meanwhile.

        Raises:
            PositionLost: see there.
            UserError: the topology ends.
            Exception: any other; the partition is opened again where it was, after a while.
        """

    def position(self) -> Any:
        """Where the row after the last that was read is: a value that msgpack carries, a new one each time."""

    def close(self) -> None:
        """Called last, also after an error of ``read``; twice is as good as once."""


class Source:
    """What a topology reads: partitions, each a sequence of rows with positions.

    An object says what is to be read, and each task has one, in its own process; what is open belongs to the readers.
    The same position always gives the same rows, in the same order: only then each row counts once
    (``ardea.testing.check_source`` tries it).

    Attributes:
        outputs: the fields of the rows, as for any component.
        every: seconds between two looks for new partitions; None: they are listed once, and the spout finishes when
            all have ended.
        at_once: how many partitions a task reads at a time, in the order of their names: where there are many, and
            each of them ends.  None: all of them, in turn.
        timestamps: the field with each row's event time (docs/time.md); None: rows have none, and there are no
            watermarks.
    """

    outputs: Outputs = ()
    every: float | None = None
    at_once: int | None = None
    timestamps: Timestamps | None = None

    def list_partitions(self) -> Sequence[str]:
        """The names of all partitions that there are.

        A partition belongs to one task, by its name and the number of tasks alone.  Partitions whose names differ in
        their last number only go to the tasks in turn: so they are shared evenly.  Errors: as for
        :meth:`PartitionReader.read`; then it is called again after a while.
        """
        raise NotImplementedError

    def open(self, partition: str, position: Any) -> PartitionReader:
        """A reader of a partition, from a position on that a reader of it had; None: from its beginning.

        Errors: as for :meth:`PartitionReader.read`.  At least once, a task that is started again passes None for all.
        """
        raise NotImplementedError

    def still_listed(self, partition: str) -> None:
        """A list has this partition, which has ended, maybe in a former life of the task: it is not read again.

        Raises:
            UserError: rows would be missing by that, as where another one has its name; the topology ends.
        """

    def committed(self, positions: Mapping[str, Any]) -> None:
        """What lies before these positions, of one task's partitions, will never be asked for again: tell a broker.

        Effectively once: once a snapshot counts.  Else once a second, and at the end: what is acked.  It is for
        information; of an error the log has a line, and it is called again.
        """


_CALLED = {
    "list_partitions": (),
    "open": ("partition", "position"),
    "still_listed": ("partition",),
    "committed": ("positions",),
}


def _problems(source: Any) -> Iterator[str]:
    if not isinstance(source, Source):
        yield f"it reads an object of a class derived from ardea.Source, not {source!r}"
        return
    name_of = type(source).__name__
    for method in ("list_partitions", "open"):
        if left_out(source, Source, method):
            yield f"{name_of} has no {method}({', '.join(_CALLED[method])})"
    yield from wrong_calls(source, _CALLED)
    if source.every is not None and not source.every > 0:
        yield f"{name_of}.every is a number of seconds, or None, not {source.every!r}"
    if source.at_once is not None and not source.at_once > 0:
        yield f"{name_of}.at_once is a number from 1, or None, not {source.at_once!r}"


class SourceSpout:
    """Reads a source: ``SourceSpout(Orders()).spec(par=2)``.  Guarantees and failures: docs/sources.md."""

    def __init__(self, source: Any, *, timestamps: Timestamps | None = None) -> None:
        """Nothing is opened; ``timestamps``: in place of the source's own.

        Raises:
            TopologyError: it is no source, or one of its attributes or methods is wrong.
        """
        if problems := [f"SourceSpout: {problem}" for problem in _problems(source)]:
            raise TopologyError(problems, hint="docs/sources.md says what a source is.")
        self.source: Source = source
        self._timestamps = timestamps or source.timestamps

    def spec(
        self,
        name: str | None = None,
        par: int = 1,
        inputs: Inputs | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        tasks: int | None = None,
        cpu: float | None = None,
        ram: int | str | None = None,
        disk: int | str | None = None,
    ) -> Spec:
        """Places it in a topology, as :meth:`ardea.Component.spec` does."""
        from ardea.source_task import PartitionSpout

        body = {"outputs": self.source.outputs, "source": self.source, "timestamps": self._timestamps}
        fields = fields_of(self.source.outputs)
        if self._timestamps is not None and self._timestamps.field in fields:
            body["stamped"] = fields.index(self._timestamps.field)
        cls: type[Spout] = type("SourceSpout", (PartitionSpout,), body)
        return cls.spec(name, par, inputs, config, tasks=tasks, cpu=cpu, ram=ram, disk=disk)


def fields_of(outputs: Outputs) -> Sequence[str]:
    """Of the rows that a source's readers return: those of the default stream, in either way to write it."""
    if isinstance(outputs, str):  # the topology refuses it
        return [outputs]
    written = (each.fields for each in outputs if isinstance(each, Stream) and each.name == DEFAULT_STREAM)
    return next(written, [each for each in outputs if isinstance(each, str)])


_LAST_NUMBER = re.compile(r"(.*?)(\d+)(\D*)", re.DOTALL)


def owner(partition: str, tasks: int) -> int:
    """The index of the task that reads a partition: a function of its name and the number of tasks alone."""
    number = 0
    if found := _LAST_NUMBER.fullmatch(partition):
        head, digits, tail = found.groups()
        partition, number = f"{head}\n{tail}", int(digits[-18:])
    return (xxhash.xxh3_64_intdigest(partition.encode()) + number) % tasks
