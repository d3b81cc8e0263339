"""States: what batches are committed to, and the contracts of those who build them (docs/trident.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ardea.trident.keys import keys_in
from ardea.trident.operations import BatchCollector, Collector, CombinerAggregator, Operation, ReducerAggregator
from ardea.trident.tuples import Row, TridentTuple

Key = tuple[Hashable, ...]
Update = Callable[[Any], Any]
"""From the stored value (None: there is none) to the new one."""
Combine = Callable[[Any, Any], Any]
"""From the stored value and a new part to the new value."""


class State:
    """One partition of a state, in the task that owns it.

    All updates of a batch lie between ``begin_commit`` and ``commit``; transactions come in ascending order, and one
    that was not known to be complete comes again.
    """

    def begin_commit(self, txid: int) -> None:
        """The updates of this transaction follow."""

    def commit(self, txid: int) -> None:
        """They are complete."""

    def close(self) -> None:
        """The task ends."""


class MapState(State, ABC):
    """A state of keys and values; a key is a tuple of the group's values."""

    @abstractmethod
    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """The value of each key, None where there is none."""

    @abstractmethod
    def multi_update(self, keys: Sequence[Key], updates: Sequence[Update]) -> list[Any]:
        """Updates distinct keys; returns the new values."""

    def multi_combine(self, keys: Sequence[Key], parts: Sequence[Any], combine: Combine) -> list[Any]:
        """As ``multi_update``: a key without a value gets its part, another one what ``combine`` makes of both."""
        return self.multi_update(keys, [_combining(combine, part) for part in parts])

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """Sets values whatever there was."""
        self.multi_update(keys, [_constant(value) for value in values])


def _constant(value: Any) -> Update:
    return lambda _: value


class Snapshottable(State, ABC):
    """A state of a single value."""

    @abstractmethod
    def get(self) -> Any:
        """The value, None if there is none."""

    @abstractmethod
    def update(self, update: Update) -> Any:
        """Updates it; returns the new value."""

    def set(self, value: Any) -> None:
        """Sets it whatever there was."""
        self.update(_constant(value))


class BackingMap(ABC):
    """What keeps the values of one partition; Storm's ``IBackingMap``."""

    @abstractmethod
    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """What is stored under each key, None where nothing is."""

    @abstractmethod
    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """Stores all of it, or raises and stores nothing.

        Raises:
            FailedException: another task has taken over the partition.
        """

    def keys_of(self, txid: int) -> list[Key]:  # noqa: ARG002
        """The keys of this partition that were last written by this transaction, in whatever life of the task.

        Opaque states ask once a life, before their first write; a map that forgets everything with its task has none.
        A map whose partitions may become more or fewer between runs sets back what this transaction wrote while there
        were others: nobody knows whose it is now.
        """
        return []

    def close(self) -> None:  # noqa: B027 -- many have nothing to close
        """The task ends."""


class StateFactory(ABC):
    """Makes the state of one partition; stands in the topology, so it keeps no connection itself.

    Attributes:
        partitions: how many there must be; None: as many as the operations around it have tasks.
        kind: ``opaque``, ``transactional``, ``non-transactional``, or None: its author knows.
        place: where its tasks write what only one task may write, such as a file; None: no other state can meet it. A
            topology writes one state to a place.
    """

    partitions: int | None = None
    kind: str | None = None
    place: str | None = None

    @abstractmethod
    def make_state(self, config: Mapping[str, Any], partition_index: int, num_partitions: int) -> State:
        """Called once in each task that owns a partition."""

    def make_reader(self, config: Mapping[str, Any], partition_index: int, num_partitions: int) -> State:
        """Called instead where the state is only asked (``new_static_state``): it may have an owner elsewhere.

        By default as ``make_state``.
        """
        return self.make_state(config, partition_index, num_partitions)


