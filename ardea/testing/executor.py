"""The executor of a simulated instance: the real one, a turn at a time, with a clock of its own."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from ardea.component import Component
from ardea.context import TopologyContext
from ardea.heron_instance.environment import Item
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.shell import Shell
from ardea.heron_instance.snapshots import RollingBack
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.protocol.wire_pb2 import Plan
from ardea.testing.clock import Alarm
from ardea.testing.metering import meter_bolt, meter_spout
from ardea.testing.observer import RecordingObserver
from ardea.testing.world import World

TURN = 5e-6
"""Seconds that a turn of an executor takes at least, so that nothing goes on for ever in no time."""
DEFAULT_COST = 1e-5


class SimulatedExecutor:
    """It takes no simulated time but what its tuples cost: its clock goes ahead of the cluster's meanwhile.

    ``cost``: seconds a tuple, or a ``next_tuple``.  ``guard`` calls what may end the process, ``look`` looks at the
    output before and after each turn.
    """

    def __init__(
        self,
        world: World,
        task: TaskPlan,
        shell: Shell,
        guard: Callable[[Callable[[], None]], None],
        look: Callable[[], None],
    ) -> None:
        self._world = world
        self._task = task
        self._shell = shell
        self._guard = guard
        self._look = look
        self.cost = world.cost.get(task.name, world.cost.get(task.component, DEFAULT_COST))
        self.component: Component | None = None
        self._entropy = [world.timeline.seed, task.task, shell.life, world.supervisors.replaced(task.container)]
        self._ahead = 0.0
        self._over = False
        self._work: Generator[float, Item | None, StopIteration | None] | None = None
        self._turn = Alarm(world.timeline, self._take_turn)

    def clock(self) -> float:
        """The executor's time."""
        return max(self._ahead, self._world.timeline.now)

    def begin(self, plan: PhysicalPlan, message: Plan) -> None:
        """The first plan is here."""
        world, shell, task = self._world, self._shell, self._task
        context = TopologyContext(
            plan,
            task.task,
            shell.config,
            topology_id=world.definition.topology,
            submit=shell.submit,
            clock=self.clock,
            now=self.clock,
        )
        observer = RecordingObserver(task, world.record, world.audit, spout=shell.component.kind == "spout")
        env = shell.environment(plan, context, self.clock, np.random.default_rng(self._entropy), observer=observer)
        self._meter(env.component)
        shell.executor = Executor(env)
        shell.begin(message)

    def _meter(self, component: Component) -> None:
        self.component = component
        if self._shell.component.kind == "spout":
            meter_spout(component, self._pay)
        else:
            meter_bolt(component, self._pay, self._task, self._world.record, self._world.audit)

    def _roll_back(self) -> None:
        """As the real thread does."""
        former = self._shell.executor
        assert former is not None
        former.rolled_back = True
        former.close()
        env = self._shell.renewed(former.env)
        self._meter(env.component)
        self._shell.executor, self._work = Executor.after(former, env), None
        self._turn.set(self.clock() + TURN)

    def wake(self) -> None:
        """There is something to do."""
        if self._shell.executor is not None:
            self._turn.set(self.clock())

    def freeze(self, until: float) -> None:
        """Does nothing until then."""
        self._turn.hold(until)

    def stop(self) -> None:
        """Does nothing any more."""
        self._over = True
        self._turn.cancel()

    def _take_turn(self) -> None:
        if not self._over and self._world.waits.may_run(self._task.component, self._take_turn):
            self._guard(self._run)

    def _run(self) -> None:
        """One turn, and up to the next."""
        executor, inbox = self._shell.executor, self._shell.inbox
        assert executor is not None
        self._spend(TURN)
        self._look()
        try:
            if self._work is None:
                self._work = executor.work()
                pause = next(self._work)
            else:
                pause = self._work.send(None if executor.held_back else inbox.take())
        except RollingBack:
            self._roll_back()
            return
        except StopIteration as end:
            raise end.value from None  # nothing ends one of these but what an author raises
        self._look()
        if executor.held_back:
            pause = pause or 0.05
        elif not inbox.empty:
            pause = 0.0
        self._turn.set(self.clock() + pause)

    def _pay(self) -> None:
        """In which what was emitted before may leave, as in a process, at the second look."""
        self._spend(self.cost)
        if self._shell.executor is not None:
            self._shell.executor.user_code.look(self.clock())
            self._shell.executor.user_code.look(self.clock())

    def _spend(self, seconds: float) -> None:
        self._ahead = self.clock() + seconds
