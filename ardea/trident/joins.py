"""Where several streams meet within a batch: reducers of many streams, and the joins made of them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

from ardea.trident.folds import Into
from ardea.trident.keys import as_keys
from ardea.trident.operations import Collector, GroupedMultiReducer, MultiReducer, OperationContext
from ardea.trident.processors import BatchRun, Processor
from ardea.trident.state import State
from ardea.trident.tuples import Row, Rows, TridentTuple

View = Callable[[Row], TridentTuple]


class JoinType(enum.Enum):
    """What becomes of a key that a stream does not have."""

    INNER = "inner"
    """No row."""

    OUTER = "outer"
    """None for that stream's fields."""


class JoinFields(enum.Enum):
    """Which fields a join gives."""

    COMPACT = "compact"
    """The key, then each stream's other fields."""

    PRESERVE = "preserve"
    """All fields of each stream, in their order, the key's among them."""


class MultiReduce(Processor):
    """Runs an author's reducer over the tuples of several streams; ``views`` and ``keys`` by stream."""

    def __init__(
        self,
        reducer: MultiReducer | GroupedMultiReducer,
        views: Sequence[View],
        count: int,
        keys: Sequence[View] | None = None,
    ) -> None:
        self._reducer, self._views, self._count, self._keys = reducer, views, count, keys

    def prepare(self, config: Mapping[str, Any], context: OperationContext, states: Mapping[str, State]) -> None:  # noqa: ARG002
        """Prepares what the author gave."""
        self._reducer.prepare(config, context)

    def cleanup(self) -> None:
        """Cleans that up."""
        self._reducer.cleanup()

    def begin(self, run: BatchRun) -> None:
        """The batch begins."""
        out: Rows = []
        into = Into(out, self._count, type(self._reducer).__name__)
        start = self._reducer.init(into) if isinstance(self._reducer, MultiReducer) else {}
        run.memory[self] = start, into, out

    def entrance(self, parent: int) -> Callable[[BatchRun, Rows], None]:
        """Each stream has its own."""
        return partial(self._take, parent)

    def execute(self, run: BatchRun, rows: Rows) -> None:
        """Rows of the first stream."""
        self._take(0, run, rows)

    def finish(self, run: BatchRun) -> None:
        """The batch is complete."""
        value, into, out = run.memory.pop(self)
        if isinstance(self._reducer, MultiReducer):
            self._reducer.complete(value, into)
        else:
            for group, each in value.items():
                self._reducer.complete(each, group, into)
        self.pass_on(run, out)

    def _take(self, stream: int, run: BatchRun, rows: Rows) -> None:
        value, into, _ = run.memory[self]
        reducer, view = self._reducer, self._views[stream]
        if isinstance(reducer, MultiReducer):
            for row in rows:
                reducer.execute(value, stream, view(row), into)
            return
        assert self._keys is not None
        groups = list(map(self._keys[stream], rows))
        if (keys := as_keys(groups)) is not groups:
            groups = list(map(type(groups[0]), keys))
        for group, row in zip(groups, rows, strict=True):
            if group not in value:
                value[group] = reducer.init(into, group)
            reducer.execute(value[group], stream, group, view(row), into)


class Joiner(GroupedMultiReducer):
    """Joins the tuples of each key.

    Args:
        types: for each stream, what becomes of a key that it does not have.
        widths: for each stream, how many fields its tuples have beside the key.
        places: for each stream, where its fields come from, when it is to keep them all: an index into the key, or
            into the rest, counted on behind the key; None: only the rest.
    """

    def __init__(
        self, types: Sequence[JoinType], widths: Sequence[int], places: Sequence[Sequence[int]] | None = None
    ) -> None:
        self._types, self._widths, self._places = types, widths, places

    def init(self, collector: Collector, group: TridentTuple) -> list[list[Row]]:  # noqa: ARG002
        """A list for each stream."""
        return [[] for _ in self._types]

    def execute(
        self,
        state: list[list[Row]],
        stream: int,
        group: TridentTuple,  # noqa: ARG002
        tup: TridentTuple,
        collector: Collector,  # noqa: ARG002
    ) -> None:
        """Keeps the tuple."""
        state[stream].append(tuple(tup))

    def complete(self, state: list[list[Row]], group: TridentTuple, collector: Collector) -> None:
        """All combinations of what the streams have under the key."""
        sides = []
        for stream, rows in enumerate(state):
            missing = self._types[stream] is JoinType.OUTER and not rows
            if self._places is None:
                sides.append([(None,) * self._widths[stream]] if missing else rows)
            else:
                places = self._places[stream]
                whole = [(*group, *row) for row in rows]
                kept = [tuple([row[place] for place in places]) for row in whole]
                sides.append([(None,) * len(places)] if missing else kept)
        key = tuple(group) if self._places is None else ()
        for parts in product(*sides):
            collector.emit(sum(parts, key))
