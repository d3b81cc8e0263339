"""The trees that a spout's rows begin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ardea.errors import EncodingError
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.input_batch import Int
from ardea.heron_instance.messages import OutMessage
from ardea.heron_instance.open_rows import OpenRows
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.settling import Settling
from ardea.heron_instance.trees import Row, TrackedColumns, Trees, plain
from ardea.protocol.ids import column
from ardea.protocol.wire_pb2 import INIT, Header


class SpoutTrees:
    """The origins of one spout task's rows: a new tree for each that has an id.

    ``replaying``: some rows are sent again.  ``refused_ids`` are those of rows that cannot be sent, for an author who
    decides on fails.
    """

    def __init__(self, parts: Parts, open_rows: OpenRows, settling: Settling) -> None:
        self._env = parts.env
        self._sending = parts.sending
        self._open = open_rows
        self._settling = settling
        self.replaying = False
        self.refused_ids: list[Any] = []

    def trees(self, buffer: StreamBuffer, size: int) -> Trees | None:
        """Opens them."""
        trees = self._trees(buffer, size) if self._open.tracked else None
        if trees is not None:
            self._env.observer.opened(buffer, trees)
            if self._env.tracing is not None:
                self._env.tracing.opened(buffer, trees)
        return trees

    def _trees(self, buffer: StreamBuffer, size: int) -> Trees | None:
        if buffer.columns is not None:
            return self._column_trees(buffer.columns.origin, size)
        now, opened, rows = self._env.clock, self._open.trees, buffer.rows
        marks, total = rows.marks, len(rows.values)
        untracked = marks.count(None)
        if untracked:
            self._open.congestion.acked(untracked, now())
        if untracked == total:
            return None
        if not untracked and not self.replaying and buffer.plan.name == "default" and not rows.picked.single:
            return Trees(opened.open(marks, rows.values, size, now()))
        places = [i for i, mark in enumerate(marks) if mark is not None]
        entries = [self._entry(buffer, i) for i in places]
        roots = opened.open([e.tup_id for e in entries], entries, size, now())
        if not untracked:
            return Trees(roots)
        counts = np.zeros(total, dtype=np.intp)
        counts[places] = 1
        return Trees(roots, counts)

    def _column_trees(self, columns: TrackedColumns | None, size: int) -> Trees | None:
        if columns is None:
            return None
        places, total, now = columns.tracked, len(columns), self._env.clock
        if places is None:
            everything = np.arange(total, dtype=np.intp)
            return Trees(self._open.trees.open_columns(columns, everything, size, now()))
        if not len(places):
            return None
        counts = np.zeros(total, dtype=np.intp)
        counts[places] = 1
        return Trees(self._open.trees.open_columns(columns, places, size, now()), counts)

    @staticmethod
    def _entry(buffer: StreamBuffer, place: int) -> Row:
        rows = buffer.rows
        mark = rows.marks[place]
        if type(mark) is Row:
            return mark
        chosen = rows.picked.single.get(place)
        direct = chosen[0] if chosen and buffer.plan.direct else None
        return Row(mark, rows.values[place], buffer.plan.name, direct)

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
        if self._env.tracing is not None:
            self._env.tracing.left()

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
            header = Header(kind=INIT, source=self._env.task.task)
            self._env.output.put(OutMessage(header, frames, 0, sum(map(len, frames))))

    @property
    def gives_up(self) -> bool:
        """Unless the author's fail() is asked."""
        return not self._settling.decides_fail

    def refused(self, buffer: StreamBuffer, row: int, error: EncodingError) -> None:
        """It can never be sent: given up, unless the author decides otherwise."""
        if buffer.columns is None:
            mark = buffer.rows.marks[row]
        else:
            origin = buffer.columns.origin
            mark = None if origin is None else plain(origin.ids_at(np.array([row])))[0]
        tup_id = mark.tup_id if type(mark) is Row else mark
        self._sending.refuse(error, "no tup_id" if tup_id is None else self._settling.broken_rows.called(tup_id))
        if tup_id is not None and self._open.tracked and self._settling.decides_fail:
            self.refused_ids.append(tup_id)
        else:
            self._settling.give_up(1)
