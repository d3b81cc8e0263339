"""Aggregations while a batch runs: a fold has a start, a step for some rows, and an end; each may put rows out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from operator import itemgetter
from typing import Any

from ardea.errors import TopologyError, UserError
from ardea.protocol.dict_keys import are_keys, as_key
from ardea.trident.keys import keys_in
from ardea.trident.operations import Aggregator, CombinerAggregator, OperationContext, ReducerAggregator
from ardea.trident.tuples import Row, Rows, TridentTuple, projection

AnyAggregator = CombinerAggregator | ReducerAggregator | Aggregator
View = Callable[[Row], TridentTuple]
GROUPED_AT_ONCE = 10_000
"""Rows that wait to be grouped together: groups of a few rows each would have to be combined again and again."""


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregator, the fields it reads, and the fields it emits."""

    inputs: tuple[str, ...]
    aggregator: AnyAggregator
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.aggregator, AnyAggregator):
            raise TopologyError(
                [f"{self.aggregator!r} is no aggregator: give a Combiner-, a ReducerAggregator or an Aggregator object"]
            )
        if not isinstance(self.aggregator, Aggregator) and len(self.outputs) != 1:
            name = type(self.aggregator).__name__
            raise TopologyError([f"{name} gives one value, and the fields for it are {list(self.outputs)}"])


class Fold(ABC):
    """``start`` gives a value, ``step`` the next one, ``end`` the last rows; all within one batch.

    Rows go into ``out``, the same list as long as the batch runs, which is emptied between calls.
    """

    def prepare(self, config: Mapping[str, Any], context: OperationContext) -> None:  # noqa: B027 -- few need it
        """Called once."""

    def cleanup(self) -> None:  # noqa: B027
        """Called last."""

    @abstractmethod
    def start(self, txid: int, out: Rows) -> Any:
        """A batch begins."""

    @abstractmethod
    def step(self, value: Any, rows: Sequence[Row], out: Rows) -> Any:
        """Some rows, at least one; returns the new value."""

    @abstractmethod
    def end(self, value: Any, out: Rows) -> None:
        """The batch is complete."""


class _Combine(Fold):
    """A combiner over tuples, or over partial results: ``source`` is the view of a tuple, or the place of a result."""

    def __init__(self, combiner: CombinerAggregator, source: View | int) -> None:
        self._combiner, self._source = combiner, source

    def start(self, txid: int, out: Rows) -> Any:  # noqa: ARG002
        return self._combiner.zero()

    def step(self, value: Any, rows: Sequence[Row], out: Rows) -> Any:  # noqa: ARG002
        for part in self.by_group([None] * len(rows), rows).values():
            value = self._combiner.combine(value, part)
        return value

    def end(self, value: Any, out: Rows) -> None:
        out.append((value,))

    def by_group(self, keys: Iterable[Any], rows: Sequence[Row]) -> dict[Any, Any]:
        """Key -> the value of its rows; keys and rows go in step."""
        if not isinstance(self._source, int):
            return self._combiner.by_group(keys, map(self._source, rows))
        return self.combined({}, list(keys), list(map(itemgetter(self._source), rows)))

    def combined(self, values: dict[Any, Any], keys: Collection[Any], parts: Collection[Any]) -> dict[Any, Any]:
        """``values`` with more parts; keys and parts go in step."""
        news = dict(zip(keys, parts, strict=True))
        if len(news) == len(keys) and values.keys().isdisjoint(news):  # as what one task has combined already
            values.update(news)
            return values
        combine = self._combiner.combine
        for key, part in zip(keys, parts, strict=True):
            values[key] = combine(values[key], part) if key in values else part
        return values


class _Reduce(Fold):
    def __init__(self, reducer: ReducerAggregator, view: View) -> None:
        self._reducer, self._view = reducer, view

    def start(self, txid: int, out: Rows) -> Any:  # noqa: ARG002
        return self._reducer.init()

    def step(self, value: Any, rows: Sequence[Row], out: Rows) -> Any:  # noqa: ARG002
        for tup in map(self._view, rows):
            value = self._reducer.reduce(value, tup)
        return value

    def end(self, value: Any, out: Rows) -> None:
        out.append((value,))


class Into:
    """A collector that checks the number of values."""

    __slots__ = ("_count", "_out", "_what")

    def __init__(self, out: Rows, count: int, what: str) -> None:
        self._out, self._count, self._what = out, count, what

    def emit(self, values: Sequence[Any]) -> None:
        """One row."""
        row = tuple(values)
        if len(row) != self._count:
            raise UserError(f"{self._what} emitted {len(row)} values where {self._count} are declared: {values!r}")
        self._out.append(row)


class _General(Fold):
    def __init__(self, aggregator: Aggregator, view: View, count: int) -> None:
        self._aggregator, self._view, self._count = aggregator, view, count

    def prepare(self, config: Mapping[str, Any], context: OperationContext) -> None:
        self._aggregator.prepare(config, context)

    def cleanup(self) -> None:
        self._aggregator.cleanup()

    def start(self, txid: int, out: Rows) -> Any:
        return self._aggregator.init(txid, self._into(out))

    def step(self, value: Any, rows: Sequence[Row], out: Rows) -> Any:
        aggregate, into = self._aggregator.aggregate, self._into(out)
        for tup in map(self._view, rows):
            aggregate(value, tup, into)
        return value

    def end(self, value: Any, out: Rows) -> None:
        self._aggregator.complete(value, self._into(out))

    def _into(self, out: Rows) -> Into:
        return Into(out, self._count, type(self._aggregator).__name__)


