"""A whole cluster in one process on simulated time (docs/testing.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar

from ardea.component import Component
from ardea.config_check import stored
from ardea.errors import UserError
from ardea.plan import LogicalPlan, PackingPlan
from ardea.plan.change import UpdateProgress, UpdateRequest
from ardea.plan.definition import Definition
from ardea.plan.names import container_name
from ardea.plan.physical import PhysicalPlan
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.scheduler.packing import packing_for
from ardea.state.records import RunState
from ardea.testing.audit import Audit
from ardea.testing.clock import Timeline
from ardea.testing.components import Buildable
from ardea.testing.eviction import Eviction
from ardea.testing.instance import SimulatedInstance
from ardea.testing.memory_store import MemoryStore
from ardea.testing.network import Network
from ardea.testing.processes import Processes
from ardea.testing.record import Record
from ardea.testing.scratches import Scratches
from ardea.testing.servers import acting_master
from ardea.testing.updating import Updating
from ardea.testing.world import World

C = TypeVar("C", bound=Component)
NOTHING: Mapping[str, Any] = {}
Fault = tuple[float, Callable[["Cluster"], object]]


class Cluster:
    """A running topology: a master, a stream manager a container, and every task.

    The same seed gives the same run, event by event.  Time passes only in :meth:`advance` and :meth:`run_until`.
    User classes are shared by all tasks here: what they keep in class attributes is not a process's own.

    Attributes:
        raise_errors: set it, and the first exception of the author's code leaves the call in which time passes.

    Args:
        topology: what to run.
        containers: over how many containers the tasks are spread.
        config: wins over the topology's own configuration.
        seed: decides delays, shuffles, and the order of what happens at the same moment.
        cost: seconds that a tuple (for a spout: a call of ``next_tuple``) takes, by component or by one of its
            tasks (``count-0``); default 10 µs.
        active: whether the spouts begin at once, or wait for :meth:`activate`.
        check: watch the invariants after every event; see :class:`ardea.testing.InvariantError`.
        faults: (seconds, action) pairs: what happens to the cluster and when.
        state_backend: what state lies in, whatever ``topology.stateful.backend`` says: another value than ``memory``
            takes its place, and writes into a folder for temporary files.

    Raises:
        TopologyError: the topology cannot run.
    """

    def __init__(
        self,
        topology: Buildable,
        *,
        containers: int = 1,
        config: Mapping[str, Any] = NOTHING,
        seed: int = 0,
        cost: Mapping[str, float] = NOTHING,
        active: bool = True,
        check: bool = True,
        faults: Iterable[Fault] = (),
        state_backend: str = "memory",
    ) -> None:
        given = stored({**config, "topology.stmgrs": containers}, "the overrides")
        logical = topology.plan(given)
        packing = packing_for(logical.config).pack(logical)
        known = {name for c in logical for name in (c.name, *(f"{c.name}-{i}" for i in range(c.tasks)))}
        if strangers := sorted(cost.keys() - known):
            raise UserError(f"cost= names {', '.join(strangers)}, which {logical.name} does not have")
        definition = _definition(logical, packing, given, active=active)
        timeline = Timeline(seed)
        self._world = world = World(
            timeline=timeline,
            network=Network(timeline, seed),
            record=Record(),
            audit=Audit(lambda: timeline.now) if check else None,
            cost=cost,
            store=MemoryStore(RunState.RUNNING if active else RunState.PAUSED, definition),
            definition=definition,
            plan=PhysicalPlan.build(logical, packing, 1),
            scratches=Scratches(state_backend),
        )
        self.record, self.network = world.record, world.network
        self.raise_errors = False
        self._processes = Processes(world)
        self._updating = Updating(world, self._processes, topology)
        self._processes.start()
        for seconds, action in faults:
            self.at(seconds, action)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes every component that still runs."""
        self._processes.close()
        self._world.scratches.close()

    # --- time -------------------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Seconds since the start."""
        return self._world.timeline.now

    def advance(self, seconds: float) -> None:
        """Lets that much time pass."""
        timeline = self._world.timeline
        end = timeline.now + seconds
        while timeline.next <= end:
            self._step()
        timeline.skip(end)

    def run_until(self, condition: Callable[[], object], timeout: float = 60.0) -> None:
        """Lets time pass until ``condition`` holds.

        Raises:
            TimeoutError: it does not within ``timeout`` simulated seconds.
        """
        timeline = self._world.timeline
        end = timeline.now + timeout
        while not condition():
            if timeline.next > end:
                raise TimeoutError(
                    f"{timeout:g} simulated seconds have passed, and the condition is still false; {self.describe()}"
                )
            self._step()

    def _step(self) -> None:
        self._world.waits.step()
        if self.raise_errors and (error := self.record.first_error) is not None:
            raise error

    def at(self, time: float, action: Callable[[Cluster], object]) -> None:
        """Does something to the cluster at a time to come."""
        self._world.timeline.at(time, lambda: action(self))

    # --- the topology -----------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """``RUNNING``, ``PAUSED``, ``ENDING``, ``SUCCEEDED``, ``FAILED`` or ``KILLED``."""
        return self._world.store.state.value

    @property
    def reason(self) -> str:
        """Why, if there is something to say."""
        return self._world.store.held.reason

    @property
    def errors(self) -> list[str]:
        """The last exception of each task, as `ardea describe` shows it; none while no master acts."""
        with contextlib.suppress(UserError):
            return list(acting_master(self._world).master.ending.errors().values())
        return []

    @property
    def plan(self) -> PhysicalPlan:
        """What runs where, as the scheduler last saw it."""
        return self._world.plan

    @property
    def over(self) -> bool:
        """Whether the topology has its final state and every process has ended."""
        return self._world.store.state.final and self._processes.over

    def activate(self) -> None:
        """Lets the spouts begin, or go on."""
        acting_master(self._world).master.set_active(self.time, active=True)

    def deactivate(self) -> None:
        """Lets the spouts pause."""
        acting_master(self._world).master.set_active(self.time, active=False)

    def drain(self, wait: float | None = None) -> None:
        """Ends the topology as KILLED, when open trees are done or after ``wait`` seconds."""
        acting_master(self._world).master.drain(self.time, wait)

    def update_request(
        self,
        topology: Buildable | None = None,
        *,
        parallelism: Mapping[str, int] = NOTHING,
        config: Mapping[str, Any] = NOTHING,
        patience: float = 60.0,
    ) -> UpdateRequest:
        """What `ardea update` would ask for now: a new version, other numbers of tasks, other configuration."""
        return self._updating.request(topology, parallelism=parallelism, config=config, patience=patience)

    def update(self, request: UpdateRequest) -> UpdateProgress | None:
        """Asks for an update, as often as one likes; how far it is; None: no master can write it now.

        Raises:
            ProtocolError: the master refuses it.
        """
        return self._updating.ask(request)

    def updated(self, request: UpdateRequest, timeout: float = 300.0) -> UpdateProgress:
        """Asks again and again, as the verb does, until the update is done or refused."""
        end = self.time + timeout
        while (progress := self.update(request)) is None or progress.running:
            if self._world.store.state.final:
                return UpdateProgress(request.id, "refused", reason=f"the topology is {self.state}")
            if self.time >= end:
                raise TimeoutError(f"no end after {timeout:g} simulated seconds: {progress}; {self.describe()}")
            self.advance(0.1)
        return progress

    def task(self, name: str, kind: type[C]) -> C:
        """The author's object that runs as that task now (``words-0``), of its class."""
        process = self._world.processes.get(name)
        component = process.executor.component if isinstance(process, SimulatedInstance) else None
        if not isinstance(component, kind):
            raise UserError(f"no {kind.__name__} runs as {name} now; {self.describe()}")
        return component

    # --- processes --------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """All processes: the master, the managers, the tasks."""
        return self._processes.names

    @property
    def running(self) -> tuple[str, ...]:
        """Those that run now."""
        return tuple(self._world.processes)

    def life(self, name: str) -> int:
        """How often that process has been started."""
        return self._processes.starts(name)

    def kill(self, name: str) -> None:
        """SIGKILL: ``master``, ``manager-2``, ``count-0``.  Its supervisor starts it again, with a back-off.

        Of ``container-2``, to the supervisor and all that it keeps; another one comes, in an empty folder.
        """
        self._processes.check(name)
        self._processes.kill(name)

    def freeze(self, name: str, seconds: float) -> None:
        """SIGSTOP for so long; after ten seconds its supervisor kills it.  Links stay open, what is sent waits.

        Of ``container-2``, to the supervisor and all that it keeps: after ten seconds another one comes, as if the
        machine of the former were cut off, and that goes on when the time is over.
        """
        self._processes.check(name)
        self._processes.freeze(name, seconds)

    def lose_state(self) -> None:
        """The state manager comes back empty.  Masters have what they were started with, and managers remember more.

        Nothing happens once the topology has its final state.
        """
        if not self._world.store.state.final:
            self._world.store.lost(self._world.definition)

    def evict(self, number: int, grace: float = 20.0) -> None:
        """Ends a container as Kubernetes ends a pod: when the master lets it leave, or the grace is over."""
        Eviction(self._world, number, self.time + grace, lambda: self.kill(container_name(number))).look()

    # --- for people -------------------------------------------------------------------------------------------

    def describe(self) -> str:
        """Where everything stands, in a line."""
        last = [*filter(None, [self.record.last_error]), *self.errors]
        errors = f"; the last errors: {'; '.join(last)}" if last else ""
        return (
            f"at {self.time:.6f} s the topology is {self.state}{f' ({self.reason})' if self.reason else ''};"
            f" running: {', '.join(self.running) or 'nothing'}{errors}"
        )

    def story(self, name: str) -> str:
        """The last messages from and to a process, one a line."""
        return self._world.story(name)


def _definition(logical: LogicalPlan, packing: PackingPlan, config: dict[str, Any], *, active: bool) -> Definition:
    return Definition(
        topology=f"{logical.name}-simulated",
        state="",
        location="topology 0",
        config=config,
        shape=shape_of(logical),
        packing=packing_to_bytes(packing),
        active=active,
    )
