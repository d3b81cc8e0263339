"""Aggregations while a batch runs: a fold has a start, a step for each row, and an end that emits."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from typing import Any

from ardea.errors import TopologyError, UserError
from ardea.trident.operations import Aggregator, CombinerAggregator, OperationContext, ReducerAggregator
from ardea.trident.tuples import Row, TridentTuple, projection

Emit = Callable[[Row], None]
AnyAggregator = CombinerAggregator | ReducerAggregator | Aggregator


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
    """``start`` gives a value, ``step`` the next one, ``end`` emits; all within one batch."""

    def prepare(self, config: Mapping[str, Any], context: OperationContext) -> None:  # noqa: B027 -- few need it
        """Called once."""

    def cleanup(self) -> None:  # noqa: B027
        """Called last."""

    @abstractmethod
    def start(self, txid: int, emit: Emit) -> Any:
        """A batch begins."""

    @abstractmethod
    def step(self, value: Any, row: Row, emit: Emit) -> Any:
        """A row; returns the new value."""

    @abstractmethod
    def end(self, value: Any, emit: Emit) -> None:
        """The batch is complete."""


class _Combine(Fold):
    """A combiner over tuples, or over partial results: ``source`` is the view of a tuple, or the place of a result."""

    def __init__(self, combiner: CombinerAggregator, source: Callable[[Row], TridentTuple] | int) -> None:
        self._combine, self._zero = combiner.combine, combiner.zero
        self._value: Callable[[Row], Any]
        if isinstance(source, int):
            self._value = itemgetter(source)
        else:
            self._value = lambda row: combiner.init(source(row))

    def start(self, txid: int, emit: Emit) -> Any:  # noqa: ARG002
        return self._zero()

    def step(self, value: Any, row: Row, emit: Emit) -> Any:  # noqa: ARG002
        return self._combine(value, self._value(row))

    def end(self, value: Any, emit: Emit) -> None:
        emit((value,))


class _Reduce(Fold):
    def __init__(self, reducer: ReducerAggregator, view: Callable[[Row], TridentTuple]) -> None:
        self._reducer, self._view = reducer, view

    def start(self, txid: int, emit: Emit) -> Any:  # noqa: ARG002
        return self._reducer.init()

    def step(self, value: Any, row: Row, emit: Emit) -> Any:  # noqa: ARG002
        return self._reducer.reduce(value, self._view(row))

    def end(self, value: Any, emit: Emit) -> None:
        emit((value,))


class _Into:
    """A collector that checks the number of values."""

    __slots__ = ("_count", "_emit")

    def __init__(self, emit: Emit, count: int) -> None:
        self._emit, self._count = emit, count

    def emit(self, values: Sequence[Any]) -> None:
        row = tuple(values)
        if len(row) != self._count:
            raise UserError(f"an aggregator emitted {len(row)} values where {self._count} are declared: {values!r}")
        self._emit(row)


class _General(Fold):
    def __init__(self, aggregator: Aggregator, view: Callable[[Row], TridentTuple], count: int) -> None:
        self._aggregator, self._view, self._count = aggregator, view, count

    def prepare(self, config: Mapping[str, Any], context: OperationContext) -> None:
        self._aggregator.prepare(config, context)

    def cleanup(self) -> None:
        self._aggregator.cleanup()

    def start(self, txid: int, emit: Emit) -> Any:
        return self._aggregator.init(txid, _Into(emit, self._count))

    def step(self, value: Any, row: Row, emit: Emit) -> Any:
        self._aggregator.aggregate(value, self._view(row), _Into(emit, self._count))
        return value

    def end(self, value: Any, emit: Emit) -> None:
        self._aggregator.complete(value, _Into(emit, self._count))


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

    def start(self, txid: int, emit: Emit) -> Any:  # noqa: ARG002
        captured: list[list[Row]] = [[] for _ in self._folds]
        return [f.start(txid, rows.append) for f, rows in zip(self._folds, captured, strict=True)], captured

    def step(self, value: Any, row: Row, emit: Emit) -> Any:  # noqa: ARG002
        values, captured = value
        for place, fold in enumerate(self._folds):
            values[place] = fold.step(values[place], row, captured[place].append)
        return value

    def end(self, value: Any, emit: Emit) -> None:
        for fold, each, rows in zip(self._folds, *value, strict=True):
            fold.end(each, rows.append)
        for parts in product(*value[1]):
            emit(sum(parts, ()))


class Grouped(Fold):
    """A fold for each group; results begin with the group's values.  Groups come in the order of their first row."""

    def __init__(self, fold: Fold, group: Callable[[Row], TridentTuple]) -> None:
        self._fold, self._group = fold, group

    def prepare(self, config: Mapping[str, Any], context: OperationContext) -> None:
        """The one fold serves all groups."""
        self._fold.prepare(config, context)

    def cleanup(self) -> None:
        """That fold's."""
        self._fold.cleanup()

    def start(self, txid: int, emit: Emit) -> Any:  # noqa: ARG002
        """No group yet."""
        return txid, {}

    def step(self, value: Any, row: Row, emit: Emit) -> Any:
        """A row goes to its group, whose value and emit stay together."""
        key = self._group(row)
        kept = value[1].get(key)
        if kept is None:
            into = _behind(key, emit)
            kept = value[1][key] = [self._fold.start(value[0], into), into]
        kept[0] = self._fold.step(kept[0], row, kept[1])
        return value

    def end(self, value: Any, emit: Emit) -> None:  # noqa: ARG002
        """Each group in turn."""
        for each, into in value[1].values():
            self._fold.end(each, into)


def _behind(key: Row, emit: Emit) -> Emit:
    return lambda row: emit((*key, *row))


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
