"""Event time: what a spout's author says of stamps, and how a task's watermark follows from those of others.

Pure; docs/time.md.  Times are seconds since 1970, minus infinity before there is one; ``inf`` once all input has ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeVar

from ardea.errors import EncodingError, UserError
from ardea.plan import ComponentPlan, LogicalPlan, StreamPlan
from ardea.units import duration

K = TypeVar("K", bound=Hashable)

DAY = 86400.0
NEVER = -math.inf
MOST = 1 << 60
"""Microseconds before and after 1970 that windows take, of which no sum leaves 64 bits; some 36,000 years."""
FUTURE = "future"
"""The stream of a spout for rows whose stamps are further ahead than ``max_ahead``."""
NO_EVENT_TIME = "no spout that it reads says by timestamps= which time its rows have"
_EARLIEST = -MOST / 1e6
_PYTHONS = frozenset({"<M8[s]", "<M8[ms]", "<M8[us]"})  # NumPy's times that become datetimes, if they have one
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


@dataclass(frozen=True, slots=True)
class Timestamps:
    """Which field of a spout's rows says when something happened: ``timestamps = Timestamps("at", lateness="30 s")``.

    Attributes:
        field: of each stream that has it; the others have no time.
        lateness: how far a stamp may lie behind the newest of its partition and still be on time: seconds, 0 or more,
            or a text such as ``30 s``.
        idle_after: seconds without a row, or such a text, after which nobody waits for a partition; None: all wait.
        max_ahead: a stamp that is further ahead of the machine's clock says nothing about time; likewise.
        unit: of stamps that are numbers; datetimes need none, and are UTC without a zone.
    """

    field: str
    lateness: float | str = 0.0
    idle_after: float | str | None = None
    max_ahead: float | str = DAY
    unit: Literal["s", "ms", "us", "ns"] = "s"

    def __post_init__(self) -> None:
        """Raises UserError: an argument is none."""
        if not isinstance(self.field, str) or not self.field:
            raise UserError(f"Timestamps(field={self.field!r}): field takes the name of a field")
        if self.unit not in _UNITS:
            raise UserError(f"Timestamps(unit={self.unit!r}): unit takes {', '.join(map(repr, _UNITS))}")
        for name in ("lateness", "idle_after", "max_ahead"):
            value = getattr(self, name)
            nothing = (name == "lateness" and value in (0, 0.0)) or (name == "idle_after" and value is None)
            try:
                object.__setattr__(self, name, value if nothing else duration(value))
            except ValueError as error:
                raise UserError(f"Timestamps({name}={value!r}): {name} takes {error}") from None

    def seconds(self, stamp: Any) -> float | None:
        """A stamp as seconds since 1970; None: it is none."""
        if isinstance(stamp, datetime):
            return (stamp if stamp.tzinfo is not None else stamp.replace(tzinfo=UTC)).timestamp()
        if not isinstance(stamp, int | float):
            return None if stamp is None else self._of_scalar(stamp)
        if isinstance(stamp, bool):
            return None
        try:
            if self.unit == "ns" and isinstance(stamp, int):
                seconds = stamp // 1000 / 1e6  # the microsecond that windows take it for, which a double may round up
            else:
                seconds = stamp / _UNITS[self.unit]
        except OverflowError:  # a whole number without end
            return None
        return seconds if seconds > _EARLIEST else None  # NaN is not above it

    def _of_scalar(self, stamp: Any) -> float | None:
        """Of one of NumPy or Arrow, as of the Python value that readers get for it."""
        from ardea.protocol.scalars import unwrap  # loads NumPy, which a topology's file need not have

        try:
            plain = unwrap(stamp)
        except EncodingError:  # the row will be refused
            return None
        return None if plain is stamp else self.seconds(plain)


class Minimum(Generic[K]):
    """The watermark that follows from those of some parts: partitions of a source, or the tasks that a task reads.

    ``watermark`` only rises, from ``floor`` on.  A part that has said nothing holds it where it is.  Where all are idle
    it is the highest of them: in which order they fell silent is chance.
    """

    def __init__(self, parts: Iterable[K] = (), floor: float = NEVER) -> None:
        self.watermark = floor
        self._active = dict.fromkeys(parts, NEVER)
        self._idle: dict[K, float] = {}  # with what they have said last
        self._ended: set[K] = set()

    def __contains__(self, part: K) -> bool:
        return part in self._active or part in self._idle or part in self._ended

    @property
    def idle(self) -> bool:
        """Whether there is nobody to wait for."""
        return not self._active

    def add(self, part: K) -> None:
        """A new one holds the watermark until it speaks; of one that is known nothing changes."""
        if part not in self:
            self._active[part] = NEVER

    def remove(self, part: K) -> None:
        """It is no part any more."""
        self._ended.discard(part)
        self._idle.pop(part, None)
        self._active.pop(part, None)
        self._rise()

    def keep(self, parts: Iterable[K]) -> None:
        """These are all that there are now."""
        wanted = set(parts)
        for part in wanted:  # first, for they hold the watermark where those that go would let it rise
            self.add(part)
        for part in {*self._active, *self._idle, *self._ended} - wanted:
            self.remove(part)

    def say(self, part: K, watermark: float) -> None:
        """No row below comes of that part any more; it is not idle."""
        if part not in self:
            return
        self._ended.discard(part)
        said = max(watermark, self._active.get(part, NEVER), self._idle.pop(part, NEVER))
        held = self._active.get(part, NEVER) <= self.watermark
        self._active[part] = said
        if held:  # else another one holds it
            self._rise()

    def rest(self, part: K) -> None:
        """Nobody waits for that part until it speaks."""
        if part in self._active:
            self._idle[part] = self._active.pop(part)
            self._rise()

    def end(self, part: K) -> None:
        """Nothing comes of that part any more."""
        if part in self:
            self._idle.pop(part, None)
            self._active.pop(part, None)
            self._ended.add(part)
            self._rise()

    def again(self, part: K) -> None:
        """Another life of that part is to be waited for, from where the former one was."""
        if part in self:
            self._ended.discard(part)
            self._active.setdefault(part, self._idle.pop(part, NEVER))

    def _rise(self) -> None:
        if self._active:
            self.watermark = max(self.watermark, min(self._active.values()))
        elif self._idle:
            self.watermark = max(self.watermark, *self._idle.values())
        elif self._ended:
            self.watermark = math.inf


@dataclass(slots=True)
class StampCounts:
    """Rows so far that were late when they were emitted, ahead of the clock, or without a stamp."""

    late: int = 0
    ahead: int = 0
    none: int = 0


class SourceTime:
    """The watermark of one task of a spout, by partition; ``""``: that of a spout without partitions.

    A spout with partitions says once it has :meth:`known` them.  ``now``: seconds since 1970.  ``told``: what the
    readers have heard.
    """

    def __init__(self, timestamps: Timestamps, now: Callable[[], float], counts: StampCounts) -> None:
        self.timestamps = timestamps
        self.told = NEVER
        self.counts = counts
        self._now = now
        self._minimum: Minimum[str] = Minimum([""])
        self._newest: dict[str, float] = {}
        # Idleness, by a clock that only goes while more could have come.
        self._longest = math.inf if timestamps.idle_after is None else float(timestamps.idle_after)
        self._clock = 0.0
        self._since = {"": 0.0}  # when the last row of each partition came
        self._heard: set[str] = set()  # partitions of which something came after the clock was last moved
        self._due = self._longest  # nothing is idle before

    @property
    def watermark(self) -> float:
        """Of the task."""
        return self._minimum.watermark

    @property
    def idle(self) -> bool:
        """Whether nobody is to wait for the task."""
        return self._minimum.idle

    # --- partitions -------------------------------------------------------------------------------------------

    def add(self, partition: str) -> None:
        """One more of the task's, with what a snapshot knows of it."""
        self._minimum.add(partition)
        self._heard_of(partition)
        if (newest := self._newest.get(partition)) is not None:
            self._minimum.say(partition, newest - float(self.timestamps.lateness))

    def remove(self, partition: str) -> None:
        """It has ended, or is no more the task's."""
        self._minimum.remove(partition)
        self._newest.pop(partition, None)
        self._since.pop(partition, None)

    def unknown(self) -> None:
        """There may be others, with rows; until all are :meth:`known` time goes on no further, and nobody rests."""
        self.add("")
        self.unreadable("")

    def known(self) -> None:
        """Those that were added are all of the task's; what a snapshot knows of others is other tasks'."""
        self.remove("")
        self._newest = {name: newest for name, newest in self._newest.items() if name in self._minimum}

    def unreadable(self, partition: str) -> None:
        """Rows may be there, and cannot be read: that is not idleness, until it is :meth:`readable`."""
        self._since[partition] = math.inf

    def readable(self, partition: str) -> None:
        """Whether there are rows or not."""
        if self._since.get(partition) == math.inf:
            self._heard_of(partition)

    def _heard_of(self, partition: str) -> None:
        self._since[partition] = self._clock
        self._heard.add(partition)
        self._due = min(self._due, self._clock + self._longest)

    # --- rows -------------------------------------------------------------------------------------------------

    def emits(self, partition: str, stamps: Any) -> None:
        """Rows of a partition are emitted; ``stamps``: those values of the field, a list or a NumPy array."""
        if not len(stamps):
            return
        seconds, most = self.timestamps.seconds, self._most()
        low, high = map(seconds, _ends(stamps))
        if low is None or high is None or low < self.told or high > most:
            high = self._highest([*map(seconds, stamps if isinstance(stamps, list) else stamps.tolist())], most)
        if high is not None:
            self._heard_of(partition)
            newest = self._newest[partition] = max(high, self._newest.get(partition, NEVER))
            self._minimum.say(partition, newest - float(self.timestamps.lateness))

    def ahead(self, stamps: Any) -> list[bool] | None:
        """Which of some rows are, by the same values of the field; None: no one."""
        seconds, most = self.timestamps.seconds, self._most()
        high = seconds(_ends(stamps)[1]) if len(stamps) else NEVER
        if high is not None and high <= most:
            return None
        known = map(seconds, stamps if isinstance(stamps, list) else stamps.tolist())
        found = [stamp is not None and stamp > most for stamp in known]
        return found if any(found) else None

    def _most(self) -> float:
        return self._now() + float(self.timestamps.max_ahead)

    def _highest(self, stamps: list[float | None], most: float) -> float | None:
        """Up to ``most``; counts the others one by one."""
        known = [stamp for stamp in stamps if stamp is not None]
        sound = [stamp for stamp in known if stamp <= most]
        self.counts.none += len(stamps) - len(known)
        self.counts.ahead += len(known) - len(sound)
        self.counts.late += sum(stamp < self.told for stamp in sound)
        return max(sound, default=None)

    def waited(self, seconds: float) -> None:
        """For so long more could have come.

        A row of that time counts as of its end: a task that stood still was not idle.
        """
        self._clock += seconds
        for partition in self._heard:
            if self._since.get(partition, math.inf) < math.inf:
                self._since[partition] = self._clock
        self._heard.clear()
        if self._clock < self._due:
            return
        self._due = math.inf
        for partition, since in self._since.items():
            due = since + self._longest
            if due <= self._clock:
                self._minimum.rest(partition)
            else:
                self._due = min(self._due, due)

    def finished(self) -> None:
        """By the spout's own word there is nothing new for now."""
        for partition in self._since:
            self._minimum.rest(partition)

    # --- snapshots --------------------------------------------------------------------------------------------

    def saved(self) -> list[tuple[str, float]]:
        """The newest stamp by partition."""
        return [*self._newest.items()]

    def restore(self, watermark: float, newest: Iterable[tuple[str, float]], unnamed: Iterable[float] = ()) -> None:
        """As it was; but for the unnamed one, the spout adds the partitions that it has.

        ``newest``: of all former tasks, of which one may have an older value of another's partition.  ``unnamed``: of
        the unnamed partitions that this one goes on from, each another task's; minus infinity: it had no stamp.
        """
        self._minimum = Minimum((), watermark)
        self.told = watermark
        self._newest = {}
        for name, stamp in newest:
            self._newest[name] = max(stamp, self._newest.get(name, NEVER))
        self._newest.pop("", None)
        if (slowest := min(unnamed, default=NEVER)) > NEVER:
            self._newest[""] = slowest
        self._since.clear()
        self.add("")


