"""Back pressure: which tasks are in trouble, and which local spouts must wait for them.

A pause is level-triggered: it is repeated while it lasts, lapses three seconds after the last word, and belongs to
the manager that said it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ardea.plan.physical import PhysicalPlan
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import PAUSE, Header
from ardea.stream_manager.acks import ControlOutbox
from ardea.stream_manager.consumers import Consumer

LAPSES_AFTER = 3.0
LOOK_EVERY = 1.0
"""Seconds between two looks at who is not heard."""


@dataclass(slots=True)
class Pauses:
    """Initiating task -> who said so, and until when it counts."""

    _paused_by: dict[int, tuple[int, float]] = field(default_factory=dict)

    def note_pause(self, task: int, container: int, now: float, *, paused: bool) -> None:
        """A manager's word about a task of its container."""
        if paused:
            self._paused_by[task] = (container, now + LAPSES_AFTER)
        elif self._paused_by.get(task, (container, 0.0))[0] == container:
            self._paused_by.pop(task, None)

    def note_silence(self, task: int, container: int, now: float) -> None:
        """The manager of the task's container is not heard, which counts until the next look."""
        _, until = self._paused_by.get(task, (container, 0.0))
        self._paused_by[task] = (container, max(until, now + LOOK_EVERY))

    def forget(self, task: int) -> None:
        """The task has a new incarnation, or is gone: nothing waits in it."""
        self._paused_by.pop(task, None)

    def spouts(self, plan: PhysicalPlan, container: int, now: float) -> set[int]:
        """The local spout tasks whose tuples can reach a task in trouble."""
        self._paused_by = {task: pause for task, pause in self._paused_by.items() if pause[1] > now}
        logical = plan.logical
        troubled = {plan.tasks[task].component for task in self._paused_by if task in plan.tasks}
        return {
            task.task
            for task in plan.tasks_in(container)
            if logical[task.component].kind == "spout" and logical.downstream(task.component) & troubled
        }


class BackPressure:
    """One manager's part in it: it announces its own tasks' trouble, and pauses its own spouts for anybody's.

    ``peers``, ``instances`` and ``outboxes`` are the manager's own, and change with it.
    """

    def __init__(
        self,
        container: int,
        peers: Mapping[int, Link],
        instances: Mapping[int, Link],
        outboxes: Mapping[Link, ControlOutbox],
    ) -> None:
        self._container = container
        self._peers, self._instances, self._outboxes = peers, instances, outboxes
        self._pauses = Pauses()
        self._paused: set[int] = set()

    def judge(self, plan: PhysicalPlan, consumer: Consumer, now: float) -> None:
        """How much waits for a local task has changed."""
        before = consumer.pausing
        if consumer.judge(now) != before:
            self.announce(plan, consumer, now)

    def announce(self, plan: PhysicalPlan, consumer: Consumer, now: float) -> None:
        """Tells everybody whether a local task is in trouble."""
        header = Header(kind=PAUSE, target=consumer.task, paused=consumer.pausing)
        for link in self._peers.values():
            copy = Header()
            copy.CopyFrom(header)
            self._outboxes[link].newest(("pause", consumer.task), copy)
        self.note_pause(plan, consumer.task, self._container, now, paused=consumer.pausing)

    def note_pause(self, plan: PhysicalPlan, task: int, container: int, now: float, *, paused: bool) -> None:
        """A manager's word about a task of its container."""
        self._pauses.note_pause(task, container, now, paused=paused)
        self.apply(plan, now)

    def forget(self, task: int) -> None:
        """The task has a new incarnation, or is gone: nothing waits in it."""
        self._pauses.forget(task)

    def silent(self, plan: PhysicalPlan, container: int, now: float) -> None:
        """Another manager is not heard: what its tasks are sent would wait, and come again at each timeout."""
        for task in plan.tasks_in(container):
            self._pauses.note_silence(task.task, container, now)

    def apply(self, plan: PhysicalPlan, now: float) -> None:
        """Pauses exactly the local spouts that can reach a task in trouble."""
        wanted = self._pauses.spouts(plan, self._container, now)
        for task in wanted | (self._paused & self._instances.keys()):
            # Repeated while it lasts: an instance that hears nothing for three seconds goes on by itself.
            self._outboxes[self._instances[task]].newest("pause", Header(kind=PAUSE, paused=task in wanted))
        self._paused = wanted
