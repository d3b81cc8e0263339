"""Containers whose pods are about to be ended: what is on its way to them is processed first (docs/failures.md).

Pure, as the master is.  A new master resumes the spouts, and hears of those who still want to leave as they register.

    asked --all that reaches them rests, or it takes too long--> LEAVE --their tasks report again--> the spouts go on
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from ardea.config import Settings
from ardea.plan.physical import PhysicalPlan
from topology_master.changing import Advice, Difference, Draining
from topology_master.ending import Ending

BACK_WITHIN = 90.0
"""Seconds in which a lost container is whole again; spouts wait no longer for one."""
RESERVE = 10.0
"""Seconds of a pod's grace that are left for its processes to end in."""


class Topology(Protocol):
    """What it takes to empty a container."""

    def hold(self, spouts: Sequence[str], leaving: Sequence[int], *, settle: bool) -> int:
        """Orders these spouts to rest; returns the number of the order."""

    def resume(self) -> None:
        """Orders all spouts to go on."""

    def leave(self, containers: Sequence[int]) -> None:
        """Lets these containers end."""


class Departures:
    """Those who leave, together: whoever asks while others are awaited joins them."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._asked: set[int] = set()
        self._away: dict[int, Mapping[int, int]] = {}  # container -> the lives that its tasks had
        self._draining: Draining | None = None
        self._back_by = math.inf

    @property
    def running(self) -> bool:
        """Whether spouts are held for anybody."""
        return bool(self._asked or self._away)

    @property
    def due(self) -> float:
        """When to look again at the latest."""
        return self._back_by if self._draining is None else min(self._back_by, self._draining.due)

    def asked(self, container: int, plan: PhysicalPlan, ending: Ending, now: float) -> None:
        """A container wants to leave; it may say so again."""
        if container in self._away:
            self._topology.leave([container])
        elif container not in self._asked:
            self._asked.add(container)
            self._drain(plan, now)
            self.look(ending, plan, now)

    def replaced(self, container: int, plan: PhysicalPlan, now: float) -> None:
        """Another one has its place before it was told to leave."""
        if container in self._asked:
            self._asked.remove(container)
            self._drain(plan, now)

    def cancelled(self) -> None:
        """Somebody else says what the spouts do: nobody is waited for any more."""
        if self._asked:
            self._topology.leave(sorted(self._asked))
        self._asked.clear()
        self._away.clear()
        self._draining, self._back_by = None, math.inf

    def look(self, ending: Ending, plan: PhysicalPlan, now: float) -> None:
        """After each report, and when it is due."""
        if self._draining is not None and self._draining.look(ending, now) in (Advice.GO_ON, Advice.REFUSE):
            self._topology.leave(sorted(self._asked))
            for number in self._asked:
                self._away[number] = {t.task: ending.tasks[t.task].life for t in plan.tasks_in(number)}
            self._asked.clear()
            self._draining, self._back_by = None, now + BACK_WITHIN
        if now >= self._back_by:
            self._away.clear()
        for number, lives in list(self._away.items()):
            if all(ending.tasks[task].life > life for task, life in lives.items() if task in ending.tasks):
                del self._away[number]
        if not self.running and (self._back_by < math.inf):
            self._back_by = math.inf
            self._topology.resume()

    def _drain(self, plan: PhysicalPlan, now: float) -> None:
        if not self._asked:
            self._draining = None
            if not self._away:
                self._topology.resume()
            return
        difference = Difference.without(plan, self._asked)
        patience = max(1.0, Settings.of(plan.logical.config).kubernetes_grace - RESERVE)
        self._draining = Draining(plan, difference, patience / 2, now)
        held = difference.held | Difference.without(plan, self._away).held
        self._draining.hold = self._topology.hold(sorted(held), sorted(difference.leaving), settle=False)
