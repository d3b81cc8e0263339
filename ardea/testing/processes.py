"""Who runs in a simulated cluster: what supervisors do for processes, and machines for supervisors."""

from __future__ import annotations

from ardea.errors import ArdeaError, LeftOut, StateError, UserError
from ardea.plan.names import container_name, container_number
from ardea.supervision.spec import Policy
from ardea.supervision.supervisor_state import BACKOFF, SETTLED
from ardea.testing.containers import REMOVED
from ardea.testing.instance import SimulatedInstance
from ardea.testing.memory_store import STATE
from ardea.testing.servers import SimulatedManager, SimulatedMaster, acting_master
from ardea.testing.world import MASTER, Process, World, manager_name

LOOKS_AGAIN = 0.1
"""Seconds until a process looks again for a way to the state, or for a master."""


class Processes:
    """Those of the plan: started, again with a back-off when they die, and stopped when it has them no more."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lives: dict[str, int] = {}
        self._starts: dict[str, int] = {}
        self._since: dict[str, float] = {}
        self._restarting: set[str] = set()
        self._done: set[str] = set()
        self._failures: dict[str, int] = {}
        world.ended = self._ended

    @property
    def names(self) -> tuple[str, ...]:
        """All that there are to be: the master, the managers, the tasks."""
        plan = self._world.plan
        managers = (manager_name(number) for number in plan.containers)
        return (MASTER, *managers, *(task.name for task in plan.tasks.values()))

    @property
    def over(self) -> bool:
        """Whether each of them has ended for good."""
        return self._done.issuperset(self.names)

    def starts(self, name: str) -> int:
        """How often that process has been started."""
        return self._starts.get(name, 0)

    def check(self, name: str) -> None:
        """UserError if there never was a process or a container of that name."""
        plan, names = self._world.plan, self._world.names
        containers = [container_name(number) for number in (0, *plan.containers)]
        if name not in {*self.names, *containers, *names.containers, *names.tasks}:
            raise UserError(f"there is no process {name}; there are {', '.join(self.names)}")

    def start(self) -> None:
        """All of them, the first time."""
        for name in self.names:
            self._start(name)

    def follow(self) -> None:
        """Starts and stops processes until they are those of the plan."""
        world = self._world
        for name, process in list(world.processes.items()):
            stays = name in self.names
            if isinstance(process, SimulatedInstance):
                stays = stays and process.task in world.plan.tasks.values() and process.build == world.definition.build
            if not stays:
                del world.processes[name]
                world.supervisors.folders.pop(process.holder, None)
                if isinstance(process, SimulatedInstance):
                    process.stop()
                else:
                    process.kill()
        world.names.add(world.plan)
        for name in self.names:
            if name != MASTER and name not in self._restarting:
                self._start(name)

    def close(self) -> None:
        """Closes every component that still runs."""
        for process in self._world.everybody():
            if isinstance(process, SimulatedInstance):
                process.stop()
        self._world.processes.clear()
        self._world.replaced.clear()

    # --- faults -----------------------------------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """SIGKILL, to a process or to all of a container."""
        if (number := container_number(name)) is not None:
            for member in self._members(number):
                member.kill()
            self._replace(number)
            return
        process = self._world.processes.pop(name, None)
        if process is not None:
            process.kill()
            self._restart(name)

    def freeze(self, name: str, seconds: float) -> None:
        """SIGSTOP for so long, to a process or to all of a container."""
        if (number := container_number(name)) is not None:
            self._freeze_container(number, seconds)
            return
        timeline, process = self._world.timeline, self._world.processes.get(name)
        if process is None:
            return
        process.freeze(timeline.now + seconds)

        def hung() -> None:
            if self._world.processes.get(name) is process:
                self.kill(name)

        silence = Policy().silence
        if seconds >= silence:
            timeline.at(timeline.now + silence, hung)

    def _freeze_container(self, number: int, seconds: float) -> None:
        world, until = self._world, self._world.timeline.now + seconds
        world.supervisors.freeze(number, until)
        holder = world.supervisors.holder(number)
        for process in self._members(number):
            process.freeze(until)

        def silent() -> None:
            if world.supervisors.holder(number) == holder:
                world.replaced.extend(self._members(number))
                self._replace(number)
                world.timeline.at(until + REMOVED, lambda: self._end_replaced(holder))

        silence = Policy().silence
        if seconds >= silence:
            world.timeline.at(world.timeline.now + silence, silent)

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
        return [manager_name(number), *(task.name for task in self._world.plan.tasks_in(number))]

    def _members(self, number: int) -> list[Process]:
        processes = self._world.processes
        return [processes[name] for name in self._names_in(number) if name in processes]

    # --- starts -----------------------------------------------------------------------------------------------

    def _start(self, name: str) -> None:
        world = self._world
        if name in world.processes or name not in self.names:
            return
        if name == MASTER and world.store.state.final:
            self._done.add(name)
        if name in self._done:
            return
        if name == MASTER and world.network.is_cut(MASTER, STATE):  # it stands by
            world.timeline.at(world.timeline.now + LOOKS_AGAIN, lambda: self._start(name))
            return
        self._starts[name] = self._starts.get(name, 0) + 1
        self._since[name] = world.timeline.now
        life = self._lives[name] = self._lives.get(name, 0) + 1
        process: Process
        if name == MASTER:
            process = SimulatedMaster(world, life)
        elif name in world.names.containers:
            process = SimulatedManager(world, world.names.containers[name], life)
        else:
            process = SimulatedInstance(world, world.names.tasks[name], life)
        world.processes[name] = process

    def _restart(self, name: str) -> None:
        now = self._world.timeline.now
        failures = 0 if now - self._since.get(name, now) >= SETTLED else self._failures.get(name, 0)
        self._failures[name] = failures + 1
        pause = BACKOFF[min(failures, len(BACKOFF) - 1)]
        self._restarting.add(name)
        world, number = self._world, self._world.names.container_of(name)
        supervisors, holder = world.supervisors, world.supervisors.holder(number)

        def again() -> None:
            if supervisors.holder(number) != holder:
                return  # the next one has its own ways
            if supervisors.frozen(number) > world.timeline.now:
                world.timeline.at(supervisors.frozen(number), again)
                return
            self._restarting.discard(name)
            self._start(name)

        world.timeline.at(now + pause, again)

    # --- ends -------------------------------------------------------------------------------------------------

    def _ended(self, process: Process, error: BaseException | None) -> None:
        """A process ended by itself; in order, or with an error of the author's."""
        world = self._world
        if process in world.replaced:
            if isinstance(process, SimulatedInstance):
                world.replaced.remove(process)
            else:
                self._end_replaced(process.holder)
            return
        if world.processes.get(process.name) is process:
            del world.processes[process.name]
        if error is None:
            self._done.add(process.name)
            self._end_container(process.name)
            return
        if isinstance(error, StateError | LeftOut):  # a master cannot write, or a plan had left the process out
            self._restart(process.name)
            return
        world.record.errors.append((process.name, error))
        failure = f"{process.name}: {error.message}" if isinstance(error, ArdeaError) else ""
        if isinstance(process, SimulatedInstance) and process.shell.executor is not None:
            failure = process.shell.executor.lifecycle.fails_topology(error)
        if failure:
            # What no restart can mend ends the container, and with it the topology.
            self._done.add(process.name)
            self._fail(failure)
        else:
            self._restart(process.name)

    def _fail(self, reason: str) -> None:
        """Ends the topology, as soon as there is a master that can write it down."""
        world = self._world
        if world.store.state.final:
            return
        try:
            acting_master(world).master.fail(reason)
        except (UserError, StateError):
            world.timeline.at(world.timeline.now + LOOKS_AGAIN, lambda: self._fail(reason))

    def _end_container(self, manager: str) -> None:
        """When a stream manager has ended, the supervisor ends its container, with the tasks that are frozen."""
        number = self._world.names.containers.get(manager)
        for task in self._world.plan.tasks_in(number) if number is not None else ():
            process = self._world.processes.pop(task.name, None)
            if isinstance(process, SimulatedInstance):
                process.stop()
            self._done.add(task.name)

    def _end_replaced(self, holder: str) -> None:
        """Without its manager, nothing of such a container can go on."""
        for process in [process for process in self._world.replaced if process.holder == holder]:
            self._world.replaced.remove(process)
            process.kill()
