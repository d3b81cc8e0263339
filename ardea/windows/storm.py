"""Storm's windowed bolts: whole windows of tuples, with Storm's names and rules (docs/windows.md).

A window by time is (end - length, end]; it slides by multiples of the interval, whenever the first tuple came.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeAlias

from ardea.component import DEFAULT_STREAM, Bolt
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.plan import ComponentPlan, LogicalPlan
from ardea.ready_made import ReadyMade
from ardea.tuples import Tuple
from ardea.units import duration
from ardea.watermarks import MOST, Timestamps
from ardea.windows.checks import problems_of_stamps
from ardea.windows.kinds import MICROS, whole_micros
from ardea.windows.open_windows import Time

ALIKE = 1000
"""Windows with the same tuples that follow each other at most: where there would be more, none of these come."""
_COMPACT_EVERY = 100
_TICK = "topology.tick.tuple.freq.secs"
_LOOKS_EVERY = 1.0
"""Seconds between two looks at the clock, or at the watermark, where no tuple comes; Storm's interval of watermarks."""


@dataclass(frozen=True)
class Count:
    """So many tuples."""

    tuples: int

    def __post_init__(self) -> None:
        """Raises UserError: it is no number of tuples."""
        if isinstance(self.tuples, bool) or not isinstance(self.tuples, int) or self.tuples < 1:
            raise UserError(f"Count({self.tuples!r}): it takes a number of tuples, 1 or more")


@dataclass(frozen=True)
class Duration:
    """So many seconds, or a text such as ``10 s``."""

    time: float | str

    def __post_init__(self) -> None:
        """Raises UserError: it is no time."""
        self.micros  # noqa: B018 -- raises

    @property
    def seconds(self) -> float:
        """Above 0."""
        return self.micros / MICROS

    @property
    def micros(self) -> int:
        """Whole microseconds: no window begins a rounding error beside its neighbour."""
        try:
            return whole_micros(duration(self.time))
        except ValueError as error:
            raise UserError(f"Duration({self.time!r}): it takes {error}") from None


Extent: TypeAlias = Count | Duration


class Event(NamedTuple):
    """One tuple with its stamp, in microseconds since 1970; ``number``: so many came before."""

    number: int
    stamp: int
    tuple: Any


@dataclass(frozen=True, slots=True)
class TupleWindow:
    """What ``execute`` gets.

    Attributes:
        tuples: those in the window, in the order in which they came; ``get()`` in Storm.
        new: those of them that the window before had not; ``getNew()``.
        expired: those that have left since then; ``getExpired()``.
        start, end: of a window by time, seconds since 1970: after ``start``, up to ``end``.
    """

    tuples: Sequence[Any]
    new: Sequence[Any]
    expired: Sequence[Any]
    start: float | None
    end: float


