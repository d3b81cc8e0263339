"""The rows of one task of a join: kept by key, told when they belong together, gone when they can belong to nobody."""

from __future__ import annotations

import math
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from ardea.context import TopologyContext
from ardea.joins.declared import LATE
from ardea.joins.kept import MICROS, RIGHT, Found, Kept
from ardea.joins.sides import NO_KEY, Side
from ardea.metrics.user import MultiCountMetric
from ardea.tuples import Tuple
from ardea.units import shown

if TYPE_CHECKING:
    from ardea.joins.bolt import JoinBolt

DUE = 2
"""Where the value of a key has the time of its timer."""


class Joining:
    """Of one object of the author's; ``rows`` and ``timers`` are its state, ``timers`` None where none are needed."""

    def __init__(
        self, bolt: JoinBolt, context: TopologyContext, rows: MutableMapping[Any, list[Any]], timers: Any
    ) -> None:
        self.rows, self.timers = rows, timers
        self._bolt, self._machine = bolt, bolt.join.machine()
        self._sides = {each: Side.of(context, bolt.join, number) for number, each in enumerate(bolt.join.sides)}
        self.left, self.right = self._sides.values()
        self._has_late = LATE.name in context.this_streams
        self.refused = context.register_metric("join-refused", MultiCountMetric())
        self._told: set[str] = set()
        self._task = f"{context.this_component_id}-{context.this_task_index}"

    def came(self, tup: Tuple) -> None:
        """A row of one side."""
        side, now = self._sides[tup.component, tup.stream], self._bolt.watermark
        at = side.at(tup)
        if at is None:
            self._refuse(tup, "unstamped", f"its {side.stamp} = {shown(tup[side.stamp])} is no time")
        elif side.stamps is not None and now is not None and at < now:
            self._refuse(tup, "late", f"its {side.stamp} is {at}, and the watermark is {now} already")
        elif (key := side.key_of(tup)) is NO_KEY:
            self._refuse(tup, "unkeyed", f"{shown(side.key(tup.values))} cannot be a key")
        else:
            self._keep(side, key, at, tup.values)

    def passed(self, key: Any, at: float) -> None:
        """The watermark has reached what the key's timer was set for, maybe by a version with longer bounds."""
        stored = self._stored(key)
        stored[DUE] = None
        for found in self._machine.passed(_kept(stored), self._now):
            self._tell(found, at)
        self._look(key, stored)

    @property
    def _now(self) -> float:
        return -math.inf if self._bolt.watermark is None else self._bolt.watermark

    def _keep(self, side: Side, key: Any, at: float, values: tuple[Any, ...]) -> None:
        gone = self._bolt.join.versions and side.number == RIGHT and self._bolt.removes(side.tuple(values))
        row = [round(at * MICROS), False, None if gone else values]
        stored = self._stored(key)
        try:
            for found in self._machine.came(_kept(stored), side.number, row, self._now):
                self._tell(found, at)
        finally:
            self._look(key, stored)

    def _tell(self, found: Found, at: float) -> None:
        """``at``: a stamp below that would be late further down."""
        self._bolt.joined_at = None if found.at is None else max(found.at, at)
        left = None if found.left is None else self.left.tuple(found.left)
        right = None if found.right is None else self.right.tuple(found.right)
        self._bolt.joined(left, right)

    def _stored(self, key: Any) -> list[Any]:
        """[[fields, rows] of the left, the same of the right, when the key's timer is due], to be changed in place."""
        stored: list[Any] = self.rows[key]
        if not stored:
            stored += [[self.left.names, []], [self.right.names, []], None]
        for side in (self.left, self.right):
            if stored[side.number][0] != side.names:
                stored[side.number] = [side.names, side.read(*stored[side.number])]
        return stored

    def _look(self, key: Any, stored: list[Any]) -> None:
        """Nothing is kept of a key without rows; one with rows has a timer for what is due next."""
        kept = _kept(stored)
        if not kept[0] and not kept[1]:
            del self.rows[key]
        elif self.timers is not None:
            due = max(self._machine.due(kept), self._now)  # shorter bounds than those it was kept by may have passed
            if due < (math.inf if stored[DUE] is None else stored[DUE]):
                self.timers.set(key, due)
                stored[DUE] = due

    def _refuse(self, tup: Tuple, fault: str, why: str) -> None:
        self.refused.incr(fault)
        if fault not in self._told:
            self._told.add(fault)
            where = (
                "goes to the stream late" if self._has_late else "is left out; with LATE in outputs it would be emitted"
            )
            self._bolt.logger.warning(
                "%s: a row of %s:%s cannot be joined: %s; it %s, as all that follow (metric join-refused)",
                self._task, tup.component, tup.stream, why, where,
            )  # fmt: skip
        if self._has_late:
            self._bolt.emit((tup.component, tup.stream, list(tup.values)), stream=LATE.name)


def _kept(stored: list[Any]) -> Kept:
    return [stored[0][1], stored[1][1]]
