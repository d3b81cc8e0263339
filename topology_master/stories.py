"""What happened last to each task and container, to the update and to the topology, as its master saw it."""

from __future__ import annotations

from collections.abc import Iterable

from ardea.plan.physical import PhysicalPlan
from ardea.protocol.story import Story

TOPOLOGY, UPDATE, SNAPSHOTS = "topology", "update", "snapshots"


class Stories:
    """One for each thing of the plan in force; ``now`` is the time of whatever is told."""

    def __init__(self, now: float) -> None:
        self.now = now
        self._stories: dict[str, Story] = {}

    def tell(self, name: str, what: str) -> None:
        """``name``: ``count-0``, ``container-1``, TOPOLOGY, UPDATE or SNAPSHOTS."""
        self._stories.setdefault(name, Story()).tell(self.now, what)

    def forget(self, plan: PhysicalPlan, containers: Iterable[str]) -> None:
        """What the plan has no more."""
        kept = {TOPOLOGY, UPDATE, SNAPSHOTS, *containers, *(task.name for task in plan.tasks.values())}
        self._stories = {name: story for name, story in self._stories.items() if name in kept}

    def events(self, now: float) -> dict[str, list[tuple[float, str, int]]]:
        """By name: how many seconds ago, what, and how often in a row."""
        return {
            name: [(round(now - event.at, 3), event.what, event.times) for event in story.events]
            for name, story in self._stories.items()
        }
