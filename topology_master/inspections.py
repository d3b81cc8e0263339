"""The master's side of ``ardea debug stacks`` and ``profile``: passes a request on once, and keeps the answer a while.

asked --an order to the task--> under way --its report--> answered --a minute--> forgotten
                                    +--------------too late-----------------------+
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ardea.errors import ProtocolError
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.protocol.inspection import MOST_SECONDS, Answer, as_text
from ardea.protocol.wire_pb2 import Inspect, Inspected

MOST = 8
"""Requests that are under way, or whose answers are kept."""
GRACE, KEPT = 5.0, 60.0
"""Seconds that a task has beyond those that it looks; and that an answer is kept."""
KINDS = ("stacks", "profile")


class Way(Protocol):
    """To the tasks."""

    def inspect(self, task: TaskPlan, inspect: Inspect) -> None:
        """To one of them, in the life that it has now."""


@dataclass(slots=True)
class Asked:
    """One request; ``until`` is when it is given up, or forgotten."""

    task: str
    what: str
    until: float
    answer: Answer
    answered: bool = False


class Inspections:
    """Of one term; pure, as the master is."""

    def __init__(self, orders: Way) -> None:
        self._orders = orders
        self._asked: dict[str, Asked] = {}

    def asked(self, wanted: Inspect, task: str, plan: PhysicalPlan, now: float) -> Answer:
        """Begins it, unless it is known; what is known of it.

        Raises:
            ValueError: the plan has no such task, or a task cannot do that.
            ProtocolError: the task, or too many others, are being looked at; nothing was begun.
        """
        self._asked = {each: known for each, known in self._asked.items() if now < known.until}
        if (known := self._asked.get(wanted.id)) is not None:
            return known.answer
        place = next((place for place in plan.tasks.values() if place.name == task), None)
        if place is None:
            raise ValueError(f"there is no task {task}")
        if wanted.what not in KINDS or not (wanted.what == "stacks" or 0 < wanted.seconds <= MOST_SECONDS):
            raise ValueError(f"a task is looked at for 1 to {MOST_SECONDS} s, for one of {', '.join(KINDS)}")
        self._make_room(task, now)
        seconds = wanted.seconds if wanted.what == "profile" else 0
        self._asked[wanted.id] = Asked(task, wanted.what, now + seconds + GRACE, Answer(wanted.id, task))
        self._orders.inspect(place, wanted)
        return self._asked[wanted.id].answer

    def _make_room(self, task: str, now: float) -> None:
        under_way = [known for known in self._asked.values() if not known.answered]
        for known in under_way:
            if known.task == task:
                left = f"{known.what} of it are asked for, for up to another {known.until - now:.0f} s"
                raise ProtocolError("INSPECTION_RUNS", f"{task} is being looked at: {left}; repeat it then")
        if len(under_way) >= MOST:
            raise ProtocolError("INSPECTION_RUNS", f"{MOST} other tasks are being looked at; repeat it in a minute")
        if len(self._asked) >= MOST:
            del self._asked[next(each for each, known in self._asked.items() if known.answered)]

    def answered(self, task: str, found: Inspected, now: float) -> None:
        """A task's report; one that nobody waits for any more is dropped."""
        known = self._asked.get(found.id)
        if known is None or known.task != task or known.answered:
            return
        document = as_text(found.document) if found.document else None
        known.answer = Answer(found.id, task, document, found.refused or ("" if document else "it found nothing"))
        known.answered, known.until = True, now + KEPT
