"""The spouts and bolts that a Trident topology consists of.  The compiler makes a subclass for each component."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any, ClassVar

from ardea.component import Bolt, Spout
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import FailedException, StateError, UserError
from ardea.metrics import AssignableMetric
from ardea.trident.batches import BatchTracker, TrackedBatch
from ardea.trident.graph import Node, ProcessorNode
from ardea.trident.groupings import HEAD
from ardea.trident.measures import Measures
from ardea.trident.operations import OperationContext
from ardea.trident.processors import BatchRun, Processor
from ardea.trident.spout import Attempt, Emitter, TridentSpout
from ardea.trident.state import State, StateFactory
from ardea.trident.store import MemoryStore, StreamStore, open_store
from ardea.trident.transactions import Phase, Step, Transactions
from ardea.trident.tuples import Row, Rows

BATCH, COMMIT, SUCCESS = "$batch", "$commit", "$success"
SKIP = len(HEAD)
HEAD_OF = itemgetter(0, 1)
AT_ONCE = 1000
"""Rows of a spout that are sent together."""
Way = Callable[[BatchRun, Rows], None]
PENDING = "topology.max.spout.pending"
RECORD = "coordinator"
USES_STATE = MappingProxyType({"topology.state.access": True})
"""The configuration of components that remember transactions in the state manager."""


class MasterBatchCoordinator(Spout):
    """Begins the batches of a batch group and lets them commit in order."""

    config = USES_STATE
    spouts: ClassVar[Mapping[str, TridentSpout[Any]]] = {}
    memory: ClassVar[MemoryStore]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Finds out where a former life was."""
        self._stores = {name: open_store(context, self.memory, name) for name in self.spouts}
        self._coordinators = [
            copy.deepcopy(spout).coordinator(config, context, self._stores[name]) for name, spout in self.spouts.items()
        ]
        self._store = next(iter(self._stores.values()))  # what is common to the group lies with its first stream
        # Two nodes in turn: should the newer one be damaged, the older one repeats a transaction, which does no harm.
        self._recorded = [self._store.get(f"{RECORD}/{place}") for place in (0, 1)]
        current, lives = max((recorded for recorded in self._recorded if recorded), default=(1, 0))
        self._lives = lives + 1
        self._record(max(current - 1, 1))
        self._record(current)
        self._clock = context.clock
        settings = Settings.of(config)
        most = config.get(PENDING) or 1  # whatever the engine's default is
        self._transactions = Transactions(
            current, lives, most, settings.batch_interval_ms / 1000, settings.max_batch_failures
        )
        self._measures = Measures(context)
        self._active = False

    def activate(self) -> None:
        """New batches may begin."""
        self._active = True

    def deactivate(self) -> None:
        """Those that have begun go on to their end."""
        self._active = False

    def next_tuple(self) -> None:
        """Goes on; finishes when every stream has."""
        transactions = self._transactions
        self._go_on(begin=True)
        if transactions.idle and all(c.finished(transactions.current) for c in self._coordinators):
            self.finish()

    def idle(self) -> None:
        """Pending trees of former attempts may keep ``next_tuple`` from being called."""
        self._go_on()

    def ack(self, tup_id: Step) -> None:
        """A phase is complete."""
        transactions = self._transactions
        if tup_id.phase is Phase.COMMIT and transactions.is_present(tup_id):
            try:
                self._record(tup_id.txid + 1)
            except StateError as error:
                self.logger.warning("transaction %d cannot be recorded and comes again: %s", tup_id.txid, error)
                self.fail(tup_id)
                return
        if transactions.done(tup_id):
            self._measures.committed(tup_id, self._clock())
            self.emit([tup_id.txid, tup_id.attempt], stream=SUCCESS)
            for coordinator in self._coordinators:
                coordinator.success(tup_id.txid)
        self._go_on()

    def fail(self, tup_id: Step) -> bool:
        """A phase failed: later transactions are begun again too."""
        transactions = self._transactions
        if transactions.failed(tup_id):
            self._measures.failed()
            self.logger.info("transaction %d fails (attempt %d)", tup_id.txid, tup_id.attempt)
            if transactions.skips(tup_id.txid):
                self._measures.skipped()
                self.logger.error("transaction %d failed too often: it comes again without its tuples", tup_id.txid)
        self._go_on()
        return True

    def close(self) -> None:
        """Closes the coordinators and the stores."""
        for coordinator in self._coordinators:
            coordinator.close()
        for store in self._stores.values():
            store.close()

    def _go_on(self, *, begin: bool = False) -> None:
        """``begin``: new batches, too.  Who is told to end is not asked for any, and only repeats what failed."""
        transactions, now = self._transactions, self._clock()
        begins = self._active and (begin or transactions.failures)
        for step in transactions.next_steps(self._ready, now) if begins else transactions.commits():
            if step.phase is Phase.COMMIT:
                self.emit([step.txid, step.attempt], tup_id=step, stream=COMMIT)
            else:
                self._measures.began(step, now)
                first, skip = step.txid == transactions.current, transactions.skips(step.txid)
                self.emit([step.txid, step.attempt, first, skip], tup_id=step, stream=BATCH)

    def _record(self, current: int) -> None:
        """The first transaction that is not known to be committed."""
        place, record = current % 2, [current, self._lives]
        if not self._store.swap(f"{RECORD}/{place}", self._recorded[place], record):
            # No error of the author's: the supervisor starts this task again, if it is still the one.
            raise RuntimeError("another coordinator has taken over the stream; this one ends")
        self._recorded[place] = record

    def _ready(self, txid: int) -> bool:
        return any(coordinator.is_ready(txid) for coordinator in self._coordinators)


