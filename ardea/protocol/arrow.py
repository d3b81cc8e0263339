"""Record batches on the wire: one Arrow IPC stream of a schema and a batch, read without copying.

pyarrow is an extra (``ardea[arrow]``), imported where a topology first uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ardea.errors import ConfigError, EncodingError, ProtocolError

if TYPE_CHECKING:
    import pyarrow as pa


def encode_batch(batch: pa.RecordBatch) -> memoryview:
    """The batch and its schema as the bytes of one IPC stream.

    Raises:
        EncodingError: not a record batch.
        ConfigError: pyarrow is not installed.
    """
    library = arrow()
    if not isinstance(batch, library.RecordBatch):
        raise EncodingError(
            f"a value of type {type(batch).__qualname__} was emitted as an Arrow batch",
            hint="Emit a pyarrow.RecordBatch; a table has to_batches().",
        )
    sink = library.BufferOutputStream()
    with library.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return memoryview(sink.getvalue())


def decode_batch(buffer: bytes | bytearray | memoryview) -> pa.RecordBatch:
    """The batch, whose columns are views of ``buffer``.

    Raises:
        ProtocolError: ``MALFORMED_ROWS``, these are not bytes that :func:`encode_batch` writes.
        ConfigError: pyarrow is not installed.
    """
    library = arrow()
    try:
        with library.ipc.open_stream(library.py_buffer(buffer)) as stream:
            return stream.read_next_batch()
    except (library.ArrowException, OSError, StopIteration) as error:
        raise ProtocolError(
            "MALFORMED_ROWS",
            f"{len(buffer)} bytes are not an Arrow batch: {str(error) or 'the stream is empty'}",
            hint="Run the same version of Ardea in every container.",
        ) from error


def rows_of(batch: pa.RecordBatch, *, gaps: bool = False) -> list[tuple[Any, ...]]:
    """The rows of a batch as Python values, which meet the same rows sent one by one.

    ``gaps``: None stands where Python has no value, for logs and dead letters.

    Raises:
        EncodingError: Python has no values for a column, such as times finer than a microsecond.
    """
    if not batch.num_columns:
        return [()] * batch.num_rows
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            columns.append(values_of(column))
        except _no_value() as error:
            if gaps:
                columns.append([_value_or_none(column.slice(place, 1)) for place in range(len(column))])
                continue
            raise EncodingError(
                f"column {name} of {column.type} cannot be read as Python values: {error}",
                hint="Cast it before it is emitted; docs/keys.md says what rows can have.",
            ) from error
    return list(zip(*columns, strict=True))


def _no_value() -> tuple[type[Exception], ...]:
    """What Arrow raises where Python has no value."""
    return arrow().ArrowException, ValueError, OverflowError, KeyError


def _value_or_none(single: pa.Array) -> Any:
    try:
        return values_of(single)[0]
    except _no_value():
        return None


def values_of(column: pa.Array) -> list[Any]:
    """A column as Python values; raises what Arrow raises."""
    if (coarse := _IN_MICROSECONDS.get(type(column).__name__)) is not None and column.type.unit == "ns":
        column = column.cast(coarse(column.type))  # what as_py makes of nanoseconds depends on what is installed
    # Asking for dicts takes fifteen times as long, so only where the type, at any depth, has a map.
    has_maps = "map<" in str(column.type)
    values: list[Any] = column.to_pylist(maps_as_pydicts="strict") if has_maps else column.to_pylist()
    return values


_IN_MICROSECONDS: dict[str, Callable[[Any], pa.DataType]] = {
    "TimestampArray": lambda kind: arrow().timestamp("us", kind.tz),
    "DurationArray": lambda _: arrow().duration("us"),
    "Time64Array": lambda _: arrow().time64("us"),
}


def arrow() -> Any:
    """The library.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise ConfigError(
            "Arrow batches need pyarrow, which is not installed here",
            hint="pip install 'ardea[arrow]'",
        ) from error
    return pyarrow
