"""Between rows and columns: what a bolt that reads columns gets of single rows, and a router of columns."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from ardea.protocol.arrow import arrow, rows_of, values_of
from ardea.protocol.scalars import type_name

if TYPE_CHECKING:
    import pyarrow as pa


class ColumnRows(Sequence[tuple[Any, ...]]):
    """The rows of a record batch; they become Python values, all of them, when one is asked for."""

    __slots__ = ("_rows", "batch")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self._rows: list[tuple[Any, ...]] | None = None

    def __len__(self) -> int:
        rows: int = self.batch.num_rows
        return rows

    @overload
    def __getitem__(self, place: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[Any, ...]]: ...
    def __getitem__(self, place: int | slice) -> tuple[Any, ...] | list[tuple[Any, ...]]:
        if self._rows is None:
            self._rows = rows_of(self.batch)
        return self._rows[place]


class Misfit(NamedTuple):
    """A value that does not fit into its column."""

    row: int
    field: str
    reason: str


def type_of(written: Any) -> pa.DataType:
    """An Arrow type, or the one of that name (``int32``, ``string``, ``timestamp[us]``).

    Raises:
        ValueError: there is none.
        ConfigError: pyarrow is not installed.
    """
    library = arrow()
    if isinstance(written, library.DataType):
        return written
    if not isinstance(written, str):
        raise ValueError(f"{written!r} is no Arrow type")
    try:
        return library.type_for_alias(written)
    except ValueError:
        raise ValueError(f"{written!r} is no name of an Arrow type") from None


def columns_of(
    rows: Sequence[Sequence[Any]], fields: Sequence[str], types: Mapping[str, pa.DataType]
) -> tuple[pa.RecordBatch, list[Misfit]]:
    """Rows as columns of the declared types, or of inferred ones.

    Returns a batch of as many rows, and the values that do not fit, whose places are null; one a row.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    return _together([_Values(column, types.get(name)) for name, column in _columns(rows, fields)], fields)


def fitted(
    batch: pa.RecordBatch, fields: Sequence[str], types: Mapping[str, pa.DataType]
) -> tuple[pa.RecordBatch, list[Misfit]]:
    """A batch with the names of its stream's fields and, where they are declared, the types; like ``columns_of``."""
    if not any(types.get(name, column.type) != column.type for name, column in zip(fields, batch.columns, strict=True)):
        return (batch if batch.schema.names == list(fields) else batch.rename_columns(list(fields))), []
    columns = zip(fields, batch.columns, strict=True)
    return _together([_Array(column, types.get(name, column.type)) for name, column in columns], fields)


def _columns(rows: Sequence[Sequence[Any]], fields: Sequence[str]) -> list[tuple[str, Sequence[Any]]]:
    return list(zip(fields, zip(*rows, strict=True) if rows else ((),) * len(fields), strict=True))


class _Values:
    """Python values that are to be a column."""

    def __init__(self, values: Sequence[Any], wanted: pa.DataType | None) -> None:
        self._values, self._wanted = values, wanted

    def whole(self) -> pa.Array:
        return self._converted(self._values)

    def single(self, place: int) -> pa.Array:
        if self._wanted is None:  # the others have to go with the first
            self._wanted = self._first_type()
        return self._converted(self._values[place : place + 1])

    def _first_type(self) -> pa.DataType:
        """Of the first value that Arrow has one for."""
        for value in self._values:
            if value is not None:
                with contextlib.suppress(*_errors()):
                    return arrow().array([value]).type
        return arrow().null()

    def _converted(self, values: Sequence[Any]) -> pa.Array:
        library, wanted = arrow(), self._wanted
        column = library.array(values, wanted)
        if wanted is None:
            exact = column.type in (library.int64(), library.float64(), library.string(), library.bool_())
        else:
            exact = library.types.is_floating(wanted) or {*map(type, values)} <= {type(None), _kept(wanted)}
        # Arrow cuts off what does not fit: fractions for integers, the time for dates, unknown keys for structs.
        # It takes a number for a moment of 1970, and bytes for text.
        if not exact and not all(map(_same, values_of(column), values)):
            raise ValueError("it would be another value")
        return column

    def described(self, place: int) -> str:
        return f"a value of type {type_name(self._values[place])}"

    def __len__(self) -> int:
        return len(self._values)

    @property
    def target(self) -> pa.DataType:
        return arrow().null() if self._wanted is None else self._wanted


class _Array:
    """A column that is to be one of another type."""

    def __init__(self, values: pa.Array, wanted: pa.DataType) -> None:
        encoded = arrow().types.is_dictionary(values.type) and values.type != wanted
        self._values, self.target = values.cast(values.type.value_type) if encoded else values, wanted

    def whole(self) -> pa.Array:
        return self._converted(self._values)

    def single(self, place: int) -> pa.Array:
        return self._converted(self._values.slice(place, 1))

    def _converted(self, values: pa.Array) -> pa.Array:
        column = values.cast(self.target)
        exact = _keeps(values.type, self.target) or arrow().types.is_floating(self.target)
        if not exact and not column.cast(values.type).equals(values):
            raise ValueError("it would be another value")
        return column

    def described(self, place: int) -> str:  # noqa: ARG002
        return f"a value of type {self._values.type}"

    def __len__(self) -> int:
        return len(self._values)


def _errors() -> tuple[type[Exception], ...]:
    """What Arrow raises of a value that does not fit."""
    return arrow().ArrowException, ArithmeticError, TypeError, ValueError


def _same(found: Any, given: Any) -> bool:
    """Whether a value is still what it was; a struct has all keys that any of its column's dicts has."""
    if isinstance(found, dict) and isinstance(given, dict):
        return given.keys() <= found.keys() and all(_same(value, given.get(key)) for key, value in found.items())
    if isinstance(found, list) and isinstance(given, list):
        return len(found) == len(given) and all(map(_same, found, given))
    return bool(found == given or (found != found and given != given))  # NaN


def _kept(wanted: pa.DataType) -> type | None:
    """The Python type whose values Arrow either keeps as they are or refuses."""
    types = arrow().types
    if types.is_integer(wanted):
        return int
    if types.is_boolean(wanted):
        return bool
    if types.is_string(wanted) or types.is_large_string(wanted):
        return str
    return bytes if types.is_binary(wanted) or types.is_large_binary(wanted) else None


def _keeps(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether Arrow itself refuses what would be lost."""
    types = arrow().types
    return bool(given == wanted or (types.is_integer(given) and types.is_integer(wanted)))


def _together(columns: Sequence[_Values | _Array], fields: Sequence[str]) -> tuple[pa.RecordBatch, list[Misfit]]:
    library = arrow()
    unfit: dict[int, Misfit] = {}
    arrays = []
    errors = _errors()
    for name, column in zip(fields, columns, strict=True):
        try:
            arrays.append(column.whole())
            continue
        except errors:
            pass
        parts = []
        for place in range(len(column)):
            try:
                parts.append(column.single(place))
            except errors as error:
                kind = f"{column.described(place)} does not fit into a column of {column.target}"
                unfit.setdefault(place, Misfit(place, name, f"{kind}: {error}"))
                parts.append(None)
        kind = column.target
        arrays.append(library.concat_arrays([library.nulls(1, kind) if each is None else each for each in parts]))
    return library.RecordBatch.from_arrays(arrays, names=list(fields)), [unfit[row] for row in sorted(unfit)]
