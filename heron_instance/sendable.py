"""Which rows can be sent, and what to say of one that cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ardea.errors import EncodingError
from ardea.heron_instance.routing import Router
from ardea.protocol.arrow import encode_batch
from ardea.protocol.column_types import part_without_dictionaries
from ardea.protocol.columns import ColumnRows
from ardea.protocol.scalars import type_name
from ardea.protocol.values import NO_TYPE, RowCodec

if TYPE_CHECKING:
    import pyarrow as pa


def well_formed(rows: Sequence[Any], fields: int) -> bool:
    """Whether each is a list or a tuple of so many values."""
    return all(isinstance(row, list | tuple) and len(row) == fields for row in rows)


def own(values: Any) -> Any:
    """The row as it is now: its author may change a list and emit it again."""
    return tuple(values) if isinstance(values, list) else values


@dataclass(frozen=True, slots=True)
class Sendable:
    """Looks for what keeps rows of one stream from being sent.

    Args:
        where: component and stream, for the message.
        fields: of the stream.
        routers: of its readers; a key may not be encodable.
        codec: encodes the values.
        max_bytes: ``topology.max.tuple.bytes``.
    """

    where: str
    fields: Sequence[str]
    routers: Sequence[Router]
    codec: RowCodec
    max_bytes: int

    def why_not(self, row: Any) -> EncodingError | None:
        """What keeps this row, as its author emitted it; None: nothing."""
        if not isinstance(row, list | tuple):
            return _certain(
                EncodingError(
                    f"{self.where}: a value of type {type_name(row)} was emitted; a row is a list or a tuple of values",
                    hint="emit([value]) for a stream of one field",
                )
            )
        count = len(self.fields)
        if len(row) != count:
            return _certain(
                EncodingError(
                    f"{self.where}: a tuple has {len(row)} values, the stream declares {count} "
                    f"({', '.join(self.fields)})"
                )
            )
        try:
            for router in self.routers:
                router.route([row])
        except EncodingError as error:
            return error  # it says where
        try:
            size = len(self.codec.encode([row]))
        except EncodingError:
            refusal = self.codec.explain([row])
            field = self.fields[refusal.field]
            refused = EncodingError(
                f"{self.where}, field {field}: a value of type {refusal.type} cannot be sent: {refusal.reason}"
            )
            return _certain(refused) if refusal.reason == NO_TYPE else refused
        return self._too_large(size)

    def columns_why_not(self, batch: pa.RecordBatch) -> Iterator[EncodingError | None]:
        """The same for each row of a batch, without a look at values that no key is made of."""
        for place in range(batch.num_rows):
            row = batch.slice(place, 1)
            try:
                for router in self.routers:
                    router.route(ColumnRows(row))
            except EncodingError as error:
                yield error
                continue
            yield self._too_large(len(encode_batch(part_without_dictionaries(row))))

    def _too_large(self, size: int) -> EncodingError | None:
        if size <= self.max_bytes:
            return None
        return EncodingError(
            f"{self.where}: a tuple of {size:,} bytes is larger than topology.max.tuple.bytes ({self.max_bytes:,})",
            hint="send a reference to the data, or raise the limit",
        )


def _certain(error: EncodingError) -> EncodingError:
    """An error of the code that emits, not of this row."""
    error.certain = True
    return error
