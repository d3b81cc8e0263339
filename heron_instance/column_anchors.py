"""Which trees the rows of an emitted record batch join: input rows by their numbers, whole arrays at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.errors import UserError
from ardea.heron_instance.input_batch import UNANCHORED, WHOLE_BATCH, InputBatch, Int, ranges
from ardea.heron_instance.trees import Trees
from ardea.protocol.ids import U64
from ardea.tuples import ColumnBatch


@dataclass(frozen=True, slots=True)
class Part:
    """Anchors in one input batch: ``rows`` flat, ``counts`` for each emitted row (None: one each)."""

    batch: InputBatch
    rows: Int
    counts: Int | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """(root, emitted row, anchor) for each root of each anchor, anchors numbered through all parts; by row and root.

    ``fresh``: the first of its row with this root.  That anchor carries the edge, so that it stands once in each tree.
    """

    roots: U64
    owners: Int
    anchors: Int
    fresh: NDArray[np.bool_]


class ColumnAnchors:
    """The anchors of ``total`` emitted rows."""

    def __init__(self, parts: Sequence[Part], total: int) -> None:
        self._parts = [part for part in parts if part.batch.tracked]
        self._total = total
        self._known: Entries | None = None

    @property
    def _plain(self) -> Part | None:
        """The only part, if each row has one anchor: no root can be there twice."""
        return self._parts[0] if len(self._parts) == 1 and self._parts[0].counts is None else None

    def trees(self) -> Trees | None:
        """The trees of all rows."""
        if not self._parts:
            return None
        if (part := self._plain) is not None:
            return Trees(*part.batch.roots_of(part.rows))
        entries = self._entries
        if not len(entries.roots):
            return None
        counts = np.bincount(entries.owners[entries.fresh], minlength=self._total).astype(np.intp)
        return Trees(entries.roots[entries.fresh], counts)

    def hang(self, xors: U64) -> None:
        """The new edges of each row hang on its anchors."""
        if (part := self._plain) is not None:
            part.batch.anchor(part.rows, xors)
            return
        offset = 0
        for part in self._parts:
            self._hang(part, offset, xors)
            offset += len(part.rows)

    def _hang(self, part: Part, offset: int, xors: U64) -> None:
        entries, count = self._entries, len(part.rows)
        mine = np.flatnonzero((entries.anchors >= offset) & (entries.anchors < offset + count))
        anchors, fresh = entries.anchors[mine] - offset, entries.fresh[mine]
        roots, carried = np.bincount(anchors, minlength=count), np.bincount(anchors[fresh], minlength=count)
        owners = self._owners_of(part)
        whole = np.flatnonzero((carried == roots) & (roots > 0))
        part.batch.anchor(part.rows[whole], xors[owners[whole]])
        for anchor in np.flatnonzero((carried > 0) & (carried < roots)).tolist():
            some = entries.roots[mine[(anchors == anchor) & fresh]].tolist()
            part.batch.anchor_part(int(part.rows[anchor]), some, int(xors[owners[anchor]]))

    def anchors_of(self, row: int) -> list[tuple[InputBatch, int]]:
        """The tracked tuples that one row is anchored to."""
        return [
            (part.batch, index)
            for part in self._parts
            for index in part.rows[self._owners_of(part) == row].tolist()
        ]  # fmt: skip

    def picked(self, good: Int) -> ColumnAnchors:
        """Of some of the rows, ascending."""
        parts = []
        for part in self._parts:
            if part.counts is None:
                parts.append(Part(part.batch, part.rows[good]))
            else:
                starts = np.cumsum(part.counts) - part.counts
                rows = part.rows[ranges(starts[good], part.counts[good])]
                parts.append(Part(part.batch, rows, part.counts[good]))
        return ColumnAnchors(parts, len(good))

    def _owners_of(self, part: Part) -> Int:
        everything = np.arange(self._total, dtype=np.intp)
        return everything if part.counts is None else everything.repeat(part.counts)

    @property
    def _entries(self) -> Entries:
        if self._known is None:
            roots, owners, anchors, offset = [], [], [], 0
            for part in self._parts:
                mine, counts = part.batch.roots_of(part.rows)
                numbers, owner = np.arange(len(part.rows), dtype=np.intp), self._owners_of(part)
                if counts is not None:
                    numbers, owner = numbers.repeat(counts), owner.repeat(counts)
                roots.append(mine)
                owners.append(owner)
                anchors.append(numbers + offset)
                offset += len(part.rows)
            self._known = _in_order(np.concatenate(roots), np.concatenate(owners), np.concatenate(anchors))
        return self._known


def _in_order(roots: U64, owners: Int, anchors: Int) -> Entries:
    order = np.lexsort((roots, owners))  # stable: the first anchor stays first
    roots, owners = roots[order], owners[order]
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (roots[1:] != roots[:-1]) | (owners[1:] != owners[:-1])
    return Entries(roots, owners, anchors[order], fresh)


def column_anchors_of(
    anchors: Any, batch: InputBatch | None, current: int, total: int, *, auto: bool
) -> ColumnAnchors | None:
    """What ``anchors=`` of an emitted batch means; None: its rows join no tree.

    Args:
        anchors: as the author wrote it, see :meth:`ardea.Bolt.emit_batch`.
        batch: being processed.
        current: the row of it that is, ``WHOLE_BATCH`` or ``UNANCHORED``.
        total: rows emitted.
        auto: ``auto_anchor``.

    Raises:
        UserError: not as many as there are rows, no such rows, or settled ones.
    """
    if not total:
        return None
    if anchors is None:
        return _by_place(batch, current, total) if auto and batch is not None else None
    if isinstance(anchors, Mapping):
        parts = [_part(_origin(columns), numbers, total) for columns, numbers in anchors.items()]
        return ColumnAnchors(parts, total)
    if not len(anchors):
        return None
    if batch is None or current != WHOLE_BATCH:
        raise UserError(
            "anchors= of a batch are row numbers, and no batch is being processed",
            hint="leave anchors out in process(); name batches that are held: anchors={columns: numbers}",
        )
    return ColumnAnchors([_part(batch, anchors, total)], total)


def _by_place(batch: InputBatch, current: int, total: int) -> ColumnAnchors | None:
    if current == UNANCHORED:
        return None
    if current == WHOLE_BATCH and len(batch.rows) != total:
        raise UserError(
            f"{total} rows were emitted while a batch of {len(batch.rows)} is processed, and nothing says whose trees "
            "they join",
            hint="pass anchors=, the number of the input row for each, or anchors=() for none",
        )
    rows = np.arange(total) if current == WHOLE_BATCH else np.full(total, current)
    part = Part(batch, rows.astype(np.intp))
    _refuse_settled(part)
    return ColumnAnchors([part], total)


def _origin(columns: Any) -> InputBatch:
    batch = columns._batch if isinstance(columns, ColumnBatch) else None
    if not isinstance(batch, InputBatch):
        raise UserError("anchors= of an emitted batch name batches that process_columns got")
    return batch


def _part(batch: InputBatch, numbers: Any, total: int) -> Part:
    counts = None
    if hasattr(numbers, "value_lengths"):  # an Arrow list array
        counts = numbers.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.intp)
        numbers = numbers.flatten()
    rows = row_numbers(numbers, len(batch.rows))
    count = len(rows) if counts is None else len(counts)
    if count != total:
        raise UserError(f"{count} anchors for {total} rows", hint="pass one for each row, or a list for each")
    part = Part(batch, rows, counts)
    _refuse_settled(part)
    return part


def row_numbers(numbers: Any, rows: int) -> Int:
    """An author's array of row numbers of a batch of so many; raises UserError."""
    found = np.asarray(numbers)
    if found.ndim == 1 and not len(found):
        return np.empty(0, dtype=np.intp)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise UserError(
            f"row numbers are an array of integers, not {type(numbers).__qualname__} of {found.dtype}",
            hint="numpy.flatnonzero(mask) gives those of a mask",
        )
    if int(found.min()) < 0 or int(found.max()) >= rows:
        raise UserError(f"row numbers from {found.min()} to {found.max()} of a batch of {rows} rows")
    return found.astype(np.intp)


def _refuse_settled(part: Part) -> None:
    closed = part.rows[part.batch.settled_at(part.rows)]
    if part.batch.refused:
        closed = closed[~np.isin(closed, list(part.batch.refused))]
    if len(closed):
        raise UserError(
            f"a row was emitted anchored to tuple {part.batch.id_of(int(closed[0]))} of {part.batch.component}, "
            "which is acked or failed already",
            hint="set auto_ack = False and ack it after the emit",
        )