def _ends(stamps: Any) -> tuple[Any, Any]:
    """The least and the highest, as they stand there; None: they have to be looked at one by one."""
    try:
        if not isinstance(stamps, list):
            return stamps.min().item(), stamps.max().item()
        low, high = min(stamps), max(stamps)
        # Both pass over a NaN that is not the first; a sum does not, and costs less than a look at each.
        if isinstance(low, datetime) or not math.isnan(sum(stamps, 0.0)):
            return low, high
    except (TypeError, ValueError, AttributeError, OverflowError):  # of different types, or of one that has no order
        pass
    return None, None


def stamps_of(rows: Any, place: int) -> Any:
    """The values of a field of rows, or of a record batch, as :meth:`SourceTime.emits` takes them."""
    if hasattr(rows, "num_rows"):
        if place >= rows.num_columns:  # it will be refused
            return []
        return _stamps_of_column(rows.column(place))
    try:
        return [row[place] for row in rows]
    except (IndexError, KeyError, TypeError):  # rows that will be refused
        return []


def _stamps_of_column(column: Any) -> Any:
    kind = str(column.type)
    # NumPy would make doubles of numbers, and times of dates, also of those in a dictionary.
    if "date" in kind or (column.null_count and kind.startswith(("int", "uint"))):
        return column.to_pylist()
    array = column.to_numpy(zero_copy_only=False)
    fine = array.dtype.kind == "M" and array.dtype.str not in _PYTHONS
    return array.astype("datetime64[us]") if fine else array