class SpoutCoordinator(Bolt):
    """Gives each transaction its metadata, the same in each attempt."""

    config = USES_STATE
    stream: ClassVar[str]
    spout: ClassVar[TridentSpout[Any]]
    memory: ClassVar[MemoryStore]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Reads what a former life stored."""
        self._store = open_store(context, self.memory, self.stream)
        self._coordinator = copy.deepcopy(self.spout).coordinator(config, context, self._store)
        self._seen: set[int] = set()  # transactions of this life
        self._metadata = {txid: self._store.get(f"meta/{txid}") for txid in self._store.transactions("meta")}

    def process(self, tup: Any) -> None:
        """A batch begins, or a transaction is committed."""
        txid, attempt, *rest = tup.values
        if tup.stream == SUCCESS:
            self._forget(txid)
            self._coordinator.success(txid)
            return
        first, skip = rest
        if not first and txid - 1 not in self._seen and txid - 1 not in self._metadata:
            raise FailedException(f"transaction {txid - 1} was lost, and {txid} follows on it; both come again")
        earlier = [known for known in self._metadata if known < txid]
        previous = self._metadata[max(earlier)] if earlier else None
        known = self._metadata.get(txid)
        metadata = self._coordinator.initialize_transaction(txid, previous, known)
        if metadata != known:
            self._store.put(f"meta/{txid}", metadata)
            self._metadata[txid] = metadata
        self._seen.add(txid)
        self.emit([txid, attempt, first, skip, metadata], stream=BATCH)

    def close(self) -> None:
        """Closes coordinator and store."""
        self._coordinator.close()
        self._store.close()

    def _forget(self, txid: int) -> None:
        """The last committed transaction's metadata stay, for the next one to see."""
        self._seen = {seen for seen in self._seen if seen >= txid}
        kept = max((known for known in self._metadata if known <= txid), default=txid)
        for old in [known for known in self._metadata if known < kept]:
            del self._metadata[old]
            self._store.delete(f"meta/{old}")


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
        batch.sent.update(self.emit_rows([head + row for row in rows], stream))

    def report(self, group: str, batch: TrackedBatch, anchor: Any) -> None:
        """Tells every task how many rows of the batch it was sent."""
        run, stream = batch.run, self.downstream[group].stream
        for task in self._targets[group]:
            values = (run.txid, run.attempt, batch.sent[task])
            self.emit(values, stream=stream, anchors=(anchor,), direct_task=task)


