"""The bolt that joins two streams: it keeps their rows by key, and calls the author for what belongs together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, cast

from ardea.component import Bolt
from ardea.context import TopologyContext
from ardea.errors import EncodingError, UserError
from ardea.joins.checks import problems_of_join
from ardea.joins.declared import LATE, Join
from ardea.joins.kept import MICROS, RIGHT, VALUES, Found, Kept, Row
from ardea.keyed import KeyedState, State, states_of
from ardea.metrics.user import MultiCountMetric
from ardea.plan import ComponentPlan, LogicalPlan
from ardea.protocol.dict_keys import as_key, is_key
from ardea.protocol.keys import encode_key
from ardea.ready_made import ReadyMade
from ardea.timers import Timers
from ardea.tuples import Tuple
from ardea.units import shown
from ardea.watermarks import Timestamps

ROWS, TIMERS = "__join", "__join_timers"
DUE = 2
"""Where the value of a key has the time of its timer."""
_OWN = ("process", "process_batch", "process_columns", "on_timer")
_MOST = (1 << 62) / MICROS
"""Seconds: no stamp is further from 1970."""


class JoinBolt(ReadyMade, Bolt):
    """Joins two streams, as ``join`` says, and calls :meth:`joined`: see docs/joins.md.

    Attributes:
        join: an ``IntervalJoin``, ``WindowJoin``, ``AsOfJoin`` or ``TableJoin``.
        joined_at: within :meth:`joined`, a stamp for what it emits that is not late further down: seconds since 1970;
            None where rows are joined without stamps.
    """

    join: Join
    joined_at: float | None = None
    calls: ClassVar[Mapping[str, tuple[str, ...]]] = {"joined": ("left", "right"), "removes": ("right",)}

    def __init_subclass__(cls, **options: Any) -> None:
        """Raises UserError: the class cannot be a join."""
        super().__init_subclass__(**options)
        for method in _OWN:
            if getattr(cls, method) is not getattr(JoinBolt, method):
                raise UserError(
                    f"{cls.__name__} is a JoinBolt and has {method}(), which the join needs",
                    hint="Write joined(left, right); what else is to be done is another bolt's.",
                )
        if "join" not in vars(cls):
            return
        if not isinstance(cls.join, Join):
            raise UserError(
                f"{cls.__name__}: join is {cls.join!r}",
                hint="Write join = IntervalJoin(...), WindowJoin(...), AsOfJoin(...) or TableJoin(...).",
            )
        if timers := [state.name for state in states_of(cls) if isinstance(state, Timers) and state.name != TIMERS]:
            raise UserError(
                f"{cls.__name__} is a JoinBolt and has {timers[0]} = Timers(), which the join needs for itself",
                hint="Set timers in a bolt that reads the join.",
            )
        _declare(cls, ROWS, KeyedState(default=list, ttl=cls.join.ttl))
        _declare(cls, TIMERS, None if cls.join.stamps is None else Timers(time="event"))

    def joined(self, left: Tuple | None, right: Tuple | None) -> None:
        """Rows that belong together; None in the place of one: nobody belongs to the other.  Emits what it likes.

        Both are copies, which cannot be acked, failed or anchored to.
        """
        raise NotImplementedError

    def removes(self, right: Tuple) -> bool:  # noqa: ARG002
        """Of an ``AsOfJoin`` or ``TableJoin``: whether this row says that its key is gone from then on."""
        return False

    # --- the engine's -----------------------------------------------------------------------------------------

    @classmethod
    def problems(cls, component: ComponentPlan, plan: LogicalPlan) -> Iterable[str]:
        """See :class:`ReadyMade`."""
        if not isinstance(getattr(cls, "join", None), Join):
            return [f"Component: [{component.name}]: {cls.__qualname__} has no join: write join = IntervalJoin(...)"]
        if cls.joined is JoinBolt.joined:
            return [f"Component: [{component.name}]: {cls.__qualname__} has no joined(left, right)"]
        return problems_of_join(cls.join, component, plan)

    def prepare(self, context: TopologyContext) -> None:
        """Likewise."""
        self._machine = self.join.machine()
        self._sides = {side: _Side.of(context, self.join, number) for number, side in enumerate(self.join.sides)}
        self._left, self._right = self._sides.values()
        self._rows: MutableMapping[Any, list[Any]] = vars(self)[ROWS]
        self._timers: Any = vars(self).get(TIMERS)
        self._has_late = LATE.name in context.this_streams
        self._refused = context.register_metric("join-refused", MultiCountMetric())
        self._told: set[str] = set()
        self._task = f"{context.this_component_id}-{context.this_task_index}"

    def process(self, tup: Tuple) -> None:
        """The engine's to call: a row of one side."""
        side, now = self._sides[tup.component, tup.stream], self.watermark
        at = side.at(tup)
        if at is None:
            self._refuse(tup, "unstamped", f"its {side.stamp} = {shown(tup[side.stamp])} is no time")
        elif side.stamps is not None and now is not None and at < now:
            self._refuse(tup, "late", f"its {side.stamp} is {at}, and the watermark is {now} already")
        elif (key := side.key_of(tup)) is _NO_KEY:
            self._refuse(tup, "unkeyed", f"{shown(side.key(tup.values))} cannot be a key")
        else:
            self._came(side, key, at, tup.values)

    def on_timer(self, name: str, key: Any, at: float) -> None:  # noqa: ARG002
        """The engine's to call: rows of a key leave."""
        stored = self._stored(key)
        stored[DUE] = None
        for found in self._machine.passed(_kept(stored), cast("float", self.watermark)):
            self._tell(found)
        self._look(key, stored)

    def _came(self, side: _Side, key: Any, at: float, values: tuple[Any, ...]) -> None:
        gone = self.join.versions and side.number == RIGHT and self.removes(side.tuple(values))
        row = [round(at * MICROS), False, None if gone else values]
        now = -math.inf if self.watermark is None else self.watermark
        stored = self._stored(key)
        try:
            for found in self._machine.came(_kept(stored), side.number, row, now):
                self._tell(found._replace(at=None if found.at is None else max(found.at, at)))
        finally:
            self._look(key, stored)

    def _tell(self, found: Found) -> None:
        self.joined_at = found.at
        left = None if found.left is None else self._left.tuple(found.left)
        right = None if found.right is None else self._right.tuple(found.right)
        self.joined(left, right)

    def _stored(self, key: Any) -> list[Any]:
        """[[fields, rows] of the left, the same of the right, when the key's timer is due], to be changed in place."""
        stored: list[Any] = self._rows[key]
        if not stored:
            stored += [[self._left.names, []], [self._right.names, []], None]
        for side in (self._left, self._right):
            if stored[side.number][0] != side.names:
                stored[side.number] = [side.names, side.read(*stored[side.number])]
        return stored

    def _look(self, key: Any, stored: list[Any]) -> None:
        """Nothing is kept of a key without rows; one with rows has a timer for what is due next."""
        kept = _kept(stored)
        if not kept[0] and not kept[1]:
            del self._rows[key]
        elif self._timers is not None:
            due = self._machine.due(kept)
            if due < (math.inf if stored[DUE] is None else stored[DUE]):
                self._timers.set(key, due)
                stored[DUE] = due

    def _refuse(self, tup: Tuple, fault: str, why: str) -> None:
        self._refused.incr(fault)
        if fault not in self._told:
            self._told.add(fault)
            where = (
                "goes to the stream late" if self._has_late else "is left out; with LATE in outputs it would be emitted"
            )
            self.logger.warning(
                "%s: a row of %s:%s cannot be joined: %s; it %s, as all that follow (metric join-refused)",
                self._task, tup.component, tup.stream, why, where,
            )  # fmt: skip
        if self._has_late:
            self.emit((tup.component, tup.stream, list(tup.values)), stream=LATE.name)


