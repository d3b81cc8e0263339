"""What windows a bolt may declare, and one window as its author sees it (docs/windows.md).

An author writes seconds, or a text such as ``10 min``.  Inside, times are whole microseconds since 1970, so that no
window begins a rounding error beside its neighbour.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from ardea.errors import UserError
from ardea.units import duration
from ardea.watermarks import Timestamps
from ardea.windows.folds import Fold, Rows

Firing = Literal["early", "on time", "late"]
MICROS = 1_000_000
_LONGEST = 10_000 * 366 * 86_400 * MICROS


def whole_micros(seconds: float) -> int:
    """Raises ValueError: it is too short for a window, or too long."""
    micros = round(seconds * MICROS)
    if not 0 < micros <= _LONGEST:
        raise ValueError("a microsecond or more, and 10,000 years at most")
    return micros


class Window(NamedTuple):
    """One that is seen: from ``start`` up to, and without, ``end``, in seconds since 1970; None: it goes by number.

    ``firing``: ``early``, ``on time``, or ``late``, for a row that came after the window had been seen on time.
    """

    start: float | None
    end: float | None
    firing: Firing = "on time"

    @property
    def stamp(self) -> float | None:
        """The last microsecond of the window: what is emitted with this stamp is on time further down."""
        return None if self.end is None else self.end - 1 / MICROS


@dataclass(frozen=True, kw_only=True)
class Windows:
    """What all kinds share.

    Attributes:
        on: the field with the stamp: event time; None: the clock of the machine when the row is added.
        fold: what is kept of a window's rows; None: all of them, each a tuple of its values.
        unit: of stamps that are numbers; datetimes need none, and are UTC without a zone.
    """

    on: str | None = None
    fold: Any = field(default_factory=Rows)
    unit: Literal["s", "ms", "us", "ns"] = "s"

    timed = True  # whether windows go by time, and not by number
    merges = False  # whether values are put together, so that the fold has to

    def __post_init__(self) -> None:
        """Raises UserError: an argument is none."""
        kind = type(self).__name__
        Timestamps("at" if self.on is None else self.on, unit=self.unit)
        if not isinstance(self.fold, Fold):
            raise UserError(
                f"{kind}(fold={self.fold!r}): fold takes an object of ardea.windows, such as Count()",
                hint="A fold of your own is a class that derives from ardea.windows.Fold.",
            )
        if self.merges and not self.fold.merges:
            raise UserError(
                f"{kind}(fold={self.fold!r}): windows of this kind are put together, and the fold has no merge()",
                hint="Give it merge(self, a, b), which makes one value of two.",
            )

    @property
    def kept_as(self) -> str:
        """What another version's windows have to be, too, to go on with what these have kept."""
        return type(self).__name__

    @property
    def reads_columns(self) -> bool:
        """Whether rows that travel as columns are added as such."""
        return False

    @property
    def stamps(self) -> Timestamps:
        """How stamps are read, where windows go by event time."""
        assert self.on is not None
        return Timestamps(self.on, unit=self.unit)

    def _micros(self, name: str, *, zero: bool = False) -> int:
        """An argument in microseconds; raises UserError."""
        value = getattr(self, name)
        if zero and value in (0, 0.0) and not isinstance(value, bool):
            return 0
        try:
            return whole_micros(duration(value))
        except ValueError as error:
            raise UserError(f"{type(self).__name__}({name}={value!r}): {name} takes {error}") from None

    def _rows(self, name: str) -> int:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UserError(f"{type(self).__name__}({name}={value!r}): {name} takes a number of rows, 1 or more")
        return value


@dataclass(frozen=True, kw_only=True)
class TimeWindows(Windows):
    """Those that have an end in time.

    Attributes:
        allowed_lateness: for how long after its end, in event time, a window still takes rows: seconds, or a text.
        early: a window with new rows is seen so long after the first of them, by the machine's clock, too; None: it is
            seen at its end only.
    """

    allowed_lateness: float | str = 0.0
    early: float | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on is None and self.allowed_lateness not in (0, 0.0):
            raise UserError(
                f"{type(self).__name__}(allowed_lateness={self.allowed_lateness!r}): there are no late rows by the "
                "clock of the machine",
                hint="Name the field with the stamp: on='at'.",
            )
        self.lateness_us  # noqa: B018 -- raises
        self.early_seconds  # noqa: B018

    @property
    def lateness_us(self) -> int:
        """Allowed."""
        return self._micros("allowed_lateness", zero=True)

    @property
    def early_seconds(self) -> float | None:
        """After the first new row."""
        return None if self.early is None else self._micros("early") / MICROS


