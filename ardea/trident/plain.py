"""Any spout of the engine's as a source of batches: at least once at best, exactly once never."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ardea.collectors import RowIds, TupIds
from ardea.component import DEFAULT_STREAM, Spout, Stream, install, overrides
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import TopologyError, UserError
from ardea.trident.operations import Collector
from ardea.trident.spout import Attempt, Coordinator, Emitter, TridentSpout
from ardea.trident.store import StreamStore

FINISHED = "finished"
"""Task index -> [the transaction in which its spout had finished, number of tasks]."""


class PlainSpout(TridentSpout[None]):
    """Asks a spout for ``topology.spout.max.batch.size`` tuples a batch.  The stream ends when all tasks' finish.

    When a batch comes again, tuples that the spout does not replay itself (it has no ``fail`` of its own) are in it
    again; they are lost when their task dies.  When a batch is committed, its tuples are acked.
    """

    kind = "non-transactional"

    def __init__(self, spout: type[Spout]) -> None:
        streams = [stream for stream in spout.outputs if isinstance(stream, Stream)]
        named = next((list(stream.fields) for stream in streams if stream.name == DEFAULT_STREAM), None)
        self.outputs = named or [field for field in spout.outputs if isinstance(field, str)]
        if not self.outputs:
            raise TopologyError([f"{spout.__name__} declares no fields for its default stream"])
        self.config = dict(spout.config)
        self._spout = spout

    def coordinator(self, config: Mapping[str, Any], context: TopologyContext, store: StreamStore) -> Coordinator[None]:  # noqa: ARG002
        """Reads which tasks have finished."""
        return _PlainCoordinator(store)

    def emitter(self, config: Mapping[str, Any], context: TopologyContext, store: StreamStore) -> Emitter[None]:
        """A spout for each task."""
        return _PlainEmitter(self._spout(), config, context, store)


Emitted = tuple[Sequence[Any], Any]
"""A row and its tup_id."""


class _Into:
    """The collector of the spout."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.rows: list[Emitted] = []
        self.finished = False

    def emit(
        self, values: Sequence[Any], tup_id: Any, stream: str, direct_task: int | None, need_task_ids: bool
    ) -> list[int] | None:
        if stream != DEFAULT_STREAM or direct_task is not None or need_task_ids:
            raise UserError(f"{self._name}: as a source of batches a spout emits plainly, on the default stream")
        self.rows.append((tuple(values) if isinstance(values, list) else values, tup_id))  # it may use a list again
        return None

    def emit_many(
        self,
        rows: Iterable[Sequence[Any]],
        tup_ids: Iterable[Any] | None,
        stream: str,
        direct_task: int | None,
        need_task_counts: bool,
    ) -> None:
        ids = RowIds(rows, tup_ids, self._name)
        for row in rows:
            self.emit(row, ids.next(), stream, direct_task, need_task_counts)

    def emit_batch(self, batch: Any, tup_ids: TupIds | None, stream: str) -> None:
        ids = [None] * batch.num_rows if tup_ids is None else _ids_of(tup_ids)
        columns = [column.to_pylist() for column in batch.columns]
        for row, tup_id in zip(zip(*columns, strict=True), ids, strict=True):
            self.emit(row, tup_id, stream, None, need_task_ids=False)

    def finish(self) -> None:
        self.finished = True

    def reopen(self) -> None:
        """Its tasks are never updated."""


class _PlainCoordinator(Coordinator[None]):
    """Reads, once a transaction, what the emitters have stored under their indices."""

    def __init__(self, store: StreamStore) -> None:
        self._store = store
        self._asked: int | None = None
        self._over = False
        for name in store.names(FINISHED):  # of a former run; a finished task of this one stores it anew
            store.delete(f"{FINISHED}/{name}")

    def is_ready(self, txid: int) -> bool:
        return not self.finished(txid)

    def finished(self, txid: int) -> bool:
        if self._asked != txid:
            found = [self._store.get(f"{FINISHED}/{name}") for name in self._store.names(FINISHED)]
            last = [known for known in found if known is not None and known[0] < txid]
            self._asked, self._over = txid, bool(last) and len(last) == last[0][1]
        return self._over

    def success(self, txid: int) -> None:  # noqa: ARG002
        self._asked = None


class _PlainEmitter(Emitter[None]):
    def __init__(self, spout: Spout, config: Mapping[str, Any], context: TopologyContext, store: StreamStore) -> None:
        self._store, self._mark = store, f"{FINISHED}/{context.this_task_index}"
        self._tasks = len(context.component_tasks(context.this_component_id))
        store.delete(self._mark)  # a new life begins anew
        self._spout, self._most = spout, Settings.of(config).max_batch_size
        self._replays = not overrides(type(spout), "fail")
        self._tells_batch = overrides(type(spout), "ack_batch")
        self._into = _Into(type(spout).__name__)
        self._batches: dict[int, list[Emitted]] = {}
        install(spout, context.this_component_id, self._into)
        spout.initialize(config, context)
        spout.activate()

    def emit_batch(self, attempt: Attempt, metadata: None, collector: Collector) -> None:  # noqa: ARG002
        into, again = self._into, sorted(txid for txid in self._batches if txid >= attempt.txid)
        failed = [row for txid in again for row in self._batches[txid]]
        if not self._replays and into.finished and _ids_in(failed):
            self._store.delete(self._mark)  # it hears of them, and is asked until it has finished again
            into.finished = False
        for txid in again:
            del self._batches[txid]
        rows = self._batches[attempt.txid] = into.rows  # also if something is raised below
        try:
            if self._replays:
                rows[:0] = failed
            else:
                self._tell(self._spout.fail, failed)
            before = -1
            while not into.finished and before < len(rows) < self._most:
                before = len(rows)
                self._spout.next_tuple()
        finally:
            into.rows = []  # of the next batch, which has what ``ack`` emits
        if into.finished:
            self._store.put(self._mark, [attempt.txid, self._tasks])
        for row, _ in rows:
            collector.emit(row)

    def success(self, txid: int) -> None:
        for known in sorted(known for known in self._batches if known <= txid):
            rows = self._batches.pop(known)
            if not self._tells_batch:
                self._tell(self._spout.ack, rows)
                continue
            for of_array, part in groupby(_ids_in(rows), _number_type):
                ids = [*part]
                self._spout.ack_batch(np.array(ids) if of_array else ids)

    def close(self) -> None:
        self._spout.close()

    @staticmethod
    def _tell(verdict: Callable[[Any], Any], rows: Sequence[Emitted]) -> None:
        for tup_id in _ids_in(rows):
            verdict(tup_id.item() if _number_type(tup_id) else tup_id)


def _ids_of(tup_ids: TupIds) -> Iterable[Any]:
    """One for each row; those of a range or an array of integers are NumPy's, by which ``ack_batch`` gets an array."""
    array: Any = np.asarray(tup_ids) if isinstance(tup_ids, range) or hasattr(tup_ids, "to_numpy") else tup_ids
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        return array
    return getattr(tup_ids, "tolist", lambda: tup_ids)()


def _ids_in(rows: Sequence[Emitted]) -> list[Any]:
    return [tup_id for _, tup_id in rows if tup_id is not None]


def _number_type(tup_id: Any) -> type | None:
    return type(tup_id) if isinstance(tup_id, np.integer) else None