class StateUpdater(Operation):
    """Writes a batch to a state.

    Attributes:
        updates_always: whether it is called for an empty part of a batch too.
        by_partition: whether it writes what is of its partition only, which no other number of partitions would find.
    """

    updates_always: bool = False
    by_partition: bool = False

    def update_state(self, state: Any, tuples: Sequence[TridentTuple], collector: BatchCollector) -> None:
        """All tuples of the batch that this partition got, at least one; what is emitted are the new values."""
        raise NotImplementedError


class QueryFunction(Operation):
    """Asks a state about a batch."""

    def batch_retrieve(self, state: Any, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        """One answer for each tuple."""
        raise NotImplementedError

    def execute(self, tup: TridentTuple, answer: Any, collector: Collector) -> None:  # noqa: ARG002
        """Emits the fields to append; by default the answer."""
        collector.emit([answer])


class MapGet(QueryFunction):
    """The value under the key that the tuple is."""

    def batch_retrieve(self, state: MapState, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        """The values."""
        return state.multi_get([tuple(tup) for tup in tuples])


class SnapshotGet(QueryFunction):
    """The one value of a Snapshottable."""

    def batch_retrieve(self, state: Snapshottable, tuples: Sequence[TridentTuple]) -> Sequence[Any]:
        """The value, as often as asked for."""
        return [state.get()] * len(tuples)


class CombineIntoMap(StateUpdater):
    """Combines (key ..., value) into a MapState; emits (key ..., new value)."""

    def __init__(self, combiner: CombinerAggregator) -> None:
        self._combiner = combiner

    def update_state(self, state: MapState, tuples: Sequence[Row], collector: BatchCollector) -> None:
        """One update of distinct keys, which grouping has made them; a column at a time."""
        *groups, parts = zip(*tuples, strict=True)
        values = state.multi_combine(list(zip(*groups, strict=True)), parts, self._combiner.combine)
        collector.emit_rows(list(zip(*groups, values, strict=True)))


class ReduceIntoMap(StateUpdater):
    """Reduces tuples into a MapState, by the values of their first ``key`` fields; emits (key ..., new value)."""

    def __init__(self, reducer: ReducerAggregator, view: Callable[[Any], TridentTuple], key: int) -> None:
        self._reducer, self._view, self._key = reducer, view, key

    def update_state(self, state: MapState, tuples: Sequence[TridentTuple], collector: Collector) -> None:
        """One update of distinct keys, in the order of their first tuples."""
        groups: dict[Key, list[TridentTuple]] = {}
        for key, tup in zip(keys_in(tuples, range(self._key)), tuples, strict=True):
            groups.setdefault(key, []).append(self._view(tup))
        values = state.multi_update(list(groups), [_reducing(self._reducer, rows) for rows in groups.values()])
        for key, value in zip(groups, values, strict=True):
            collector.emit((*key, value))


class CombineIntoSnapshot(StateUpdater):
    """Combines the batch's one value into a Snapshottable; emits the new value."""

    def __init__(self, combiner: CombinerAggregator) -> None:
        self._combiner = combiner

    def update_state(self, state: Snapshottable, tuples: Sequence[TridentTuple], collector: Collector) -> None:
        """The aggregation before has left one tuple."""
        (tup,) = tuples
        collector.emit((state.update(_combining(self._combiner.combine, tup[0])),))


class ReduceIntoSnapshot(StateUpdater):
    """Reduces tuples into a Snapshottable; emits the new value."""

    def __init__(self, reducer: ReducerAggregator) -> None:
        self._reducer = reducer

    def update_state(self, state: Snapshottable, tuples: Sequence[TridentTuple], collector: Collector) -> None:
        """One update."""
        collector.emit((state.update(_reducing(self._reducer, tuples)),))


def _combining(combine: Combine, part: Any) -> Update:
    return lambda stored: part if stored is None else combine(stored, part)


def _reducing(reducer: ReducerAggregator, tuples: Sequence[TridentTuple]) -> Update:
    def update(stored: Any) -> Any:
        value = reducer.init() if stored is None else stored
        for tup in tuples:
            value = reducer.reduce(value, tup)
        return value

    return update