@dataclass(frozen=True)
class Regular(TimeWindows):
    """Windows of one length, of which one begins every so often.

    Attributes:
        size: of a window: seconds, or a text such as ``10 min``.
        offset: windows begin so long after each multiple of what is between two begins; for days of a time zone.
    """

    size: float | str
    offset: float | str = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.size_us, self.every_us, self.offset_us  # noqa: B018 -- they raise

    @property
    def size_us(self) -> int:
        """Of a window."""
        return self._micros("size")

    @property
    def every_us(self) -> int:
        """From one begin to the next."""
        return self.size_us

    @cached_property
    def offset_us(self) -> int:
        """From a multiple of ``every_us`` to a begin."""
        return self._micros("offset", zero=True)

    @property
    def kept_as(self) -> str:
        """Windows that begin and end at other times have other panes."""
        size, every, offset = (each / MICROS for each in (self.size_us, self.every_us, self.offset_us % self.every_us))
        times = f"Tumbling({size} s" if every == size else f"Sliding({size} s, {every} s"
        return f"{times}, offset={offset} s)" if offset else f"{times})"

    @property
    def reads_columns(self) -> bool:
        """See :class:`Windows`."""
        return self.fold.of_columns and self.fold.merges  # type: ignore[no-any-return]

    @cached_property
    def pane_us(self) -> int:
        """Of panes: no window begins or ends inside one."""
        return math.gcd(self.size_us, self.every_us)

    def panes(self, stamps: Any) -> Any:
        """The begins of the panes that an array of stamps is in, all in microseconds."""
        offset, pane = self.offset_us, self.pane_us
        return (stamps - offset) // pane * pane + offset


@dataclass(frozen=True)
class Tumbling(Regular):
    """Windows of one length, each of which begins where the one before ends: ``Tumbling("1 min", on="at")``."""


@dataclass(frozen=True)
class Sliding(Regular):
    """A row is in each window that has its stamp: ``Sliding("10 min", "1 min", on="at")``.

    Attributes:
        every: from one begin to the next, as ``size``, and not more than that.
    """

    every: float | str

    merges = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.every_us > self.size_us:
            raise UserError(
                f"Sliding(size={self.size!r}, every={self.every!r}): rows between two windows would be in none",
                hint="every is size at most; with every = size it is Tumbling(size).",
            )

    @property
    def every_us(self) -> int:
        """See :class:`Regular`."""
        return self._micros("every")


@dataclass(frozen=True)
class Session(TimeWindows):
    """All rows of a key that are less than ``gap`` apart: the window ends a gap after the last of them.

    Attributes:
        gap: seconds, or a text such as ``30 min``.
    """

    gap: float | str

    merges = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.gap_us  # noqa: B018 -- raises

    @property
    def gap_us(self) -> int:
        """Between rows of two windows."""
        return self._micros("gap")


@dataclass(frozen=True)
class CountTumbling(Windows):
    """The next so many rows of a key.

    Attributes:
        rows: in a window.
    """

    rows: int

    timed = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._rows("rows")
        _no_stamp(self)


@dataclass(frozen=True)
class CountSliding(Windows):
    """The last so many rows of a key, each time ``every`` more have come.

    Attributes:
        rows: in a window.
        every: rows from one window to the next; not more than ``rows``.
    """

    rows: int
    every: int

    timed = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._rows("every") > self._rows("rows"):
            raise UserError(
                f"CountSliding(rows={self.rows!r}, every={self.every!r}): rows between two windows would be in none",
                hint="every is rows at most; with every = rows it is CountTumbling(rows).",
            )
        if not self.fold.keeps_values:
            raise UserError(
                f"CountSliding(fold={self.fold!r}): rows are kept until they leave the window, and only a fold of "
                "ardea.windows says what of them",
                hint="Leave fold= out, and fold the list of rows in on_window().",
            )
        _no_stamp(self)


@dataclass(frozen=True, kw_only=True)
class Global(Windows):
    """The one window of a key, of all its rows: seen early as often as asked for, and at the end of the input.

    Attributes:
        rows: it is seen each time so many more rows have come; None: it is not.
        early: it is seen so long after the first row that is new, by the machine's clock: seconds, or a text; likewise.
    """

    rows: int | None = None
    early: float | str | None = None

    timed = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows is None and self.early is None:
            raise UserError(
                "Global() has no trigger: the window would be seen at the end of the input only",
                hint="Say when it is to be seen: Global(rows=100), or Global(early='1 min').",
            )
        if self.rows is not None:
            self._rows("rows")
        self.early_seconds  # noqa: B018 -- raises
        _no_stamp(self)

    @property
    def early_seconds(self) -> float | None:
        """After the first new row."""
        return None if self.early is None else self._micros("early") / MICROS


def _no_stamp(windows: Any) -> None:
    if windows.on is not None:
        raise UserError(
            f"{type(windows).__name__}(on={windows.on!r}): windows by number take rows in the order in which they come",
            hint="Leave on= out.",
        )
