"""What a bolt receives: one row, or many as columns, and a reference to the batch that says where they came from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Protocol, overload

import msgspec

from ardea.errors import UnknownField

SYSTEM_COMPONENT = "__system"
TICK_STREAM = "__tick"
TICK_FIELDS = ("rate_secs",)
SYSTEM_TASK = -1


class Batch(Protocol):
    """What a tuple reads its origin from; the engine's, one for many tuples."""

    @property
    def component(self) -> str:
        """Who emitted the rows."""

    @property
    def stream(self) -> str:
        """On which stream."""

    @property
    def task(self) -> int:
        """The emitting task's id."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The stream's field names."""

    def id_of(self, index: int) -> str:
        """A name for the row at ``index``, the same as long as the row lives."""


class Tuple(msgspec.Struct, gc=False, eq=False):
    """One row of a stream.

    Values are read by position (``tup[0]``) or by field (``tup["line"]``); iterating gives the values, ``in`` asks
    for a field name, as Storm's ``contains`` does.  Equality and hash are identity, so that a tuple which is held can
    be a key.
    """

    values: tuple[Any, ...]
    _index: int
    _batch: Any

    @property
    def component(self) -> str:
        """The name of the component that emitted the tuple; ``__system`` for ticks."""
        return self._batch.component  # type: ignore[no-any-return]

    @property
    def stream(self) -> str:
        """The stream it was emitted on; ``__tick`` for ticks."""
        return self._batch.stream  # type: ignore[no-any-return]

    @property
    def task(self) -> int:
        """The id of the task that emitted it; -1 for ticks."""
        return self._batch.task  # type: ignore[no-any-return]

    @property
    def fields(self) -> tuple[str, ...]:
        """The stream's field names, in the order of the values."""
        return self._batch.fields  # type: ignore[no-any-return]

    @property
    def id(self) -> str:
        """A name for logs; the same as long as the tuple lives, another after a replay."""
        return self._batch.id_of(self._index)  # type: ignore[no-any-return]

    @property
    def traceparent(self) -> str | None:
        """W3C's header of that name, for what is a child of this tuple's processing; None: it is not traced."""
        place = getattr(self._batch, "traces", {}).get(self._index)
        return None if place is None else place.traceparent

    def fields_index(self, name: str) -> int:
        """The position of a field; UnknownField, a KeyError, if the stream has no such field."""
        try:
            return self._batch.fields.index(name)  # type: ignore[no-any-return]
        except ValueError:
            batch = self._batch
            raise UnknownField(
                f"a tuple of stream {batch.stream!r} of component {batch.component!r} has no field {name!r};"
                f" its fields are {', '.join(batch.fields) or '(none)'}"
            ) from None

    def as_dict(self) -> dict[str, Any]:
        """Field name -> value."""
        return dict(zip(self._batch.fields, self.values, strict=True))

    def select(self, names: Sequence[str]) -> tuple[Any, ...]:
        """The values of some fields, in the order asked for."""
        return tuple(self.values[self.fields_index(name)] for name in names)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in zip(self.fields, self.values, strict=False))
        return f"Tuple({self.component}:{self.stream}, {values})"

    def __getitem__(self, key: int | str) -> Any:
        return self.values[self.fields_index(key) if isinstance(key, str) else key]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __contains__(self, name: object) -> bool:
        return name in self._batch.fields


class _Together:
    """Rows of one task on one stream that arrived together."""

    __slots__ = ("_batch",)
    _batch: Batch

    @property
    def component(self) -> str:
        """The name of the component that emitted the rows."""
        return self._batch.component

    @property
    def stream(self) -> str:
        """The stream they were emitted on."""
        return self._batch.stream

    @property
    def task(self) -> int:
        """The id of the task that emitted them."""
        return self._batch.task

    @property
    def fields(self) -> tuple[str, ...]:
        """The stream's field names, in the order of the values."""
        return self._batch.fields


class TupleBatch(_Together, Sequence[Tuple]):
    """What ``process_batch`` gets: tuples of one task on one stream; all are made when the first one is asked for.

    Attributes:
        rows: their values, for whoever needs nothing else.
    """

    __slots__ = ("_made", "rows")

    def __init__(self, rows: Sequence[tuple[Any, ...]], batch: Batch) -> None:
        """The engine's to call."""
        self.rows = rows
        self._batch = batch
        self._made: list[Tuple] | None = None

    def _tuples(self) -> list[Tuple]:
        if self._made is None:
            self._made = list(map(Tuple, self.rows, range(len(self.rows)), repeat(self._batch)))
        return self._made

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Tuple]:
        return iter(self._tuples())

    @overload
    def __getitem__(self, place: int) -> Tuple: ...
    @overload
    def __getitem__(self, place: slice) -> list[Tuple]: ...
    def __getitem__(self, place: int | slice) -> Tuple | list[Tuple]:
        return self._tuples()[place]


class ColumnBatch(_Together):
    """Rows of one stream of one component that arrived together, as columns.

    Attributes:
        batch: the columns, named after the stream's fields; a ``pyarrow.RecordBatch``.
    """

    __slots__ = ("batch",)

    def __init__(self, batch: Any, origin: Batch) -> None:
        """The engine's to call."""
        self.batch = batch
        self._batch = origin

    @property
    def id(self) -> str:
        """A name for logs: that of the first row."""
        return self._batch.id_of(0)

    def __getitem__(self, key: int | str) -> Any:
        """A column, a ``pyarrow.Array``, by its place or its field; KeyError if the stream has no such field."""
        return self.batch.column(key)

    def __len__(self) -> int:
        rows: int = self.batch.num_rows
        return rows


def is_tick(tup: Tuple) -> bool:
    """Whether the tuple is a tick (see ``topology.tick.tuple.freq.secs``); its one field is ``rate_secs``."""
    return tup.stream == TICK_STREAM and tup.component == SYSTEM_COMPONENT
