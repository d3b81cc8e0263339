"""Which tasks are in trouble, and which local spouts must wait for them.

A pause is level-triggered: it is repeated while it lasts, lapses three seconds after the last word, and belongs to
the manager that said it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ardea.plan.physical import PhysicalPlan

LAPSES_AFTER = 3.0


@dataclass(slots=True)
class Pauses:
    """Initiating task -> who said so, and until when it counts."""

    _told: dict[int, tuple[int, float]] = field(default_factory=dict)

    def told(self, task: int, container: int, now: float, *, paused: bool) -> None:
        """A manager's word about a task of its container."""
        if paused:
            self._told[task] = (container, now + LAPSES_AFTER)
        elif self._told.get(task, (container, 0.0))[0] == container:
            self._told.pop(task, None)

    def forget(self, task: int) -> None:
        """The task has a new incarnation: nothing waits in it."""
        self._told.pop(task, None)

    def spouts(self, plan: PhysicalPlan, container: int, now: float) -> set[int]:
        """The local spout tasks whose tuples can reach a task in trouble."""
        self._told = {task: told for task, told in self._told.items() if told[1] > now}
        logical = plan.logical
        troubled = {plan.tasks[task].component for task in self._told}
        return {
            task.task
            for task in plan.tasks_in(container)
            if logical[task.component].kind == "spout" and logical.downstream(task.component) & troubled
        }
