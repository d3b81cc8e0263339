"""The executor of a task: its loop, and what it does with each message, whatever kind of component it runs.

An executor runs on one thread, the one that makes it, and touches no socket.  :meth:`Executor.handle` takes one message
of the input queue, :meth:`Executor.advance` does what is due and says when it wants to be called again;
:meth:`Executor.run` is the loop of the real thread, and a simulated cluster drives the same one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from typing import Self

from ardea.heron_instance.bolt import BoltRunner
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.debug import EmitLog
from ardea.heron_instance.dispatch import Dispatch
from ardea.heron_instance.environment import Environment, Item, Stopping
from ardea.heron_instance.faults import Faults
from ardea.heron_instance.lifecycle import Lifecycle
from ardea.heron_instance.long_calls import UserCode
from ardea.heron_instance.output import TaskOutput
from ardea.heron_instance.reporter import Reporter
from ardea.heron_instance.runner import Parts, Runner
from ardea.heron_instance.sending import Sending
from ardea.heron_instance.snapshots import RollingBack
from ardea.heron_instance.spout import SpoutRunner
from ardea.heron_instance.taking_part import TakingPart
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.wire_pb2 import (
    ACTIVATE,
    CREDITS,
    DEACTIVATE,
    DEBUG,
    DRAIN,
    END,
    HOLD,
    ORDER,
    RESUME,
    TASKS,
    Order,
    Tasks,
)


class Executor:
    """One task's executor: it has a runner for the kind of its component."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.lifecycle = Lifecycle(env)
        self.user_code = UserCode(env)
        self.task_output = TaskOutput(env)
        self.dispatch = Dispatch(env, self.task_output)
        self.reporter = Reporter(env, self.lifecycle)
        self._faults = Faults(env, self.lifecycle, self.reporter)
        sending = Sending(env, self.task_output, self.dispatch, self.reporter, self.user_code, self.lifecycle)
        parts = Parts(env, self.lifecycle, self.user_code, self.task_output, self.reporter, sending)
        spout = env.plan.logical[env.task.component].kind == "spout"
        self.runner: Runner = SpoutRunner(parts) if spout else BoltRunner(parts)
        self.reporter.rows = self.runner
        self.user_code.rows, self.user_code.hurry = self.runner.emitted, self.runner.hurry
        self._emits = EmitLog(env.task.name, env.clock, always=env.settings.debug, form=env.settings.log_format)
        if env.settings.debug:
            self.dispatch.watcher = self._watch
        self.finished = False
        self.held_back, self.in_user_code = False, True  # the latter everywhere but in a wait
        self.rolled_back = False  # its timeline is over: another executor goes on
        self._busy_since = math.inf
        env.instruments.spent.under_way = lambda: max(0.0, env.clock() - self._busy_since)
        self._part: TakingPart | None = None
        if env.snapshots is not None:
            self._part = TakingPart(env.snapshots, parts, self.runner, self._faults)

    @property
    def error(self) -> str:
        """The last one that the master is told of."""
        return self.reporter.error

    @classmethod
    def after(cls, former: Executor, env: Environment) -> Self:
        """Goes on where the executor of the former timeline stood; ``env`` has another component object."""
        executor = cls(env)
        executor.lifecycle.take_over(former.lifecycle)
        executor.reporter.take_over(former.reporter)
        executor.task_output.take_over(former.task_output)
        executor.dispatch.paces.update(former.dispatch.paces)
        if executor._part is not None and former._part is not None:
            executor._part.again = former._part.again
        executor.runner.take_over(former.runner)
        return executor

    # --- the loop ---------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until the topology, or the process, ends; on the thread that calls."""
        inbox, output = self.env.inbox, self.env.output
        work = self.work()
        raised: StopIteration | None = None
        try:
            pause = next(work)
            while True:
                if self.held_back:
                    output.wait_room(0, pause or 0.05)
                    pause = work.send(None)
                else:
                    pause = work.send(inbox.take(pause) if pause else inbox.take())
        except RollingBack:
            self.rolled_back = True
        except Stopping:
            pass
        except StopIteration as end:
            raised = end.value
        if raised is not None:
            raise raised
        self.close()

    def work(self) -> Generator[float, Item | None, StopIteration | None]:
        """All turns, one after the other.

        It yields the seconds in which it has nothing to do by itself, and goes on when they are over or something has
        come, which it is sent; ``held_back``: when there is room for output, and it is sent nothing.

        It returns a StopIteration of the author's: of one that leaves a generator Python makes another error.
        """
        inbox, clock, runner, user_code = self.env.inbox, self.env.clock, self.runner, self.user_code
        try:
            self._busy_since = clock()
            self.begin()
            while not self.finished:
                self.in_user_code = True
                wake = self.advance(clock())
                user_code.turns += 1
                started = self._count_busy()
                self.held_back = runner.waits_for_room and self._works
                pause = max(0.0, min(wake - started, 1.0))
                self.in_user_code = False
                item = yield pause
                self._busy_since = clock() if pause or self.held_back else started
                if self.held_back:
                    self.env.instruments.spent.backpressured.value += self._busy_since - started
                    continue
                if pause:
                    runner.waited(self._busy_since - started)
                self.in_user_code = True
                while item is not None:
                    self.handle(item)
                    user_code.turns += 1
                    item = None if runner.waits_for_room or runner.busy else inbox.take()
        except StopIteration as error:
            return error
        finally:
            self._count_busy()
        return None

    @property
    def _works(self) -> bool:
        """Else it waits for a plan or an order, whatever its output holds: room may come by these alone."""
        snapshots = self.env.snapshots
        return snapshots is None or snapshots.timeline.works

    def _count_busy(self) -> float:
        """Work ends now.  In this order a thread that reads meanwhile may miss it, and counts none twice."""
        since, self._busy_since, now = self._busy_since, math.inf, self.env.clock()
        self.env.instruments.spent.busy.value += max(0.0, now - since)
        return now

    def begin(self) -> None:
        """What came ahead of the plan, orders above all, holds from the first call of the component on."""
        while (item := self.env.inbox.take()) is not None:
            self.handle(item)

    def advance(self, now: float) -> float:
        """Does what is due; returns when there is more to do (``now``: at once)."""
        part = self._part
        try:
            if part is None:
                self.env.states.age()
                return self.runner.advance(now) if self.lifecycle.initialized else now + 1.0
            works = part.look(now)
            due = part.due if part.settled else now
            if not works:
                return min(part.again if part.again > now else now + 1.0, due)
            return min(self.runner.advance(now), due) if self.lifecycle.initialized else now + 1.0
        except Exception as error:
            self._faults.end_timeline(error)

    def handle(self, item: Item) -> None:
        """One item of the input queue."""
        try:
            self._handle(item)
        except Exception as error:
            self._faults.end_timeline(error)

    def _handle(self, item: Item) -> None:
        if callable(item):
            item()
            return
        header, frames = item
        kind = header.kind
        if kind == ORDER:
            self._ordered(Order.FromString(frames[0]))
        elif kind == CREDITS:
            for pace in header.paces:
                self.dispatch.paces[pace.task] = pace.rows
            if header.loads:
                self.task_output.refresh({load.task: load.load for load in header.loads})
        elif kind == TASKS:
            tasks = Tasks.FromString(frames[0])
            self.reporter.learn(tasks.lives, again=tasks.again)
        elif header.void:
            self.env.output.consumed(header, sum(map(len, frames)))
        else:
            self.runner.received(header, frames)

    # --- the plan and orders ----------------------------------------------------------------------------------

    def manager_reborn(self) -> None:
        """The stream manager has a new life: what it knew of this task is said again."""
        self.runner.manager_reborn()
        self.reporter.manager_reborn()

    def planned(self, plan: PhysicalPlan, lives: Mapping[int, int]) -> None:
        """The plan, and the incarnations of other tasks; a plan of a higher epoch is an update."""
        env, former = self.env, self.env.plan
        if plan.epoch > former.epoch:
            self.runner.emitted.send()
            env.plan, env.task = plan, plan.tasks[env.task.task]
            env.context.replanned(plan)
            if self._part is not None:
                self._part.used = True
            self.task_output.replanned()
            self.runner.replanned()
            self.reporter.replanned()
            if self.lifecycle.running and plan.differs_around(env.task.component, former):
                env.component.update(env.context)
            self.reporter.report()
        self.reporter.learn(lives)

    def set_active(self, *, active: bool) -> None:
        """Initialises the component the first time; a spout then hears activate and deactivate."""
        lifecycle = self.lifecycle
        changed = active != lifecycle.active and not lifecycle.closed
        if active and not lifecycle.initialized and self.env.snapshots is None:
            lifecycle.initialize()
            self.runner.begun()
        lifecycle.active = active
        if changed and lifecycle.initialized:
            self.runner.activated(active=active)

    def _ordered(self, order: Order) -> None:
        if order.kind in (ACTIVATE, DEACTIVATE):
            self.set_active(active=order.kind == ACTIVATE)
        elif order.kind == END:
            self.lifecycle.ending = True
        elif order.kind == DRAIN:
            self.lifecycle.draining = True
        elif order.kind in (HOLD, RESUME):
            self.runner.ordered(order)
        elif order.kind == DEBUG and order.target in (self.env.task.component, self.env.task.name):
            self._emits.extend(order.seconds)
            self.dispatch.watcher = self._watch

    def _watch(self, emitted: list[StreamBuffer]) -> None:
        if self._emits.on:
            self._emits.look(emitted)
        else:
            self.dispatch.watcher = None

    # --- the end ----------------------------------------------------------------------------------------------

    def submitted(self, function: Callable[[], object]) -> None:
        """What the author has handed over, unless the component is closed."""
        if not self.lifecycle.closed:
            with self.user_code:
                function()
            if self.env.snapshots is not None:
                self.env.snapshots.moved()

    def close(self) -> None:
        """Closes the component, once; what it raises ends the process, unless another object goes on."""
        self.env.context.rolling_back = self.rolled_back
        try:
            self.lifecycle.close(over=self.env.over())
        except Exception as error:
            if not self.rolled_back:
                raise
            self.env.component.logger.exception("%s: close() raised, as all goes back", self.env.task.name)
            self.env.observer.raised_beside(error)
        finally:
            self.env.states.close()
