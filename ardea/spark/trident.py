"""Micro-batches of a streaming query as the batches of a Trident stream: replayed identically, in this run or the next.

Everything lies in one folder that outlives the topology: Spark's checkpoint, the index, and the staged files of
micro-batches that are not committed yet.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ardea.component import Bolt
from ardea.context import TopologyContext
from ardea.errors import FailedException, TopologyError, UserError
from ardea.protocol.arrow import rows_of
from ardea.spark.driver import SCRATCH
from ardea.spark.index import Head, IndexReader
from ardea.spark.job import PROGRESS
from ardea.spark.progress import write_mark
from ardea.spark.reading import SharedFiles, batches_of
from ardea.spark.stream_driver import StreamDriver
from ardea.spark.streaming import SparkStreamSpout
from ardea.trident.spout import Attempt, BatchCollector, Coordinator, Emitter, TridentSpout
from ardea.trident.store import StreamStore

Span = list[Any]
"""A transaction's metadata: the stream, its first micro-batch, and the one behind its last: it has one or none."""
UNKNOWN = ""
"""The stream of transactions from before there was an index.  They have a span, too: it is stored, and None is not."""
META = "meta"


class SparkTridentSpout(TridentSpout[Span]):
    """A streaming DataFrame as a transactional Trident spout.  Guarantees and failures: docs/spark.md."""

    kind = "transactional"

    def __init__(self, function: Callable[[Any], Any], schema: str, folder: str, **options: Any) -> None:
        """The stream goes on in ``folder`` when a topology with the same name runs again.

        Args:
            function: as for :class:`SparkStreamSpout`.
            schema: as there.
            folder: an absolute path that all processes of the topology see; not removed.
            **options: those of :class:`SparkStreamSpout` but ``storage``; ``ahead`` from 2.

        Raises:
            TopologyError: an argument is wrong, or a column cannot be kept; all problems at once.
        """
        problems = []
        if not (isinstance(folder, str) and folder.startswith("/")):
            problems.append(f"SparkTridentSpout: folder= takes an absolute path, not {folder!r}")
        if "timestamps" in options:
            problems.append("SparkTridentSpout: it takes no timestamps=: Trident has no watermarks")
        if options.get("ahead") == 1:
            problems.append("SparkTridentSpout: ahead= takes a number from 2")
        try:
            job = SparkStreamSpout(function, schema, **options, storage=str(folder)).job
        except TopologyError as error:
            problems += [problem for problem in error.problems if "storage=" not in problem]
        if problems:
            raise TopologyError(problems, hint="docs/spark.md says what a SparkTridentSpout takes.")
        self._folder = Path(folder)
        self.outputs = [column.name for column in job.columns]
        driver: type[Bolt] = type("TridentDriver", (TridentDriver,), {"job": job})
        self.companion = driver

    def coordinator(self, config: Mapping[str, Any], context: TopologyContext, store: StreamStore) -> Coordinator[Span]:  # noqa: ARG002
        """Knows which micro-batch each transaction has."""
        return _Coordinator(self._folder, context.topology_id, store)

    def emitter(self, config: Mapping[str, Any], context: TopologyContext, store: StreamStore) -> Emitter[Span]:  # noqa: ARG002
        """Emits every n-th partition."""
        return _Emitter(self._folder, context)


class TridentDriver(StreamDriver):
    """The driver of a stream whose folder stays."""

    def find_folder(self, config: Mapping[str, Any], context: TopologyContext) -> Path:  # noqa: ARG002
        """As given."""
        return Path(self.job.storage or "")

    def process(self, tup: Any) -> None:
        """A transaction is committed; the marks say so too."""

    def remove_staged(self) -> None:
        """The next run goes on with it; only Spark's temporary files go."""
        shutil.rmtree(self.folder / SCRATCH, ignore_errors=True)


class _Followed:
    """The index, and the marks of what is committed."""

    def __init__(self, folder: Path) -> None:
        self._marks = folder / PROGRESS
        self.index = IndexReader(folder)

    def committed(self, below: int) -> None:
        """All micro-batches below that number: the driver may remove them."""
        self.index.poll()
        for number, batch in self.index.batches.items():
            for partition in batch.partitions if number < below else ():
                write_mark(self._marks, partition.number, partition.batches)


class _Coordinator(Coordinator[Span]):
    def __init__(self, folder: Path, topology: str, store: StreamStore) -> None:
        self._followed = _Followed(folder)
        self._folder, self._topology, self._store = folder, topology, store
        self._asked: int | None = None
        self._before = 0

    def initialize_transaction(self, txid: int, previous: Span | None, current: Span | None) -> Span:  # noqa: ARG002
        if current is not None:
            return current
        index = self._followed.index
        index.poll()
        stream, _, behind = previous or [UNKNOWN, 0, 0]
        if index.head is None:
            return [stream, behind, behind]
        begin = max(index.head.batches, behind)  # what is removed was committed
        while begin in index.batches and not index.batches[begin].partitions:
            begin += 1  # without rows: the driver removes it, whoever has read it
        return [index.head.stream, begin, begin + (begin in index.batches)]

    def is_ready(self, txid: int) -> bool:
        index = self._followed.index
        index.poll()
        return index.head is not None and self._behind(txid, index.head) < self._published()

    def finished(self, txid: int) -> bool:
        index = self._followed.index
        if index.complete is None or index.complete.topology != self._topology or index.head is None:
            return False
        return self._behind(txid, index.head) >= self._published()

    def success(self, txid: int) -> None:
        self._asked = None
        if (span := self._store.get(f"{META}/{txid}")) is not None:
            self._followed.committed(below=span[2])

    def _published(self) -> int:
        index = self._followed.index
        assert index.head is not None
        return index.head.batches + len(index.batches)

    def _behind(self, txid: int, head: Head) -> int:
        """What follows on the transactions before, read once a transaction: if it is older, one has no rows."""
        if self._asked != txid:
            self._asked, self._before = txid, 0
            for earlier in self._store.transactions(META):
                if earlier < txid and (span := self._store.get(f"{META}/{earlier}")) is not None:
                    self._before = span[2]
                    if span[0] not in (UNKNOWN, head.stream):
                        raise UserError(
                            f"{self._folder} has another stream than the one that transaction {earlier} read: "
                            "the topology ends",
                            hint="Restore the folder, or give the Trident stream another txid to begin from the start.",
                        )
        return max(head.batches, self._before)


class _Emitter(Emitter[Span]):
    def __init__(self, folder: Path, context: TopologyContext) -> None:
        self._followed = _Followed(folder)
        self._files = SharedFiles(folder)
        self._place = context.this_task_index
        self._tasks = len(context.component_tasks(context.this_component_id))

    def emit_batch(self, attempt: Attempt, metadata: Span | None, collector: BatchCollector) -> None:
        assert metadata is not None
        _, begin, end = metadata
        if attempt.first:
            self._followed.committed(below=begin)
        index = self._followed.index
        index.poll()
        for number in range(begin, end):
            if number not in index.batches:
                raise FailedException(f"micro-batch {number} is committed and removed")
            for partition in index.batches[number].partitions[self._place :: self._tasks]:
                for numbered in batches_of(self._files, partition, 0):
                    if numbered is not None:
                        collector.emit_rows(rows_of(numbered[1]))
