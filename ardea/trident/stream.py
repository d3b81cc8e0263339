"""Streams: what an author chains operations on (docs/trident.md).  Nothing runs here; each call adds to the graph."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from ardea import units
from ardea.errors import TopologyError
from ardea.grouping import CustomStreamGrouping, Grouping
from ardea.plan import GroupingPlan
from ardea.trident.builtin import Best, Extreme
from ardea.trident.checks import check_function, check_grouping, check_object
from ardea.trident.event_windows import EventWindowConfig
from ardea.trident.folds import Aggregation, AnyAggregator, Fold, all_combine, combining_fold, fold_of, grouped
from ardea.trident.graph import Node, PartitionNode, ProcessorNode
from ardea.trident.groupings import BatchGlobal, Identity, WithoutHead, spokesman
from ardea.trident.memory import MemoryMapState
from ardea.trident.operations import CombinerAggregator, Filter, Function, ReducerAggregator
from ardea.trident.processors import Aggregate, Each, FlatMap, Keep, Map, Pass, Peek, Persist, Processor, Project, Query
from ardea.trident.state import (
    CombineIntoMap,
    CombineIntoSnapshot,
    QueryFunction,
    ReduceIntoMap,
    ReduceIntoSnapshot,
    StateFactory,
    StateUpdater,
)
from ardea.trident.trident_state import TridentState
from ardea.trident.tuples import Fields, TridentTuple, key_fields, names_of, projection, select
from ardea.trident.windows import Length, WindowConfig, WindowUpdater
from ardea.windows import Sliding, Tumbling

if TYPE_CHECKING:
    from ardea.trident.topology import TridentTopology

Predicate = Filter | Callable[[TridentTuple], Any]
MapFunction = Callable[[TridentTuple], Any]


class Stream:
    """Batches of tuples with these fields.  Every operation returns a new stream."""

    def __init__(self, topology: TridentTopology, node: Node, name: str | None = None) -> None:
        self._topology, self._node, self._name = topology, node, name

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of its tuples."""
        return self._node.fields

    # --- about the operation before -----------------------------------------------------------------------------

    def name(self, name: str) -> Self:
        """Names the operations that follow; the names stand in the component's (``b-0-count``)."""
        return type(self)(self._topology, self._node, name)

    def parallelism_hint(self, hint: int) -> Self:
        """How many tasks run the operations back to the last repartition."""
        if not isinstance(hint, int) or isinstance(hint, bool) or hint < 1:
            raise TopologyError([f"parallelism_hint({hint!r}): a whole number from 1 is needed"])
        self._node.hint = hint
        return self

    def resources(self, *, cpu: float | None = None, ram: int | str | None = None) -> Self:
        """What a task needs for the operation before, as for ``spec()``; a component needs what its operations do."""
        try:
            self._node.cpu = None if cpu is None else units.positive(cpu)
        except ValueError as error:
            raise TopologyError([f"resources(): cpu= takes {error}, not {cpu!r}"]) from None
        try:
            self._node.ram = None if ram is None else units.size(ram)
        except ValueError as error:
            raise TopologyError([f"resources(): ram= takes {error}, not {ram!r}"]) from None
        return self

    # --- tuple by tuple -----------------------------------------------------------------------------------------

    def each(self, inputs: Fields, function: Function | MapFunction, outputs: Fields) -> Stream:
        """Appends fields.

        Args:
            inputs: what the function sees.
            function: a :class:`Function`, or a callable that returns (or yields) rows of the new fields: values if
                there is one field, sequences if there are several; None: no row.
            outputs: the new fields.
        """
        check_function("each", function, Function)
        seen, added = select(self.fields, inputs), names_of(outputs)
        self._check_added(added)
        view, count = projection(self.fields, seen), len(added)
        return self._then(
            (*self.fields, *added),
            lambda: Each(copy.deepcopy(function), view, count),
            f"each {_title(seen)} -> {_title(added)}",
        )

    def filter(self, predicate: Predicate, inputs: Fields | None = None) -> Stream:
        """Keeps the tuples for which the predicate, shown ``inputs`` (all fields), is true."""
        check_function("filter", predicate, Filter)
        view = projection(self.fields, select(self.fields, inputs))
        return self._then(self.fields, lambda: Keep(copy.deepcopy(predicate), view), "filter")

    def map(self, function: MapFunction, outputs: Fields | None = None) -> Stream:
        """Replaces each tuple by what the function returns: a value for one field, a sequence for several."""
        return self._mapped("map", Map, function, outputs)

    def flat_map(self, function: MapFunction, outputs: Fields | None = None) -> Stream:
        """Replaces each tuple by all rows that the function returns or yields, each like a ``map``'s."""
        return self._mapped("flat_map", FlatMap, function, outputs)

    def peek(self, function: Callable[[TridentTuple], Any]) -> Stream:
        """Shows each tuple to the function."""
        check_function("peek", function)
        view = projection(self.fields, self.fields)
        return self._then(self.fields, lambda: Peek(copy.deepcopy(function), view), "peek")

    def project(self, fields: Fields) -> Stream:
        """Keeps only these fields."""
        kept = select(self.fields, fields)
        view = projection(self.fields, kept)
        return self._then(kept, lambda: Project(view), f"project {_title(kept)}")

    # --- between tasks ------------------------------------------------------------------------------------------

    def partition_by(self, fields: Fields) -> Stream:
        """Equal values of these fields meet."""
        return self._partition(Grouping.fields(*key_fields("partition_by", self.fields, fields)))

    def shuffle(self) -> Stream:
        """Evenly to all tasks."""
        return self._partition(Grouping.SHUFFLE)

    def local_or_shuffle(self) -> Stream:
        """Evenly to the tasks of the same container, if it has any."""
        return self._partition(Grouping.LOCAL_OR_SHUFFLE)

    def broadcast(self) -> Stream:
        """A copy to each task."""
        return self._partition(Grouping.ALL)

    def global_(self) -> Stream:
        """Everything to the first task."""
        return self._partition(Grouping.GLOBAL)

    def batch_global(self) -> Stream:
        """All of a batch to one task, the next batch to the next task."""
        return self._partition(Grouping.custom(BatchGlobal))

    def identity_partition(self) -> Stream:
        """From each task to the one with the same index; both sides have equally many."""
        return self._partition(Grouping.custom(Identity), identity=True)

    def partition(self, grouping: CustomStreamGrouping) -> Stream:
        """The author's own."""
        check_grouping("partition", grouping)
        return self._partition(Grouping.custom(WithoutHead(grouping)))

    # --- whole batches ------------------------------------------------------------------------------------------

    def partition_aggregate(self, aggregator: AnyAggregator, outputs: Fields, inputs: Fields | None = None) -> Stream:
        """Replaces each task's part of a batch by what the aggregator makes of it."""
        return self.chained_agg().partition_aggregate(aggregator, outputs, inputs).chain_end()

    def aggregate(self, aggregator: AnyAggregator, outputs: Fields, inputs: Fields | None = None) -> Stream:
        """Replaces each batch by what the aggregator makes of it, in one task; of an empty batch too."""
        return self.chained_agg().aggregate(aggregator, outputs, inputs).chain_end()

    def chained_agg(self) -> Chain:
        """Several aggregators on the same tuples; call ``chain_end()`` behind the last."""
        return Chain(self, ())

    def min_by(self, key: str | Callable[[TridentTuple], Any]) -> Stream:
        """In each partition, the batch's tuple with the smallest key (a field or a function); of equal ones the later.

        None is no key.  ``first_n(1, key)`` gives one tuple for the whole batch.
        """
        return self._extreme(key, largest=False)

    def max_by(self, key: str | Callable[[TridentTuple], Any]) -> Stream:
        """The same with the largest key."""
        return self._extreme(key, largest=True)

    def first_n(self, count: int, key: str | Callable[[TridentTuple], Any], *, reverse: bool = False) -> Stream:
        """The ``count`` tuples of each batch with the smallest key; with ``reverse`` the largest."""
        if isinstance(key, str):
            select(self.fields, key)
        best = Best(count, key, reverse=reverse)
        return self.partition_aggregate(best, self.fields).global_().partition_aggregate(best, self.fields)

    def tumbling_window(
        self,
        length: Length,
        aggregator: AnyAggregator,
        outputs: Fields,
        inputs: Fields | None = None,
        state: StateFactory | None = None,
    ) -> Stream:
        """Replaces tuples by what the aggregator makes of each ``length`` of them, in each partition.

        Args:
            length: so many tuples; or a timedelta, of the times at which their batches are committed.
            aggregator: of any kind.
            outputs: what it emits.
            inputs: the fields that it sees, and the only ones that are kept meanwhile; by default all.
            state: where incomplete windows are kept, an opaque map; by default in memory.
        """
        return self._window(WindowConfig.of(length), aggregator, outputs, inputs, state)

    def sliding_window(
        self,
        length: Length,
        slide: Length,
        aggregator: AnyAggregator,
        outputs: Fields,
        inputs: Fields | None = None,
        state: StateFactory | None = None,
    ) -> Stream:
        """The same after each ``slide``, of the last ``length``."""
        return self._window(WindowConfig.of(length, slide), aggregator, outputs, inputs, state)

    def window(
        self,
        windows: Tumbling | Sliding,
        aggregator: AnyAggregator,
        outputs: Fields,
        inputs: Fields | None = None,
        state: StateFactory | None = None,
        *,
        lateness: float | str = 0.0,
        bounds: Fields = (),
    ) -> Stream:
        """Replaces tuples by what the aggregator makes of each window of their own times, in each partition.

        A window is emitted by the first batch that brings a time ``lateness`` after its end; tuples that are later than
        that are left out, and counted as ``trident-late-rows``.

        Args:
            windows: ``Tumbling`` or ``Sliding`` of :mod:`ardea.windows`, with the field of the time: ``on="at"``.
            aggregator: of any kind.
            outputs: what it emits.
            inputs: the fields that it sees; by default all.  Only these and the time are kept meanwhile.
            state: where incomplete windows are kept, an opaque map; by default in memory.
            lateness: so much older than the newest time of the partition a time may be: seconds, or a text as ``30 s``.
            bounds: two fields for start and end of the window, in seconds since 1970, after the outputs.
        """
        config = EventWindowConfig.of(windows, lateness, names_of(bounds))
        select(self.fields, config.ahead)
        return self._window(config, aggregator, outputs, inputs, state)

    def group_by(self, fields: Fields) -> GroupedStream:
        """Aggregations happen for each group of equal values of these fields."""
        return GroupedStream(self, key_fields("group_by", self.fields, fields))

    # --- states -------------------------------------------------------------------------------------------------

    def partition_persist(
        self, state: StateFactory, inputs: Fields, updater: StateUpdater, outputs: Fields = ()
    ) -> TridentState:
        """Updates a new state with each task's part of each batch; ``outputs``: what the updater emits."""
        check_object("partition_persist", updater, StateUpdater)
        view, name = projection(self.fields, select(self.fields, inputs)), self._topology.add_state(state)
        return self._persist(name, view, updater, names_of(outputs))

    def persistent_aggregate(
        self, state: StateFactory, aggregator: AnyAggregator, outputs: Fields, inputs: Fields | None = None
    ) -> TridentState:
        """Aggregates all batches, into the one value of a new state."""
        (added,) = _one(outputs)
        if isinstance(aggregator, CombinerAggregator):
            total = self.chained_agg().aggregate(aggregator, added, inputs).chain_end(everywhere=False)
            name = self._topology.add_state(state, snapshot=True)
            updater: StateUpdater = CombineIntoSnapshot(aggregator)
            return total._persist(name, projection((added,), (added,)), updater, (added,))
        if not isinstance(aggregator, ReducerAggregator):
            raise TopologyError([f"{aggregator!r} can't update a state: give a combiner or a reducer"])
        seen = select(self.fields, inputs)
        name = self._topology.add_state(state, snapshot=True)
        updater = ReduceIntoSnapshot(aggregator)
        return self.global_()._persist(name, projection(self.fields, seen), updater, (added,))

    def state_query(self, state: TridentState, inputs: Fields, function: QueryFunction, outputs: Fields) -> Stream:
        """Appends what the state says about each tuple; runs in the tasks of the state."""
        hint = "persistent_aggregate(), partition_persist() and new_static_state(factory) return one"
        check_object("state_query", state, TridentState, hint)
        check_object("state_query", function, QueryFunction)
        seen, added = select(self.fields, inputs), names_of(outputs)
        self._check_added(added)
        view, name, count = projection(self.fields, seen), state.name, len(added)
        return self._then(
            (*self.fields, *added),
            lambda: Query(copy.deepcopy(function), view, name, count),
            f"query {name} by {_title(seen)}",
            state=name,
        )

    # --- inside -------------------------------------------------------------------------------------------------

    def _check_added(self, added: tuple[str, ...]) -> None:
        if not set(added).isdisjoint(self.fields):
            message = "Additive operations cannot add fields with same name as already exists. Tried adding {} to {}"
            raise TopologyError([message.format(list(added), list(self.fields))])

    def _extreme(self, key: str | Callable[[TridentTuple], Any], *, largest: bool) -> Stream:
        if isinstance(key, str):
            select(self.fields, key)
        return self.partition_aggregate(Extreme(key, largest=largest), self.fields)

    def _window(
        self,
        config: WindowConfig | EventWindowConfig,
        aggregator: AnyAggregator,
        outputs: Fields,
        inputs: Fields | None,
        state: StateFactory | None,
    ) -> Stream:
        seen, added = select(self.fields, inputs), names_of(outputs)
        updater = WindowUpdater(config, Aggregation(seen, aggregator, added))
        name = self._topology.add_state(MemoryMapState() if state is None else state)
        view = projection(self.fields, (*config.ahead, *seen))
        return self._persist(name, view, updater, (*added, *config.bounds)).new_values_stream()

    def _mapped(self, name: str, kind: type[Map], function: MapFunction, outputs: Fields | None) -> Stream:
        check_function(name, function)
        names = self.fields if outputs is None else names_of(outputs)
        view, count = projection(self.fields, self.fields), len(names)
        return self._then(names, lambda: kind(copy.deepcopy(function), view, count), f"map -> {_title(names)}")

    def _then(
        self,
        fields: tuple[str, ...],
        make: Callable[[], Processor],
        label: str,
        state: str | None = None,
        *,
        commits: bool = False,
        by_partition: bool = False,
    ) -> Stream:
        graph = self._topology.graph
        node = ProcessorNode(graph.next_index, fields, (self._node,), self._name, None, label, make, state, commits)
        node.by_partition = by_partition
        graph.add(node)
        return Stream(self._topology, node, self._name)

    def _partition(self, grouping: GroupingPlan, *, identity: bool = False) -> Stream:
        if isinstance(self._node, PartitionNode):  # both happen, with a task in between
            return self._then(self.fields, Pass, "pass")._partition(grouping, identity=identity)
        graph = self._topology.graph
        node = PartitionNode(graph.next_index, self.fields, (self._node,), self._name, None, "", grouping, identity)
        graph.add(node)
        return Stream(self._topology, node, self._name)

    def _folded(
        self, make: Callable[[], Fold], fields: tuple[str, ...], alone: Callable[[int, int, int], bool] | None
    ) -> Stream:
        return self._then(fields, lambda: Aggregate(make(), alone), f"aggregate -> {_title(fields)}")

    def _persist(
        self, name: str, view: Callable[[Any], Any], updater: StateUpdater, outputs: tuple[str, ...]
    ) -> TridentState:
        count = len(outputs)
        stream = self._then(
            outputs,
            lambda: Persist(copy.deepcopy(updater), view, name, count),
            f"persist {name}",
            state=name,
            commits=True,
            by_partition=updater.by_partition,
        )
        return TridentState(stream, name)


