"""The author's ``SparkSpout``, and the spout that its tasks run: reading what the driver has published."""

from __future__ import annotations

import dataclasses
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ardea import units
from ardea.component import Inputs, Spec, Spout
from ardea.context import TopologyContext
from ardea.errors import ClusterError, TopologyError
from ardea.spark.driver import SparkDriver
from ardea.spark.index import IndexReader, Partition
from ardea.spark.job import DRIVER, PROGRESS, SparkJob, Start
from ardea.spark.progress import MAX_ROWS, Progress, ids_of
from ardea.spark.reading import Batches, batches_of
from ardea.spark.schema import Column, parse_schema

if TYPE_CHECKING:
    import pyarrow as pa

FILE_BYTES = 64 << 20


class SparkSpout:
    """A Spark batch job as a bounded spout: ``orders = SparkSpout(load, schema="id bigint, name string").spec(par=3)``.

    Guarantees and failures: docs/spark.md.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        schema: str,
        *,
        partitions: int | None = None,
        rows: int = 8192,
        start: Start = "early",
        deterministic: bool = False,
        file_bytes: int | str = FILE_BYTES,
        storage: str | None = None,
    ) -> None:
        """Nothing is started, and pyspark is not imported.

        Args:
            function: from a SparkSession to a DataFrame; called in the driver's process.
            schema: the columns and their types, in Spark's DDL; they are the fields of the default stream.
            partitions: the result is repartitioned into so many; None: as it is.
            rows: of a batch, at most; up to 2**20.
            start: ``early``: rows are emitted as soon as a partition is staged; ``complete``: when all are.
            deterministic: every run gives each partition the same rows in the same order.
            file_bytes: a staged file ends when it has reached this size; bytes, or like ``"64MiB"``.
            storage: the absolute path of a local folder; None: the topology's own.

        Raises:
            TopologyError: an argument is wrong, or a column cannot be kept; all problems at once.
        """
        problems = list(_problems(function, partitions, rows, start, storage))
        columns: tuple[Column, ...] = ()
        size = FILE_BYTES
        try:
            columns = parse_schema(schema)
        except TopologyError as error:
            problems += error.problems
        try:
            size = units.size(file_bytes)
        except ValueError as error:
            problems.append(f"SparkSpout: file_bytes= takes {error}, not {file_bytes!r}")
        if problems:
            raise TopologyError(problems, hint="docs/spark.md says what a SparkSpout takes.")
        self._job = SparkJob(function, columns, partitions, rows, start, deterministic, size, storage)

    def spec(
        self,
        name: str | None = None,
        par: int = 1,
        inputs: Inputs | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        tasks: int | None = None,
        cpu: float | None = None,
        ram: int | str | None = None,
        disk: int | str | None = None,
        driver_cpu: float | None = None,
        driver_ram: int | str | None = None,
    ) -> Spec:
        """Places it in a topology, as :meth:`ardea.Component.spec` does; its driver comes along as ``NAME_driver``.

        ``driver_cpu`` and ``driver_ram`` are what the driver's task needs, Spark included.
        """
        fields = [column.name for column in self._job.columns]
        reader: type[Spout] = type("StagedSpout", (StagedSpout,), {"outputs": fields, "job": self._job})
        driver: type[Spout] = type("SparkDriver", (SparkDriver,), {"job": self._job})
        spec = reader.spec(name, par, inputs, config, tasks=tasks, cpu=cpu, ram=ram, disk=disk)
        companion = driver.spec(config=config, tasks=1, cpu=driver_cpu, ram=driver_ram)
        return dataclasses.replace(spec, companions={DRIVER: companion})


def _problems(function: Any, partitions: Any, rows: Any, start: Any, storage: Any) -> Iterator[str]:
    if not inspect.isfunction(function):
        yield f"SparkSpout: its first argument is a function from a SparkSession to a DataFrame, not {function!r}"
    if partitions is not None and (type(partitions) is not int or partitions < 1):
        yield f"SparkSpout: partitions= takes a number from 1, not {partitions!r}"
    if type(rows) is not int or not 1 <= rows <= MAX_ROWS:
        yield f"SparkSpout: rows= takes a number from 1 to {MAX_ROWS:,}, not {rows!r}"
    if start not in ("early", "complete"):
        yield f"SparkSpout: start= takes 'early' or 'complete', not {start!r}"
    if storage is not None and not Path(storage).is_absolute():
        yield f"SparkSpout: storage= takes an absolute path, not {storage!r}"


class StagedSpout(Spout):
    """Emits the partitions that are its own; a task that is started again goes on where acks have a gap."""

    job: SparkJob

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ARG002
        """Finds the folder; the driver may not have made it yet."""
        self._folder = self.job.folder(context.this_component_id, context)
        self._index = IndexReader(self._folder)
        self._progress = Progress(self._folder / PROGRESS)
        self._begun: set[int] = set()
        self._batches: Batches | None = None
        self._partition = -1
        self.update(context)

    def update(self, context: TopologyContext) -> None:
        """With another number of tasks, what this one has not begun is shared anew."""
        self._place = context.this_task_index
        self._tasks = len(context.component_tasks(context.this_component_id))
        self._waiting = self._mine()

    def next_tuple(self) -> None:
        """A batch, if one is there."""
        while (batches := self._batches or self._next_partition()) is not None:
            if (numbered := self._read(batches)) is not None:
                number, batch = numbered
                ids = ids_of(self._partition, number, batch.num_rows)
                self._progress.emitted(ids)
                self.emit_batch(batch, ids)
                return
            self._batches = None
        if self._index.complete is not None and not self._waiting:
            self.finish()

    def ack(self, tup_id: int) -> None:
        """Counts."""
        self._progress.acked(tup_id)

    def _read(self, batches: Batches) -> tuple[int, pa.RecordBatch] | None:
        try:
            return next(batches, None)
        except ClusterError:
            if self._index.complete is None and not self._folder.exists():
                return None  # the job has failed, and the driver has removed everything: it says why
            raise

    def _next_partition(self) -> Batches | None:
        if self._index.complete is None and self._index.poll():
            self._waiting = self._mine()
        if not self._waiting or (self.job.start == "complete" and self._index.complete is None):
            return None
        partition = self._waiting.popleft()
        self._begun.add(partition.number)
        self._partition = partition.number
        self._batches = batches_of(self._folder, partition, self._progress.mark(partition.number))
        return self._batches

    def _mine(self) -> deque[Partition]:
        return deque(
            partition
            for number, partition in self._index.partitions.items()
            if number % self._tasks == self._place and number not in self._begun
        )