def timed(plan: LogicalPlan) -> frozenset[str]:
    """Components that have stamps of their own, and all that these reach."""
    stamped = {each.name for each in plan.spouts if getattr(each.cls, "timestamps", None) is not None}
    return frozenset(stamped.union(*map(plan.downstream, stamped)))


def future_of(component: ComponentPlan) -> StreamPlan | None:
    """The stream to which rows that are ahead go, where somebody reads it; None: the component has no stamps."""
    timestamps = getattr(component.cls, "timestamps", None)
    if component.kind != "spout" or not isinstance(timestamps, Timestamps):
        return None
    stamped = (each for each in component.streams if timestamps.field in each.fields and not each.direct)
    first = next((each for each in stamped if each.name != FUTURE), None)
    return None if first is None else StreamPlan(FUTURE, first.fields)


def divided(component: ComponentPlan) -> dict[str, int]:
    """The streams whose rows go to ``future`` where they are ahead, and which field of each has the stamp."""
    future = next((each for each in component.streams if each.name == FUTURE), None)
    timestamps = getattr(component.cls, "timestamps", None)
    if future is None or not isinstance(timestamps, Timestamps) or timestamps.field not in future.fields:
        return {}
    place = future.fields.index(timestamps.field)
    return {
        each.name: place
        for each in component.streams
        if each.name != FUTURE and each.fields == future.fields and not each.direct
    }
