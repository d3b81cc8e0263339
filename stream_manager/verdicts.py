"""The ledgers of a container's spouts, and the verdicts on their way to them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ardea.config import Settings
from ardea.plan.logical import LogicalPlan
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.protocol.ids import NO_IDS, U64, column
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import VERDICTS, Header
from ardea.stream_manager.ledger import Ledger

ACKED, FAILED, TIMED_OUT, LOST = range(4)


class Judge:
    """One spout task's ledger and the verdicts not yet sent to it."""

    def __init__(self, task: int, component: str, timeout: float, link: Link) -> None:
        self.component = component
        self.ledger = Ledger(task, timeout)
        self.link = link
        self._ready: tuple[list[U64], list[U64], list[U64], list[U64]] = ([], [], [], [])

    def add(self, verdict: int, roots: U64) -> None:
        """Roots that got their verdict just now."""
        if len(roots):
            self._ready[verdict].append(roots)

    def send(self) -> None:
        """All verdicts in one message; at most one for each slot can ever wait."""
        if any(self._ready) and self.link.up:
            frames = [np.concatenate(c).tobytes() if c else b"" for c in self._ready]
            self.link.send(Lane.CONTROL, Header(kind=VERDICTS, target=self.ledger.task), frames, sum(map(len, frames)))
            self.forget()

    def forget(self) -> None:
        """A new life of the spout waits for none of these."""
        for roots in self._ready:
            roots.clear()


class Verdicts:
    """By spout task; :meth:`planned` comes before anything else."""

    _logical: LogicalPlan

    def __init__(self) -> None:
        self._judges: dict[int, Judge] = {}

    def planned(self, logical: LogicalPlan) -> None:
        """A new plan; trees that open from now on have its timeouts."""
        self._logical = logical
        for judge in self._judges.values():
            judge.ledger.timeout = self._timeout(judge.component)

    def left(self, task: int) -> None:
        """A task is of this container no longer."""
        self._judges.pop(task, None)

    def _timeout(self, component: str) -> float:
        return Settings.of(self._logical.config, self._logical[component].config).tree_timeout

    def local(self, plan: PhysicalPlan, task: TaskPlan, link: Link) -> None:
        """A task of this container; only spouts get a ledger, which they keep."""
        if task.task not in self._judges and plan.logical[task.component].kind == "spout":
            self._judges[task.task] = Judge(task.task, task.component, self._timeout(task.component), link)

    def judges(self, task: int) -> bool:
        """Whether it is a spout of this container."""
        return task in self._judges

    def init(self, task: int, roots: U64, xors: U64, now: float) -> None:
        """Opens trees."""
        judge = self._judges[task]
        judge.add(ACKED, judge.ledger.init(roots, xors, now))

    def acks(self, task: int, frames: Sequence[bytes], now: float) -> None:
        """The columns of an ACKS message: roots, xors, failed, lost, prolonged."""
        judge = self._judges.get(task)
        if judge is None:
            return
        if frames[4]:
            judge.ledger.prolong(column(frames[4]), now)
        judge.add(FAILED, judge.ledger.fail(column(frames[2])) if frames[2] else NO_IDS)
        judge.add(LOST, judge.ledger.lose(column(frames[3])) if frames[3] else NO_IDS)
        judge.add(ACKED, judge.ledger.ack(column(frames[0]), column(frames[1])) if frames[0] else NO_IDS)

    def lose_through(self, component: str) -> None:
        """A task of ``component`` has a new incarnation: every open tree that can reach it is lost."""
        for judge in self._judges.values():
            if component in self._logical.downstream(judge.component):
                judge.add(LOST, judge.ledger.lose_all())

    def reborn(self, task: int) -> None:
        """A new life of a spout: its table is empty before its first init."""
        if task in self._judges:
            self._judges[task].ledger.clear()
            self._judges[task].forget()

    def expire(self, now: float) -> None:
        """Trees whose deadline has passed."""
        for judge in self._judges.values():
            if now >= judge.ledger.next_deadline:
                judge.add(TIMED_OUT, judge.ledger.expire(now))

    def send(self) -> None:
        """Sends what is ready."""
        for judge in self._judges.values():
            judge.send()

    @property
    def next_deadline(self) -> float:
        """When a tree can time out next."""
        return min((j.ledger.next_deadline for j in self._judges.values()), default=math.inf)

    def ledgers(self) -> dict[int, Ledger]:
        """For metrics and tests."""
        return {task: judge.ledger for task, judge in self._judges.items()}
