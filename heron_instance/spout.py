"""The spout executor: asks for tuples, tracks their trees, sends failed rows again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np

from ardea.component import TupIds, install, overrides
from ardea.errors import EncodingError, UserError
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.environment import NO_THREAD, Environment
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.inlet import Int
from ardea.heron_instance.outlet import OutMessage
from ardea.heron_instance.sendable import own
from ardea.heron_instance.settling import Settling
from ardea.heron_instance.trees import Row, TrackedColumns, Trees, ids_of, plain
from ardea.protocol.arrow import rows_of
from ardea.protocol.ids import column
from ardea.protocol.wire_pb2 import DONE, INIT, PAUSE, REOPENED, VERDICTS, Header, TaskState

PAUSE_LAPSES = 3.0
IDLE_EVERY = 0.1
FIRST_WAIT = 0.001
SILENCE_SHARE, LONGER = 0.01, 10.0  # a silent spout sleeps a hundredth of its silence, up to ten times the setting


class SpoutExecutor(Settling):
    """Runs one spout task.

    A mark in a stream's buffer is the author's message id (None: untracked), or the :class:`Row` that is sent again.
    """

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._tells_idle = overrides(type(self.spout), "idle")
        self._tracked = env.settings.reliability_mode != "ATMOST_ONCE" and env.settings.ackers != 0
        self._refused: list[Any] = []  # ids of rows that cannot be sent, for an author who decides on fails
        self._paused_until = -math.inf
        self._last_idle = 0.0  # when idle() or next_tuple() was last called
        self._per_call = math.inf  # unknown: the first turn is one call
        self._emitted_at = env.clock()
        self._replaying = False
        self._stop_asking: Callable[[], None]
        self._ask, self._bind = self._install()

    # --- user code --------------------------------------------------------------------------------------------

    def _install(self) -> tuple[Callable[[int], int], Callable[[], None]]:
        """Gives the spout its emit, once, as a spout may keep it.

        Returns the loop that calls ``next_tuple`` up to so many rows, and what looks at what ``initialize`` has made of
        the spout, and puts hooks behind the emit.
        """
        outlet, only = self.outlet, self.only
        next_tuple: Callable[[], None]
        rows, marks = ([], []) if only is None else (only.rows, only.marks)
        append, mark = rows.append, marks.append
        thread = get_ident()
        count = partial(getattr, outlet, "waiting") if only is None else rows.__len__
        wanted = 0  # rows; finish(), and rows that leave inside a call, set it to none

        def plain_emit(
            values: Sequence[Any],
            tup_id: Any = None,
            stream: str = "default",
            direct_task: int | None = None,
            need_task_ids: bool = False,
        ) -> list[int] | None:
            if stream != "default" or direct_task is not None or need_task_ids or get_ident() != thread:
                return self._emit(values, tup_id, stream, direct_task, need_task_ids)
            append(values if type(values) is tuple else tuple(values) if type(values) is list else own(values))
            mark(tup_id)
            if len(rows) >= outlet.row_limit:
                self.overflow()
            return None

        def finish() -> None:
            self.check_thread()
            self._resting, self._reopened = True, False
            stop_asking()

        def stop_asking() -> None:
            nonlocal wanted
            wanted = 0

        def ask(budget: int) -> int:
            """Calls until ``budget`` rows wait, or it is told to stop; negative: the last call emitted nothing."""
            nonlocal wanted
            wanted = budget
            calls = 0
            waiting = count()
            for calls in range(1, budget - waiting + 1):
                next_tuple()
                now_waiting = count()
                if now_waiting >= wanted:
                    break
                if now_waiting == waiting:
                    return -calls
                waiting = now_waiting
            return calls

        def bind() -> None:
            nonlocal next_tuple, thread
            next_tuple = self.spout.next_tuple
            if self._hooks is not None:
                thread = NO_THREAD  # no emit is a plain one any more

        self._stop_asking = stop_asking
        emit = self._emit if only is None else plain_emit
        install(self.spout, self.env.task.component, _Collector(emit, self._emit_batch, finish))
        if not overrides(type(self.spout), "emit"):
            self.spout.emit = emit  # type: ignore[method-assign]
        return ask, bind

    def begun(self) -> None:
        """As the spout is now, and with its hooks."""
        if self.env.context.hooks:
            self._hooks = Hooks(self.env.context.hooks, self.env.task.task, self.clock)
        self._bind()

    def _emit(
        self,
        values: Sequence[Any],
        tup_id: Any = None,
        stream: str = "default",
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """The emits that are not the plain one."""
        self.check_thread()
        with self.lock:
            buffer = self.outlet.buffer(stream)
            values = own(values)
            tasks: list[int] | None = None
            if direct_task is not None:
                tasks = list(self.outlet.emit_direct(buffer, values, direct_task, tup_id))
            else:
                self.outlet.check(buffer)
                if need_task_ids or self._hooks is not None:
                    tasks = list(self.outlet.emit_chosen(buffer, values, tup_id))
                else:
                    buffer.rows.append(values)
                    buffer.marks.append(tup_id)
            if len(buffer.rows) >= self.outlet.row_limit:
                self.overflow()
        if self._hooks is not None:
            self._hooks.emitted(values, stream, tasks or ())
        return tasks if need_task_ids else None

    def _emit_batch(self, batch: Any, tup_ids: TupIds | None, stream: str) -> None:
        """Columns leave at once, behind the rows emitted before."""
        self.check_thread()
        with self.lock:
            self.absorb()
            self.outlet.check_columns(stream, batch)
            columns = self._tracked_columns(batch, tup_ids, stream)
            if self._hooks is None:
                self.send()
                if not self.outlet.waiting:
                    self.outlet.emit_columns(stream, batch, columns, self.overflow)
                    return
        # Hooks see one row at a time; or an author's fail() has emitted, and columns would take the place of its rows.
        ids = [None] * batch.num_rows if columns is None else plain(columns.ids)
        for values, tup_id in zip(rows_of(batch), ids, strict=True):
            self._emit(values, tup_id, stream)

    def _tracked_columns(self, batch: Any, tup_ids: TupIds | None, stream: str) -> TrackedColumns | None:
        ids = None if tup_ids is None else ids_of(tup_ids)
        if ids is not None and len(ids) != batch.num_rows:
            raise UserError(f"{self.env.task.name}: {len(ids)} tup_ids for a batch of {batch.num_rows} rows")
        return None if ids is None else TrackedColumns(ids, batch, stream)

    def set_active(self, *, active: bool) -> None:
        """Tells the spout, when it changed."""
        changed = active != self.active and not self.closed
        super().set_active(active=active)
        if changed:
            (self.spout.activate if active else self.spout.deactivate)()

    # --- messages ---------------------------------------------------------------------------------------------

    def received(self, header: Header, frames: Sequence[bytes]) -> None:
        """Verdicts and pauses."""
        if header.kind == VERDICTS:
            self._verdicts([column(frame) for frame in frames])
        elif header.kind == PAUSE:
            now = self.clock()
            self._paused_until = now + PAUSE_LAPSES if header.paused else -math.inf
            self.congestion.congested(now)

    # --- the loop ---------------------------------------------------------------------------------------------

    def advance(self, now: float) -> float:
        """Replays, new tuples, flushes, markers."""
        if not self.initialized:
            if self.active:
                self.set_active(active=True)
                self.report()  # ahead of all that it emits
            return now + 1.0
        if self.markers.closed:
            return now + 1.0
        if self.ending:
            self.send()
            self.end()
            self.report()
            return now + 1.0
        wake = now + 1.0
        allowed = self.active and now >= self._paused_until and not self.env.output.held
        if allowed and not self.draining:
            if not self.hold or self._leaving:
                wake = min(wake, self._send_again(now))
            if not self.hold:
                wake = min(wake, self._ask_for_more(now))
        elif now < self._paused_until:
            wake = min(wake, self._paused_until)
        if self._tells_idle:
            if now >= self._last_idle + IDLE_EVERY:
                self._last_idle = now
                with self.user_code:
                    self.spout.idle()
            wake = min(wake, self._last_idle + IDLE_EVERY)
        if not self._tracked:
            self._ack_at_once()
        now = self.clock()
        # Held back by open trees, it has nothing to wait for that could join this batch.
        full = self.outlet.waiting >= max(1, self._budget(now))
        silent = self._next_call > now
        wake = min(wake, self.flush(now, idle=silent, force=full), now if self._left else math.inf)
        if (self._resting or self.draining or self.hold) and not self.unsent and not self.markers.resting:
            self.rest()
        self.report()
        self.instruments.pending.value = self.open_rows
        return wake

    def waited(self, seconds: float) -> None:
        """Idle, or held back by pending trees, credit or a pause."""
        now = self.clock()
        held_back = not self._resting and (self._budget(now) <= 0 or now < self._paused_until)
        (self.instruments.backpressured if held_back else self.instruments.idle).value += seconds

    def _budget(self, now: float) -> int:
        """How many more rows may be open."""
        settings, trees = self.settings, self.trees_open
        if not self._tracked:
            return settings.batch_rows
        pending, size = self.open_rows, trees.pending_bytes + self.replays.size
        room = settings.max_spout_pending - pending
        if pending:
            room = min(room, (settings.max_spout_pending_bytes - size) // max(1, size // pending))
        return min(room, trees.room, self._admitted(now), settings.batch_rows)

    def _admitted(self, now: float) -> int:
        """How many more trees the congestion window lets be open."""
        return self.congestion.rows(now) - self.trees_open.pending

    def _full(self, now: float) -> float:
        """More cannot be sent now; returns when to look again."""
        if self.outlet.waiting:
            return now  # what waits leaves now, and untracked rows make room by that
        # A verdict wakes the executor.
        return self.congestion.full(now) if self._admitted(now) <= 0 else now + 1.0

    def _ask_for_more(self, now: float) -> float:
        if self._resting:
            return now + 1.0
        if now < self._next_call:
            return self._next_call
        waiting = self.outlet.waiting
        budget = min(self._budget(now), waiting + int(0.002 / self._per_call) + 1)
        if budget <= waiting:
            return self._full(now)
        before = self.outlet.emitted
        with self.user_code:
            calls = self._ask(budget)
        ended = self.clock()
        count = abs(calls)
        if count:
            per_call = (ended - now) / count
            known = self._per_call if self._per_call < math.inf else per_call
            self._per_call = known + 0.3 * (max(per_call, 1e-8) - known)
            self.instruments.next_tuple.observe(per_call, count)
            self.instruments.busy.value += ended - now
        self._last_idle = ended
        if calls > 0 and (self.outlet.emitted != before or self._resting):
            self._wait = 0.0
            return ended
        # Nothing emitted: sleep a little, and longer each time; the longer the silence, the less a little more matters.
        longest = self.settings.spout_wait_ms / 1000
        longest = max(longest, min((ended - self._emitted_at) * SILENCE_SHARE, longest * LONGER))
        self._wait = min(max(self._wait * 2, FIRST_WAIT), longest)
        self._next_call = ended + self._wait
        return self._next_call

    def _send_again(self, now: float) -> float:
        """Rows whose back-off is over."""
        while self.replays.next_due <= now:
            if self._admitted(now) <= self.outlet.waiting:
                return self._full(now)
            row = self.replays.take()
            self._replaying = True
            self.markers.resting = False
            if isinstance(row, TrackedColumns):
                self.send()
                self.outlet.emit_columns(row.stream, row.batch, row, self.send)
                continue
            buffer = self.outlet.buffer(row.stream)
            if row.direct_task is not None and not self.outlet.reads(row.stream, row.direct_task):
                self.error = (
                    f"{self.env.task.name}: tup_id {row.tup_id!r} was for task {row.direct_task}, which is gone"
                )
                self._give_up()
            elif row.direct_task is not None:
                self.outlet.emit_direct(buffer, row.values, row.direct_task, row)
            else:
                buffer.rows.append(row.values)
                buffer.marks.append(row)
            if self.outlet.waiting >= self.settings.batch_rows:
                self.send()
        return self.replays.next_due

    # --- markers ----------------------------------------------------------------------------------------------

    @property
    def state(self) -> TaskState:
        """Done: finished, nothing open, nothing in back-off.  Reopened: only another finish() is missing for that."""
        if self.markers.resting and not self.markers.closed:
            waiting = self.trees_open.pending + (0 if self.draining else len(self.replays))
            # A delivered fail ends the rest, but its marker stands until data leaves that cancels it.
            rests = (self._resting or self.draining) and not self.unsent
            if rests and not waiting:
                return DONE
        goes_on = self.markers.closed or self.draining or self.hold or self.open_rows
        # It was asked for more since the fail was delivered, and neither emitted anything nor finished.
        return REOPENED if self._reopened and self._wait and not goes_on else super().state

    # --- output -----------------------------------------------------------------------------------------------

    @property
    def unsent(self) -> bool:
        """Rows emitted, and those that ``ack`` has not heard of."""
        return self.outlet.waiting > 0 or bool(self._left or self._refused)

    def send(self) -> None:
        """The author hears of rows that could not be sent."""
        self.send_rows()
        self._replaying = False
        while self._refused:
            self._tell_failed(self._refused.pop(0))

    def send_rows(self, part: StreamBuffer | None = None) -> None:
        """Data cancels a rest."""
        if self.outlet.waiting:
            self.markers.resting = False
            self._emitted_at = self.clock()
            if not self._tracked:
                self._take_ids(self.outlet.buffers.values() if part is None else (part,))
        self.flush_rows(part)

    def send_inside(self) -> bool:
        """Rows whose marks are there."""
        waiting = self.outlet.waiting
        if not waiting or waiting > self.trees_open.room or not self.may_send_inside:
            return False
        if self.only is None:
            self.send_rows()
            return True
        known = len(self._left)
        try:
            self.send_rows(self.only.part(len(self.only.marks)))
        except BaseException:
            del self._left[known:]  # these rows wait, and so do their ids
            raise
        return True

    def hurry(self) -> None:
        """No more calls."""
        self._stop_asking()

    def overflow(self) -> None:
        """What leaves inside a call is pending: that has to be looked at before the next call."""
        super().overflow()
        self._stop_asking()

    # --- origins ----------------------------------------------------------------------------------------------

    def trees(self, buffer: StreamBuffer, size: int) -> Trees | None:
        """A new tree for each row that has an id."""
        if not self._tracked:
            return None
        if buffer.columns is not None:
            return self._column_trees(buffer, size)
        marks, total = buffer.marks, len(buffer.rows)
        untracked = marks.count(None)
        if untracked:
            self.congestion.acked(untracked, self.clock())
        if untracked == total:
            return None
        if not untracked and not self._replaying and buffer.plan.name == "default" and not buffer.chosen:
            roots = self.trees_open.open(marks, buffer.rows, size, self.clock())
            return Trees(roots)
        places = [i for i, mark in enumerate(marks) if mark is not None]
        entries = [self._entry(buffer, i) for i in places]
        roots = self.trees_open.open([e.tup_id for e in entries], entries, size, self.clock())
        if not untracked:
            return Trees(roots)
        counts = np.zeros(total, dtype=np.intp)
        counts[places] = 1
        return Trees(roots, counts)

    def _column_trees(self, buffer: StreamBuffer, size: int) -> Trees | None:
        columns: TrackedColumns | None = buffer.origin
        if columns is None:
            return None
        places, total = columns.tracked, len(columns)
        if places is None:
            everything = np.arange(total, dtype=np.intp)
            return Trees(self.trees_open.open_columns(columns, everything, size, self.clock()))
        if not len(places):
            return None
        counts = np.zeros(total, dtype=np.intp)
        counts[places] = 1
        return Trees(self.trees_open.open_columns(columns, places, size, self.clock()), counts)

    @staticmethod
    def _entry(buffer: StreamBuffer, place: int) -> Row:
        mark = buffer.marks[place]
        if type(mark) is Row:
            return mark
        chosen = buffer.chosen.get(place)
        direct = chosen[0] if chosen and buffer.plan.direct else None
        return Row(mark, buffer.rows[place], buffer.plan.name, direct)

    def ahead(self, message: OutMessage, picked: Int | None, trees: Trees) -> None:
        """The trees of a batch begin with it, or with an init right before it where its edges are not all they have.

        One init for the whole flush would begin the time of trees whose rows wait behind others for credit.
        """
        xors = trees.xors
        assert xors is not None
        if trees.counts is None:
            message.header.opens = bool(
                ((xors if picked is None else xors[picked]) == column(message.frames[-1])).all()
            )
        rows = trees.announce(picked)
        if not message.header.opens:
            self._init(trees, rows)

    def anchored(self, buffer: StreamBuffer, trees: Trees) -> None:
        """Rows that nobody reads are complete."""
        if not trees.all_announced:
            if trees.xors is None:
                trees.xors = np.zeros(len(buffer), dtype=np.uint64)
            self._init(trees, trees.announce(None))

    def _init(self, trees: Trees, rows: Int) -> None:
        assert trees.xors is not None
        roots = trees.roots
        if trees.counts is not None:
            rows = rows[trees.counts[rows] == 1]
            roots = roots[(np.cumsum(trees.counts) - 1)[rows]]
        else:
            roots = roots[rows]
        if len(rows):
            frames = [roots.tobytes(), trees.xors[rows].tobytes()]
            header = Header(kind=INIT, source=self.env.task.task)
            self._put(OutMessage(header, frames, 0, sum(map(len, frames))))

    def refused(self, buffer: StreamBuffer, row: int, error: EncodingError) -> None:
        """It can never be sent: given up, unless the author decides otherwise."""
        if buffer.columns is not None:
            mark = None if buffer.origin is None else buffer.origin.ids[row]
        else:
            mark = buffer.marks[row]
        tup_id = mark.tup_id if type(mark) is Row else mark
        self.refuse(error, f"tup_id {tup_id!r}" if tup_id is not None else "no tup_id")
        if tup_id is not None and self._tracked and self._decides_fail:
            self._refused.append(tup_id)
        else:
            self._give_up()


class _Collector:
    """What the base class's methods reach when the author overrides them."""

    def __init__(self, emit: Callable[..., Any], emit_batch: Callable[..., None], finish: Callable[[], None]) -> None:
        self.emit, self.emit_batch, self.finish = emit, emit_batch, finish