class SpoutExecutor(Reporting):
    """Emits one task's part of each batch."""

    config = USES_STATE
    stream: ClassVar[str]
    spout: ClassVar[TridentSpout[Any]]
    memory: ClassVar[MemoryStore]
    group: ClassVar[str]
    data_streams: ClassVar[tuple[str, ...]] = ()

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Makes the emitter."""
        super().initialize(config, context)
        self._store: StreamStore = open_store(context, self.memory, self.stream)
        self._emitter: Emitter[Any] = copy.deepcopy(self.spout).emitter(config, context, self._store)
        self._attempts: dict[int, int] = {}  # transaction -> the last attempt that was emitted
        self._size = context.register_metric("trident-batch-size", AssignableMetric())

    def process(self, tup: Any) -> None:
        """A batch, its commit, or the news of its success."""
        txid, attempt, *rest = tup.values
        if tup.stream == SUCCESS:
            self._emitter.success(txid)
            self._attempts = {known: last for known, last in self._attempts.items() if known > txid}
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
        outlet = _Outlet(self, batch, () if skip else self.data_streams)
        self._emitter.emit_batch(attempt, metadata, outlet)
        outlet.flush()
        self._size.update(outlet.count)
        self.report(self.group, batch, tup)


class _Outlet:
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
        self._rows += map(self._checked, rows)
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

    ``entries``: (component, stream) -> batch group and the nodes that its rows go to; ``exits``: node -> streams.
    """

    nodes: tuple[ProcessorNode, ...]
    groups: Mapping[Node, str]
    entries: Mapping[tuple[str, str], tuple[str, tuple[ProcessorNode, ...]]]
    exits: Mapping[Node, tuple[str, ...]]
    reports: Mapping[tuple[str, str], str]
    commits: Mapping[tuple[str, str], str]
    upstream: Mapping[str, Upstream]
    states: Mapping[str, StateFactory] = field(default_factory=dict)


class SubtopologyBolt(Reporting):
    """Runs a group of operations, batch by batch."""

    wiring: ClassVar[Wiring]

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Makes states and processors, and ties them together."""
        super().initialize(config, context)
        wiring = self.wiring
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
                settling=self,
                begin=partial(self._begin, group),
                finish=partial(self._finish, group),
            )
            for group, up in wiring.upstream.items()
        }

    def process_batch(self, rows: Sequence[Any]) -> None:
        """Rows, reports of how many rows there were, or commits; all from one task."""
        first = rows[0]
        source = (first.component, first.stream)
        if (entry := self._entries.get(source)) is not None:
            self._rows(*entry, first.task, [tup.values for tup in rows])
        elif (group := self.wiring.reports.get(source)) is not None:
            report = self._trackers[group].report
            self._one_by_one(rows, lambda tup: report(tup.values[0], tup.values[1], tup.task, tup.values[2], tup))
        else:
            commit = self._trackers[self.wiring.commits[source]].commit
            self._one_by_one(rows, lambda tup: commit(tup.values[0], tup.values[1], tup))

    def _rows(self, group: str, ways: Sequence[Way], task: int, values: Rows) -> None:
        parts = [values]
        if len(set(map(HEAD_OF, values))) > 1:
            parts = [list(part) for _, part in groupby(values, HEAD_OF)]
        tracker, wrong = self._trackers[group], None
        for part in parts:
            batch = tracker.batch(*HEAD_OF(part[0]))
            if batch is None or batch.failed:
                continue
            batch.received[task] += len(part)
            self._present = batch
            body = [row[SKIP:] for row in part]
            try:
                for execute in ways:
                    execute(batch.run, body)
            except Exception as error:
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
        for processor in self._by_group.get(group, ()):
            processor.finish(batch.run)
        if group in self.downstream:
            self.report(group, batch, tup)


def _tasks(context: TopologyContext, components: Sequence[str]) -> frozenset[int]:
    return frozenset(task for component in components for task in context.component_tasks(component))