class Chain:
    """Aggregators that work side by side; the results are the cross product of what each emits."""

    def __init__(self, stream: Stream, parts: tuple[tuple[Aggregation, bool], ...], group: Sequence[str] = ()) -> None:
        self._stream, self._parts, self._group = stream, parts, tuple(group)

    def partition_aggregate(self, aggregator: AnyAggregator, outputs: Fields, inputs: Fields | None = None) -> Chain:
        """One more, of each task's part."""
        return self._add(aggregator, outputs, inputs, whole=False)

    def aggregate(self, aggregator: AnyAggregator, outputs: Fields, inputs: Fields | None = None) -> Chain:
        """One more, of whole batches (groups)."""
        return self._add(aggregator, outputs, inputs, whole=True)

    def chain_end(self, *, everywhere: bool = True) -> Stream:
        """The stream of the results; ``everywhere=False``: all batches in the first task."""
        if not self._parts:
            raise TopologyError(["chain_end() without an aggregator before it"])
        if len({whole for _, whole in self._parts}) > 1:
            raise TopologyError(["a chain has aggregators of whole batches, or of partitions, not both"])
        parts, whole = [part for part, _ in self._parts], self._parts[0][1]
        added = tuple(field for part in parts for field in part.outputs)
        fields = names_of((*self._group, *added))
        stream, group = self._stream, self._group

        def fold(source: tuple[str, ...]) -> Callable[[], Fold]:
            places = [source.index(name) for name in group]
            return lambda: grouped(fold_of(parts, source), places)

        nobody = _nobody if group else None
        if not whole:
            return stream._folded(fold(stream.fields), fields, nobody)
        combines = all_combine(parts)
        if combines:
            stream = stream._folded(fold(stream.fields), fields, nobody)
        ungrouped = stream.batch_global if everywhere else stream.global_
        stream = stream.partition_by(group) if group else ungrouped()
        alone = nobody or (_spokesman if everywhere else _first)
        if not combines:
            return stream._folded(fold(stream.fields), fields, alone)

        return stream._folded(lambda: grouped(combining_fold(parts, len(group)), range(len(group))), fields, alone)

    def _add(self, aggregator: AnyAggregator, outputs: Fields, inputs: Fields | None, *, whole: bool) -> Chain:
        part = Aggregation(select(self._stream.fields, inputs), aggregator, names_of(outputs))
        return Chain(self._stream, (*self._parts, (part, whole)), self._group)


