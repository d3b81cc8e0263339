"""What both executors share: the loop, flushing, markers, reports, orders.

An executor runs on one thread and touches no socket.  :meth:`Executor.handle` takes one message of the input queue,
:meth:`Executor.advance` does what is due and says when it wants to be called again; :meth:`Executor.run` is the loop
of the real thread, and a simulated cluster calls the same two methods.
"""

from __future__ import annotations

import contextlib
import math
import threading
from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, cast

from ardea.context import hook_class
from ardea.errors import ArdeaError, UserError, printable
from ardea.heron_instance.buffers import StreamBuffer, only_buffer
from ardea.heron_instance.debug import EmitLog
from ardea.heron_instance.environment import Environment, Item, Stopping
from ardea.heron_instance.long_calls import Interruptible
from ardea.heron_instance.markers import Markers
from ardea.heron_instance.outlet import Origins, Outlet, OutMessage
from ardea.loader import place_of
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.values import RowCodec
from ardea.protocol.wire_pb2 import (
    ACTIVATE,
    ACTIVE,
    CREDITS,
    DEACTIVATE,
    DEBUG,
    DRAIN,
    END,
    ENDED,
    HOLD,
    MARKER,
    ORDER,
    REPORT,
    RESTING,
    RESUME,
    TASKS,
    Header,
    Order,
    TaskReport,
    Tasks,
    TaskState,
)


