"""What is inside a simulated cluster: the engine's own objects, for tests of the engine.

inside = Inside(cluster)
assert "no such file" in inside.error("lines-0")
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ardea.errors import UserError
from ardea.heron_instance.executor import Executor
from ardea.protocol.wire_pb2 import Header
from ardea.testing.cluster import Cluster
from ardea.testing.instance import SimulatedInstance
from ardea.testing.memory_store import MemoryStore
from ardea.testing.servers import acting_master
from ardea.testing.world import Process, World
from ardea.topology_master.master import Master

Heard = tuple[str, str, Header]
"""(receiver, sender, header) of a message."""


class Inside:
    """One cluster from within; each question is about this moment."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._world = cluster, cluster._world

    def process(self, name: str) -> Process | None:
        """The simulated process of that name; None: it does not run."""
        return self._world.processes.get(name)

    def executor(self, task: str) -> Executor | None:
        """The executor of a task; None: it has not begun, or the task does not run."""
        process = self.process(task)
        return process.shell.executor if isinstance(process, SimulatedInstance) else None

    def held_bytes(self, task: str) -> int:
        """How much output of a task waits for credit now; 0 if it does not run."""
        process = self.process(task)
        return process.held_bytes if isinstance(process, SimulatedInstance) else 0

    @property
    def store(self) -> MemoryStore:
        """What the masters have written."""
        return self._world.store

    @property
    def writes(self) -> int:
        """How often the masters wrote the topology's state; one that runs undisturbed writes nothing."""
        return self._world.store.writes

    def error(self, task: str) -> str:
        """The last error of a task that its executor reported; empty: none."""
        executor = self.executor(task)
        return (executor.error or "") if executor is not None else ""

    @property
    def master(self) -> Master:
        """The state machine of the acting master; UserError if none runs."""
        return acting_master(self._world).master

    @property
    def replaced(self) -> Sequence[Process]:
        """Processes that run on although their container has been replaced."""
        return tuple(self._world.replaced)

    def holder(self, container: int) -> str | None:
        """The supervisor that the master has admitted last for a container."""
        return self._world.store.holders().get(container)

    def admission(self, container: int) -> int:
        """The last of a container, as the state manager has it; 0: it has none."""
        return self._world.store.admissions().get(container, 0)

    @property
    def term(self) -> int:
        """The last that the state manager knows of."""
        return self._world.store.term

    def set_cost(self, task: str, seconds: float) -> None:
        """Each tuple of a running task takes so long from now on."""
        process = self.process(task)
        if not isinstance(process, SimulatedInstance):
            raise UserError(f"no task runs as {task} now; {self._cluster.describe()}")
        process.executor.cost = seconds


@contextmanager
def overheard() -> Iterator[list[Heard]]:
    """Every message that a process of any simulated cluster takes in the meantime."""
    seen: list[Heard] = []

    def listen(process: str, source: str, header: Header) -> None:
        seen.append((process, source, header))

    World.listeners.append(listen)
    try:
        yield seen
    finally:
        World.listeners.remove(listen)
