"""Where batches come from: the contracts of spouts (docs/trident.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from ardea.component import Bolt
from ardea.context import TopologyContext
from ardea.trident.operations import BatchCollector as BatchCollector  # spouts of other packages find it here
from ardea.trident.store import StreamStore

M = TypeVar("M")


class Attempt(NamedTuple):
    """An attempt of a transaction; a later one of the same transaction has a higher number.

    ``first``: when it began, all transactions before were committed.
    """

    txid: int
    attempt: int
    first: bool = True


class Coordinator(Generic[M]):
    """Decides about batches, in two places: readiness and end in the master coordinator, metadata in the spout's."""

    def initialize_transaction(self, txid: int, previous: M | None, current: M | None) -> M | None:  # noqa: ARG002
        """The batch's metadata, which is stored and given to all emitters; JSON values.

        Args:
            txid: the transaction.
            previous: the metadata of the one before, if that is known.
            current: what an earlier attempt of this one got, or None.
        """
        return current

    def is_ready(self, txid: int) -> bool:  # noqa: ARG002
        """Whether this transaction can begin; asked often."""
        return True

    def finished(self, txid: int) -> bool:  # noqa: ARG002
        """Whether all is committed and nothing will come, ``txid`` being the next one; asked when it is not ready."""
        return False

    def success(self, txid: int) -> None:
        """The transaction is committed."""

    def close(self) -> None:
        """The task ends."""


class Emitter(ABC, Generic[M]):
    """Emits one task's part of each batch."""

    @abstractmethod
    def emit_batch(self, attempt: Attempt, metadata: M | None, collector: BatchCollector) -> None:
        """Emits it; an attempt above the last one replaces that."""

    def commit(self, attempt: Attempt) -> None:
        """The transaction commits.  Called only if the spout is ``committing``."""

    def success(self, txid: int) -> None:
        """The transaction is committed."""

    def close(self) -> None:
        """The task ends."""


class TridentSpout(ABC, Generic[M]):
    """A source of batches.

    Attributes:
        outputs: its fields.
        config: configuration that its tasks bring along.
        committing: whether its emitters take part in the commit phase.
        most_tasks: how many tasks it can have; None: any number.
        kind: ``transactional``, ``opaque``, ``non-transactional``, or None: its author knows.
        companion: a bolt of one task that comes along as ``spout-TXID_driver``, and gets a row [txid, attempt] for each
            committed transaction.
    """

    outputs: Sequence[str] = ()
    config: Mapping[str, Any] = MappingProxyType({})
    committing: bool = False
    most_tasks: int | None = None
    kind: str | None = None
    companion: type[Bolt] | None = None

    def coordinator(self, config: Mapping[str, Any], context: TopologyContext, store: StreamStore) -> Coordinator[M]:  # noqa: ARG002
        """Made in the tasks of both coordinators; by default one that is always ready and has no metadata."""
        return Coordinator()

    @abstractmethod
    def emitter(self, config: Mapping[str, Any], context: TopologyContext, store: StreamStore) -> Emitter[M]:
        """Made in each task of the spout."""


class BatchSpout(TridentSpout[None]):
    """A source that numbers its batches itself, for one task: Storm's ``IBatchSpout``.

    It is transactional if ``emit_batch`` emits the same again for the same number, in any process.
    """

    most_tasks = 1

    def open(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once in each process that uses the spout."""

    def emit_batch(self, batch_id: int, collector: BatchCollector) -> None:
        """Emits the batch with this number, from 1."""
        raise NotImplementedError

    def is_ready(self, batch_id: int) -> bool:  # noqa: ARG002
        """Whether there is such a batch now."""
        return True

    def finished(self, batch_id: int) -> bool:  # noqa: ARG002
        """Whether there will be no batch from this one on; asked when it is not ready."""
        return False

    def ack(self, batch_id: int) -> None:
        """The batch is committed."""

    def close(self) -> None:
        """The task ends."""

    def coordinator(self, config: Mapping[str, Any], context: TopologyContext, store: StreamStore) -> Coordinator[None]:  # noqa: ARG002
        """Asks the spout."""
        self.open(config, context)
        return _BatchCoordinator(self)

    def emitter(self, config: Mapping[str, Any], context: TopologyContext, store: StreamStore) -> Emitter[None]:  # noqa: ARG002
        """Asks the spout."""
        self.open(config, context)
        return _BatchEmitter(self)


class _BatchCoordinator(Coordinator[None]):
    def __init__(self, spout: BatchSpout) -> None:
        self._spout = spout

    def is_ready(self, txid: int) -> bool:
        return self._spout.is_ready(txid)

    def finished(self, txid: int) -> bool:
        return self._spout.finished(txid)

    def close(self) -> None:
        self._spout.close()


class _BatchEmitter(Emitter[None]):
    def __init__(self, spout: BatchSpout) -> None:
        self._spout = spout

    def emit_batch(self, attempt: Attempt, metadata: None, collector: BatchCollector) -> None:  # noqa: ARG002
        self._spout.emit_batch(attempt.txid, collector)

    def success(self, txid: int) -> None:
        self._spout.ack(txid)

    def close(self) -> None:
        self._spout.close()


class FixedBatchSpout(BatchSpout):
    """Emits fixed rows, ``size`` a batch, then the stream is finished.  Transactional."""

    kind = "transactional"

    def __init__(self, outputs: Sequence[str], rows: Sequence[Sequence[Any]], size: int) -> None:
        self.outputs = [outputs] if isinstance(outputs, str) else list(outputs)
        self._rows, self._size = rows, size

    def emit_batch(self, batch_id: int, collector: BatchCollector) -> None:
        """The rows of that number."""
        collector.emit_rows(self._rows[(batch_id - 1) * self._size : batch_id * self._size])

    def is_ready(self, batch_id: int) -> bool:
        """Whether rows are left for it."""
        return (batch_id - 1) * self._size < len(self._rows)

    def finished(self, batch_id: int) -> bool:
        """Whether none are."""
        return not self.is_ready(batch_id)