class Executor(Interruptible):
    """One task's executor."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env.clock, env.settings)
        self.env = env
        self.instruments = env.instruments
        self.settings = env.settings
        component = env.plan.logical[env.task.component]
        self.codec = RowCodec(env.settings.pickle)
        self.outlet = Outlet(
            env.plan,
            env.task,
            {stream.name: stream for stream in component.streams},
            lambda source, stream: [(c.name, g) for c, g in env.plan.logical.consumers(source, stream)],
            env.context,
            self.codec,
            env.rng,
            self._put,
            env.settings.batch_rows,
            env.settings.max_tuple_bytes,
            env.settings.drain_size,
        )
        self.only = only_buffer(self.outlet.buffers)
        self.sources: dict[int, str] = {}  # task -> component, of those that an update has removed too
        self._emits = EmitLog(env.task.name, env.clock, always=env.settings.debug)
        if env.settings.debug:
            self.outlet.watcher = self._watch
        # Rounds of a new life lie above those of all former ones: an old report cannot match.
        self.markers = Markers(self.upstream(env.plan), self.outlet.feeds, round=env.life << 32)
        self.active = False
        self.initialized = False
        self.closed = False
        self.ending = False
        self.draining = False
        self.hold = 0  # the number of the order to hold, while it holds
        self.finished = False
        self.in_user_code = False  # or close to it: everywhere but in a wait
        self.held_back = False
        self.refused_rows = 0
        self.error = ""
        self.thread: int | None = None
        self._report: tuple[Any, ...] = ()
        self._version = 0

    # --- the loop ---------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until the topology, or the process, ends; on the thread that calls."""
        self.thread = threading.get_ident()
        inbox, output = self.env.inbox, self.env.output
        work = self.work()
        with contextlib.suppress(Stopping, StopIteration):
            pause = next(work)
            while True:
                if self.held_back:
                    output.wait_room(0, pause or 0.05)
                    pause = work.send(None)
                else:
                    pause = work.send(inbox.take(pause) if pause else inbox.take())
        self.close()

    def work(self) -> Generator[float, Item | None]:
        """All turns, one after the other.

        It yields the seconds in which it has nothing to do by itself, and goes on when they are over or something has
        come, which it is sent; ``held_back``: when there is room for output, and it is sent nothing.
        """
        inbox = self.env.inbox
        self.begin()
        while not self.finished:
            self.in_user_code = True
            wake = self.advance(self.clock())
            self.turns += 1
            started = self.clock()
            self.held_back = self.waits_for_room
            pause = max(0.0, min(wake - started, 1.0))
            self.in_user_code = False
            item = yield pause
            if self.held_back:
                self.instruments.backpressured.value += self.clock() - started
                continue
            if pause:
                self.waited(self.clock() - started)
            self.in_user_code = True
            while item is not None:
                self.handle(item)
                self.turns += 1
                item = None if self.waits_for_room or self.busy else inbox.take()

    def begin(self) -> None:
        """What came ahead of the plan, orders above all, holds from the first call of the component on."""
        while (item := self.env.inbox.take()) is not None:
            self.handle(item)

    def waited(self, seconds: float) -> None:
        """The executor had nothing to do, or was not allowed to, for so long."""
        self.instruments.idle.value += seconds

    @property
    def waits_for_room(self) -> bool:
        """Whether nothing may be taken from the input queue now."""
        return False

    @property
    def busy(self) -> bool:
        """Whether work taken from the input queue is unfinished."""
        return False

    @abstractmethod
    def advance(self, now: float) -> float:
        """Does what is due; returns when there is more to do (``now``: at once)."""

    def handle(self, item: Item) -> None:
        """One item of the input queue."""
        if callable(item):
            item()
            return
        header, frames = item
        kind = header.kind
        if kind == ORDER:
            self._ordered(Order.FromString(frames[0]))
        elif kind == CREDITS:
            for pace in header.paces:
                self.outlet.paces[pace.task] = pace.rows
            if header.loads:
                self.outlet.refresh({load.task: load.load for load in header.loads})
        elif kind == TASKS:
            told = Tasks.FromString(frames[0])
            self.learn(told.lives, again=told.again)
        elif header.void:
            self.env.output.taken(header, sum(map(len, frames)))
        else:
            self.received(header, frames)

    @abstractmethod
    def received(self, header: Header, frames: Sequence[bytes]) -> None:
        """A message that only one kind of executor knows."""

    def manager_reborn(self) -> None:
        """The stream manager has a new life: what it knew of this task is said again."""
        for task in self.markers.feeds:
            if self.markers.resting or self.markers.closed:
                self._send_marker(task)
        self._report = ()
        self.report()

    def learn(self, lives: Mapping[int, int], *, again: bool = False) -> None:
        """Incarnations of other tasks; ``again``: their manager has a new life."""
        for task, life in lives.items():
            if self.markers.risen(task, life, again=again):
                self._send_marker(task)

    def planned(self, plan: PhysicalPlan, lives: Mapping[int, int]) -> None:
        """The plan, and the incarnations of other tasks; a plan of a higher epoch is an update."""
        former = self.env.plan
        if plan.epoch > former.epoch:
            self.send()
            self.env.plan, self.env.task = plan, plan.tasks[self.env.task.task]
            self.env.context.replanned(plan)
            self.outlet.replanned(plan)
            for task in self.markers.replanned(self.upstream(plan), self.outlet.feeds):
                self._send_marker(task)
            if self.initialized and not self.closed and plan.differs_around(self.env.task.component, former):
                self.env.component.update(self.env.context)
            self.report()
        self.learn(lives)

    def upstream(self, plan: PhysicalPlan) -> frozenset[int]:
        """The tasks that this one reads; a spout reads none."""
        inputs = {entry.component for entry in plan.logical[self.env.task.component].inputs}
        tasks = frozenset(task for name in inputs for task in plan.component_tasks[name])
        self.sources.update((task, plan.tasks[task].component) for task in tasks)
        return tasks

    # --- orders -----------------------------------------------------------------------------------------------

    def _ordered(self, order: Order) -> None:
        if order.kind == ACTIVATE:
            self.set_active(active=True)
        elif order.kind == DEACTIVATE:
            self.set_active(active=False)
        elif order.kind == END:
            self.ending = True
        elif order.kind == DRAIN:
            self.draining = True
        elif order.kind in (HOLD, RESUME):
            self.hold_or_resume(order)
        elif order.kind == DEBUG and order.target in (self.env.task.component, self.env.task.name):
            self._emits.extend(order.seconds)
            self.outlet.watcher = self._watch

    def _watch(self, emitted: list[StreamBuffer]) -> None:
        if self._emits.on:
            self._emits.look(emitted)
        else:
            self.outlet.watcher = None

    def hold_or_resume(self, order: Order) -> None:
        """An order of an update."""

    def set_active(self, *, active: bool) -> None:
        """Initialises the component the first time; a spout then hears activate and deactivate."""
        if active and not self.initialized and not self.closed:
            self.initialized = True
            for name in self.settings.task_hooks:
                self.env.context.add_task_hook(hook_class(name)())
            self.env.component.initialize(dict(self.env.config), self.env.context)
            self.begun()
        self.active = active

    @abstractmethod
    def begun(self) -> None:
        """The component is initialised, and may have task hooks, past which every call goes from now on."""

    # --- output -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def unsent(self) -> bool:
        """Whether rows or acks wait for a flush."""

    @abstractmethod
    def send(self) -> None:
        """Sends all of it."""

    def flush(self, now: float, *, idle: bool = False, force: bool = False) -> float:
        """Flushes if it is time to; returns when it will be (infinity: nothing waits).

        ``idle``: nothing is at hand that could add to it.
        """
        if not self.unsent:
            return math.inf
        due = self._flushing.due(now, idle=idle)
        if now < due and not force:
            return due
        self.send()
        self._flushing.flushed(now, self.clock())
        return math.inf

    def flush_rows(self, part: StreamBuffer | None = None) -> None:
        """Sends what was emitted, or ``part`` of it; behind the end nobody would take it."""
        if not self.markers.closed:
            self.outlet.flush(cast("Origins", self), part)  # as spouts and bolts are
        elif rows := self.outlet.drop():
            self.error = (
                f"{self.env.task.name}: {rows:,} tuples were emitted in close(), behind the end of the stream; a bolt "
                "emits its last ones in end_of_input(), a spout before finish()"
            )
            self.abandon(rows)

    def _put(self, message: OutMessage) -> None:
        self.env.output.put(message)

    def overflow(self) -> None:
        """Inside one long call: sends what was emitted, and waits while too much is held."""
        with self.lock:
            self.absorb()
            began = self.clock()
            self.send()
            started = self.clock()
            self.turns += 1
            self._flushing.flushed(began, started)
            limit = self.settings.max_held_bytes
            while self.env.output.held_bytes > limit and not self.env.output.wait_room(limit, 1.0):
                self.turns += 1
            self.instruments.emit_blocked.value += max(0.0, self.clock() - started)

    @property
    def may_send_inside(self) -> bool:
        """Whether rows may leave in the middle of a call: too many wait for credit, or nobody would take them."""
        return not self.markers.closed and self.env.output.held_bytes <= self.settings.max_held_bytes

    def left_alone(self, error: BaseException) -> None:
        """The author hears of it."""
        name, what = self.env.task.name, f"{type(error).__name__}: {printable(error)}"
        self.env.component.logger.warning(
            "%s: rows cannot be sent while a call of user code goes on (%s); they wait until it returns", name, what
        )

    def absorb(self) -> None:
        """Rows that have left in the middle of a call wait no more."""
        if self.only is not None and self.only.gone:
            self.only.cut()

    # --- markers and reports ----------------------------------------------------------------------------------

    def rest(self) -> None:
        """Marks the rest behind all that was emitted."""
        self.markers.rest()
        for task in self.markers.feeds:
            self._send_marker(task)

    def marked(self, header: Header) -> bool:
        """A marker has arrived; False: it says that its source rests no longer."""
        if header.round or header.end:
            self.markers.arrived(header.source, header.source_life, header.round, end=header.end)
            return True
        rested = self.markers.resting and not self.markers.closed
        self.markers.data(header.source)
        if rested:
            self.wake()
        return False

    def wake(self) -> None:
        """Rests no longer, although it has sent nothing: whoever reads this task goes on with its ticks."""
        self.markers.resting = False
        for task in self.markers.feeds:
            self._send_marker(task, round_=0)
        self.report()

    def end(self) -> None:
        """Passes the end on and closes the component."""
        self.ending = self.markers.closed = True
        for task in self.markers.feeds:
            self._send_marker(task)
        self.close()
        self.flush_rows()

    def _send_marker(self, task: int, round_: int | None = None) -> None:
        markers, here = self.markers, self.env.task.task
        round_ = markers.round if round_ is None else round_
        header = Header(kind=MARKER, source=here, target=task, round=round_, end=markers.closed)
        header.epoch = self.env.plan.epoch
        self._put(OutMessage(header, [], 0, 0))

    @property
    def state(self) -> TaskState:
        """What the master is told."""
        if self.markers.closed:
            return ENDED
        return RESTING if self.markers.resting else ACTIVE

    def report(self, failure: str = "") -> None:
        """Tells the master what it does not know yet."""
        markers = self.markers
        seen = tuple(sorted(markers.seen.items())) if markers.resting else ()
        counts = (self.open_rows, self.waiting_rows) if self.draining or self.hold else ()
        plan = (self.env.plan.epoch, self.hold)
        told = (self.state, markers.round, seen, self.given_up, failure, self.error, counts, plan)
        if told == self._report:
            return
        self._report = told
        self._version += 1
        report = TaskReport(
            task=self.env.task.task,
            state=self.state,
            round=markers.round,
            given_up=self.given_up,
            version=self._version,
            failure=printable(failure, most=2000),
            error=printable(self.error, most=2000),
            open=self.open_rows,
            waiting=self.waiting_rows,
            epoch=self.env.plan.epoch,
            hold=self.hold,
        )
        report.seen.update(dict(seen))
        self._put(OutMessage(Header(kind=REPORT), [report.SerializeToString()], 0, 0))

    @property
    def open_rows(self) -> int:
        """What a resting spout still waits for; 0 for a bolt."""
        return 0

    @property
    def waiting_rows(self) -> int:
        """Those of them that wait to be sent again."""
        return 0

    @property
    def given_up(self) -> int:
        """Rows that will never be sent, or sent again."""
        return self.refused_rows

    def abandon(self, rows: int) -> None:
        """They are of those."""
        self.refused_rows += rows

    # --- errors and the end -----------------------------------------------------------------------------------

    def fails_topology(self, error: BaseException) -> str:
        """Why the topology cannot go on behind an error that ends the process; empty: it is started again."""
        if isinstance(error, ArdeaError):
            return f"{self.env.task.name} cannot go on: {error.message}"
        if self.ending:
            what = f"{type(error).__name__}: {printable(error)} at {place_of(error)}"
            return f"{self.env.task.name} died as it ended: {what}"
        return ""

    def submitted(self, function: Callable[[], object]) -> None:
        """What the author has handed over, unless the component is closed."""
        if not self.closed:
            with self.user_code:
                function()

    def refuse(self, error: ArdeaError, origin: str) -> None:
        """A row that cannot be sent: counted, logged with its origin."""
        self.refused_rows += 1
        self.error = f"{error.message} ({origin})"
        self.instruments.exception(error)
        self.env.component.logger.error("%s (%s)%s", error.message, origin, f"; {error.hint}" if error.hint else "")

    def check_thread(self) -> None:
        """Raises UserError on any thread but the executor's."""
        if self.thread is not None and threading.get_ident() != self.thread:
            raise UserError(
                f"{self.env.task.name}: emit, ack and fail belong to the executor thread",
                hint="hand the work over with context.submit(fn)",
            )

    def close(self) -> None:
        """Closes the component, once."""
        if self.initialized and not self.closed:
            self.closed = True
            self.env.component.close()
            for hook in self.env.context.hooks:
                hook.cleanup()
