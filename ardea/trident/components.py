"""The bolts that batches go through.  The compiler makes a subclass for each component."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, ClassVar, cast

from ardea.component import Bolt
from ardea.context import TopologyContext
from ardea.errors import FailedException, UserError, printable
from ardea.loader import place_of
from ardea.metrics import AssignableMetric
from ardea.protocol.headed import HeadedRows
from ardea.trident.batches import BatchTracker, TrackedBatch
from ardea.trident.coordinators import BATCH, SUCCESS, USES_STATE
from ardea.trident.drpc import DrpcAddress
from ardea.trident.graph import Node, ProcessorNode
from ardea.trident.groupings import HEAD
from ardea.trident.operations import OperationContext
from ardea.trident.processors import BatchRun, Processor
from ardea.trident.spout import Attempt, Emitter, TridentSpout
from ardea.trident.state import State, StateFactory
from ardea.trident.store import MemoryStore, StreamStore, open_store, temporary
from ardea.trident.tuples import Row, Rows
from ardea.tuples import Tuple, TupleBatch

HEAD_OF = itemgetter(0, 1)
BODY_OF = itemgetter(slice(len(HEAD), None))
AT_ONCE = 1000
"""Rows of a spout that are sent together."""
Way = Callable[[BatchRun, Rows], None]


@dataclass(frozen=True, slots=True)
class Upstream:
    """What a component reads of a batch group: components that report early, and those that do so late."""

    early: tuple[str, ...]
    late: tuple[str, ...]
    commits: bool


@dataclass(frozen=True, slots=True)
class Downstream:
    """A batch group's stream of reports, and who reads it."""

    stream: str
    components: tuple[str, ...]


class Reporting(Bolt):
    """Sends rows, counts them by task, and says the counts behind them."""

    auto_anchor = False
    auto_ack = False
    downstream: ClassVar[Mapping[str, Downstream]] = {}

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ARG002
        """Finds the tasks that want a report."""
        self._targets = {
            group: tuple(task for component in way.components for task in context.component_tasks(component))
            for group, way in self.downstream.items()
        }

    def send(self, batch: TrackedBatch, stream: str, rows: Rows) -> None:
        """Emits rows, untracked: the counts are what finds a loss."""
        head = (batch.run.txid, batch.run.attempt)
        batch.sent.update(self.emit_many(rows, stream, (), need_task_counts=True, head=head))

    def report(self, group: str, batch: TrackedBatch, anchor: Any) -> None:
        """Tells every task how many rows of the batch it was sent."""
        run, stream = batch.run, self.downstream[group].stream
        asker = () if batch.asker is None else (batch.asker,)
        for task in self._targets[group]:
            values = (run.txid, run.attempt, batch.sent[task], *asker)
            self.emit(values, stream=stream, anchors=(anchor,), direct_task=task)


