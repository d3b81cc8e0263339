"""A bolt that adds rows up ahead of their windows (docs/windows.md, a key with most of the rows)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ardea.component import Bolt
from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.plan import ComponentPlan, LogicalPlan
from ardea.protocol.arrow import arrow
from ardea.protocol.dict_keys import are_keys, as_key
from ardea.ready_made import ReadyMade
from ardea.tuples import ColumnBatch, TupleBatch
from ardea.validation import stream_of
from ardea.windows.bolt import LATE, WindowBolt
from ardea.windows.folds import Groups
from ardea.windows.kinds import MICROS, Regular
from ardea.windows.open_windows import Keyed
from ardea.windows.parts import Together, alone, together
from ardea.windows.stamps import micros, micros_of_column


class PartialWindows(ReadyMade, Bolt):
    """Ahead of a bolt with windows: sends one row for each key and pane of a batch.

    ``outputs`` are the fields of the input, and one more for what the rows were added up to.

    Attributes:
        of: the class of the windows, which alone reads it; they go by event time, and have a fixed length.
    """

    of: type[WindowBolt]
    _ready_calls: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})
    _kind: Regular
    _names: tuple[str, ...]
    _key: Callable[[tuple[Any, ...]], Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raises UserError: there can be no such bolt."""
        super().__init_subclass__(**kwargs)
        if "of" in vars(cls) and (why := _unfit(cls.of)):
            raise UserError(f"{cls.__name__}: of is {getattr(cls.of, '__name__', repr(cls.of))}, {why}")
        for name in ("process", "process_batch", "process_columns"):
            if getattr(cls, name) is not getattr(PartialWindows, name):
                raise UserError(f"{cls.__name__} has {name}(), and its rows are added up ahead of windows")

    # --- the engine's -----------------------------------------------------------------------------------------

    @classmethod
    def _ready_problems(cls, component: ComponentPlan, plan: LogicalPlan) -> Iterable[str]:
        """See :class:`ReadyMade`."""
        where = f"Component: [{component.name}]"
        if getattr(cls, "of", None) is None:
            yield f"{where} does not say ahead of which windows it is: write of = WINDOWS, the class that reads it"
            return
        yield from _problems_of_outputs(where, component, plan)
        readers = [each for stream in component.streams for each in plan.consumers(component.name, stream.name)]
        for reader, grouping in readers:
            if reader.cls is not cls.of or grouping.kind != "fields":
                yield f"{where}: [{reader.name}] reads it, and {cls.of.__name__} alone may, by Grouping.fields"
        if len({grouping.fields for _, grouping in readers}) > 1:
            yield f"{where}: its readers group by different fields"
        if any(stream.name == LATE for reader, _ in readers for stream in reader.streams):
            yield from _problems_of_late(where, component, plan)

    def _ready_prepare(self, context: TopologyContext) -> None:
        """See :class:`ReadyMade`."""
        groupings = [each for readers in context.this_targets.values() for each in readers.values()]
        fields = context.this_output_fields()
        self._names = groupings[0].fields if groupings else fields[:-1]
        self._key = itemgetter(*map(fields.index, self._names))
        kind = self.of.windows
        assert isinstance(kind, Regular)
        self._kind = kind

    def process_batch(self, rows: Any) -> None:
        """Fewer rows go on."""
        if isinstance(rows, ColumnBatch):
            self._send_columns(rows)
        else:
            self._send_rows(rows)

    # --- rows -------------------------------------------------------------------------------------------------

    def _send_rows(self, rows: TupleBatch) -> None:
        values = rows.rows
        try:
            found = self._together_of_rows(rows)
            parts = self._parts_of_rows(rows, found)
        except Exception:  # the windows get the rows as they are, and say what is wrong with which one
            found, parts = alone(len(values)), []
        for place in found.others.tolist():
            self.emit((*values[place], None), anchors=[rows[place]])
        for members, part in zip(found.split(), parts, strict=True):
            self.emit((*values[members[-1]], part), anchors=[rows[place] for place in members])

    def _together_of_rows(self, rows: TupleBatch) -> Together:
        values, kind = rows.rows, self._kind
        place = rows.fields.index(str(kind.on))
        keys = list(map(self._key, values))
        order: dict[Any, int] = {}
        found = keys if are_keys(keys) else map(as_key, keys)
        numbers = np.array([order.setdefault(key, len(order)) for key in found], dtype=np.intp)
        return self._together(numbers, *micros([row[place] for row in values], kind.stamps))

    def _parts_of_rows(self, rows: TupleBatch, found: Together) -> list[bytes]:
        fold = self._kind.fold
        items, table = fold.items(rows), {group: fold.zero() for group in range(len(found.sizes))}
        fold.put_all(table, found.groups.tolist(), [items[place] for place in found.rows.tolist()])
        return found.encoded(table.values())

    # --- columns ----------------------------------------------------------------------------------------------

    def _send_columns(self, columns: ColumnBatch) -> None:
        try:
            found = self._together_of_columns(columns)
            parts = self._parts_of_columns(columns, found)
        except Exception:  # likewise
            found, parts = alone(len(columns)), []
        library, single, ends = arrow(), len(found.others), np.cumsum(found.sizes, dtype=np.int32)
        batch = columns.batch.take(library.array(np.concatenate([found.others, found.members[ends - 1]])))
        column = library.array([None] * single + parts, type=library.binary())
        members = library.array(np.concatenate([found.others, found.members]))
        offsets = library.array(np.concatenate([np.arange(single + 1, dtype=np.int32), single + ends]))
        names = [*batch.schema.names, "part"]
        self.emit_batch(
            library.RecordBatch.from_arrays([*batch.columns, column], names=names),
            anchors=library.ListArray.from_arrays(offsets, members),
        )

    def _together_of_columns(self, columns: ColumnBatch) -> Together:
        kind = self._kind
        numbers = Keyed.of([columns[name] for name in self._names]).places
        return self._together(numbers, *micros_of_column(columns[str(kind.on)], kind.stamps))

    def _parts_of_columns(self, columns: ColumnBatch, found: Together) -> list[bytes]:
        if not len(found.sizes):
            return []
        batch = columns.batch.take(arrow().array(found.rows))
        return found.encoded(self._kind.fold.parts(batch, Groups(found.groups, len(found.sizes))))

    # --- both -------------------------------------------------------------------------------------------------

    def _together(self, keys: NDArray[np.intp], stamps: NDArray[np.int64], unstamped: NDArray[np.intp]) -> Together:
        """Of rows that are on time for the reader, too: its watermark is not ahead of this one, if there is one.

        A task of a new life has none, and none that an update adds, where its readers may have gone on.
        """
        fit = stamps >= (math.inf if self.watermark is None else self.watermark * MICROS)
        fit[unstamped] = False
        return together(keys, self._kind.panes(stamps), stamps, fit)


