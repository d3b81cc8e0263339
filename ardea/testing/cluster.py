"""A whole cluster in one process on simulated time (docs/testing.md)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar

from ardea.component import Component
from ardea.errors import ArdeaError, StateError, UserError
from ardea.plan.change import UpdateProgress, UpdateRequest
from ardea.plan.definition import Definition
from ardea.plan.names import container_name, container_number
from ardea.plan.physical import PhysicalPlan
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_from_bytes, packing_to_bytes
from ardea.scheduler.packing import packing_for
from ardea.scheduler.update import wanted
from ardea.state import Unavailable
from ardea.state.records import RunState
from ardea.supervision.spec import Policy
from ardea.supervision.supervisor_state import BACKOFF
from ardea.testing.audit import Audit
from ardea.testing.clock import Timeline
from ardea.testing.components import Buildable
from ardea.testing.containers import REMOVED
from ardea.testing.eviction import Eviction
from ardea.testing.instance import SimulatedInstance
from ardea.testing.memory_store import STATE, MemoryStore
from ardea.testing.network import Network
from ardea.testing.record import Record
from ardea.testing.servers import SimulatedManager, SimulatedMaster
from ardea.testing.world import MASTER, Process, World, manager_name

C = TypeVar("C", bound=Component)
NOTHING: Mapping[str, Any] = {}
FIRST = "topology 0"
Fault = tuple[float, Callable[["Cluster"], object]]


class Cluster:
    """A running topology: a master, a stream manager a container, and every task.

    The same seed gives the same run, event by event.  Time passes only in :meth:`advance` and :meth:`run_until`.
    User classes are shared by all tasks here: what they keep in class attributes is not a process's own.

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
    ) -> None:
        logical = topology.plan({**config, "topology.stmgrs": containers})
        packing = packing_for(logical.config).pack(logical)
        known = {name for c in logical for name in (c.name, *(f"{c.name}-{i}" for i in range(c.tasks)))}
        if strangers := sorted(cost.keys() - known):
            raise UserError(f"cost= names {', '.join(strangers)}, which {logical.name} does not have")
        timeline = Timeline(seed)
        self.plan = PhysicalPlan.build(logical, packing, 1)
        self.record = Record()
        self.network = Network(timeline, seed)
        self._lives: dict[str, int] = {}
        self._starts: dict[str, int] = {}
        self._restarting: set[str] = set()
        self._done: set[str] = set()
        self._failures: dict[str, int] = {}
        definition = Definition(
            topology=f"{logical.name}-simulated",
            state="",
            location=FIRST,
            config={**config, "topology.stmgrs": containers},
            shape=shape_of(logical),
            packing=packing_to_bytes(packing),
            active=active,
        )
        self._files: dict[str, Buildable] = {FIRST: topology}
        self._dice = random.Random(f"scheduler of {seed}")
        self._store = MemoryStore(RunState.RUNNING if active else RunState.PAUSED, definition)
        self._store.switched = self._follow_soon
        self._world = World(
            seed=seed,
            timeline=timeline,
            network=self.network,
            record=self.record,
            audit=Audit(lambda: timeline.now) if check else None,
            logical=logical,
            packing=packing,
            definition=definition,
            containers={manager_name(container.number): container.number for container in packing.containers},
            tasks={task.name: task for task in self.plan.tasks.values()},
            cost=cost,
            store=self._store,
            ended=self._ended,
        )
        for name in self.names:
            self._start(name)
        for seconds, action in faults:
            self.at(seconds, action)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes every component that still runs."""
        for process in self._world.everybody():
            if isinstance(process, SimulatedInstance):
                process.stop()
        self._world.processes.clear()
        self._world.replaced.clear()

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
            timeline.step()
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
                raise TimeoutError(f"{timeout:g} simulated seconds have passed in vain; {self.describe()}")
            timeline.step()

    def at(self, time: float, action: Callable[[Cluster], object]) -> None:
        """Does something to the cluster at a time to come."""
        self._world.timeline.at(time, lambda: action(self))

    # --- the topology -----------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """``RUNNING``, ``PAUSED``, ``ENDING``, ``SUCCEEDED``, ``FAILED`` or ``KILLED``."""
        return self._store.state.value

    @property
    def reason(self) -> str:
        """Why, if there is something to say."""
        return self._store.held.reason

    @property
    def writes(self) -> int:
        """How often the masters wrote the topology's state; one that runs undisturbed writes nothing."""
        return self._store.writes

    @property
    def over(self) -> bool:
        """Whether the topology has its final state and every process has ended."""
        return self._store.state.final and self._done.issuperset(self.names)

    def activate(self) -> None:
        """Lets the spouts begin, or go on."""
        self._master().master.set_active(self.time, active=True)

    def deactivate(self) -> None:
        """Lets the spouts pause."""
        self._master().master.set_active(self.time, active=False)

    def drain(self, wait: float | None = None) -> None:
        """Ends the topology as KILLED, when open trees are done or after ``wait`` seconds."""
        self._master().master.drain(self.time, wait)

    def update_request(
        self,
        topology: Buildable | None = None,
        *,
        parallelism: Mapping[str, int] = NOTHING,
        config: Mapping[str, Any] = NOTHING,
        patience: float = 60.0,
    ) -> UpdateRequest:
        """What `ardea update` would ask for now: a new version, other numbers of tasks, other configuration."""
        present = self._store.definition
        location = present.location
        if topology is not None:
            location = f"topology {len(self._files)}"
            self._files[location] = topology
            config = {"topology.name": self.plan.logical.name, **config}
        config = {**present.config, **config}
        plan = self._files[location].plan(config)
        rebuilt = location != present.location or config != present.config
        next_ = wanted(present, plan, parallelism=parallelism, location=location, config=config, rebuilt=rebuilt)
        return UpdateRequest(f"request {present.epoch}", next_, present.epoch, patience)

    def update(self, request: UpdateRequest) -> UpdateProgress | None:
        """Asks for an update, as often as one likes; how far it is; None: no master can write it now.

        Raises:
            ProtocolError: the master refuses it.
        """
        process = self._world.processes.get(MASTER)
        if not isinstance(process, SimulatedMaster):
            return None
        try:
            process.master.update(request, self.time)
        except Unavailable:
            return None
        return process.master.updates.progress()

    def updated(self, request: UpdateRequest, timeout: float = 300.0) -> UpdateProgress:
        """Asks again and again, as the verb does, until the update is done or refused."""
        end = self.time + timeout
        while (progress := self.update(request)) is None or progress.running:
            if self._store.state.final:
                return UpdateProgress(request.id, "refused", reason=f"the topology is {self.state}")
            if self.time >= end:
                raise TimeoutError(f"no end after {timeout:g} simulated seconds: {progress}; {self.describe()}")
            self.advance(0.1)
        return progress

    def _follow_soon(self) -> None:
        """The scheduler sees the new plan a little later."""
        self._world.timeline.at(self.time + self._dice.uniform(0, 0.5), self._follow)

    def _follow(self) -> None:
        """Starts and stops processes until they are those of the plan."""
        world, definition = self._world, self._store.definition
        world.definition, world.packing = definition, packing_from_bytes(definition.packing)
        world.logical = definition.rescaled(self._files[definition.location].plan(definition.config))
        self.plan = PhysicalPlan.build(world.logical, world.packing, definition.epoch)
        for name, process in list(world.processes.items()):
            stays = name in self.names
            if isinstance(process, SimulatedInstance):
                stays = stays and process.task in self.plan.tasks.values() and process.build == definition.build
            if not stays:
                del world.processes[name]
                world.scratch.pop(process.holder, None)
                if isinstance(process, SimulatedInstance):
                    process.stop()
                else:
                    process.kill()
        world.containers.update((manager_name(number), number) for number in self.plan.containers)
        world.tasks.update((task.name, task) for task in self.plan.tasks.values())
        for name in self.names:
            if name != MASTER and name not in self._restarting:
                self._start(name)

    def task(self, name: str, kind: type[C]) -> C:
        """The author's object that runs as that task now (``words-0``), of its class."""
        process = self._world.processes.get(name)
        component = process.executor.component if isinstance(process, SimulatedInstance) else None
        if not isinstance(component, kind):
            raise UserError(f"no {kind.__name__} runs as {name} now; {self.describe()}")
        return component

    def held_bytes(self, name: str) -> int:
        """How much output of a task waits for credit now; 0 if it does not run."""
        process = self._world.processes.get(name)
        return process.held_bytes if isinstance(process, SimulatedInstance) else 0

    # --- processes --------------------------------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """SIGKILL: ``master``, ``manager-2``, ``count-0``.  Its supervisor starts it again, with a back-off.

        Of ``container-2``, to the supervisor and all that it keeps; another one comes, in an empty folder.
        """
        self._known(name)
        if (number := container_number(name)) is not None:
            for member in self._members(number):
                member.kill()
            self._replace(number)
            return
        process = self._world.processes.pop(name, None)
        if process is not None:
            process.kill()
            self._restart(name)

    def evict(self, number: int, grace: float = 20.0) -> None:
        """Ends a container as Kubernetes ends a pod: when the master lets it leave, or the grace is over."""
        Eviction(self._world, number, self.time + grace, lambda: self.kill(container_name(number))).look()

    def life(self, name: str) -> int:
        """How often that process has been started."""
        return self._starts.get(name, 0)

    def freeze(self, name: str, seconds: float) -> None:
        """SIGSTOP for so long; after ten seconds its supervisor kills it.  Links stay open, what is sent waits.

        Of ``container-2``, to the supervisor and all that it keeps: after ten seconds another one comes, as if the
        machine of the former were cut off, and that goes on when the time is over.
        """
        self._known(name)
        if (number := container_number(name)) is not None:
            self._freeze_container(number, seconds)
            return
        process = self._world.processes.get(name)
        if process is None:
            return
        process.freeze(self.time + seconds)

        def hung(cluster: Cluster) -> None:
            if cluster._world.processes.get(name) is process:
                cluster.kill(name)

        silence = Policy().silence
        if seconds >= silence:
            self.at(self.time + silence, hung)

    def _freeze_container(self, number: int, seconds: float) -> None:
        world, until = self._world, self.time + seconds
        world.supervisors.freeze(number, until)
        holder = world.supervisors.holder(number)
        for process in self._members(number):
            process.freeze(until)

        def silent(cluster: Cluster) -> None:
            if world.supervisors.holder(number) == holder:
                world.replaced.extend(cluster._members(number))
                cluster._replace(number)
                cluster.at(until + REMOVED, lambda _: self._end_replaced(holder))

        silence = Policy().silence
        if seconds >= silence:
            self.at(self.time + silence, silent)

    def _replace(self, number: int) -> None:
        """Another supervisor comes: of what was there, it knows nothing."""
        for process in self._members(number):
            del self._world.processes[process.name]
        self._world.supervisors.replace(number)
        for name in self._names_in(number):
            if name != MASTER:  # whose lives are terms
                self._lives.pop(name, None)
            self._restart(name)

    def _names_in(self, number: int) -> list[str]:
        if number == 0:
            return [MASTER]
        return [manager_name(number), *(task.name for task in self.plan.tasks_in(number))]

    def _members(self, number: int) -> list[Process]:
        processes = self._world.processes
        return [processes[name] for name in self._names_in(number) if name in processes]

    def _container_of(self, name: str) -> int:
        world = self._world
        return (
            0 if name == MASTER else world.containers[name] if name in world.containers else world.tasks[name].container
        )

    def _known(self, name: str) -> None:
        containers = [container_name(number) for number in (0, *self.plan.containers)]
        if name not in {*self.names, *containers, *self._world.containers, *self._world.tasks}:
            raise UserError(f"there is no process {name}; there are {', '.join(self.names)}")

    @property
    def names(self) -> tuple[str, ...]:
        """All processes: the master, the managers, the tasks."""
        managers = (manager_name(number) for number in self.plan.containers)
        return (MASTER, *managers, *(task.name for task in self.plan.tasks.values()))

    @property
    def running(self) -> tuple[str, ...]:
        """Those that run now."""
        return tuple(self._world.processes)

    def _start(self, name: str) -> None:
        if name in self._world.processes or name not in self.names:
            return
        if name == MASTER and self._store.state.final:
            self._done.add(name)
        if name in self._done:
            return
        if name == MASTER and self.network.is_cut(MASTER, STATE):  # it stands by
            self.at(self.time + 0.1, lambda _: self._start(name))
            return
        self._starts[name] = self._starts.get(name, 0) + 1
        life = self._lives[name] = self._lives.get(name, 0) + 1
        world = self._world
        process: Process
        if name == MASTER:
            process = SimulatedMaster(world, life)
        elif name in world.containers:
            process = SimulatedManager(world, world.containers[name], life)
        else:
            process = SimulatedInstance(world, world.tasks[name], life)
        world.processes[name] = process

    def _restart(self, name: str) -> None:
        failures = self._failures.get(name, 0)
        self._failures[name] = failures + 1
        pause = BACKOFF[min(failures, len(BACKOFF) - 1)]
        self._restarting.add(name)
        supervisors, number = self._world.supervisors, self._container_of(name)
        holder = supervisors.holder(number)

        def again() -> None:
            if supervisors.holder(number) != holder:
                return  # the next one has its own ways
            if supervisors.frozen(number) > self.time:
                self._world.timeline.at(supervisors.frozen(number), again)
                return
            self._restarting.discard(name)
            self._start(name)

        self._world.timeline.at(self.time + pause, again)

    def _ended(self, process: Process, error: BaseException | None) -> None:
        """A process ended by itself; in order, or with an error of the author's."""
        if process in self._world.replaced:
            if isinstance(process, SimulatedInstance):
                self._world.replaced.remove(process)
            else:
                self._end_replaced(process.holder)
            return
        if self._world.processes.get(process.name) is process:
            del self._world.processes[process.name]
        if error is None:
            self._done.add(process.name)
            self._end_container(process.name)
            return
        if isinstance(error, StateError):  # a master that may not, or cannot, write
            self._restart(process.name)
            return
        self.record.errors.append((process.name, error))
        failure = f"{process.name}: {error.message}" if isinstance(error, ArdeaError) else ""
        if isinstance(process, SimulatedInstance) and process.shell.executor is not None:
            failure = process.shell.executor.lifecycle.fails_topology(error)
        if failure:
            # What no restart can mend ends the container, and with it the topology.
            self._done.add(process.name)
            self._master().master.fail(failure)
        else:
            self._restart(process.name)

    def _end_container(self, manager: str) -> None:
        """A container whose stream manager has ended is ended by its supervisor, whoever is frozen in it."""
        number = self._world.containers.get(manager)
        for task in self.plan.tasks_in(number) if number is not None else ():
            process = self._world.processes.pop(task.name, None)
            if isinstance(process, SimulatedInstance):
                process.stop()
            self._done.add(task.name)

    def _end_replaced(self, holder: str) -> None:
        """Without its manager, nothing of such a container can go on."""
        for process in [process for process in self._world.replaced if process.holder == holder]:
            self._world.replaced.remove(process)
            process.kill()

    def _master(self) -> SimulatedMaster:
        process = self._world.processes.get(MASTER)
        if not isinstance(process, SimulatedMaster):
            raise UserError(f"there is no master now; {self.describe()}")
        return process

    # --- for people -------------------------------------------------------------------------------------------

    def describe(self) -> str:
        """Where everything stands, in a line."""
        errors = "".join(f"; {name} raised {error!r}" for name, error in self.record.errors[-1:])
        return (
            f"at {self.time:.6f} s the topology is {self.state}{f' ({self.reason})' if self.reason else ''};"
            f" running: {', '.join(self.running) or 'nothing'}{errors}"
        )

    def story(self, name: str) -> str:
        """The last messages from and to a process, one a line."""
        return self._world.story(name)
