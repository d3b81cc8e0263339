"""What a stream manager does with batches of another plan than its own, and with what a new plan takes away.

Batches carry the epoch under which they were routed.  A manager that is behind holds them until the plan comes; one
that is ahead drops those whose destination has changed since, and reports their roots lost (docs/updating.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ardea.plan.physical import PhysicalPlan
from ardea.protocol.checked import MARKERS
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import Header

Early = tuple[Link, Header, Sequence[bytes]]


@dataclass(slots=True)
class Epochs:
    """Which batches fit the present plan; ``early`` are those that wait for the next one, in order."""

    early: list[Early] = field(default_factory=list)
    _changed: dict[str, int] = field(default_factory=dict)

    def adopted(self, former: PhysicalPlan | None, plan: PhysicalPlan, *, rebuilt: bool) -> None:
        """A new plan.  A manager's first one may be any: whatever was routed under another is not trusted."""
        for component in plan.logical:
            name = component.name
            if former is None or rebuilt or places(former, name) != places(plan, name):
                self._changed[name] = plan.epoch

    def fits(self, plan: PhysicalPlan, target: int, header: Header) -> bool:
        """Whether what was routed by an earlier plan may still arrive; markers are about tasks, not about keys."""
        if target not in plan.tasks:
            return False
        return header.kind in MARKERS or header.epoch >= self._changed.get(plan.tasks[target].component, 0)


def places(plan: PhysicalPlan, component: str) -> dict[int, int]:
    """Task -> container, of one component."""
    return {task: plan.tasks[task].container for task in plan.component_tasks.get(component, ())}


def leavers(former: PhysicalPlan, plan: PhysicalPlan) -> list[int]:
    """Tasks that are not where they were: gone, or moved to another container."""
    return [
        task
        for task, place in former.tasks.items()
        if task not in plan.tasks or plan.tasks[task].container != place.container
    ]
