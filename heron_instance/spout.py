"""The runner of a spout: asks for tuples, tracks their trees, sends failed rows again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from ardea.component import Spout, install, overrides
from ardea.heron_instance.asking import Asking
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.many_rows import SpoutMany
from ardea.heron_instance.open_rows import OpenRows
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.settling import Settling
from ardea.heron_instance.spout_rows import SpoutRows
from ardea.heron_instance.watermarks import SpoutTime
from ardea.protocol.ids import column
from ardea.protocol.wire_pb2 import DONE, HOLD, PAUSE, REOPENED, VERDICTS, Header, Order, TaskState

PAUSE_LAPSES = 3.0


class SpoutRunner:
    """Of one task."""

    waits_for_room = False
    busy = False

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._env, self._lifecycle, self._reporter = parts.env, parts.lifecycle, parts.reporter
        self._spout = cast("Spout", parts.env.component)
        self._open = OpenRows(parts.env)
        self._asking = Asking(parts, self._open)
        self._settling = Settling(parts, self._open, self._asking)
        self.emitted = SpoutRows(parts, self._open, self._settling, self._asking)
        self._none_is_plain: Callable[[], None] = lambda: None
        self._paused_until = -math.inf
        self._no_room = False  # at the last turn
        self._emitted_before = 0  # rows, before the last snapshot was taken
        self._obeyed = 0  # the newest order to hold or to resume
        self._leaving = False  # on hold for good: its own rows are sent again until it is empty
        self._install()

    def _install(self) -> None:
        """Gives the spout its emit, once, as a spout may keep it."""
        emit: Callable[..., list[int] | None] = self.emitted.emit
        if (only := self._parts.sending.only) is not None:
            emit, self._none_is_plain = self.emitted.plain_emit(only)
        self._many = many = SpoutMany(self._parts, self.emitted)
        collector = _Collector(emit, many.emit_many, self.emitted.emit_batch, self._asking.finish, self._asking.reopen)
        install(self._spout, self._env.task.component, collector)
        if not overrides(type(self._spout), "emit"):
            self._spout.emit = emit  # type: ignore[method-assign]
        if not overrides(type(self._spout), "emit_many"):
            self._spout.emit_many = many.emit_many  # type: ignore[method-assign]

    def take_over(self, former: Self) -> None:  # noqa: ARG002
        """Nothing comes for a spout but what is said again; it has emitted nothing that is in no snapshot."""
        self._emitted_before = self._parts.task_output.emitted

    def begun(self) -> None:
        """As the spout is now, and with its hooks."""
        if hooks := self._env.context.take_hooks():
            self._settling.hooks = self.emitted.hooks = Hooks(hooks, self._env.task.task, self._env.clock)
            self._none_is_plain()
            self._many.none_is_plain()
        self._asking.bind()

    def over(self) -> None:
        """The last snapshot counts."""
        self._parts.over(self.emitted)

    def activated(self, *, active: bool) -> None:
        """Tells the spout."""
        (self._spout.activate if active else self._spout.deactivate)()

    # --- messages and orders ----------------------------------------------------------------------------------

    def received(self, header: Header, frames: Sequence[bytes]) -> None:
        """Verdicts and pauses."""
        if header.kind == VERDICTS:
            self._settling.judge([column(frame) for frame in frames])
            self._asking.soon()
        elif header.kind == PAUSE:
            now = self._env.clock()
            self._paused_until = now + PAUSE_LAPSES if header.paused else -math.inf
            self._open.congestion.congested(now)

    def manager_reborn(self) -> None:
        """The manager's ledger is empty: every open tree is lost."""
        self._settling.lose_all()

    def replanned(self) -> None:
        """It reads nobody."""

    def ordered(self, order: Order) -> None:
        """Rests until it is told to go on, or that the hold is not about it any more; the newest order counts."""
        number = order.term << 32 | order.version
        if number <= self._obeyed:
            return
        self._obeyed = number
        lifecycle, markers = self._lifecycle, self._reporter.markers
        if order.kind == HOLD and self._env.task.component in order.components:
            lifecycle.hold = number
            self._leaving = self._env.task.task in order.leaving
            if order.settle:
                self._settling.lose_all()
            if self._env.snapshots is None and not lifecycle.initialized:
                if not markers.resting:
                    self._reporter.rest()
                self._reporter.report()
        elif lifecycle.hold:
            lifecycle.hold = self._open.owed = 0
            self._leaving = False
            self._asking.soon()
            if markers.resting and not (self._asking.finished or lifecycle.draining or markers.closed):
                self._reporter.wake()

    # --- the loop ---------------------------------------------------------------------------------------------

    def advance(self, now: float) -> float:
        """Replays, new tuples, flushes, markers."""
        lifecycle, reporter, emitted = self._lifecycle, self._reporter, self.emitted
        self._no_room = False
        if reporter.markers.closed:
            self._parts.take_again(emitted)
            return now + 1.0
        if lifecycle.ending:
            self._parts.end(emitted)
            return now + 1.0
        snapshots = self._env.snapshots
        if snapshots is not None and (number := snapshots.timeline.begun):
            if number == snapshots.timeline.ends:
                self._parts.end(emitted, number)
                return now + 1.0
            self._parts.snapshot(number, emitted)
            self._emitted_before = self._parts.task_output.emitted
        wake = min(now + 1.0, self._emit(now), self._asking.idle(now))
        if snapshots is not None and self._parts.task_output.emitted != self._emitted_before:
            snapshots.moved()
        if self._open.acked_at_once:
            self._settling.ack_at_once()
        now = self._env.clock()
        # Held back by open trees, it has nothing to wait for that could join this batch.
        full = self._parts.task_output.waiting >= max(1, self._open.budget(now))
        silent = self._asking.silent_until > now
        wake = min(wake, self._parts.sending.flush(emitted, now, idle=silent, force=full))
        if self._settling.left:
            wake = min(wake, now)
        wake = min(wake, self._tell(now))
        rests = self._asking.finished or lifecycle.draining or lifecycle.hold
        if rests and not emitted.unsent and not reporter.markers.resting:
            reporter.rest()
        reporter.report()
        self._env.instruments.verdicts.pending.value = self._open.count
        return wake

    def _tell(self, now: float) -> float:
        """The task's watermark; returns when there is more to tell."""
        time, asking, lifecycle = self._reporter.time, self._asking, self._lifecycle
        if not isinstance(time, SpoutTime):
            return math.inf
        if asking.finished:
            time.source.finished()
        waits = self._emits and lifecycle.active
        waits = waits and not (lifecycle.draining or lifecycle.hold or self._env.output.held)
        return time.tell(now, self.emitted, waits=waits and now >= self._paused_until and self._open.budget(now) > 0)

    @property
    def _emits(self) -> bool:
        """Whether there is a snapshot that all could go back to from what it emits now."""
        snapshots = self._env.snapshots
        return snapshots is None or snapshots.timeline.emits

    def _emit(self, now: float) -> float:
        """What failed before, and more, as far as that is allowed; returns when there may be more."""
        lifecycle = self._lifecycle
        if not self._emits:
            return math.inf
        if not lifecycle.active or now < self._paused_until:
            return self._paused_until if now < self._paused_until else math.inf
        if self._env.output.held:
            self._no_room = True
            return math.inf
        wake = math.inf
        if not lifecycle.draining:
            if not lifecycle.hold or self._leaving:
                wake = self.emitted.emit_again(now)
            if not lifecycle.hold:
                wake = min(wake, self._asking.ask(now))
        return wake

    def hurry(self) -> None:
        """No more calls in this turn."""
        self._asking.stop()

    def waited(self, seconds: float) -> None:
        """Idle, or held back by pending trees, credit or a pause."""
        now, instruments = self._env.clock(), self._env.instruments
        held_back = not self._asking.finished and (
            self._no_room or self._open.budget(now) <= 0 or now < self._paused_until
        )
        (instruments.spent.backpressured if held_back else instruments.spent.idle).value += seconds

    # --- what the reports say of its rows ---------------------------------------------------------------------

    @property
    def spout_state(self) -> TaskState | None:
        """Done: finished, nothing open, nothing in back-off.  Reopened: only another finish() is missing for that."""
        asking, draining, markers = self._asking, self._lifecycle.draining, self._reporter.markers
        if markers.resting and not markers.closed:
            waiting = self._open.trees.pending + (0 if draining else len(self._open.replays))
            # A delivered fail ends the rest, but its marker stands until data leaves that cancels it.
            rests = (asking.finished or draining) and not self.emitted.unsent
            if rests and not waiting:
                return DONE
        goes_on = markers.closed or draining or self._lifecycle.hold or self._open.count
        # It was asked for more since the fail was delivered, and neither emitted anything nor finished.
        return REOPENED if asking.reopened and asking.found_nothing and not goes_on else None

    @property
    def open_rows(self) -> int:
        """Open trees, and rows waiting to be sent again."""
        return self._open.count

    @property
    def waiting_rows(self) -> int:
        """Rows waiting to be sent again, by the executor or by the author."""
        return self._open.waiting


@dataclass(frozen=True, slots=True)
class _Collector:
    """What the base class's methods reach when the author overrides them."""

    emit: Callable[..., Any]
    emit_many: Callable[..., Any]
    emit_batch: Callable[..., None]
    finish: Callable[[], None]
    reopen: Callable[[], None]