def _unfit(of: Any) -> str:
    """Why nothing can be added up ahead of these windows; empty: it can."""
    if not (isinstance(of, type) and issubclass(of, WindowBolt)):
        return "which is no class that derives from WindowBolt"
    windows = getattr(of, "windows", None)
    if not isinstance(windows, Regular) or windows.on is None:
        return "whose windows are not Tumbling or Sliding by event time (on='FIELD')"
    return "" if windows.fold.merges else f"whose fold {windows.fold!r} has no merge()"


def _problems_of_outputs(where: str, component: ComponentPlan, plan: LogicalPlan) -> Iterator[str]:
    if len(component.streams) != 1:
        yield f"{where} has {len(component.streams)} streams, and takes one"
        return
    components, own = {each.name: each for each in plan}, component.streams[0].fields
    for entry in component.inputs:
        stream = stream_of(components[entry.component], entry.stream) if entry.component in components else None
        if stream is not None and stream.fields != own[:-1]:
            yield (
                f"{where} has the outputs {', '.join(own)}: they have to be those of stream [{stream.name}] of"
                f" [{entry.component}], {', '.join(stream.fields)}, and one more"
            )


def _problems_of_late(where: str, component: ComponentPlan, plan: LogicalPlan) -> Iterator[str]:
    for spout in plan.spouts:
        idle_after = getattr(getattr(spout.cls, "timestamps", None), "idle_after", None)
        if idle_after is not None and component.name in plan.downstream(spout.name):
            yield (
                f"{where}: what [{spout.name}] emits after a silence (idle_after) may be late once it is added up, and"
                f" its reader has a stream {LATE} for single rows: leave out the stream, idle_after or this bolt"
            )