class WindowManager:
    """Which tuples are in which window; pure.

    Times are whole microseconds since 1970.  ``event``: time is that of watermarks, and a stamp that of the tuple; else
    both are those of the machine's clock.
    """

    def __init__(self, length: Extent, interval: Extent, *, event: bool) -> None:
        self._length, self._interval, self._event = length, interval, event
        self._events: list[Event] = []
        self._numbers = 0
        self._before: set[int] = set()  # numbers of the events in the last window
        self._had: set[int] = set()  # and of those in any, that are kept
        self._expired: list[Any] = []  # since the last window
        self._left: list[Any] = []  # they are in no window any more
        self._since_compacted = 0
        self._ticked: int | None = None
        self._watermark = -math.inf
        self._end: int | None = None  # of the next window by event time
        self._triggered = (-math.inf, -1)  # stamp and number of the last event that ended a window, by number
        self._seen = 0  # events that windows by number have had, of those that are kept

    def add(self, event: Any, stamp: int) -> list[TupleWindow]:
        """One more; returns the windows that end with it."""
        if self._ticked is None:
            self._ticked = stamp
        self._events.append(Event(self._numbers, stamp, event))
        self._numbers += 1
        self._since_compacted += 1
        if not self._event and isinstance(self._interval, Count) and self._numbers % self._interval.tuples == 0:
            return self._look(stamp)
        if self._since_compacted >= _COMPACT_EVERY and not self._event:
            self._compact(stamp)
        return []

    def tick(self, now: int) -> list[TupleWindow]:
        """By the machine's clock an interval is over; if it took longer, the window is as much longer."""
        assert isinstance(self._interval, Duration)
        longer, self._ticked = self._overdue(now), now
        self._drop_seen()
        return self._look(now, longer=longer)

    def _overdue(self, now: int) -> int:
        """By how much the interval is over, and the clock has not been looked at."""
        if self._ticked is None or not isinstance(self._interval, Duration):
            return 0
        return max(0, now - self._ticked - self._interval.micros)

    def _drop_seen(self) -> None:
        """Windows that follow one another have nothing in common."""
        if self._length == self._interval:
            self._drop([event for event in self._events if event.number in self._had])

    def rise(self, watermark: Time) -> list[TupleWindow]:
        """Event time goes on: the windows that end by then."""
        if not self._event or watermark <= self._watermark:
            return []
        self._watermark = watermark
        return self._by_time(watermark) if isinstance(self._interval, Duration) else self._by_number(watermark)

    def missed(self, stamp: int) -> bool:
        """Whether all windows by event time that have a stamp have passed; it may be that of the watermark."""
        if self._end is None or not isinstance(self._interval, Duration) or not isinstance(self._length, Duration):
            return False
        return stamp <= self._end - max(self._interval.micros, self._length.micros)

    def left(self) -> list[Any]:
        """Those that no later window has, since the last call."""
        left, self._left = self._left, []
        return left

    def last(self, now: int) -> list[TupleWindow]:
        """Nothing comes any more: a window of what there is, if any of it was in none."""
        if len(self._had) == len(self._events):
            return []
        self._drop_seen()
        return self._look(max(event.stamp for event in self._events) if self._event else now)

    # --- by event time ----------------------------------------------------------------------------------------

    def _by_time(self, watermark: Time) -> list[TupleWindow]:
        assert isinstance(self._interval, Duration)
        every, found = self._interval.micros, []
        if watermark == math.inf and self._events and isinstance(self._length, Count):
            # No tuple leaves such windows by itself: the last one is the first that has all.
            watermark = -(-max(event.stamp for event in self._events) // every) * every
        if self._end is None:
            first = min((event.stamp for event in self._events), default=None)
            if first is None or first > watermark:
                return []
            self._end = -(-first // every) * every
        while self._end <= watermark and self._events:
            windows = self._look(self._end)
            if windows:
                found += windows
                self._end += every
                if isinstance(self._length, Count):
                    self._pass_alike(every, watermark)
                continue
            end = self._end
            later = min((each.stamp for each in self._events if end < each.stamp <= watermark), default=None)
            if later is None:
                self._end = None if watermark == math.inf else -(-int(watermark) // every) * every
                break
            self._end = -(-later // every) * every
        return found

    def _pass_alike(self, every: int, watermark: Time) -> None:
        """One stamp that is far ahead would be the end of millions of windows with the same tuples."""
        assert self._end is not None
        before = self._end - every
        later = min((each.stamp for each in self._events if each.stamp > before), default=watermark)
        if math.inf > later > before + ALIKE * every:
            self._end = int(-(-later // every)) * every

    def _by_number(self, watermark: Time) -> list[TupleWindow]:
        assert isinstance(self._interval, Count)
        due = ((event.stamp, event.number) for event in self._events if event.stamp <= watermark)
        uncounted = sorted(each for each in due if each > self._triggered)
        found, every = [], self._interval.tuples
        for place in range(every - 1, len(uncounted), every):
            self._triggered = uncounted[place]
            self._seen += every
            found += self._look(uncounted[place][0], most=self._seen)
        return found

    # --- one window -------------------------------------------------------------------------------------------

    def _look(self, at: int, most: int | None = None, longer: int = 0) -> list[TupleWindow]:
        """The window that ends at that time; none if it is empty.

        ``most``: it has so many of the first events; ``longer``: it is longer by that.
        """
        there = [event for event in self._events if event.stamp <= at or not self._event]
        if isinstance(self._length, Count):
            if self._event:  # the latest, which need not have come last
                there = sorted(there, key=lambda event: event.stamp)[:most]
            gone = there[: max(0, len(there) - self._length.tuples)]
            start = None
        else:
            start = at - self._length.micros - longer
            gone = [event for event in there if event.stamp <= start]
            there = [event for event in there if event.stamp <= at]
        self._drop(gone)
        dropped = {event.number for event in gone}
        window = sorted(event for event in there if event.number not in dropped)
        if self._seen and isinstance(self._length, Count):
            self._seen -= len(gone)
        if not window:
            if self._event:
                self._expired.clear()
            return []
        numbers = {event.number for event in window}
        new = [event.tuple for event in window if event.number not in self._before]
        self._before = numbers
        self._had |= numbers
        expired, self._expired = self._expired, []
        bounds = None if start is None else start / MICROS, at / MICROS
        return [TupleWindow([event.tuple for event in window], new, expired, *bounds)]

    def _compact(self, now: int) -> None:
        self._since_compacted = 0
        if isinstance(self._length, Count):
            self._drop(self._events[: max(0, len(self._events) - self._length.tuples)])
        else:
            start = now - self._length.micros - self._overdue(now)
            self._drop([event for event in self._events if event.stamp <= start])

    def _drop(self, gone: Iterable[Event]) -> None:
        numbers = {event.number for event in gone}
        if numbers:
            left = [event.tuple for event in self._events if event.number in numbers]
            self._expired += left
            self._left += left
            self._events = [event for event in self._events if event.number not in numbers]
            self._had -= numbers


class WindowedBolt(ReadyMade, Bolt):
    """Gets windows of tuples, each again and again until it leaves; what it emits is anchored to the window's tuples.

    A tuple is acked once it is in no window any more, or when all that feeds the task rests.  What ``execute`` raises
    ends the process, also FailedException.  Not for a topology that goes back to snapshots: a window is no state there
    (:class:`ardea.windows.WindowBolt` is).

    Attributes:
        window_length: ``Count(100)`` or ``Duration("10 s")``; Storm's ``withWindow(length, ...)``.
        sliding_interval: likewise; ``withWindow(..., interval)``.  With ``window_length`` it is a tumbling window.
        timestamp_field: the field with the stamp; ``withTimestampField``.  None: the clock of the machine when a tuple
            comes.  ``withLag`` is ``lateness`` of the spout's ``timestamps``.
        late_tuple_stream: where late tuples go, as they are; ``withLateTupleStream``.  None: they are acked.
        unit: of stamps that are numbers.
    """

    window_length: Extent
    sliding_interval: Extent = Count(1)
    timestamp_field: str | None = None
    late_tuple_stream: str | None = None
    unit: Any = "s"
    auto_ack = auto_anchor = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raises UserError: there can be no such windows."""
        super().__init_subclass__(**kwargs)
        if "window_length" not in vars(cls):
            return
        for name in ("window_length", "sliding_interval"):
            if not isinstance(getattr(cls, name), Count | Duration):
                raise UserError(
                    f"{cls.__name__}: {name} is {getattr(cls, name)!r}; write Count(100) or Duration('10 s')"
                )
        if cls.late_tuple_stream is not None and cls.timestamp_field is None:
            raise UserError(
                f"{cls.__name__}: a late tuple stream can be defined only with a timestamp field",
                hint="Say timestamp_field = 'FIELD', or leave late_tuple_stream out.",
            )
        if _TICK not in cls.config and (cls.timestamp_field or isinstance(cls.sliding_interval, Duration)):
            every = cls.sliding_interval.seconds if isinstance(cls.sliding_interval, Duration) else _LOOKS_EVERY
            every = min(every, _LOOKS_EVERY) if cls.timestamp_field else every
            cls.config = MappingProxyType({**cls.config, _TICK: every})

    def execute(self, window: TupleWindow) -> None:
        """One window with at least one tuple."""
        raise NotImplementedError

    # --- the engine's -----------------------------------------------------------------------------------------

    _anchors: Sequence[Tuple] = ()

    _ready_calls: ClassVar[Mapping[str, tuple[str, ...]]] = {"execute": ("window",)}

    @classmethod
    def _ready_problems(cls, component: ComponentPlan, plan: LogicalPlan) -> Iterable[str]:
        """See :class:`ReadyMade`."""
        where, settings = f"Component: [{component.name}]", Settings.of(plan.config)
        if not hasattr(cls, "window_length"):
            yield f"{where} says no window_length: write window_length = Count(100) or Duration('10 s')"
            return
        if settings.remembers:
            yield f"{where} is a WindowedBolt: it keeps tuples, which are no state; a WindowBolt goes back to snapshots"
        if cls.timestamp_field is not None:
            yield from problems_of_stamps(cls.timestamp_field, component, plan)
        if settings.reliability_mode == "ATLEAST_ONCE":
            yield from _held((cls.window_length, cls.sliding_interval), where, settings)

    def _ready_prepare(self, context: TopologyContext) -> None:
        """See :class:`ReadyMade`."""
        self._now = context.now
        self._manager = WindowManager(self.window_length, self.sliding_interval, event=self.timestamp_field is not None)
        self._stamps = None if self.timestamp_field is None else Timestamps(self.timestamp_field, unit=self.unit)
        self._open: dict[Tuple, None] = {}  # neither acked nor failed

    def process(self, tup: Tuple) -> None:
        """The engine's: a tuple comes into the window."""
        stamp = self._stamp_of(tup)
        if stamp is None:
            if self.late_tuple_stream is not None:
                super().emit(tup.values, self.late_tuple_stream, [tup])
            self.ack(tup)
            return
        self._open[tup] = None
        self._see(self._manager.add(tup, stamp))
        self._look()

    def _stamp_of(self, tup: Tuple) -> int | None:
        """None: it is late, or has none."""
        if self._stamps is None:
            return self._clock()
        seconds = self._stamps.seconds(tup[self._stamps.field])
        if seconds is None or seconds * MICROS >= MOST:
            return None
        stamp = round(seconds * MICROS)
        return None if stamp < self._watermark() or self._manager.missed(stamp) else stamp

    def _clock(self) -> int:
        return round(self._now() * MICROS)

    def _watermark(self) -> Time:
        seconds = -math.inf if self.watermark is None else self.watermark
        return seconds if math.isinf(seconds) else round(seconds * MICROS)

    def process_tick(self, tup: Tuple) -> None:  # noqa: ARG002
        """The engine's: time goes on."""
        if self._stamps is None and isinstance(self.sliding_interval, Duration):
            self._see(self._manager.tick(self._clock()))
        self._look()

    def flush(self) -> None:
        """The engine's: nothing comes for now, and nobody waits for the tuples that are in the window."""
        self._look()
        for tup in [*self._open]:
            self.ack(tup)
        self._open.clear()

    def end_of_input(self) -> None:
        """The engine's: the last window, of tuples that none has had, is seen as it is."""
        self._look()
        self._see(self._manager.last(self._clock()))

    def emit(
        self,
        values: Any,
        stream: str = DEFAULT_STREAM,
        anchors: Sequence[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """As of a :class:`Bolt`; without ``anchors`` to the tuples of the window."""
        return super().emit(values, stream, self._anchors if anchors is None else anchors, direct_task, need_task_ids)

    def emit_many(
        self,
        rows: Iterable[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Sequence[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_counts: bool = False,
        *,
        head: tuple[Any, ...] = (),
    ) -> Mapping[int, int] | None:
        """Likewise."""
        chosen = self._anchors if anchors is None else anchors
        return super().emit_many(rows, stream, chosen, direct_task, need_task_counts, head=head)

    def _look(self) -> None:
        if self._stamps is not None:
            self._see(self._manager.rise(self._watermark()))

    def _see(self, windows: Sequence[TupleWindow]) -> None:
        for window in windows:
            self._anchors = [tup for tup in window.tuples if tup in self._open]
            self._ready_sees = True
            try:
                self.execute(window)
            finally:
                self._anchors = ()
            self._ready_sees = False
        for tup in self._manager.left():
            if tup in self._open:
                del self._open[tup]
                self.ack(tup)


def _held(extents: Iterable[Extent], where: str, settings: Settings) -> Iterable[str]:
    """Why spouts could not wait for the tuples of a window and of an interval."""
    extents = list(extents)
    seconds = sum(extent.seconds for extent in extents if isinstance(extent, Duration))
    tuples = sum(extent.tuples for extent in extents if isinstance(extent, Count))
    if seconds > settings.tree_timeout:
        yield (
            f"{where}: its tuples are held for {seconds:g} s, a window and an interval, and that is longer than"
            f" topology.message.timeout.secs, {settings.message_timeout:g}"
        )
    if tuples > settings.max_spout_pending:
        yield (
            f"{where}: {tuples} tuples are held, a window and an interval, and that is more than"
            f" topology.max.spout.pending, {settings.max_spout_pending}: no window would ever be full"
        )
