"""Spouts over a source of several partitions, each of which can be read again from a position."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ardea.context import TopologyContext
from ardea.errors import FailedException
from ardea.trident.operations import Collector
from ardea.trident.spout import Attempt, Coordinator, Emitter, TridentSpout
from ardea.trident.store import StreamStore

POSITIONS = "positions"


class PartitionedSpout(TridentSpout[list[str]]):
    """A partitioned source.  What a batch took of a partition is its *position*, a JSON value of the author's.

    Transactional by default: positions are stored as a batch is emitted, and a batch that comes again is emitted from
    the stored ones, exactly as it was.  With ``opaque`` they are stored as it commits: a batch that comes again begins
    where the one before it ended, and may have other tuples.  A partition keeps its place, and with it its task, from
    when it is first seen; one that has gone is asked, and emits nothing.
    """

    opaque: bool = False

    @property
    def kind(self) -> str:  # type: ignore[override]
        """As ``opaque`` says."""
        return "opaque" if self.opaque else "transactional"

    def open(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once in each process that uses the spout."""

    @abstractmethod
    def partitions(self) -> Sequence[str]:
        """The names of the partitions that there are now."""

    @abstractmethod
    def emit_new(self, attempt: Attempt, partition: str, last: Any, collector: Collector) -> Any:
        """Emits what follows on ``last``, the position of the batch before (None: there is none); returns its own."""

    def emit_again(self, attempt: Attempt, partition: str, position: Any, collector: Collector) -> None:
        """Emits what the batch with that position emitted; not asked of opaque spouts."""
        raise NotImplementedError

    def is_ready(self, positions: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether there is something behind these positions of the last batch, by partition."""
        return True

    def finished(self, positions: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Whether there will be nothing behind them."""
        return False

    def close(self) -> None:
        """The task ends."""

    def coordinator(
        self, config: Mapping[str, Any], context: TopologyContext, store: StreamStore
    ) -> Coordinator[list[str]]:
        """Knows the order of the partitions."""
        self.open(config, context)
        return _Coordinator(self, store)

    def emitter(self, config: Mapping[str, Any], context: TopologyContext, store: StreamStore) -> Emitter[list[str]]:
        """Emits every n-th partition."""
        self.open(config, context)
        tasks = len(context.component_tasks(context.this_component_id))
        return _Emitter(self, store, context.this_task_index, tasks)


class _Coordinator(Coordinator[list[str]]):
    def __init__(self, spout: PartitionedSpout, store: StreamStore) -> None:
        self._spout, self._store = spout, store
        self._asked: int | None = None
        self._positions: dict[str, Any] = {}

    def initialize_transaction(
        self,
        txid: int,  # noqa: ARG002
        previous: list[str] | None,
        current: list[str] | None,
    ) -> list[str]:
        if current is not None and not self._spout.opaque:
            return current
        # The batch before decides the order, since it may have come again with more: a list's place is its task's.
        known = [*dict.fromkeys([*(previous or ()), *(current or ())])]
        return [*known, *sorted(set(self._spout.partitions()).difference(known))]

    def is_ready(self, txid: int) -> bool:
        return self._spout.is_ready(self._before(txid))

    def finished(self, txid: int) -> bool:
        return self._spout.finished(self._before(txid))

    def success(self, txid: int) -> None:  # noqa: ARG002
        self._asked = None

    def close(self) -> None:
        self._spout.close()

    def _before(self, txid: int) -> dict[str, Any]:
        """What is stored, read once a transaction: an older position only makes it look readier than it is."""
        if self._asked != txid:
            self._asked, self._positions = txid, {}
            for positions in stored_positions(self._store, below=txid).values():
                self._positions.update(positions)
        return self._positions


class _Emitter(Emitter[list[str]]):
    """``_known``: transaction -> position by partition, of what is stored and of what this life has emitted.

    Those behind an opaque batch that comes again are not its business: each is replaced as its own batch comes again.
    """

    def __init__(self, spout: PartitionedSpout, store: StreamStore, index: int, tasks: int) -> None:
        self._spout, self._store, self._index, self._tasks = spout, store, index, tasks
        self._known = stored_positions(store)
        self._emitted: set[int] = set()  # transactions that this life has emitted to their ends

    def emit_batch(self, attempt: Attempt, metadata: list[str] | None, collector: Collector) -> None:
        spout, txid = self._spout, attempt.txid
        if not attempt.first and txid - 1 not in self._emitted:
            # A former life of this task had it: what follows on it is not known before it has come again.
            raise FailedException(f"transaction {txid - 1} was lost, and {txid} follows on it; both come again")
        before = {} if spout.opaque else self._known.get(txid, {})
        positions: dict[str, Any] = {}
        for partition in (metadata or [])[self._index :: self._tasks]:
            if partition in before:
                positions[partition] = before[partition]
                spout.emit_again(attempt, partition, before[partition], collector)
            else:
                positions[partition] = spout.emit_new(attempt, partition, self._last(txid, partition), collector)
        if not spout.opaque and not positions.items() <= before.items():
            # Known only when it is stored: if this raises, the attempt cannot commit, and the next one stores its own.
            self._store.put(f"{POSITIONS}/{txid}/{self._index}", positions)
        self._known[txid] = {**before, **positions}
        self._emitted.add(txid)

    def commit(self, attempt: Attempt) -> None:
        self._store.put(f"{POSITIONS}/{attempt.txid}/{self._index}", self._known[attempt.txid])

    def success(self, txid: int) -> None:
        """Each has the positions of all partitions of this task; that of the transaction before stays, too.

        An opaque batch begins there, should the coordinator repeat what is committed because its record was damaged.
        """
        self._emitted = {emitted for emitted in self._emitted if emitted >= txid}
        if txid not in self._known:
            return
        for old in sorted(known for known in self._known if known < txid)[:-1]:
            del self._known[old]
            self._store.delete(f"{POSITIONS}/{old}/{self._index}")

    def close(self) -> None:
        self._spout.close()

    def _last(self, txid: int, partition: str) -> Any:
        found = [known for known, positions in self._known.items() if known < txid and partition in positions]
        return self._known[max(found)][partition] if found else None


def stored_positions(store: StreamStore, below: int | None = None) -> dict[int, dict[str, Any]]:
    """Transaction, ascending -> position by partition, of all emitters, as far as it is stored.

    Of two positions of a partition that of the lower emitter counts: what a higher one has left is older, from when
    there were more.  All that there are write as an opaque batch commits; those of a transactional one are equal.
    """
    found: dict[int, dict[str, Any]] = {}
    for txid in store.transactions(POSITIONS):
        if below is None or txid < below:
            folder = f"{POSITIONS}/{txid}"
            names = sorted(store.names(folder), key=int, reverse=True)
            parts = [store.get(f"{folder}/{name}") or {} for name in names]
            found[txid] = {partition: position for part in parts for partition, position in part.items()}
    return found
