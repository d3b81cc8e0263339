"""Rows that a bolt cannot pass, in a topology that goes back to its last snapshot (docs/snapshots.md, poison)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from xxhash import xxh3_64_intdigest

from ardea.errors import EncodingError
from ardea.heron_instance.bolt_rows import BoltRows
from ardea.heron_instance.input_batch import UNANCHORED, ColumnInput, InputBatch
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.snapshots import RollingBack, TaskSnapshots
from ardea.protocol.ids import U64
from ardea.protocol.values import RowCodec
from ardea.protocol.wire_pb2 import Blamed
from ardea.shortened import shortened
from ardea.validation import DEAD_LETTER_STREAM

DEAD_LETTERS = DEAD_LETTER_STREAM.name


class RowHashes:
    """What a row is called when it is blamed: the hash of its stream and of its values, as they travel; never 0."""

    def __init__(self, *, pickle: bool) -> None:
        self._codec = RowCodec(pickle)

    def of(self, batch: InputBatch, index: int) -> int:
        """One row's; 0: it has none, as it cannot be encoded."""
        try:
            content = self._codec.encode([batch.rows[index]])
        except EncodingError:
            return 0
        stream = xxh3_64_intdigest(f"{batch.component}:{batch.stream}".encode())
        return xxh3_64_intdigest(content, seed=stream) or 1

    def ids(self, batch: InputBatch) -> tuple[U64, np.ndarray[tuple[int], np.dtype[np.uint32]]]:
        """See :class:`ardea.heron_instance.current_tuple.CurrentTuple`."""
        rows = range(len(batch.rows))
        return np.array([self.of(batch, row) for row in rows], dtype=np.uint64), np.ones(len(rows), dtype=np.uint32)


class Poison:
    """Of one bolt task."""

    def __init__(self, parts: Parts, snapshots: TaskSnapshots, emitted: BoltRows) -> None:
        self._env, self._reporter = parts.env, parts.reporter
        self._read = DEAD_LETTERS in parts.task_output.buffers
        self._snapshots, self._emitted = snapshots, emitted
        self._hashes = RowHashes(pickle=parts.env.settings.pickle)
        self._blamed: Sequence[Blamed] | None = None  # as the order has it
        self._skipped: dict[int, int] = {}  # hashes of rows, and how often each has been blamed
        emitted.acking.dead_letter = self._refused
        if parts.env.current_tuple is not None:
            parts.env.current_tuple.clear()  # of the timeline that is over

    def look(self) -> bool:
        """Who is blamed by now; True: from now on the current tuple is noted, or not any more."""
        blamed = self._snapshots.timeline.blamed
        if blamed is self._blamed:
            return False
        self._blamed = blamed
        mine = [each for each in blamed if each.component == self._env.task.component]
        most = self._env.settings.max_rollbacks
        self._skipped = {each.row: each.times for each in mine if each.row and each.times >= most}
        box = self._env.current_tuple
        if box is None or box.armed == (armed := any(not each.row for each in mine)):
            return False
        box.armed = armed
        return True

    def take_out(self, batch: InputBatch) -> None:
        """Rows that are to be skipped become dead letters; nothing has looked at the batch yet."""
        if not self._skipped or isinstance(batch, ColumnInput):
            return
        kept = []
        for index, row in enumerate(batch.rows):
            if times := self._skipped.get(self._hashes.of(batch, index)):
                self._send(batch, index, f"ended {times} timelines")
            else:
                kept.append(row)
        batch.rows = kept

    def blame(self, batch: InputBatch, rows: range, why: str) -> NoReturn:
        """The author's code has raised; one row alone can be blamed."""
        single = len(rows) == 1 and not isinstance(batch, ColumnInput)
        row = self._hashes.of(batch, rows.start) if single else 0
        self._env.component.logger.error(
            "%s: the topology goes back to its last snapshot; after %d times %s.  Raise FailedException for rows that "
            "cannot be processed",
            self._env.task.name,
            self._env.settings.max_rollbacks,
            f"this row is skipped and goes to {DEAD_LETTERS}" if row else "it fails, as no single row can be blamed",
        )
        self._snapshots.broke(why, row)
        raise RollingBack

    def _refused(self, batch: InputBatch, index: int) -> None:
        self._send(batch, index, "was failed")

    def _send(self, batch: InputBatch, index: int, what: str) -> None:
        env, values, stream = self._env, batch.shown(index), f"{batch.component}:{batch.stream}"
        env.instruments.verdicts.dead_letters.value += 1
        env.component.logger.error(
            "%s: a row of %s %s and is %s: %s",
            env.task.name,
            stream,
            what,
            f"sent to {DEAD_LETTERS}" if self._read else f"given up; nobody reads {DEAD_LETTERS}",
            shortened(values),
        )
        if self._read:
            letter = (None, stream, list(values))
            self._emitted.emit(letter, DEAD_LETTERS, UNANCHORED, (), None, need_task_ids=False)
            return
        self._reporter.error = f"{env.task.name}: a row of {stream} {what}, and nobody reads {DEAD_LETTERS}"
        self._reporter.given_up += 1
        env.instruments.verdicts.given_up.value += 1
