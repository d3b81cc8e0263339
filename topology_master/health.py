"""How the topology is doing, from what its supervisors, managers and tasks have said (docs/health.md).  Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from ardea.health import Health, ProcessRow, Trouble
from ardea.health.processes import trouble
from ardea.health.words import assessed
from ardea.metrics.overview import Summary
from ardea.plan.names import MASTER_CONTAINER, METRICS_MANAGER, container_name
from ardea.plan.physical import PhysicalPlan

SILENT = 15.0
"""Seconds after which a metrics manager that has said nothing is a trouble, and what it said before counts no more."""


class Seen(NamedTuple):
    """What a master knows: its plan, the containers that have not registered, the tasks that have not reported.

    ``updating``: some of them are about to change; ``came_up``: none was missing at least once; ``others``: troubles
    that are known already.
    """

    plan: PhysicalPlan
    missing: Collection[int]
    silent: Collection[str]
    updating: bool
    came_up: bool
    others: Collection[Trouble] = ()


@dataclass(frozen=True, slots=True)
class _Heard:
    admission: int
    rows: list[ProcessRow]
    at: float


class HealthWatch:
    """Keeps the last word of each container's metrics manager, and when each trouble began."""

    def __init__(self) -> None:
        self._heard: dict[tuple[int, str], _Heard] = {}
        self._since: dict[tuple[str, str], float] = {}
        self._registered: dict[int, float] = {}

    def heard(self, summary: Summary, now: float) -> None:
        """A metrics manager's summary; ``now`` in steady seconds.

        Each master's pod has one that speaks for container 0.  Of any other container the newest admission counts.
        """
        holder = summary.holder if summary.container == MASTER_CONTAINER else ""
        known = self._heard.get((summary.container, holder))
        if known is None or summary.admission >= known.admission:
            self._heard = {key: heard for key, heard in self._heard.items() if now - heard.at <= SILENT}
            self._heard[summary.container, holder] = _Heard(summary.admission, summary.supervised, now)

    def rows(self, plan: PhysicalPlan, now: float) -> list[ProcessRow]:
        """What was said lately of the plan's processes, and of the masters', by container."""
        return [
            row
            for (container, _), heard in sorted(self._heard.items())
            if now - heard.at <= SILENT and (container == MASTER_CONTAINER or container in plan.containers)
            for row in heard.rows
        ]

    def look(self, seen: Seen, rows: list[ProcessRow], now: float, wall: float) -> Health:
        """The health of a topology that is not over.

        Args:
            seen: what its master knows of containers and tasks.
            rows: see :meth:`rows`.
            now: steady seconds, on the clock of :meth:`heard`.
            wall: the same moment in Unix seconds.
        """
        found = [*seen.others, *(each for row in rows if (each := trouble(row)) is not None)]
        if not seen.updating:
            found += self._missing(seen, {each.who for each in found}, now)
        former, self._since = self._since, {}
        for each in found:
            if each.since is None:
                self._since[each.who, each.why] = former.get((each.who, each.why), wall)
        dated = [msgspec.structs.replace(t, since=self._since.get((t.who, t.why), t.since)) for t in found]
        return assessed(dated, came_up=seen.came_up)

    def _missing(self, seen: Seen, named: set[str], now: float) -> Iterator[Trouble]:
        plan = seen.plan
        for number in seen.missing:
            yield Trouble(container_name(number), None, "it has not registered with the master")
        homes = {place.name: place.container for place in plan.tasks.values()}
        for name in seen.silent:
            if name not in named and homes[name] not in seen.missing:
                yield Trouble(name, None, "it has not reported yet")
        self._registered = {n: self._registered.get(n, now) for n in plan.containers if n not in seen.missing}
        for number, since in self._registered.items():
            heard = self._heard.get((number, ""))
            if now - max(since, heard.at if heard else since) > SILENT:
                who = f"{container_name(number)}/{METRICS_MANAGER}"
                yield Trouble(who, None, "it has said nothing to the master: what happens there is not known")
