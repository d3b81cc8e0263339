"""What the processes of one simulated cluster share: time, the network, the plan, and who is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ardea.plan.definition import Definition
from ardea.plan.logical import LogicalPlan
from ardea.plan.packing import PackingPlan
from ardea.plan.physical import TaskPlan
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import kind_name
from ardea.protocol.wire_pb2 import Header
from ardea.testing.audit import Audit
from ardea.testing.clock import Timeline
from ardea.testing.containers import Supervisors
from ardea.testing.memory_store import MemoryStore
from ardea.testing.network import Network
from ardea.testing.record import Record

MASTER = "master"
STORY_LINES = 5000


def manager_name(container: int) -> str:
    """What a person types."""
    return f"manager-{container}"


class Process(Protocol):
    """A simulated process; ``holder`` names its supervisor."""

    name: str
    life: int
    holder: str

    def arrived(self, sender: Process, lane: Lane, message: Message) -> None:
        """A message."""

    def freeze(self, until: float) -> None:
        """SIGSTOP, and SIGCONT then: what arrives meanwhile waits."""

    def kill(self) -> None:
        """Ends at once; nothing of it happens any more."""


@dataclass(slots=True)
class World:
    """One cluster's surroundings.

    ``processes`` are those that have their places, ``replaced`` those that run on though others have them.
    ``logical``, ``packing`` and ``definition`` are what processes are started with now; ``containers`` and ``tasks``
    have had every name that there ever was.  ``cost``: seconds a tuple (a spout: a ``next_tuple``), by component or
    task.
    """

    seed: int
    timeline: Timeline
    network: Network
    record: Record
    audit: Audit | None
    logical: LogicalPlan
    packing: PackingPlan
    definition: Definition
    containers: dict[str, int]
    tasks: dict[str, TaskPlan]
    cost: Mapping[str, float]
    store: MemoryStore
    ended: Callable[[Process, BaseException | None], None]
    processes: dict[str, Process] = field(default_factory=dict)
    replaced: list[Process] = field(default_factory=list)
    supervisors: Supervisors = field(default_factory=Supervisors)
    scratch: dict[str, bytes] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    _deferred: list[Callable[[], None]] = field(default_factory=list)
    _story: deque[tuple[float, str, str, Header]] = field(default_factory=lambda: deque(maxlen=STORY_LINES))

    def post(self, sender: Process, target: str, holder: str, lane: Lane, message: Message) -> None:
        """Sends a message to whoever runs under that name when it arrives, in the container of that holder."""

        def deliver() -> None:
            process = next((p for p in self.everybody() if p.name == target and p.holder == holder), None)
            if process is None:
                self.network.lost += 1
            else:
                process.arrived(sender, lane, message)

        self.network.send(sender.name, target, lane, deliver)

    def everybody(self) -> Iterator[Process]:
        """All that run."""
        yield from self.processes.values()
        yield from self.replaced

    # --- waiting inside a call --------------------------------------------------------------------------------

    def wait(self, component: str, enough: Callable[[], bool], until: float) -> None:
        """Lets the others go on until ``enough``, while an executor of ``component`` is inside an emit.

        Its stack lies below theirs, so that only executors downstream of it run meanwhile: these are what it waits
        for, and none of them can wait for it.  The others are slow for a while.
        """
        timeline = self.timeline
        self.waiting.append(component)
        while not enough() and timeline.next <= until:
            timeline.step()
        if not enough():
            timeline.skip(until)
        self.waiting.pop()
        deferred, self._deferred = self._deferred, []
        for action in deferred:
            timeline.at(timeline.now, action)

    def may_run(self, component: str, otherwise: Callable[[], None]) -> bool:
        """Whether an executor of ``component`` may run now; if not, ``otherwise`` is called when it may."""
        if self.waiting and component not in self.logical.downstream(self.waiting[-1]):
            self._deferred.append(otherwise)
            return False
        return True

    # --- what happened ----------------------------------------------------------------------------------------

    def heard(self, process: str, source: str, header: Header) -> None:
        """For the story: a process takes a message."""
        self._story.append((self.timeline.now, process, source, header))

    def story(self, process: str) -> str:
        """The last messages that a process took, one a line."""
        return "\n".join(
            f"{time:10.6f} {source} -> {target}: {kind_name(header.kind)} #{header.sequence}"
            f" source {header.source} target {header.target} rows {header.rows}"
            for time, target, source, header in self._story
            if process in (target, source)
        )
