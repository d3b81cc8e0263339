"""What a task answers when somebody wants to know what its threads do; nothing is on while nobody asks."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ardea.heron_instance.messages import OutMessage
from ardea.heron_instance.sampling import Sampler, Tree, stacks
from ardea.plan.physical import TaskPlan
from ardea.protocol.inspection import MOST_SECONDS, Inspection, pack
from ardea.protocol.wire_pb2 import REPORT, Header, Inspect, Inspected, Order, TaskReport


class Inspector:
    """Of one process; the gateway calls it, and sends what is :attr:`ready`."""

    def __init__(self, task: TaskPlan, life: int, wake: Callable[[], None]) -> None:
        self.ready: deque[OutMessage] = deque()
        self._task, self._life, self._wake = task, life, wake
        self._under_way = ""
        self._sampler: Sampler | None = None

    def asked(self, order: Order) -> None:
        """One that is under way already goes on."""
        wanted = order.inspect
        if order.target != self._task.name or wanted.id == self._under_way:
            return
        if wanted.what == "stacks":
            self._found(wanted.id, Inspection(**self._who("stacks", self._now()), seconds=0.0, threads=stacks()))
        elif wanted.what == "profile" and 0 < wanted.seconds <= MOST_SECONDS:
            self._profile(wanted)
        else:
            self._tell(Inspected(id=wanted.id, refused=f"it cannot look for {wanted.seconds} s at {wanted.what!r}"))

    def _profile(self, wanted: Inspect) -> None:
        if self._sampler is not None and self._sampler.busy:
            self._tell(Inspected(id=wanted.id, refused="another profile of it is under way"))
            return
        began = self._now()

        def done(tree: Tree, times: int, seconds: float) -> None:
            try:
                self._sampled(wanted.id, began, tree, times, seconds)
            finally:
                self._under_way = ""

        self._under_way = wanted.id
        self._sampler = Sampler(float(wanted.seconds), done)
        self._sampler.start()

    def _sampled(self, request: str, began: str, tree: Tree, times: int, seconds: float) -> None:
        """On the sampler's thread.  Of a tree without room the thinnest branches go."""
        each, least, data = seconds / max(times, 1), 1, None
        while data is None:
            root = tree.document(self._task.name, each, least)
            found = Inspection(
                **self._who("profile", began),
                seconds=round(seconds, 3),
                interval=round(each, 6),
                samples=times,
                cut=tree.cut,
                root=root,
            )
            data, least = pack(found), 2 * least
        self._tell(Inspected(id=request, document=data))

    def _found(self, request: str, found: Inspection) -> None:
        data = pack(found)
        self._tell(Inspected(id=request, document=data, refused="" if data else "its stacks are too large to be sent"))

    def _tell(self, inspected: Inspected) -> None:
        """From any thread."""
        body = TaskReport(task=self._task.task, inspected=inspected).SerializeToString()
        self.ready.append(OutMessage(Header(kind=REPORT), [body], 0, len(body)))
        self._wake()

    def _who(self, what: str, at: str) -> dict[str, Any]:
        task = self._task
        return {
            "what": what,
            "task": task.name,
            "component": task.component,
            "container": task.container,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "life": self._life,
            "at": at,
        }

    def _now(self) -> str:
        return datetime.now(UTC).isoformat(timespec="milliseconds")
