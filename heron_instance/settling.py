"""What a spout task does when trees get their verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from ardea.component import Spout, overrides
from ardea.errors import EncodingError
from ardea.heron_instance.asking import Asking
from ardea.heron_instance.broken_rows import TOLD, BrokenRows
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.open_rows import OpenRows
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.trees import Ids, Row, Seconds, TrackedColumns, plain
from ardea.metrics.registry import Counter
from ardea.protocol.ids import U64
from ardea.protocol.values import RowCodec
from ardea.validation import DEAD_LETTER_STREAM

DEAD_LETTERS = DEAD_LETTER_STREAM.name


class Settling:
    """Tells the author of one spout task, and decides what becomes of the rows.

    ``left``, without acking: ids of rows that left before ``ack`` heard of them.
    """

    def __init__(self, parts: Parts, open_rows: OpenRows, asking: Asking) -> None:
        self._env = parts.env
        self._lifecycle = parts.lifecycle
        self._user_code = parts.user_code
        self._task_output = parts.task_output
        self._reporter = parts.reporter
        self._open = open_rows
        self._asking = asking
        self._spout = cast("Spout", parts.env.component)
        self._tells_batch = overrides(type(self._spout), "ack_batch")
        self._tells_ack = self._tells_batch or overrides(type(self._spout), "ack")
        self.decides_fail = overrides(type(self._spout), "fail")
        self.hooks: Hooks | None = None
        self.left: list[Any] = []
        self.broken_rows = parts.reporter.broken = BrokenRows(self._spout, parts.env.clock)

    # --- verdicts ---------------------------------------------------------------------------------------------

    def judge(self, verdicts: list[U64]) -> None:
        """Acked, failed, timed out, lost."""
        self._env.observer.judged(verdicts)
        tracing = self._env.tracing
        if tracing is None:
            self._judge(verdicts)
        else:
            heard = tracing.judged(verdicts)
            self._judge(verdicts)
            tracing.told(heard)

    def _judge(self, verdicts: list[U64]) -> None:
        acked, failed, timed_out, lost = verdicts
        now, instruments = self._env.clock(), self._env.instruments
        ids, latencies, batches = self._open.trees.complete(acked, now)
        instruments.verdicts.late.value += len(acked) - len(ids) - sum(len(each) for each, _ in batches)
        if ids:
            self._acked(ids, latencies, now)
        for of_batch, seconds in batches:
            self._acked(of_batch, seconds, now)
        if len(failed):
            self._broken("failed", failed, instruments.failed, now)
        if len(timed_out):
            self._broken("timed out", timed_out, instruments.verdicts.timed_out, now)
        if len(lost):
            self._lost(lost, now)

    def lose_all(self) -> None:
        """Settles every open tree as lost."""
        self._env.observer.lost()
        if self._env.tracing is not None:
            self._env.tracing.lost()
        self._lost(self._open.trees.all_open(), self._env.clock())

    def _acked(self, ids: Ids, latencies: Seconds, now: float) -> None:
        self._open.congestion.acked(len(ids), now, float(latencies.max()))
        self._env.instruments.acked.value += len(ids)
        self._env.instruments.verdicts.complete.observe_many(latencies)
        if self._tells_ack:
            self._tell_acked(ids)
        if self.hooks is not None:
            for tup_id, latency in zip(plain(ids), latencies.tolist(), strict=True):
                self.hooks.completed(tup_id, latency)

    def _tell_acked(self, ids: Ids) -> None:
        with self._user_code:
            if self._tells_batch:
                self._spout.ack_batch(ids)
                return
            ack = self._spout.ack
            for tup_id in plain(ids):
                ack(tup_id)

    def _lost(self, roots: U64, now: float) -> None:
        self._open.forget_pace(now)
        self._broken("was lost", roots, self._env.instruments.verdicts.lost, now, counts=False)

    def _broken(self, what: str, roots: U64, counter: Counter, now: float, *, counts: bool = True) -> None:
        """Trees that will not be complete; ``counts``: their rows may be to blame."""
        rows, latencies, batches = self._open.trees.broken(roots, now)
        counter.value += len(rows)
        for row, latency in zip(rows, latencies.tolist(), strict=True):
            if self.hooks is not None:
                self.hooks.broken(row.tup_id, latency)
            row.failures += counts
            if counts:
                self.broken_rows.note(what, row.root, row.tup_id, row.values, row.stream)
            self._failed(row, now)
        for columns, latencies in batches:
            counter.value += len(columns)
            if self.hooks is not None:
                for tup_id, latency in zip(plain(columns.ids), latencies.tolist(), strict=True):
                    self.hooks.broken(tup_id, latency)
            columns.failures += counts
            if counts:
                self._note_first(what, columns)
            most = self._env.settings.max_tuple_replays
            if self.decides_fail:
                for tup_id in plain(columns.ids):
                    self.tell_failed(tup_id)
            elif most is not None and columns.failures > most:
                for row in columns.rows():
                    self._failed(row, now)
            else:
                self._open.replays.add(columns, now)

    def _note_first(self, what: str, columns: TrackedColumns) -> None:
        """As many of a batch as anybody would read; Arrow's rows cost their conversion."""
        few = columns.picked(np.arange(min(len(columns), TOLD), dtype=np.intp))
        for row, root in zip(few.rows(), columns.roots[:TOLD].tolist(), strict=True):
            self.broken_rows.note(what, root, row.tup_id, row.values, row.stream)

    def _failed(self, row: Row, now: float) -> None:
        """The executor sends it again, or the author decides."""
        most = self._env.settings.max_tuple_replays
        if self.decides_fail:
            self.tell_failed(row.tup_id)
        elif most is None or row.failures <= most or row.stream == DEAD_LETTERS:
            self._open.replays.add(row, now)
        else:
            self._send_to_dead_letters(row, now)

    def _send_to_dead_letters(self, row: Row, now: float) -> None:
        """It failed too often: whoever reads the dead letters gets it, as often as that takes."""
        self._env.instruments.verdicts.dead_letters.value += 1
        read, called = DEAD_LETTERS in self._task_output.buffers, self.broken_rows.called(row.tup_id)
        self._spout.logger.error(
            "%s of stream %s failed %d times: %s",
            called,
            row.stream,
            row.failures,
            f"sent to {DEAD_LETTERS}" if read else f"given up; nobody reads {DEAD_LETTERS}",
        )
        if read:
            letter = (self._sendable(row.tup_id), row.stream, list(row.values))
            self._open.replays.add(Row(row.tup_id, letter, DEAD_LETTERS, size=row.size), now)
        else:
            self._reporter.error = (
                f"{self._env.task.name}: {called} failed {row.failures} times, more than "
                f"topology.max.tuple.replays lets it, and nobody reads {DEAD_LETTERS}"
            )
            self.give_up(1)

    def _sendable(self, tup_id: Any) -> Any:
        """For a letter; the spout is told of any id, and rows hold some values only."""
        try:
            RowCodec(self._env.settings.pickle).encode([(tup_id,)])
        except EncodingError:
            return self.broken_rows.called(tup_id)
        return tup_id

    def tell_failed(self, tup_id: Any) -> None:
        """To an author's class that decides."""
        before = self._task_output.emitted
        self._asking.fail_delivered()
        with self._user_code:
            sends_again = self._spout.fail(tup_id)
        if sends_again is not True:
            called = self.broken_rows.called(tup_id)
            self._reporter.error = (
                f"{self._env.task.name}: fail() of {called} did not return True, as it does where it sends the row "
                "again"
            )
            self.give_up(1)
        elif self._lifecycle.hold and self._task_output.emitted == before:
            self._open.owed += 1

    def give_up(self, rows: int) -> None:
        """They will never be sent again."""
        self._reporter.given_up += rows
        self._env.instruments.verdicts.given_up.value += rows

    # --- without acking ---------------------------------------------------------------------------------------

    def ack_at_once(self) -> None:
        """At most once: acked as it is emitted."""
        self.take_ids(self._task_output.buffers.values())
        ids, self.left = self.left, []
        self._env.observer.acked(ids)
        self._env.instruments.acked.value += len(ids)
        if self._tells_ack and ids:
            self._tell_acked(ids)

    def take_ids(self, buffers: Iterable[StreamBuffer]) -> None:
        """Of rows that wait."""
        for buffer in buffers:
            self.left += buffer.parcel.take_ids()
