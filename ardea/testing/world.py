"""What the processes of one simulated cluster share: time, the network, the plan, and who is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from ardea.plan.definition import Definition
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import kind_name
from ardea.protocol.wire_pb2 import Header
from ardea.testing.audit import Audit
from ardea.testing.clock import Timeline
from ardea.testing.containers import Supervisors
from ardea.testing.memory_store import MemoryStore
from ardea.testing.network import Network
from ardea.testing.record import Record
from ardea.testing.scratches import Scratches
from ardea.testing.waits import Waits

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
class Names:
    """Every name of a stream manager (with its container) and of a task that there ever was."""

    containers: dict[str, int] = field(default_factory=dict)
    tasks: dict[str, TaskPlan] = field(default_factory=dict)

    def add(self, plan: PhysicalPlan) -> None:
        """Those of another plan."""
        self.containers.update((manager_name(number), number) for number in plan.containers)
        self.tasks.update((task.name, task) for task in plan.tasks.values())

    def container_of(self, name: str) -> int:
        """In which a process runs; the master's is 0."""
        if name == MASTER:
            return 0
        return self.containers[name] if name in self.containers else self.tasks[name].container


@dataclass(slots=True)
class World:
    """One cluster's surroundings.

    ``processes`` are those that have their places, ``replaced`` those that run on though others have them.
    ``definition`` and ``plan`` are what processes are started with now.  ``cost``: seconds a tuple (a spout: a
    ``next_tuple``), by component or task.  ``ended`` is told of each process that ends by itself.
    """

    listeners: ClassVar[list[Callable[[str, str, Header], None]]] = []
    """Of all worlds: told of each message that a process takes, with receiver and sender."""

    timeline: Timeline
    network: Network
    record: Record
    audit: Audit | None
    cost: Mapping[str, float]
    store: MemoryStore
    definition: Definition
    plan: PhysicalPlan
    scratches: Scratches
    ended: Callable[[Process, BaseException | None], None] = field(init=False)
    waits: Waits = field(init=False)
    names: Names = field(default_factory=Names)
    processes: dict[str, Process] = field(default_factory=dict)
    replaced: list[Process] = field(default_factory=list)
    supervisors: Supervisors = field(default_factory=Supervisors)
    _story: deque[tuple[float, str, str, Header]] = field(default_factory=lambda: deque(maxlen=STORY_LINES))

    def __post_init__(self) -> None:
        self.waits = Waits(self.timeline, lambda component: self.plan.logical.downstream(component))
        self.names.add(self.plan)

    def post(self, sender: Process, target: str, holder: str, lane: Lane, message: Message) -> None:
        """Sends a message to whoever runs under that name when it arrives, in the container of that holder."""

        def deliver() -> None:
            process = self.processes.get(target)
            if process is None or process.holder != holder:
                process = next((p for p in self.replaced if p.name == target and p.holder == holder), None)
            if process is None:
                self.network.lost += 1
            else:
                process.arrived(sender, lane, message)

        self.network.send(sender.name, target, lane, deliver)

    def everybody(self) -> Iterator[Process]:
        """All that run."""
        yield from self.processes.values()
        yield from self.replaced

    # --- what happened ----------------------------------------------------------------------------------------

    def heard(self, process: str, source: str, header: Header) -> None:
        """A process takes a message."""
        for listener in self.listeners:
            listener(process, source, header)
        self._story.append((self.timeline.now, process, source, header))

    def story(self, process: str) -> str:
        """The last messages that a process took, one a line."""
        return "\n".join(
            f"{time:10.6f} {source} -> {target}: {kind_name(header.kind)} #{header.sequence}"
            f" source {header.source} target {header.target} rows {header.rows}"
            for time, target, source, header in self._story
            if process in (target, source)
        )
