"""Which batches there are: a batch group's master coordinator, each spout's.  The compiler makes subclasses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from ardea.component import Bolt, Spout
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import FailedException, StateError
from ardea.trident.measures import Measures
from ardea.trident.spout import TridentSpout
from ardea.trident.store import MemoryStore, StreamStore, open_store, temporary
from ardea.trident.transactions import Phase, Step, Transactions

BATCH, COMMIT, SUCCESS = "$batch", "$commit", "$success"
PENDING = "topology.max.spout.pending"
RECORD = "coordinator"
USES_STATE = MappingProxyType({"topology.state.access": True})
"""The configuration of components that remember transactions in the state manager."""


class MasterBatchCoordinator(Spout):
    """Begins the batches of a batch group and lets them commit in order."""

    config = USES_STATE
    spouts: ClassVar[Mapping[str, TridentSpout[Any]]] = {}
    memory: ClassVar[MemoryStore]

    @temporary()
    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Finds out where a former life was."""
        self._stores = {name: open_store(context, self.memory, name) for name in self.spouts}
        self._coordinators = [
            copy.deepcopy(spout).coordinator(config, context, self._stores[name]) for name, spout in self.spouts.items()
        ]
        # A former version may have had another stream first: the newest record counts, and all are taken over.
        records = [_Record(store) for store in self._stores.values()]
        known = [node for record in records for node in record.nodes if node] or [[1, 0]]
        current, lives = map(max, zip(*known, strict=True))
        for record in records:
            record.write(max(current - 1, 1), lives + 1)
            record.write(current, lives + 1)
        self._record, self._lives = records[0], lives + 1  # what is common to the group lies with its first stream
        self._clock = context.clock
        settings = Settings.of(config)
        most = config.get(PENDING) or 1  # whatever the engine's default is
        self._transactions = Transactions(
            current, lives, most, settings.batch_interval_ms / 1000, settings.max_batch_failures
        )
        self._measures = Measures(context)
        self._active = self._waits = False

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
        if transactions.idle and self._ask(
            lambda: all(coordinator.finished(transactions.current) for coordinator in self._coordinators)
        ):
            self.finish()

    def idle(self) -> None:
        """Pending trees of former attempts may keep ``next_tuple`` from being called."""
        self._go_on()

    def ack(self, tup_id: Step) -> None:
        """A phase is complete."""
        transactions = self._transactions
        if tup_id.phase is Phase.COMMIT and transactions.is_present(tup_id):
            try:
                self._record.write(tup_id.txid + 1, self._lives)
            except StateError as error:
                self.logger.warning("transaction %d cannot be recorded and comes again: %s", tup_id.txid, error)
                self._again(tup_id, counts=False)
                return
        skipped = transactions.skips(tup_id.txid)
        if transactions.done(tup_id):
            self._measures.committed(tup_id, self._clock())
            if skipped:
                self._measures.skipped()
                self.logger.error("transaction %d failed too often: it is committed without its tuples", tup_id.txid)
            self.emit([tup_id.txid, tup_id.attempt], stream=SUCCESS)
            for coordinator in self._coordinators:
                self._ask(lambda: coordinator.success(tup_id.txid))  # noqa: B023
        self._go_on()

    def fail(self, tup_id: Step) -> bool:
        """A phase failed: later transactions are begun again too."""
        self._again(tup_id)
        return True

    def close(self) -> None:
        """Closes the coordinators and the stores."""
        for coordinator in self._coordinators:
            coordinator.close()
        for store in self._stores.values():
            store.close()

    def _again(self, step: Step, *, counts: bool = True) -> None:
        if self._transactions.failed(step, counts=counts):
            self._measures.failed()
            self.logger.info("transaction %d fails (attempt %d)", step.txid, step.attempt)
        self._go_on()

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

    def _ready(self, txid: int) -> bool:
        return self._ask(lambda: any(coordinator.is_ready(txid) for coordinator in self._coordinators))

    def _ask(self, question: Callable[[], bool | None]) -> bool:
        """False while the state manager does not answer: batches wait for it."""
        try:
            answer = bool(question())
        except StateError as error:
            if not self._waits:
                self.logger.warning("batches wait for the state manager: %s", error)
            self._waits = True
            return False
        self._waits = False
        return answer


class _Record:
    """[The first transaction that is not known to be committed, how many coordinators there were], with a stream.

    Two nodes in turn: should the newer one be damaged, the older one repeats a transaction, which does no harm.
    """

    def __init__(self, store: StreamStore) -> None:
        self._store = store
        self.nodes: list[Any] = [store.get(f"{RECORD}/{place}") for place in (0, 1)]

    def write(self, current: int, lives: int) -> None:
        place, node = current % 2, [current, lives]
        if not self._store.swap(f"{RECORD}/{place}", self.nodes[place], node):
            # No error of the author's: the supervisor starts this task again, if it is still the one.
            raise RuntimeError("another coordinator has taken over the stream; this one ends")
        self.nodes[place] = node


class SpoutCoordinator(Bolt):
    """Gives each transaction its metadata, the same in each attempt."""

    config = USES_STATE
    stream: ClassVar[str]
    spout: ClassVar[TridentSpout[Any]]
    memory: ClassVar[MemoryStore]

    @temporary()
    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Reads what a former life stored."""
        self._store = open_store(context, self.memory, self.stream, "coordinator")
        self._coordinator = copy.deepcopy(self.spout).coordinator(config, context, self._store)
        self._seen: set[int] = set()  # transactions of this life
        self._reported = 0  # the last one that it heard is committed
        self._metadata = {txid: self._store.get(f"meta/{txid}") for txid in self._store.transactions("meta")}

    def process(self, tup: Any) -> None:
        """A batch begins, or a transaction is committed."""
        txid, attempt, *rest = tup.values
        if tup.stream == SUCCESS:
            self._forget(txid)
            self._succeed(txid)
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

    def _succeed(self, txid: int) -> None:
        """Commits come in order: this is also the news of earlier ones, which may have been lost."""
        for committed in sorted({txid, *(seen for seen in self._seen if self._reported < seen < txid)}):
            self._coordinator.success(committed)
        self._reported = txid
        self._seen = {seen for seen in self._seen if seen >= txid}

    def _forget(self, txid: int) -> None:
        """The last committed transaction's metadata stay, for the next one to see."""
        kept = max((known for known in self._metadata if known <= txid), default=txid)
        for old in [known for known in self._metadata if known < kept]:
            del self._metadata[old]
            self._store.delete(f"meta/{old}")
