"""What an author writes: functions, filters, aggregators, and what they are given.

Plain callables do wherever an operation has one method; the classes are for those that keep something.  Each task
works with a copy of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.trident.tuples import TridentTuple


class Author:
    """What to call an author's function in messages, and where it stands."""

    def __init__(self, operation: Any) -> None:
        code = getattr(operation, "__code__", None)
        self.name = str(getattr(operation, "__qualname__", type(operation).__name__))
        self.place = f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code is not None else ""

    def error(self, what: str, hint: str | None = None) -> UserError:
        """It did something wrong; no traceback leads to it, as it has returned."""
        error = UserError(f"function {self.name} {what}", hint=hint)
        error.place = self.place
        return error


class Collector(Protocol):
    """Takes what an operation emits."""

    def emit(self, values: Sequence[Any]) -> None:
        """One value for each declared field; UserError for another number."""


class BatchCollector(Collector, Protocol):
    """Takes many rows at once, too, which costs less for each."""

    def emit_rows(self, rows: Sequence[Sequence[Any]]) -> None:
        """As ``emit`` for each of them."""


@dataclass(frozen=True, slots=True)
class OperationContext:
    """Where an operation runs: its partition, from 0, of how many; ``task`` is the engine's context."""

    partition_index: int
    num_partitions: int
    task: TopologyContext


class Operation:
    """What all operations share."""

    def prepare(self, config: Mapping[str, Any], context: OperationContext) -> None:
        """Called once in each task, before anything else."""

    def cleanup(self) -> None:
        """Called last, when the topology ends; not when the process is killed."""


class Function(Operation):
    """Adds fields to each tuple: emits none, one or several rows of them."""

    def execute(self, tup: TridentTuple, collector: Collector) -> None:
        """One tuple, of the fields asked for."""
        raise NotImplementedError


class Filter(Operation):
    """Keeps tuples or drops them."""

    def is_keep(self, tup: TridentTuple) -> bool:
        """Whether to keep this one."""
        raise NotImplementedError


class CombinerAggregator:
    """An aggregation that can be done in part where the tuples are, and then combined: associative, commutative."""

    def init(self, tup: TridentTuple) -> Any:
        """The value of a single tuple."""
        raise NotImplementedError

    def combine(self, left: Any, right: Any, /) -> Any:
        """The value of both together."""
        raise NotImplementedError

    def zero(self) -> Any:
        """The value of no tuple; ``combine(zero(), x) == x``."""
        raise NotImplementedError

    def by_group(self, keys: Iterable[Any], tuples: Iterable[TridentTuple]) -> dict[Any, Any]:
        """Key -> the value of all its tuples, in the order of their first ones; keys and tuples go in step.

        What runs for each batch: worth overriding where there is a faster way than ``init`` and ``combine``.
        """
        values: dict[Any, Any] = {}
        for key, tup in zip(keys, tuples, strict=False):
            value = self.init(tup)
            values[key] = self.combine(values[key], value) if key in values else value
        return values


class ReducerAggregator:
    """An aggregation that takes tuples one by one."""

    def init(self) -> Any:
        """The value of no tuple."""
        raise NotImplementedError

    def reduce(self, current: Any, tup: TridentTuple) -> Any:
        """The value with one tuple more."""
        raise NotImplementedError


class Aggregator(Operation):
    """The general aggregation: may emit any number of rows, at any time within the batch."""

    def init(self, batch_id: int, collector: Collector) -> Any:
        """What :meth:`aggregate` is given; ``batch_id`` is the transaction's."""
        raise NotImplementedError

    def aggregate(self, value: Any, tup: TridentTuple, collector: Collector) -> None:
        """One tuple; changes ``value`` in place."""
        raise NotImplementedError

    def complete(self, value: Any, collector: Collector) -> None:
        """The batch (for a grouped stream: of this group) is complete."""
        raise NotImplementedError


class MultiReducer(Operation):
    """Reduces the tuples of several streams, batch by batch, in each task."""

    def init(self, collector: Collector) -> Any:
        """What the other methods are given; change it in place."""
        raise NotImplementedError

    def execute(self, state: Any, stream: int, tup: TridentTuple, collector: Collector) -> None:
        """A tuple of the stream with that number, from 0."""
        raise NotImplementedError

    def complete(self, state: Any, collector: Collector) -> None:
        """All streams have all of the batch."""


class GroupedMultiReducer(Operation):
    """The same for each group of tuples with an equal key, whatever its fields are called in each stream."""

    def init(self, collector: Collector, group: TridentTuple) -> Any:
        """What the other methods are given; change it in place."""
        raise NotImplementedError

    def execute(self, state: Any, stream: int, group: TridentTuple, tup: TridentTuple, collector: Collector) -> None:
        """A tuple of the stream with that number, from 0."""
        raise NotImplementedError

    def complete(self, state: Any, group: TridentTuple, collector: Collector) -> None:
        """All streams have all of the batch."""
