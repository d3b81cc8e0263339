"""The exceptions of authors' code, of all tasks of a topology (docs/protocol.md, exceptions).  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ardea.health import Raised
from ardea.plan.physical import TaskPlan
from ardea.protocol.wire_pb2 import RaisedGroup

MOST = 50
"""Groups; the one that grew longest ago makes room."""
LONGEST = 4000
"""Characters of any text that are kept, whatever a task says."""


@dataclass(slots=True)
class _Group:
    first: float
    last: float
    type: str = ""
    message: str = ""
    stack: str = ""
    row: str = ""
    tasks: dict[str, int] = field(default_factory=dict)
    known: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Of each task, its life and what it has counted in it."""


class Exceptions:
    """Of one topology, since its master began."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, int], _Group] = {}  # the one that grew longest ago first

    def reported(self, place: TaskPlan, life: int, raised: Iterable[RaisedGroup], now: float) -> None:
        """A task says what it has raised in this life; ``now`` in steady seconds."""
        for told in raised:
            key = place.component, told.digest
            group = self._groups.get(key) or _Group(now, now)
            grown = self._grown(group, place.name, life, told.count)
            if told.type:
                group.type, group.message = told.type[:LONGEST], told.message[:LONGEST]
                group.stack, group.row = told.stack[:LONGEST], told.row[:LONGEST]
            if not grown:
                continue
            group.tasks[place.name] = group.tasks.get(place.name, 0) + grown
            group.last = now
            self._groups.pop(key, None)
            self._groups[key] = group
            if len(self._groups) > MOST:
                del self._groups[next(iter(self._groups))]

    def present(self, now: float, wall: float) -> list[Raised]:
        """Who grew last comes first; ``wall``: ``now`` in Unix seconds."""
        return [
            Raised(
                component=component,
                type=group.type,
                message=group.message,
                stack=group.stack,
                row=group.row,
                count=sum(group.tasks.values()),
                tasks=dict(sorted(group.tasks.items())),
                first=round(wall - (now - group.first), 3),
                last=round(wall - (now - group.last), 3),
            )
            for (component, _), group in reversed(self._groups.items())
        ]

    def _grown(self, group: _Group, task: str, life: int, count: int) -> int:
        """By how many; a task that began anew, or has forgotten the group meanwhile, counts from 1."""
        known_life, known = group.known.get(task, (0, 0))
        group.known[task] = life, count
        return count - known if life == known_life and count >= known else count
