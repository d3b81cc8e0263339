"""What an author says of a join: which rows of which streams belong together, and which come alone."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from ardea.component import DEFAULT_STREAM, Stream
from ardea.errors import UserError
from ardea.joins.kept import MICROS, Machine
from ardea.joins.pairs import Pairs, interval, window
from ardea.joins.versions import Latest, Versions
from ardea.units import duration
from ardea.watermarks import Timestamps

LATE = Stream(("component", "stream", "values"), "late")
"""In ``outputs`` of a join: rows that cannot be joined, with where they come from."""
How: TypeAlias = Literal["inner", "left", "right", "outer"]
LeftHow: TypeAlias = Literal["inner", "left"]
Unit: TypeAlias = Literal["s", "ms", "us", "ns"]
Bound: TypeAlias = float | str
On: TypeAlias = str | tuple[str, str]


class Join:
    """Of two streams, ``sides``: (component, stream) of the left and the right.

    ``stamps``: the field of each side that has the stamp; None: rows are joined as they come.  ``versions``: the right
    takes the place of what it said before.  ``ttl``: see :class:`TableJoin`.
    """

    ways: tuple[str, ...] = get_args(How)
    needs_stamps = True
    versions = False
    ttl: float | None = None

    def __init__(self, left: str, right: str, on: On | None, how: str, unit: Unit) -> None:
        self.sides = self._stream("left", left), self._stream("right", right)
        if self.sides[0] == self.sides[1]:
            raise self._wrong(f"left and right are both {left!r}", "Put a bolt between, for one of them.")
        self.stamps: tuple[Timestamps, Timestamps] | None = None
        if on is not None or self.needs_stamps:
            fields = (on, on) if isinstance(on, str) else on
            if not isinstance(fields, tuple | list) or len(fields) != 2:
                raise self._wrong(f"on={on!r}", "on takes the field with the stamp, or a pair: that of each side.")
            try:
                self.stamps = Timestamps(fields[0], unit=unit), Timestamps(fields[1], unit=unit)
            except UserError as error:
                raise self._wrong(f"on={on!r}, unit={unit!r}: {error.message}") from None
        if how not in self.ways:
            raise self._wrong(f"how={how!r}", f"how takes {', '.join(map(repr, self.ways))}.")
        self.how = how

    @property
    def alone(self) -> tuple[bool, bool]:
        """Whether rows of the left, and of the right, come without the other."""
        return self.how in ("left", "outer"), self.how in ("right", "outer")

    def machine(self) -> Machine:
        """What finds the rows of one key that belong together."""
        raise NotImplementedError

    def _stream(self, argument: str, written: Any) -> tuple[str, str]:
        if not isinstance(written, str) or not written:
            raise self._wrong(
                f"{argument}={written!r}", f"{argument} takes the name of a component, or component:stream."
            )
        component, _, stream = written.partition(":")
        return component, stream or DEFAULT_STREAM

    def _micros(self, argument: str, value: Any, *, zero: bool = True) -> int:
        if zero and not isinstance(value, bool) and value in (0, 0.0):
            return 0
        try:
            micros = round(duration(value) * MICROS)
        except ValueError as error:
            raise self._wrong(f"{argument}={value!r}", f"{argument} takes {error}.") from None
        if not micros:
            raise self._wrong(f"{argument}={value!r}", "The shortest time is a microsecond.")
        return micros

    def _wrong(self, what: str, hint: str | None = None) -> UserError:
        return UserError(f"{type(self).__name__}: {what}", hint=hint)


class IntervalJoin(Join):
    """Rows of one key of which the right one is at most so long before or after the left one."""

    def __init__(
        self,
        left: str,
        right: str,
        *,
        on: On,
        before: Bound | None = None,
        after: Bound | None = None,
        how: How = "inner",
        unit: Unit = "s",
    ) -> None:
        """Declares it.

        Args:
            left: a component's name, or ``component:stream``.
            right: likewise.
            on: the field with the stamp, or a pair of fields: the left's and the right's.
            before: a right row may be so long before its left one: seconds, 0 or more, or a text such as ``5 min``.
            after: likewise after it.  One of the two has to be given; the other one is 0.
            how: which rows come alone, too.
            unit: of stamps that are numbers.

        Raises:
            UserError: an argument is none of that, or there is no bound.
        """
        super().__init__(left, right, on, how, unit)
        if before is None and after is None:
            raise self._wrong(
                "it has no bound, and would keep all rows for ever",
                "Say by before= and after= how far the stamps of a pair may lie apart.",
            )
        self._before = self._micros("before", 0 if before is None else before)
        self._after = self._micros("after", 0 if after is None else after)

    def machine(self) -> Machine:
        """See :class:`Join`."""
        return Pairs(interval(self._before, self._after), self.alone)


class WindowJoin(Join):
    """Rows of one key in the same tumbling window."""

    def __init__(
        self,
        left: str,
        right: str,
        *,
        on: On,
        size: Bound,
        offset: Bound = 0,
        how: How = "inner",
        unit: Unit = "s",
    ) -> None:
        """Declares it; what is not said here is as of an :class:`IntervalJoin`.

        Args:
            left: a component's name, or ``component:stream``.
            right: likewise.
            on: the field with the stamp.
            size: the length of a window: seconds above 0, or a text such as ``1 h``.
            offset: windows begin so long after each multiple of ``size``, counted from 1970.
            how: which rows come alone, too.
            unit: of stamps that are numbers.

        Raises:
            UserError: an argument is none of that.
        """
        super().__init__(left, right, on, how, unit)
        self._size = self._micros("size", size, zero=False)
        self._offset = self._micros("offset", offset)

    def machine(self) -> Machine:
        """See :class:`Join`."""
        return Pairs(window(self._size, self._offset), self.alone)


class AsOfJoin(Join):
    """A left row with the last right row of its key up to its stamp."""

    ways = get_args(LeftHow)
    versions = True

    def __init__(
        self, left: str, right: str, *, on: On, within: Bound, how: LeftHow = "inner", unit: Unit = "s"
    ) -> None:
        """Declares it; what is not said here is as of an :class:`IntervalJoin`.

        Args:
            left: a component's name, or ``component:stream``.
            right: likewise.
            on: the field with the stamp.
            within: the right row may be so much older: seconds, 0 or more, or a text such as ``5 s``.
            how: ``left``: left rows without a right one come alone.
            unit: of stamps that are numbers.

        Raises:
            UserError: an argument is none of that.
        """
        super().__init__(left, right, on, how, unit)
        self._within = self._micros("within", within)

    def machine(self) -> Machine:
        """See :class:`Join`."""
        return Versions(self._within, alone=self.alone[0])


class TableJoin(Join):
    """A row with what a table says of its key: at the row's stamp or, without ``on``, when the row comes."""

    ways = get_args(LeftHow)
    versions = True
    needs_stamps = False

    def __init__(
        self,
        stream: str,
        table: str,
        *,
        on: On | None = None,
        how: LeftHow = "inner",
        ttl: Bound | None = None,
        unit: Unit = "s",
    ) -> None:
        """Declares it; what is not said here is as of an :class:`IntervalJoin`.

        Args:
            stream: a component's name, or ``component:stream``.
            table: likewise; each of its rows is what it says of its key from then on.
            on: the field with the stamp; None: neither needs one.
            how: ``left``: rows of keys that the table does not have come alone.
            ttl: without ``on``: keys that were not used for so long are forgotten, as of a ``KeyedState``.
            unit: of stamps that are numbers.

        Raises:
            UserError: an argument is none of that.
        """
        super().__init__(stream, table, on, how, unit)
        if ttl is not None:
            if self.stamps is not None:
                raise self._wrong(
                    f"on={on!r}, ttl={ttl!r}", "A table with on= forgets nothing by the clock: leave ttl out."
                )
            self.ttl = self._micros("ttl", ttl, zero=False) / MICROS

    def machine(self) -> Machine:
        """See :class:`Join`."""
        return Latest(alone=self.alone[0]) if self.stamps is None else Versions(None, alone=self.alone[0])
