"""What a task has emitted on a stream and not sent yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ardea.heron_instance.parcels import ColumnParcel, Consumer, Parcel, RowParcel
from ardea.plan.logical import StreamPlan


@dataclass(slots=True)
class StreamBuffer:
    """Rows of one stream since the last flush: single ones, or instead of them those of one record batch."""

    number: int
    plan: StreamPlan
    consumers: list[Consumer]
    rows: RowParcel = field(default_factory=RowParcel)
    columns: ColumnParcel | None = None
    emitted: int = 0

    def __len__(self) -> int:
        return len(self.rows.values) - self.rows.gone if self.columns is None else len(self.columns)

    @property
    def parcel(self) -> Parcel:
        """What waits."""
        return self.rows if self.columns is None else self.columns

    def part(self, end: int) -> StreamBuffer:
        """A copy of what waits among the first ``end`` single rows, to which emits may append meanwhile."""
        return StreamBuffer(self.number, self.plan, self.consumers, self.rows.part(end))

    def left(self, rows: int, sent: int) -> None:
        """So many rows more have left in the middle of a call; ``sent``: those that could be sent."""
        self.rows.gone += rows
        self.emitted += sent

    def clear(self) -> None:
        """After a flush."""
        self.emitted += len(self)
        self.rows.clear()
        self.columns = None


def only_buffer(buffers: Mapping[str, StreamBuffer]) -> StreamBuffer | None:
    """The buffer whose rows an emit may append to directly: the only stream's, if it is a plain default."""
    first = next(iter(buffers.values()), None)
    plain = first is not None and len(buffers) == 1 and first.plan.name == "default" and not first.plan.direct
    return first if plain else None
