"""Whether a source keeps its promises."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from time import sleep
from typing import Any, NoReturn

from ardea.errors import EncodingError
from ardea.protocol.arrow import rows_of
from ardea.protocol.values import RowCodec
from ardea.sources import END, PartitionReader, PositionLost, Source, fields_of

FIRST_PAUSE = 0.01
"""Seconds after an empty read; the next pauses are as long as all those before."""
_CODEC = RowCodec()
_NAN = object()
Row = tuple[Any, ...]


def check_source(
    source: Source, *, most: int = 7, positions: int = 50, rows: int = 10_000, patience: float = 1.0
) -> int:
    """Reads all partitions, then again from the positions that were met; returns how many rows there are.

    What is read must not change meanwhile.

    Args:
        source: yours.
        most: rows of a batch.
        positions: of each partition, from which it is read again.
        rows: of each partition, at most.
        patience: seconds without a row after which a partition that does not end has been read.

    Raises:
        AssertionError: it does not keep a promise of docs/sources.md; the text says which, where.
    """
    listed = source.list_partitions()
    if isinstance(listed, str) or not all(isinstance(name, str) for name in listed):
        _fail(f"list_partitions() returned {listed!r}: it returns a list of texts")
    names = sorted(listed)
    if len(set(names)) < len(names):
        _fail(f"list_partitions() has a name twice: {names}")
    if not names:
        _fail("list_partitions() has no partition, so that nothing can be checked")
    if sorted(source.list_partitions()) != names:
        _fail("list_partitions() returned other partitions the second time, although nothing has changed")
    return sum(_Partition(source, name, most, rows, patience).check(positions) for name in names)


class _Partition:
    """One of them."""

    def __init__(self, source: Source, name: str, most: int, limit: int, patience: float) -> None:
        self._source, self._name, self._most, self._limit, self._patience = source, name, most, limit, patience
        self._width = len(fields_of(source.outputs))

    def check(self, positions: int) -> int:
        """All of it; returns its rows."""
        met: list[tuple[int, Any]] = [(0, None)]  # how many rows lie before a position
        rows, ended = self._read(None, self._most, self._limit, lambda count, at: met.append((count, at)))
        step = max(1, len(met) // positions)
        for count, at in [*met[::step], *met[-1:]]:
            wanted = rows[count : count + 3 * self._most] if count else rows
            more = 1 if ended and len(wanted) == len(rows) - count else 0  # the end is there, too
            again, end = self._read(at, self._most + 4, len(wanted) + more)
            if not same(again[: len(wanted)], wanted) or (more and (len(again) > len(wanted) or not end)):
                self._differs(at, wanted, again, end=end)
        return len(rows)

    def _read(
        self, position: Any, most: int, limit: int, met: Callable[[int, Any], object] = lambda *_: None
    ) -> tuple[list[Row], bool]:
        """Rows from a position on, and whether the end was there; ``met``: (rows so far, position) of each batch."""
        try:
            reader = self._source.open(self._name, position)
        except PositionLost as lost:
            self._fails(f"open() does not find position {position!r}, which position() has returned: {lost}")
        with contextlib.closing(reader):
            rows, ended = self._through(reader, most, limit, met)
        self._close(reader)
        return rows, ended

    def _through(
        self, reader: PartitionReader, most: int, limit: int, met: Callable[[int, Any], object]
    ) -> tuple[list[Row], bool]:
        rows: list[Row] = []
        returned: list[tuple[Any, bytes]] = []
        waited, ended = 0.0, False
        while not ended and len(rows) < limit:
            batch = reader.read(most)
            at = reader.position()
            returned.append((at, self._encoded(at)))
            ended = batch is END
            some = [] if ended else self._rows(batch, most)
            rows += some
            met(len(rows), self._decoded(returned[-1][1]))
            if some or ended:
                waited = 0.0
            elif waited < self._patience:
                pause = min(max(FIRST_PAUSE, waited), self._patience - waited)
                sleep(pause)
                waited += pause
            else:
                break
        if ended and reader.read(most) is not END:
            self._fails("read() returned END, and something else when it was called again")
        for at, before in returned:
            if self._encoded(at) != before:
                self._fails("position() returns one object again and again, and changes it: return a new one")
        return rows, ended

    def _rows(self, batch: Any, most: int) -> list[Row]:
        columns = hasattr(batch, "num_rows")
        if not columns and not isinstance(batch, list | tuple):
            self._fails(
                f"read() returned a value of type {type(batch).__name__}: it returns a list of rows, a "
                "pyarrow.RecordBatch, or END"
            )
        rows = [tuple(row) for row in (rows_of(batch) if columns else batch)]
        if len(rows) > most:
            self._fails(f"read({most}) returned {len(rows)} rows")
        if wrong := [row for row in rows if len(row) != self._width]:
            self._fails(f"the row {wrong[0]!r} has {len(wrong[0])} values, and there are {self._width} outputs")
        return rows

    def _close(self, reader: PartitionReader) -> None:
        """It is closed already."""
        try:
            reader.close()
        except Exception as error:
            self._fails(f"close() raised when it was called twice: {type(error).__name__}: {error}")

    def _encoded(self, position: Any) -> bytes:
        try:
            return _CODEC.encode([(position,)])
        except EncodingError as error:
            self._fails(f"position() returned {position!r}, which cannot be stored: {error}")

    @staticmethod
    def _decoded(position: bytes) -> Any:
        """As a snapshot gives it back: a tuple in it is a list."""
        return _CODEC.decode(position)[0][0]

    def _differs(self, position: Any, wanted: Sequence[Row], again: Sequence[Row], *, end: bool) -> NoReturn:
        place = next((i for i, (a, b) in enumerate(zip(wanted, again, strict=False)) if not same(a, b)), None)
        if place is not None:
            self._fails(
                f"from position {position!r} on row {place + 1} was {wanted[place]!r}, and then {again[place]!r}"
            )
        if len(wanted) == len(again) and not end:
            self._fails(f"it had ended, but from position {position!r} on it does not end")
        self._fails(f"from position {position!r} on there were {len(wanted)} rows, and then {len(again)}")

    def _fails(self, what: str) -> NoReturn:
        _fail(f"partition {self._name}: {what}")


def same(one: Any, other: Any) -> bool:
    """Whether they are equal, where NaN equals NaN, and a tuple the list that it has become where it was stored."""
    return bool(_comparable(one) == _comparable(other))


def _comparable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_comparable(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: _comparable(entry) for key, entry in value.items()}
    nan = (isinstance(value, float) and math.isnan(value)) or (isinstance(value, Decimal) and value.is_nan())
    return _NAN if nan else value


def _fail(what: str) -> NoReturn:
    raise AssertionError(what)
