"""The task of a spout that reads a source: which partitions it has, how far it is in each, what is done."""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from ardea.calls import wrong_calls
from ardea.component import Spout
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import ArdeaError, UserError, is_text, printable
from ardea.keyed import ListState
from ardea.metrics.user import CountMetric
from ardea.snapshots.taken import Taken
from ardea.sources import END, PartitionReader, PositionLost, Source, owner
from ardea.watermarks import stamps_of

TELL = 1.0
"""Seconds between two words to the source about what is acked."""
FIRST_WAIT, LONGEST_WAIT = 0.1, 30.0
ROW_BITS = 20
T = TypeVar("T")
_READER = {"read": ("most",), "position": ()}


class Patience:
    """Of something that fails: it is tried again, later each time.  ``due``: when."""

    __slots__ = ("_wait", "due")

    def __init__(self) -> None:
        self.due, self._wait = -math.inf, 0.0

    def failed(self, now: float) -> float:
        """Returns how long to wait."""
        self._wait = min(max(2 * self._wait, FIRST_WAIT), LONGEST_WAIT)
        self.due = now + self._wait
        return self._wait

    def succeeded(self) -> None:
        """The next failure is the first one."""
        self._wait = 0.0


class Part:
    """One partition of a task.

    Attributes:
        position: after all that was read.
        ended: nothing more comes.
        open: at least once: of each batch with rows that are not acked, by its number: (the position before it, how
            many of its rows are open).
        missed: the last list did not have it.
    """

    __slots__ = ("ended", "missed", "name", "open", "patience", "position", "reader")

    def __init__(self, name: str, position: Any = None, *, ended: bool = False) -> None:
        self.name, self.position, self.ended = name, position, ended
        self.reader: PartitionReader | None = None
        self.open: dict[int, tuple[Any, int]] = {}
        self.missed = False
        self.patience = Patience()

    @property
    def low(self) -> Any:
        """Behind all that is done."""
        return next((before for before, _ in self.open.values()), self.position)

    def close(self) -> None:
        """Its reader, if there is one."""
        reader, self.reader = self.reader, None
        if reader is not None:
            reader.close()


class Parts:
    """The partitions of a task: those that are read, in turn, and those that wait, by name, until others have ended."""

    def __init__(self, at_once: int | None, begins: Callable[[str], None]) -> None:
        """``begins`` hears of each that is read from now on."""
        self._begins = begins
        self._at_once = at_once or math.inf
        self._known: dict[str, Part] = {}
        self._waiting: list[Part] = []
        self.turn: deque[Part] = deque()

    def __iter__(self) -> Iterator[Part]:
        return iter([*self._known.values()])

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def add(self, part: Part) -> None:
        """One more, which waits until :meth:`fill` is called: others may come before it."""
        self._known[part.name] = part
        if not part.ended:
            insort(self._waiting, part, key=attrgetter("name"))

    def ended(self, part: Part) -> None:
        """It is only remembered; others may take its place."""
        part.ended = True
        self.turn.remove(part)

    def remove(self, part: Part) -> None:
        """It is not there any more, or is another task's."""
        del self._known[part.name]
        for line in (self.turn, self._waiting):
            if part in line:
                line.remove(part)

    def fill(self) -> None:
        """Begins as many of those that wait as may be read at once, by name: no older one is to come."""
        while self._waiting and len(self.turn) < self._at_once:
            part = self._waiting.pop(0)
            self.turn.append(part)
            self._begins(part.name)


class Words:
    """What a source is told: below which positions everything is done."""

    def __init__(self, source: Source) -> None:
        self.wanted = type(source).committed is not Source.committed
        self._source = source
        self._said: dict[str, Any] = {}
        self._taken = Taken[str, Any]()
        self._next = -math.inf

    def due(self, now: float) -> bool:
        """Whether it is time, without snapshots."""
        if not self.wanted or now < self._next:
            return False
        self._next = now + TELL
        return True

    def took(self, number: int, positions: Mapping[str, Any]) -> None:
        """A snapshot has these."""
        if self.wanted:
            self._taken.take(number, dict(positions))

    def counts(self, number: int) -> None:
        """It does; those before it never will."""
        self.say(self._taken.counts(number))

    def say(self, positions: Mapping[str, Any]) -> None:
        """What is news; raises what the source raises, and says the same again next time."""
        news = {name: at for name, at in positions.items() if at is not None and self._said.get(name) != at}
        if news and self.wanted:
            self._source.committed(news)
            self._said.update(news)

    def forget(self, name: str) -> None:
        """Of a partition that is no more this task's."""
        self._said.pop(name, None)


