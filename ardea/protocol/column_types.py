"""Columns that cannot be cut up as they are, and the types that stand for theirs (docs/columns.md).

Of a list view nothing changes: Arrow makes lists of it that are not valid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ardea.protocol.arrow import arrow

if TYPE_CHECKING:
    import pyarrow as pa


def travelling(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What is sent of a batch: Arrow takes no rows of views or runs, and each slice has the buffers of all views."""
    return _changed(batch, _cuttable, "_view", "run_end_encoded<")


def part_without_dictionaries(part: pa.RecordBatch) -> pa.RecordBatch:
    """What is sent of some rows of a batch: each part would carry the whole of its dictionaries."""
    return _changed(part, _without_dictionaries, "dictionary<")


def without_views(column: pa.Array) -> pa.Array:
    """A column that Arrow's functions know."""
    return _cast(column, _cuttable(column.type))


def _changed(batch: pa.RecordBatch, change: Callable[[pa.DataType], pa.DataType], *named: str) -> pa.RecordBatch:
    """``named``: without one of these in it, a schema has no such type; nearly none has."""
    text = str(batch.schema)
    if not any(name in text for name in named):
        return batch
    wanted = list(map(change, batch.schema.types))
    if wanted == batch.schema.types:
        return batch  # a field only has such a name
    columns = list(map(_cast, batch.columns, wanted))
    return arrow().RecordBatch.from_arrays(columns, names=batch.schema.names)


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if column.type == wanted:
        return column
    if arrow().types.is_run_end_encoded(column.type):
        return _cast(column.values, wanted).take(_places(column))
    if arrow().types.is_dictionary(column.type) and column.type.value_type == wanted:
        return column.dictionary_decode()
    return column.cast(wanted)


def _places(runs: pa.RunEndEncodedArray) -> pa.Array:
    """Of each row the place of its value: of views and dictionaries Arrow itself decodes no runs."""
    import pyarrow.compute

    numbers = arrow().array(range(len(runs.values)))
    places = arrow().RunEndEncodedArray.from_arrays(runs.run_ends, numbers)
    return pyarrow.compute.run_end_decode(places.slice(runs.offset, len(runs)))


def _cuttable(kind: pa.DataType) -> pa.DataType:
    """Runs in structs, lists and maps stay: Arrow cannot cast them."""
    return _without_views(kind.value_type if arrow().types.is_run_end_encoded(kind) else kind)


def _without_views(kind: pa.DataType) -> pa.DataType:
    library = arrow()
    if library.types.is_string_view(kind):
        return library.large_string()
    if library.types.is_binary_view(kind):
        return library.large_binary()
    if library.types.is_dictionary(kind):
        return library.dictionary(kind.index_type, _without_views(kind.value_type), kind.ordered)
    return _with_children(kind, _without_views)


def _without_dictionaries(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if arrow().types.is_dictionary(kind) else _with_children(kind, _inside)


def _inside(kind: pa.DataType) -> pa.DataType:
    """Of a column's children; dictionaries of lists and the like stay, for Arrow cannot cast them."""
    types = arrow().types
    if types.is_dictionary(kind):
        return kind if types.is_nested(kind.value_type) else kind.value_type
    return _with_children(kind, _inside)


def _with_children(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    library = arrow()
    types = library.types

    def changed(field: pa.Field) -> pa.Field:
        return field.with_type(change(field.type))

    if types.is_list(kind):
        return library.list_(changed(kind.value_field))
    if types.is_large_list(kind):
        return library.large_list(changed(kind.value_field))
    if types.is_fixed_size_list(kind):
        return library.list_(changed(kind.value_field), kind.list_size)
    if types.is_struct(kind):
        return library.struct([changed(kind.field(place)) for place in range(kind.num_fields)])
    if types.is_map(kind):
        return library.map_(changed(kind.key_field), changed(kind.item_field), kind.keys_sorted)
    return kind