class SpoutExecutor(Reporting):
    """Emits one task's part of each batch."""

    config = USES_STATE
    stream: ClassVar[str]
    spout: ClassVar[TridentSpout[Any]]
    memory: ClassVar[MemoryStore]
    group: ClassVar[str]
    data_streams: ClassVar[tuple[str, ...]] = ()

    @temporary()
    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Makes the emitter."""
        super().initialize(config, context)
        self._store: StreamStore = open_store(context, self.memory, self.stream, str(context.this_task_index))
        self._emitter: Emitter[Any] = copy.deepcopy(self.spout).emitter(config, context, self._store)
        self._attempts: dict[int, int] = {}  # transaction -> the last attempt that was emitted
        self._size = context.register_metric("trident-batch-size", AssignableMetric())

    def process(self, tup: Any) -> None:
        """A batch, its commit, or the news of its success."""
        txid, attempt, *rest = tup.values
        if tup.stream == SUCCESS:
            # Commits come in order: this is also the news of earlier ones, which may have been lost.
            for committed in sorted({txid, *(known for known in self._attempts if known < txid)}):
                self._emitter.success(committed)
                self._attempts.pop(committed, None)
        elif tup.stream == BATCH:
            if attempt > self._attempts.get(txid, -1):
                first, skip, metadata = rest
                self._begin(Attempt(txid, attempt, first), metadata, tup, skip=skip)
            self.ack(tup)
        elif attempt == self._attempts.get(txid):
            self._emitter.commit(Attempt(txid, attempt))
            self.ack(tup)
        elif attempt < self._attempts.get(txid, -1):
            self.ack(tup)  # of a former attempt: its verdict interests nobody
        else:
            raise FailedException("Received commit for different transaction attempt")

    def close(self) -> None:
        """Closes emitter and store."""
        self._emitter.close()
        self._store.close()

    def _begin(self, attempt: Attempt, metadata: Any, tup: Any, *, skip: bool) -> None:
        self._attempts[attempt.txid] = attempt.attempt
        batch = TrackedBatch(BatchRun(attempt.txid, attempt.attempt))
        output = _BatchOutput(self, batch, () if skip else self.data_streams)
        self._emitter.emit_batch(attempt, metadata, output)
        output.flush()
        self._size.update(output.count)
        self.report(self.group, batch, tup)


class _BatchOutput:
    """The collector of an emitter."""

    def __init__(self, bolt: SpoutExecutor, batch: TrackedBatch, streams: Sequence[str]) -> None:
        self._bolt, self._batch, self._streams = bolt, batch, streams
        self._fields = len(bolt.spout.outputs)
        self._rows: Rows = []
        self.count = 0  # rows of the batch

    def emit(self, values: Sequence[Any]) -> None:
        self._rows.append(self._checked(values))
        if len(self._rows) >= AT_ONCE:
            self.flush()

    def emit_rows(self, rows: Sequence[Sequence[Any]]) -> None:
        whole = set(map(len, rows)) <= {self._fields}
        self._rows += map(tuple if whole else self._checked, rows)
        self.flush()

    def flush(self) -> None:
        rows, self._rows = self._rows, []
        self.count += len(rows)
        for stream in self._streams if rows else ():
            self._bolt.send(self._batch, stream, rows)

    def _checked(self, values: Sequence[Any]) -> Row:
        if len(values) != self._fields:
            raise UserError(
                f"spout {self._bolt.stream} emitted {len(values)} values where {self._fields} are declared: {values!r}"
            )
        return tuple(values)


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a component's nodes read and feed.

    ``entries``: (component, stream) -> batch group and the nodes that its rows go to; ``exits``: node -> streams;
    ``asked``: batch group -> the function whose requests its batches are.
    """

    nodes: tuple[ProcessorNode, ...]
    groups: Mapping[Node, str]
    entries: Mapping[tuple[str, str], tuple[str, tuple[ProcessorNode, ...]]]
    exits: Mapping[Node, tuple[str, ...]]
    reports: Mapping[tuple[str, str], str]
    commits: Mapping[tuple[str, str], str]
    upstream: Mapping[str, Upstream]
    states: Mapping[str, StateFactory] = field(default_factory=dict)
    asked: Mapping[str, DrpcAddress] = field(default_factory=dict)