_NO_KEY = object()


def _kept(stored: list[Any]) -> Kept:
    return [stored[0][1], stored[1][1]]


def _declare(cls: type, name: str, state: State | None) -> None:
    """None: the class has none, whatever its bases have."""
    if state is not None:
        state.__set_name__(cls, name)
    setattr(cls, name, state)


@dataclass(frozen=True, slots=True)
class _Side:
    """One of two, and the origin of its rows when they are told: ``names`` are its fields, as they are stored."""

    number: int
    component: str
    stream: str
    fields: tuple[str, ...]
    names: list[str]
    key: Callable[[tuple[Any, ...]], Any]
    stamps: Timestamps | None
    place: int
    task: int = -1

    @classmethod
    def of(cls, context: TopologyContext, join: Join, number: int) -> _Side:
        component, stream = source = join.sides[number]
        fields = context.this_input_fields[source]
        key = itemgetter(*map(fields.index, context.this_sources[source].fields))
        stamps = None if join.stamps is None else join.stamps[number]
        place = 0 if stamps is None else fields.index(stamps.field)
        return cls(number, component, stream, fields, list(fields), key, stamps, place)

    @property
    def stamp(self) -> str:
        """Its field."""
        return self.fields[self.place]

    def at(self, tup: Tuple) -> float | None:
        """The stamp of a row, 0.0 where none is needed; None: it has none."""
        if self.stamps is None:
            return 0.0
        try:
            at = self.stamps.seconds(tup.values[self.place])
        except (OverflowError, ValueError):  # a number, or a date, that no clock shows
            return None
        return at if at is not None and -_MOST < at < _MOST else None

    def key_of(self, tup: Tuple) -> Any:
        """The key of a row; ``_NO_KEY``: it has none."""
        try:
            key = as_key(self.key(tup.values))
            if not is_key(key):
                encode_key((key,))
        except EncodingError:
            return _NO_KEY
        return key

    def read(self, fields: Sequence[str], rows: list[Row]) -> list[Row]:
        """Rows that were kept when the stream had these fields."""
        for row in rows:
            if row[VALUES] is not None:
                known = dict(zip(fields, row[VALUES], strict=True))
                row[VALUES] = [known.get(name) for name in self.names]
        return rows

    def id_of(self, index: int) -> str:
        """As of a tuple that has none."""
        return f"{self.component}:{self.stream}:{index}"

    def tuple(self, values: Any) -> Tuple:
        """A row, as the author sees it."""
        return Tuple(tuple(values), 0, self)
