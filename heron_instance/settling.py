"""What a spout task does when trees get their verdicts, and when the master holds it for an update."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from ardea.component import Spout, overrides
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.congestion import CongestionWindow
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.trees import Ids, OpenTrees, Replays, Row, Seconds, plain
from ardea.metrics.registry import Counter
from ardea.protocol.ids import U64
from ardea.protocol.wire_pb2 import HOLD, Order
from ardea.validation import DEAD_LETTER_STREAM

DEAD_LETTERS = DEAD_LETTER_STREAM.name


class Settling(Executor):
    """The open trees of one spout task, and what becomes of their rows."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.spout = cast("Spout", env.component)
        self.trees_open = OpenTrees(env.task.task, env.rng)
        self.replays = Replays()
        self.congestion = CongestionWindow(env.settings.message_timeout, env.clock())
        self._tells_batch = overrides(type(self.spout), "ack_batch")
        self._tells_ack = self._tells_batch or overrides(type(self.spout), "ack")
        self._decides_fail = overrides(type(self.spout), "fail")
        self._hooks: Hooks | None = None
        self._resting = False  # finish() was called
        self._reopened = False  # it was, and a delivered fail has ended that rest
        self._left: list[Any] = []  # without acking: ids of rows that left before ack() heard of them
        self._given_up = 0
        self._obeyed = 0  # the newest order to hold or to resume
        self._leaving = False  # on hold for good: its own rows are sent again until it is empty
        self._owed = 0  # rows that the author has promised to send again, while on hold
        self._wait = 0.0
        self._next_call = 0.0

    # --- verdicts ---------------------------------------------------------------------------------------------

    def _verdicts(self, columns: list[U64]) -> None:
        acked, failed, timed_out, lost = columns
        now = self.clock()
        ids, latencies, batches = self.trees_open.complete(acked, now)
        self.instruments.late.value += len(acked) - len(ids) - sum(len(each) for each, _ in batches)
        if ids:
            self._acked(ids, latencies, now)
        for of_batch, seconds in batches:
            self._acked(of_batch, seconds, now)
        if len(failed):
            self._broken(failed, self.instruments.failed, now)
        if len(timed_out):
            self._broken(timed_out, self.instruments.timed_out, now)
        if len(lost):
            self._lost(lost, now)
        self._wait = self._next_call = 0.0  # it may have waited for these

    def _acked(self, ids: Ids, latencies: Seconds, now: float) -> None:
        self.congestion.acked(len(ids), now, float(latencies.max()))
        self.instruments.acked.value += len(ids)
        self.instruments.complete.observe_many(latencies)
        if self._tells_ack:
            self.tell_acked(ids)
        if self._hooks is not None:
            for tup_id, latency in zip(plain(ids), latencies.tolist(), strict=True):
                self._hooks.completed(tup_id, latency)

    def tell_acked(self, ids: Ids) -> None:
        """To an author's class that wants to know."""
        with self.user_code:
            if self._tells_batch:
                self.spout.ack_batch(ids)
                return
            ack = self.spout.ack
            for tup_id in plain(ids):
                ack(tup_id)

    def _ack_at_once(self) -> None:
        """At most once: acked as it is emitted."""
        self._take_ids(self.outlet.buffers.values())
        ids, self._left = self._left, []
        self.instruments.acked.value += len(ids)
        if self._tells_ack and ids:
            self.tell_acked(ids)

    def _take_ids(self, buffers: Iterable[StreamBuffer]) -> None:
        for buffer in buffers:
            marks = buffer.marks if buffer.origin is None else plain(buffer.origin.ids)
            self._left += [mark for mark in marks if mark is not None]
            buffer.marks[:] = [None] * len(buffer.marks)
            buffer.origin = None

    def _lost(self, roots: U64, now: float) -> None:
        """All at once, mostly, and all will be sent again: whoever came instead may be slower."""
        self.congestion = CongestionWindow(self.settings.message_timeout, now)
        self._broken(roots, self.instruments.lost, now, counts=False)

    def _broken(self, roots: U64, counter: Counter, now: float, *, counts: bool = True) -> None:
        """Trees that will not be complete; ``counts``: their rows may be to blame."""
        rows, latencies, batches = self.trees_open.broken(roots, now)
        counter.value += len(rows)
        for row, latency in zip(rows, latencies.tolist(), strict=True):
            if self._hooks is not None:
                self._hooks.broken(row.tup_id, latency)
            row.failures += counts
            self._failed(row, now)
        for columns, latencies in batches:
            counter.value += len(columns)
            if self._hooks is not None:
                for tup_id, latency in zip(plain(columns.ids), latencies.tolist(), strict=True):
                    self._hooks.broken(tup_id, latency)
            columns.failures += counts
            most = self.settings.max_tuple_replays
            if self._decides_fail:
                for tup_id in plain(columns.ids):
                    self._tell_failed(tup_id)
            elif most is not None and columns.failures > most:
                for row in columns.rows():
                    self._failed(row, now)
            else:
                self.replays.add(columns, now)

    def _failed(self, row: Row, now: float) -> None:
        """The executor sends it again, or the author decides."""
        most = self.settings.max_tuple_replays
        if self._decides_fail:
            self._tell_failed(row.tup_id)
        elif most is None or row.failures <= most or row.stream == DEAD_LETTERS:
            self.replays.add(row, now)
        else:
            self._bury(row, now)

    def _bury(self, row: Row, now: float) -> None:
        """It failed too often: whoever reads the dead letters gets it, as often as that takes."""
        self.instruments.dead_letters.value += 1
        read = DEAD_LETTERS in self.outlet.buffers
        self.spout.logger.error(
            "tup_id %r of stream %s failed %d times: %s",
            row.tup_id,
            row.stream,
            row.failures,
            f"sent to {DEAD_LETTERS}" if read else f"given up; nobody reads {DEAD_LETTERS}",
        )
        if read:
            letter = (row.tup_id, row.stream, list(row.values))
            self.replays.add(Row(row.tup_id, letter, DEAD_LETTERS, size=row.size), now)
        else:
            self.error = (
                f"{self.env.task.name}: tup_id {row.tup_id!r} failed {row.failures} times, more than "
                f"topology.max.tuple.replays lets it, and nobody reads {DEAD_LETTERS}"
            )
            self._give_up()

    def _tell_failed(self, tup_id: Any) -> None:
        before = self.outlet.emitted
        self._reopened = self._reopened or self._resting
        self._resting = False  # a delivered fail ends the rest, unless it calls finish() again
        with self.user_code:
            sends_again = self.spout.fail(tup_id)
        if sends_again is not True:
            self.error = (
                f"{self.env.task.name}: fail({tup_id!r}) did not return True, as it does where it sends the row again"
            )
            self._give_up()
        elif self.hold and self.outlet.emitted == before:
            self._owed += 1

    def abandon(self, rows: int) -> None:
        """They will never be sent."""
        self._given_up += rows
        self.instruments.given_up.value += rows

    def _give_up(self) -> None:
        self.abandon(1)

    def manager_reborn(self) -> None:
        """The manager's ledger is empty: every open tree is lost."""
        self.lose_all()
        super().manager_reborn()

    def lose_all(self) -> None:
        """Settles every open tree as lost."""
        self._lost(self.trees_open.all_open(), self.clock())

    def hold_or_resume(self, order: Order) -> None:
        """Rests until it is told to go on, or that the hold is not about it any more; the newest order counts."""
        number = order.term << 32 | order.version
        if number <= self._obeyed:
            return
        self._obeyed = number
        if order.kind == HOLD and self.env.task.component in order.components:
            self.hold = number
            self._leaving = self.env.task.task in order.leaving
            if order.settle:
                self.lose_all()
        elif self.hold:
            self.hold = self._owed = 0
            self._leaving = False
            self._wait = self._next_call = 0.0
            if self.markers.resting and not (self._resting or self.draining or self.markers.closed):
                self.wake()

    # --- counts -----------------------------------------------------------------------------------------------

    @property
    def open_rows(self) -> int:
        """Open trees, and rows waiting to be sent again."""
        return self.trees_open.pending + self.waiting_rows

    @property
    def waiting_rows(self) -> int:
        """Rows waiting to be sent again, by the executor or by the author."""
        return len(self.replays) + self._owed

    @property
    def given_up(self) -> int:
        """Rows that will never be sent again."""
        return self._given_up
