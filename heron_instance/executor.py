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
from ardea.heron_instance.commits import Commits
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
from ardea.heron_instance.snapshots import RollingBack, TaskSnapshots
from ardea.heron_instance.spout import SpoutRunner
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

AGAIN = 1.0
"""Seconds after which the store is asked again, and a component that could not begin is made again."""


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
        sending = Sending(env, self.task_output, self.dispatch, self.reporter, self.user_code)
        parts = Parts(env, self.lifecycle, self.user_code, self.task_output, self.reporter, sending)
        spout = env.plan.logical[env.task.component].kind == "spout"
        self.runner: Runner = SpoutRunner(parts) if spout else BoltRunner(parts)
        self.reporter.rows = self.runner
        self.user_code.rows, self.user_code.hurry = self.runner.emitted, self.runner.hurry
        self._emits = EmitLog(env.task.name, env.clock, always=env.settings.debug)
        if env.settings.debug:
            self.dispatch.watcher = self._watch
        self.finished = False
        self.held_back = self.in_user_code = False  # the latter everywhere but in a wait
        self.rolled_back = False  # its timeline is over: another executor goes on
        self._committed = 0  # the last snapshot that the author has heard of
        self._again = -math.inf  # when it tries again to have its state and to begin
        self._rows_wait = ""  # why rows of a sink are not outside yet
        self._commits_due = math.inf

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
        executor.dispatch.paces.update(former.dispatch.paces)
        executor._again = former._again
        executor.runner.take_over(former.runner)
        return executor

    # --- the loop ---------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until the topology, or the process, ends; on the thread that calls."""
        inbox, output = self.env.inbox, self.env.output
        work = self.work()
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
        except (Stopping, StopIteration):
            pass
        self.close()

    def work(self) -> Generator[float, Item | None]:
        """All turns, one after the other.

        It yields the seconds in which it has nothing to do by itself, and goes on when they are over or something has
        come, which it is sent; ``held_back``: when there is room for output, and it is sent nothing.
        """
        inbox, clock, runner, user_code = self.env.inbox, self.env.clock, self.runner, self.user_code
        self.begin()
        while not self.finished:
            self.in_user_code = True
            wake = self.advance(clock())
            user_code.turns += 1
            started = clock()
            self.held_back = runner.waits_for_room
            pause = max(0.0, min(wake - started, 1.0))
            self.in_user_code = False
            item = yield pause
            if self.held_back:
                self.env.instruments.spent.backpressured.value += clock() - started
                continue
            if pause:
                runner.waited(clock() - started)
            self.in_user_code = True
            while item is not None:
                self.handle(item)
                user_code.turns += 1
                item = None if runner.waits_for_room or runner.busy else inbox.take()

    def begin(self) -> None:
        """What came ahead of the plan, orders above all, holds from the first call of the component on."""
        while (item := self.env.inbox.take()) is not None:
            self.handle(item)

    def advance(self, now: float) -> float:
        """Does what is due; returns when there is more to do (``now``: at once)."""
        snapshots = self.env.snapshots
        try:
            if snapshots is None:
                self.env.states.age()
            elif not self._in_timeline(snapshots, now):
                return min(self._again if self._again > now else now + 1.0, self._commits_due)
            return min(self.runner.advance(now), self._commits_due) if self.lifecycle.initialized else now + 1.0
        except Exception as error:
            if snapshots is None:
                raise
            self._faults.end_timeline(snapshots, error)

    def _in_timeline(self, snapshots: TaskSnapshots, now: float) -> bool:
        """Whether the task takes part in the present timeline, and has its state."""
        snapshots.look()
        if snapshots.timeline.rolls_back and self.lifecycle.active and now >= self._again:
            if self.lifecycle.initialized:
                raise RollingBack
            self._put_back(snapshots, now)
        if self.lifecycle.running and snapshots.timeline.committed > self._committed:
            self._committed = snapshots.timeline.committed
            with self.user_code:
                self.env.component.committed(self._committed)
        outside = self.env.commits is None or self._write_outside(self.env.commits, snapshots.timeline.committed, now)
        if snapshots.timeline.over and self.lifecycle.running and outside:
            self.runner.over()
        self.env.states.settle()
        self.reporter.report()
        return snapshots.timeline.works

    def _write_outside(self, commits: Commits, committed: int, now: float) -> bool:
        """Whether all rows of a sink that count are outside."""
        if self.lifecycle.running:
            self._commits_due = commits.advance(now, committed)
        if commits.error != self._rows_wait:
            self._rows_wait = commits.error
            self.reporter.error = f"{self.env.task.name}: {commits.error}" if commits.error else ""
            if commits.error:
                self.env.component.logger.error("%s: %s", self.env.task.name, commits.error)
        return commits.idle

    def _put_back(self, snapshots: TaskSnapshots, now: float) -> None:
        """The state first: the author finds it in ``initialize``."""
        try:
            number = snapshots.put_back(self.env.states)
        except OSError as error:
            self._again = now + AGAIN
            snapshots.cannot_read(str(error))
            self.reporter.error = f"{self.env.task.name} {snapshots.report.waits}"
            return
        self._again = -math.inf
        try:
            self._start(number)
        except Exception as error:
            if not self._faults.passes(error):
                raise
            self._again = now + AGAIN
            snapshots.cannot_begin(self._faults.note(error, f"another object tries again in {AGAIN:g} s"))
            raise RollingBack from error

    def _start(self, number: int) -> None:
        self.lifecycle.initialize()
        if number:
            self.env.component.restored(number)
        self.runner.begun()
        self.runner.activated(active=True)

    def handle(self, item: Item) -> None:
        """One item of the input queue."""
        try:
            self._handle(item)
        except Exception as error:
            if self.env.snapshots is None:
                raise
            self._faults.end_timeline(self.env.snapshots, error)

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

    def close(self) -> None:
        """Closes the component, once; what it raises ends the process, unless another object goes on."""
        self.env.context.rolling_back = self.rolled_back
        try:
            self.lifecycle.close()
        except Exception:
            if not self.rolled_back:
                raise
            self.env.component.logger.exception("%s: close() raised, as all goes back", self.env.task.name)