class _Chain(Fold):
    """Several aggregations side by side; their results are the cross product of what each emitted."""

    def __init__(self, folds: Sequence[Fold]) -> None:
        self._folds = folds

    def prepare(self, config: Mapping[str, Any], context: OperationContext) -> None:
        for fold in self._folds:
            fold.prepare(config, context)

    def cleanup(self) -> None:
        for fold in self._folds:
            fold.cleanup()

    def start(self, txid: int, out: Rows) -> Any:  # noqa: ARG002
        captured: list[Rows] = [[] for _ in self._folds]
        return [fold.start(txid, rows) for fold, rows in zip(self._folds, captured, strict=True)], captured

    def step(self, value: Any, rows: Sequence[Row], out: Rows) -> Any:  # noqa: ARG002
        values, captured = value
        for place, fold in enumerate(self._folds):
            values[place] = fold.step(values[place], rows, captured[place])
        return value

    def end(self, value: Any, out: Rows) -> None:
        for fold, each, rows in zip(self._folds, *value, strict=True):
            fold.end(each, rows)
        out.extend(sum(parts, ()) for parts in product(*value[1]))


class _Grouped(Fold):
    """A fold for each group; results begin with the group's values.  Groups come in the order of their first row."""

    def __init__(self, fold: Fold, group: Sequence[int]) -> None:
        self._fold, self._group = fold, group

    def prepare(self, config: Mapping[str, Any], context: OperationContext) -> None:
        self._fold.prepare(config, context)  # the one fold serves all groups

    def cleanup(self) -> None:
        self._fold.cleanup()

    def start(self, txid: int, out: Rows) -> Any:  # noqa: ARG002
        return txid, {}

    def step(self, value: Any, rows: Sequence[Row], out: Rows) -> Any:
        by_key: dict[Row, Rows] = {}
        for key, row in zip(keys_in(rows, self._group), rows, strict=True):
            by_key.setdefault(key, []).append(row)
        txid, groups = value
        for key, part in by_key.items():
            kept = groups.get(key)
            if kept is None:
                mine: Rows = []
                kept = groups[key] = [self._fold.start(txid, mine), mine]
            kept[0] = self._fold.step(kept[0], part, kept[1])
            self._put(key, kept[1], out)
        return value

    def end(self, value: Any, out: Rows) -> None:
        for key, (each, mine) in value[1].items():
            self._fold.end(each, mine)
            self._put(key, mine, out)

    @staticmethod
    def _put(key: Row, mine: Rows, out: Rows) -> None:
        out.extend(key + row for row in mine)
        mine.clear()


class _GroupedCombine(Fold):
    """The same for a combiner, a whole column at a time."""

    def __init__(self, fold: _Combine, group: Sequence[int]) -> None:
        self._fold, self._single = fold, len(group) == 1
        self._key = itemgetter(*group)

    def start(self, txid: int, out: Rows) -> Any:  # noqa: ARG002
        return {}, []

    def step(self, value: Any, rows: Sequence[Row], out: Rows) -> Any:  # noqa: ARG002
        groups, waiting = value
        waiting += rows
        return (self._combined(groups, waiting), []) if len(waiting) >= GROUPED_AT_ONCE else value

    def end(self, value: Any, out: Rows) -> None:
        groups, waiting = value
        if waiting:
            groups = self._combined(groups, waiting)
        if self._single:
            out.extend(groups.items())
        else:
            out.extend((*key, each) for key, each in groups.items())

    def _combined(self, groups: dict[Any, Any], rows: Sequence[Row]) -> dict[Any, Any]:
        found = self._found(rows)
        return self._fold.combined(groups, found.keys(), found.values()) if groups else found

    def _found(self, rows: Sequence[Row]) -> dict[Any, Any]:
        """Looks at the few groups, not at the many rows: only where a dict does not keep them apart, all is done anew.

        What a dict refuses is a TypeError; one of the author's comes again.
        """
        try:
            found = self._fold.by_group(map(self._key, rows), rows)
            if are_keys(found if self._single else list(chain.from_iterable(found))):
                return found
        except TypeError:
            pass
        keys = map(as_key, map(self._key, rows))
        return self._fold.by_group(keys, rows)


def grouped(fold: Fold, group: Sequence[int]) -> Fold:
    """The fold for each group of equal values in these places of a row; without places, the fold itself."""
    if not group:
        return fold
    return _GroupedCombine(fold, group) if isinstance(fold, _Combine) else _Grouped(fold, group)


def fold_of(aggregations: Sequence[Aggregation], fields: Sequence[str]) -> Fold:
    """The fold of these aggregations over rows with ``fields``, with copies of the author's objects."""
    folds: list[Fold] = []
    for aggregation in aggregations:
        aggregator, view = copy.deepcopy(aggregation.aggregator), projection(fields, aggregation.inputs)
        if isinstance(aggregator, CombinerAggregator):
            folds.append(_Combine(aggregator, view))
        elif isinstance(aggregator, ReducerAggregator):
            folds.append(_Reduce(aggregator, view))
        else:
            folds.append(_General(aggregator, view, len(aggregation.outputs)))
    return folds[0] if len(folds) == 1 else _Chain(folds)


def combining_fold(aggregations: Sequence[Aggregation], first: int) -> Fold:
    """The fold over the partial results of combiners, which stand in a row from place ``first`` on."""
    folds: list[Fold] = []
    for place, aggregation in enumerate(aggregations, first):
        combiner = copy.deepcopy(aggregation.aggregator)
        assert isinstance(combiner, CombinerAggregator)
        folds.append(_Combine(combiner, place))
    return folds[0] if len(folds) == 1 else _Chain(folds)


def all_combine(aggregations: Sequence[Aggregation]) -> bool:
    """Whether all of it can be done in part where the tuples are."""
    return all(isinstance(aggregation.aggregator, CombinerAggregator) for aggregation in aggregations)