class PartitionSpout(Spout):
    """Reads the partitions that are its own, in turn, a batch each.

    ``tup_id``, at least once only: the number of the batch in this life, and that of the row in it.
    """

    _has_partitions = True
    source: Source
    stamped: int = 0  # the place of the field with stamps
    positions = ListState(share="all")  # [partition, position, whether it has ended], as of the last snapshot
    complete = ListState(share="all")  # the marks of tasks that have, in their positions, all that they ever will have

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Takes what is its own of the positions; nothing is opened."""
        settings = Settings.of(config)
        self._clock = context.clock
        self._remembers = settings.remembers
        self._tracks = settings.reliability_mode == "ATLEAST_ONCE" and settings.ackers != 0
        self._most = min(settings.batch_rows, settings.max_spout_pending, 1 << ROW_BITS)
        self._parts = Parts(self.source.at_once, self._begins)
        self._readers: set[type] = set()
        self._batches: dict[int, Part] = {}  # by number, those with open rows
        self._number = 0  # of the next batch
        self._words = Words(self.source)
        self._list_patience, self._next_list = Patience(), -math.inf
        self._finished = False
        self._mark = [context.topology_id, context.plan_epoch, context.this_task_index]
        self._listed = self.source.every is None and self._mark in self.complete
        if self._listed:
            self._next_list = math.inf
        self._errors = context.register_metric("source-errors", CountMetric())
        self._share(context)
        for name, position, ended in self.positions:
            if self._owns(name):
                self._parts.add(Part(name, position, ended=ended))
        self._parts.fill()
        if self._listed and self._time is not None:
            self._time.known()

    def update(self, context: TopologyContext) -> None:
        """With another number of tasks the partitions are shared anew; with snapshots, by another object."""
        before = self._tasks
        if self._remembers or len(context.component_tasks(context.this_component_id)) == before:
            return
        if self._finished:
            raise RuntimeError("the partitions are shared anew, and this task has finished: it starts again")
        self._tell()
        self._share(context)
        # Until they are listed, nothing has ended, and time stands still: older partitions may come.
        self._listed, self._next_list = False, -math.inf
        if self._time is not None:
            self._time.unknown()
        for part in self._parts:
            if not self._owns(part.name):
                self._forget(part)

    def next_tuple(self) -> None:
        """A batch of one partition."""
        now, turn = self._clock(), self._parts.turn
        self._keep(now)
        for _ in range(len(turn)):
            part = turn[0]
            turn.rotate(-1)
            if part.patience.due <= now and self._read(part, now):
                return
        if self._listed and self.source.every is None and not turn:
            self._finished = True
            self.finish()

    def ack_batch(self, tup_ids: Any) -> None:
        """Counts, by batch."""
        numbers, counts = np.unique(np.asarray(tup_ids, dtype=np.int64) >> ROW_BITS, return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            if (part := self._batches.get(number)) is None:
                continue  # its partition is another task's now
            before, left = part.open[number]
            if left > count:
                part.open[number] = before, left - count
            else:
                del part.open[number], self._batches[number]

    def describe_tup_id(self, tup_id: Any) -> str:
        """Where the row is."""
        number, row = tup_id >> ROW_BITS, tup_id & (1 << ROW_BITS) - 1
        if (part := self._batches.get(number)) is None:
            return super().describe_tup_id(tup_id)
        return f"partition {part.name}, row {row + 1} from position {part.open[number][0]!r} on"

    def idle(self) -> None:
        """Paused, pending full, or finished: the source hears of what is acked all the same."""
        self._tell_in_time(self._clock())

    def close(self) -> None:
        """Says what is done, and closes all readers."""
        if not self._remembers:
            self._tell()
        for part in self._parts:
            self._close(part)

    # --- snapshots --------------------------------------------------------------------------------------------

    def snapshot(self, number: int) -> None:
        """Writes down how far it is."""
        self.positions[:] = [[part.name, part.position, part.ended] for part in self._parts]
        self.complete[:] = [self._mark] if self._listed and self.source.every is None else []
        self._words.took(number, {part.name: part.position for part in self._parts})

    def restored(self, number: int) -> None:
        """As it was when that was taken."""
        self.snapshot(number)

    def committed(self, number: int) -> None:
        """The source may forget what is before it."""
        self._saying(lambda: self._words.counts(number))

    # --- partitions -------------------------------------------------------------------------------------------

    def _share(self, context: TopologyContext) -> None:
        self._index = context.this_task_index
        self._tasks = len(context.component_tasks(context.this_component_id))

    def _owns(self, name: str) -> bool:
        return owner(name, self._tasks) == self._index

    def _keep(self, now: float) -> None:
        """What is due."""
        self._tell_in_time(now)
        if now < max(self._next_list, self._list_patience.due):
            return
        names = self._tried(self._list, "the partitions cannot be listed", lambda: self._list_patience.failed(now))
        if names is not None:
            self._list_patience.succeeded()
            self._found(names)
            self._next_list = math.inf if self.source.every is None else now + self.source.every

    def _list(self) -> set[str]:
        names = self.source.list_partitions()
        what = f"{type(self.source).__name__}.list_partitions()"
        if isinstance(names, str) or not all(isinstance(name, str) for name in names):
            raise UserError(f"{what} returned {printable(repr(names), 200)}: it returns a list of texts")
        if strange := [name for name in names if not is_text(name)]:
            raise UserError(f"{what} has a name that is no UTF-8: {printable(strange[0], 200)}", hint="Rename it.")
        if len(set(names)) < len(names):
            raise UserError(f"{what} has a name twice: {printable(repr(sorted(names)), 200)}")
        return set(names)

    def _begins(self, name: str) -> None:
        """Time goes on no further than in that one, from now on."""
        if self._time is not None:
            self._time.add(name)

    def _found(self, names: set[str]) -> None:
        self._listed = True
        for part in self._parts:
            missed, part.missed = part.missed, part.name not in names
            if part.ended and not part.missed:
                self.source.still_listed(part.name)
            elif part.ended and missed:
                self._forget(part)
        for name in names:
            if self._owns(name) and name not in self._parts:
                self._parts.add(Part(name))
        self._parts.fill()
        if self._time is not None:
            self._time.known()

    def _forget(self, part: Part) -> None:
        self._close(part)
        self._parts.remove(part)
        if self._time is not None:
            self._time.remove(part.name)
        self._words.forget(part.name)
        for number in part.open:
            del self._batches[number]

    def _close(self, part: Part) -> None:
        try:
            part.close()
        except Exception as error:  # of the author's: nothing depends on it
            self._warn(f"partition {part.name} could not be closed", error, "nothing is lost by that")

    # --- rows -------------------------------------------------------------------------------------------------

    def _read(self, part: Part, now: float) -> bool:
        """A batch; whether there was one."""

        def again() -> float:
            self._close(part)
            if self._time is not None:
                self._time.unreadable(part.name)
            return part.patience.failed(now)

        what = f"partition {part.name} cannot be read from position {printable(repr(part.position), 200)} on"
        read = self._tried(lambda: self._batch(part), what, again)
        if read is None:
            return False
        rows, position = read
        part.patience.succeeded()
        if self._time is not None:
            self._time.readable(part.name)
        count = 0 if rows is END else self._emit(part, rows)
        part.position = position
        if rows is END:
            self._parts.ended(part)
            if self._listed:  # else older ones may come
                self._parts.fill()
            if self._time is not None:
                self._time.remove(part.name)
            self._close(part)
        return count > 0

    def _batch(self, part: Part) -> tuple[Any, Any]:
        """Rows, and the position after them."""
        try:
            if part.reader is None:
                part.reader = self._open(part)
            rows = part.reader.read(self._most)
        except PositionLost as lost:
            at = printable(repr(part.position), 200)
            raise UserError(
                f"position {at} of partition {part.name} is not there any more: {printable(lost)}; "
                "rows that were not read yet are gone, so the topology ends",
                hint="Put back what is missing, or submit the topology anew, which begins without positions.",
            ) from lost
        return rows, part.reader.position()

    def _open(self, part: Part) -> PartitionReader:
        """Of each class of readers the first is looked at."""
        reader = self.source.open(part.name, part.position)
        if type(reader) not in self._readers:
            for problem in wrong_calls(reader, _READER):
                raise UserError(f"{type(self.source).__name__}.open() returned what is no reader: {problem}")
            self._readers.add(type(reader))
        return reader

    def _emit(self, part: Part, rows: Any) -> int:
        """Returns how many there are."""
        columns = hasattr(rows, "num_rows")
        if not columns and not isinstance(rows, list | tuple):
            raise UserError(
                f"partition {part.name}: read() returned {type(rows).__name__}",
                hint="It returns a list of rows or a pyarrow.RecordBatch, an empty list where there are none for now, "
                "and ardea.END where there will be none.",
            )
        if (count := rows.num_rows if columns else len(rows)) > self._most:
            raise UserError(f"partition {part.name}: read({self._most}) returned {count} rows")
        if not count:
            return 0
        if self._time is not None:
            self._time.emits(part.name, stamps_of(rows, self.stamped))
        ids = self._opened(part, count) if self._tracks else None
        if columns:
            self.emit_batch(rows, ids)
        else:
            self.emit_many(rows, ids)
        return count

    def _opened(self, part: Part, count: int) -> range:
        """The ids of a batch."""
        number, self._number = self._number, self._number + 1
        part.open[number] = part.position, count
        self._batches[number] = part
        return range(number << ROW_BITS, (number << ROW_BITS) + count)

    # --- errors, and words to the source ----------------------------------------------------------------------

    def _tried(self, function: Callable[[], T], what: str, again: Callable[[], float]) -> T | None:
        """Its result; None: it has failed, and will be called again after the seconds that ``again`` returns."""
        try:
            return function()
        except Exception as error:
            if isinstance(error, ArdeaError) and error.lasts:
                raise
            self._warn(what, error, f"tries again in {again():.1f} s")
            return None

    def _warn(self, what: str, error: Exception, then: str) -> None:
        self._errors.incr()
        self.logger.warning("%s: %s: %s; %s", what, type(error).__name__, printable(error), then)

    def _tell_in_time(self, now: float) -> None:
        if not self._remembers and self._words.due(now):
            self._tell()

    def _tell(self) -> None:
        self._saying(lambda: self._words.say({part.name: part.low for part in self._parts}))

    def _saying(self, words: Callable[[], None]) -> None:
        try:
            words()
        except Exception as error:
            if isinstance(error, ArdeaError):
                raise
            self._warn("the source cannot take note of what is done", error, "it is told again")
