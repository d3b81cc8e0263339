"""Containers whose pods are about to be ended: what is on its way to them is processed first (docs/kubernetes.md).

Pure, as the master is.  A new master takes all for away that have not reported to it, and hears of those who still want
to leave as they register.

    asked --all that reaches them rests, or it takes too long--> away --their tasks report again--> the spouts go on
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ardea.config import Settings
from ardea.plan.physical import PhysicalPlan
from ardea.topology_master.changing import Advice, Draining, PlanDifference
from ardea.topology_master.ending import Ending
from ardea.topology_master.updates import Memory

BACK_WITHIN = 90.0
"""Seconds in which a lost container is whole again; spouts wait no longer for one."""


class DepartureOrders(Protocol):
    """What it takes to empty a container."""

    def hold(self, spouts: Sequence[str], leaving: Sequence[int], *, settle: bool) -> int:
        """Orders these spouts to rest; returns the number of the order."""

    def resume(self) -> None:
        """Orders all spouts to go on."""

    def leave(self, containers: Sequence[int]) -> None:
        """Lets these containers end."""


@dataclass(frozen=True, slots=True)
class Away:
    """A container whose tasks are awaited: ``lives`` are those that they had, 0 where nobody knows.

    ``told``: this master has let it go.
    """

    until: float
    lives: Mapping[int, int]
    told: bool = False

    def back(self, ending: Ending) -> bool:
        """Whether all its tasks have reported from their next lives."""
        return all(self._reported(task, life, ending) for task, life in self.lives.items() if task in ending.tasks)

    def _reported(self, task: int, life: int, ending: Ending) -> bool:
        return task not in ending.unheard and ending.tasks[task].life > life


class Departures:
    """Those who leave, together: whoever asks while others are awaited joins them."""

    def __init__(self, orders: DepartureOrders, memory: Memory | None = None) -> None:
        """``memory``: of state that is in snapshots; None: there are none."""
        self._orders, self._memory = orders, memory
        self._asked: set[int] = set()
        self._away: dict[int, Away] = {}
        self._draining: Draining | None = None
        self._held: frozenset[str] = frozenset()  # the spouts that were ordered to rest last

    @property
    def running(self) -> bool:
        """Whether spouts are held for anybody."""
        return bool(self._asked or self._away)

    @property
    def due(self) -> float:
        """When to look again at the latest."""
        waits = [self._draining.due] if self._draining is not None else []
        return min([*waits, *(away.until for away in self._away.values())], default=math.inf)

    def begun(self, plan: PhysicalPlan, now: float) -> None:
        """Of a new master: its predecessor may have held the spouts for any container."""
        for number in plan.containers:
            self._away[number] = Away(now + BACK_WITHIN, dict.fromkeys((t.task for t in plan.tasks_in(number)), 0))

    def asked(self, container: int, plan: PhysicalPlan, ending: Ending, now: float) -> None:
        """A container wants to leave; it may say so again."""
        away = self._away.get(container)
        if away is not None and away.told:
            self._orders.leave([container])
        elif container not in self._asked:
            self._away.pop(container, None)
            self._asked.add(container)
            self._drain(plan, now)
            self.look(ending, plan, now)

    def replaced(self, container: int, plan: PhysicalPlan, ending: Ending, now: float) -> None:
        """Another one has its place, maybe before it was told to leave; that one may ask, too."""
        away = self._away.get(container)
        if container in self._asked:
            self._asked.remove(container)
            self._away[container] = Away(now + BACK_WITHIN, self._lives(container, plan, ending))
            self._drain(plan, now)
        elif away is not None and away.told:
            self._away[container] = replace(away, told=False)
        elif away is not None and not self._held:
            self._hold(plan)  # the spouts of that one know nothing of a former master's order

    def cancelled(self) -> None:
        """An update says what the spouts do: whoever has asked goes now, and nobody is waited for any more."""
        if self._asked:
            self._orders.leave(sorted(self._asked))
        self.forgotten()

    def forgotten(self) -> None:
        """The topology is ended: whoever has asked ends with it."""
        self._asked.clear()
        self._away.clear()
        self._draining, self._held = None, frozenset()

    def look(self, ending: Ending, plan: PhysicalPlan, now: float) -> None:
        """After each report, and when it is due."""
        if self._draining is not None and self._may_go(self._draining, ending, now):
            self._orders.leave(sorted(self._asked))
            for number in self._asked:
                self._away[number] = Away(now + BACK_WITHIN, self._lives(number, plan, ending), told=True)
            self._asked.clear()
            self._draining = None
        over = [number for number, away in self._away.items() if now >= away.until or away.back(ending)]
        for number in over:
            del self._away[number]
        if over:
            self._go_on(plan)

    def _go_on(self, plan: PhysicalPlan) -> None:
        """Spouts that were held for nobody else."""
        if not self.running:
            self._held = frozenset()
            self._orders.resume()
        elif self._held and self._memory is None and self._held - self._awaited(plan):
            self._hold(plan)

    @staticmethod
    def _lives(container: int, plan: PhysicalPlan, ending: Ending) -> Mapping[int, int]:
        return {t.task: ending.tasks[t.task].life for t in plan.tasks_in(container)}

    def _may_go(self, draining: Draining, ending: Ending, now: float) -> bool:
        """What rests, and is stored, is not done again when they are back."""
        advice = draining.look(ending, now)
        if advice is Advice.GO_ON and self._memory is not None:
            return self._memory.settle(now) or now >= draining.refused_at
        return advice in (Advice.GO_ON, Advice.REFUSE)

    def _drain(self, plan: PhysicalPlan, now: float) -> None:
        self._draining = None
        if self._asked:
            patience = Settings.of(plan.logical.config).emptying_secs
            self._draining = Draining(plan, self._without(plan, self._asked), patience / 2, now)
        self._hold(plan)

    def _hold(self, plan: PhysicalPlan) -> None:
        self._held = self._awaited(plan)
        leaving = self._without(plan, self._asked).leaving
        number = self._orders.hold(sorted(self._held), sorted(leaving), settle=False)
        if self._draining is not None:
            self._draining.hold = number

    def _awaited(self, plan: PhysicalPlan) -> frozenset[str]:
        """The spouts from which something reaches those who have asked, or are away."""
        return self._without(plan, {*self._asked, *self._away}).held

    def _without(self, plan: PhysicalPlan, containers: Collection[int]) -> PlanDifference:
        difference = PlanDifference.without(plan, containers)
        return difference if self._memory is None else difference.everywhere(plan, plan)