class GroupedStream:
    """A stream whose aggregations happen group by group."""

    def __init__(self, stream: Stream, group: tuple[str, ...]) -> None:
        self._stream, self.group_fields = stream, group

    def to_stream(self) -> Stream:
        """The tuples, without groups."""
        return self._stream

    def name(self, name: str) -> GroupedStream:
        """As for a stream."""
        return GroupedStream(self._stream.name(name), self.group_fields)

    def each(self, inputs: Fields, function: Function | MapFunction, outputs: Fields) -> GroupedStream:
        """As for a stream."""
        return GroupedStream(self._stream.each(inputs, function, outputs), self.group_fields)

    def chained_agg(self) -> Chain:
        """As for a stream, for each group; the results begin with the group's fields."""
        return Chain(self._stream, (), self.group_fields)

    def partition_aggregate(self, aggregator: AnyAggregator, outputs: Fields, inputs: Fields | None = None) -> Stream:
        """Each group of each task's part of a batch."""
        return self.chained_agg().partition_aggregate(aggregator, outputs, inputs).chain_end()

    def aggregate(self, aggregator: AnyAggregator, outputs: Fields, inputs: Fields | None = None) -> Stream:
        """Each group of a batch; nothing of an empty one."""
        return self.chained_agg().aggregate(aggregator, outputs, inputs).chain_end()

    def persistent_aggregate(
        self, state: StateFactory, aggregator: AnyAggregator, outputs: Fields, inputs: Fields | None = None
    ) -> TridentState:
        """Aggregates all batches, into a new map state whose keys are the groups."""
        (added,) = _one(outputs)
        group = self.group_fields
        if isinstance(aggregator, CombinerAggregator):
            counts = self.aggregate(aggregator, added, inputs)
            name = self._stream._topology.add_state(state)
            fields = counts.fields
            return counts._persist(name, tuple, CombineIntoMap(aggregator), fields)
        if not isinstance(aggregator, ReducerAggregator):
            raise TopologyError([f"{aggregator!r} can't update a state: give a combiner or a reducer"])
        stream = self._stream
        seen = select(stream.fields, inputs)
        wanted = (*group, *(field for field in seen if field not in group))
        stream = stream.partition_by(group)
        updater = ReduceIntoMap(aggregator, projection(wanted, seen), len(group))
        name = stream._topology.add_state(state)
        return stream._persist(name, projection(stream.fields, wanted), updater, (*group, added))

    def state_query(self, state: TridentState, inputs: Fields, function: QueryFunction, outputs: Fields) -> Stream:
        """Asks the tasks that hold the groups."""
        return self._stream.partition_by(self.group_fields).state_query(state, inputs, function, outputs)


def _one(outputs: Fields) -> tuple[str, ...]:
    names = names_of(outputs)
    if len(names) != 1:
        raise TopologyError([f"a persistent aggregate gives one field, not {list(names)}"])
    return names


def _nobody(txid: int, partition: int, partitions: int) -> bool:  # noqa: ARG001
    return False


def _spokesman(txid: int, partition: int, partitions: int) -> bool:
    return spokesman(txid, partitions) == partition


def _first(txid: int, partition: int, partitions: int) -> bool:  # noqa: ARG001
    return partition == 0


def _title(fields: Sequence[str]) -> str:
    return ", ".join(fields) or "nothing"