class SubtopologyBolt(Reporting):
    """Runs a group of operations, batch by batch."""

    wiring: ClassVar[Wiring]

    @temporary()
    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Makes states and processors, and ties them together."""
        super().initialize(config, context)
        wiring, self._task = self.wiring, f"{context.this_component_id}-{context.this_task_index}"
        tasks = context.component_tasks(context.this_component_id)
        where = OperationContext(context.this_task_index, len(tasks), context)
        self._states: dict[str, State] = {
            name: factory.make_state(config, where.partition_index, where.num_partitions)
            for name, factory in wiring.states.items()
        }
        self._processors: dict[ProcessorNode, Processor] = {}
        for node in wiring.nodes:
            assert node.make is not None
            self._processors[node] = node.make()
        self._present: TrackedBatch
        for node, processor in self._processors.items():
            processor.send = self._ways(node)
        for processor in self._processors.values():
            processor.prepare(config, where, self._states)
        self._by_group: dict[str, list[Processor]] = {}
        for node, processor in self._processors.items():
            self._by_group.setdefault(wiring.groups[node], []).append(processor)
        self._entries = {
            source: (group, [self._processors[node].execute for node in nodes])
            for source, (group, nodes) in wiring.entries.items()
        }
        self._trackers = {
            group: BatchTracker(
                _tasks(context, up.early),
                _tasks(context, up.late),
                commits=up.commits,
                settling=_Settling(self, wiring.asked.get(group)),
                begin=partial(self._begin, group),
                finish=partial(self._finish, group),
            )
            for group, up in wiring.upstream.items()
        }

    def process_batch(self, rows: Sequence[Tuple]) -> None:
        """Rows, reports of how many rows there were, or commits; all from one task."""
        assert isinstance(rows, TupleBatch)
        source = (rows.component, rows.stream)
        if (entry := self._entries.get(source)) is not None:
            self._rows(*entry, rows.task, rows.rows)
        elif (group := self.wiring.reports.get(source)) is not None:
            report = self._trackers[group].report

            def take(tup: Any) -> None:
                txid, attempt, count, *asker = tup.values
                report(txid, attempt, tup.task, count, tup, *asker)

            self._one_by_one(rows, take)
        else:
            commit = self._trackers[self.wiring.commits[source]].commit
            self._one_by_one(rows, lambda tup: commit(tup.values[0], tup.values[1], tup))

    def _rows(self, group: str, ways: Sequence[Way], task: int, values: Sequence[Row]) -> None:
        tracker, wrong = self._trackers[group], None
        for head, body in _parts(values):
            batch = tracker.batch(*head)
            if batch is None or batch.failed:
                continue
            batch.received[task] += len(body)
            self._present = batch
            try:
                for execute in ways:
                    execute(batch.run, body)
            except Exception as error:
                self._failed(batch, error)
                tracker.fail(batch)
                wrong = error
        if wrong is not None:
            raise wrong

    def _one_by_one(self, tuples: Sequence[Any], handle: Callable[[Any], None]) -> None:
        """One that fails quietly fails alone; what else is raised ends up with the engine, which reports it."""
        wrong: Exception | None = None
        for tup in tuples:
            try:
                handle(tup)
            except FailedException:
                self.fail(tup)
            except Exception as error:
                self.fail(tup)
                wrong = error
        if wrong is not None:
            raise wrong

    def close(self) -> None:
        """Cleans up operations and states."""
        for processor in self._processors.values():
            processor.cleanup()
        for state in self._states.values():
            state.close()

    def _ways(self, node: Node) -> Way:
        """What a processor's rows go to: others here, and streams."""
        inside = [
            other.entrance(place)
            for child, other in self._processors.items()
            for place, parent in enumerate(child.parents)
            if parent is node
        ]
        streams = self.wiring.exits.get(node, ())
        if len(inside) == 1 and not streams:
            return inside[0]

        def send(run: BatchRun, rows: Rows) -> None:
            for way in inside:
                way(run, rows)
            for stream in streams:
                self.send(self._present, stream, rows)

        return send

    def _begin(self, group: str, run: BatchRun) -> None:
        for processor in self._by_group.get(group, ()):
            processor.begin(run)

    def _finish(self, group: str, batch: TrackedBatch, tup: Any) -> None:
        self._present = batch
        try:
            for processor in self._by_group.get(group, ()):
                processor.finish(batch.run)
        except Exception as error:
            self._failed(batch, error)
            raise
        if group in self.downstream:
            self.report(group, batch, tup)

    def _failed(self, batch: TrackedBatch, error: Exception) -> None:
        said = printable(error)
        if not isinstance(error, FailedException):
            said = f"{type(error).__name__}: {said} at {place_of(error)}"
        batch.error = f"{self._task}: {said}"


class _Settling:
    """Acks and fails by a bolt.  Before a request fails, its caller gets the reason."""

    def __init__(self, bolt: SubtopologyBolt, place: DrpcAddress | None) -> None:
        self._bolt, self._place, self.asked = bolt, place, place is not None
        self.ack, self.fail = bolt.ack, bolt.fail

    def failing(self, batch: TrackedBatch) -> None:
        asker, error = batch.asker, batch.error
        if self._place is None or asker is None or not error:
            return
        batch.error = ""
        try:
            self._place.reply(asker, error, failed=True)
        except OSError as unsent:
            self._bolt.logger.warning("request %s failed, and its source cannot be told why: %s", asker[0], unsent)


def _parts(rows: Sequence[Row]) -> Iterator[tuple[Row, Rows]]:
    """Head and rows of each batch: one, unless those of several have left together."""
    if isinstance(rows, HeadedRows):
        yield rows.head, cast("Rows", rows.body)  # as they were decoded
        return
    for head, part in groupby(rows, HEAD_OF):
        yield head, list(map(BODY_OF, part))


def _tasks(context: TopologyContext, components: Sequence[str]) -> frozenset[int]:
    return frozenset(task for component in components for task in context.component_tasks(component))
