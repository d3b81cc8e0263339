"""The author's ``SparkSpout``, and the spout that its tasks run: reading what the driver has published."""

from __future__ import annotations

import dataclasses
import inspect
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ardea import units
from ardea.component import Bolt, Inputs, Outputs, Spec, Spout, Stream
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import ClusterError, TopologyError, UserError
from ardea.grouping import Grouping
from ardea.keyed import ListState
from ardea.spark.driver import Driver, SparkDriver
from ardea.spark.index import IndexReader, Partition
from ardea.spark.job import DRIVER, PROGRESS, SERVE, SparkJob, Start, own_host
from ardea.spark.kept import KeptProgress
from ardea.spark.link import Link
from ardea.spark.progress import MAX_ROWS, ROW_BITS, JobProgress, ids_of
from ardea.spark.reading import ATTEMPTS, Batches, FetchedFiles, SharedFiles, batches_of, served_pieces, uri_pieces
from ardea.spark.schema import Column, parse_schema
from ardea.watermarks import Timestamps

if TYPE_CHECKING:
    import pyarrow as pa

FILE_BYTES = 64 << 20
_ASK_AGAIN = 1.0
"""Seconds between two tuples to a driver that has not answered."""


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
        timestamps: Timestamps | None = None,
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
            storage: where staged files lie: ``"serve"``, the absolute path of a folder that every machine sees, or a
                URI of pyarrow.fs; None: the topology's folder where all runs on one machine, else ``"serve"``.
            timestamps: the column with each row's event time (docs/time.md); None: rows have none, and there are no
                watermarks.

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
        self.job = SparkJob(function, columns, partitions, rows, start, deterministic, size, storage)
        self._timestamps = timestamps

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
        driver_disk: int | str | None = None,
    ) -> Spec:
        """Places it in a topology, as :meth:`ardea.Component.spec` does; its driver comes along as ``NAME_driver``.

        ``driver_cpu``, ``driver_ram`` and ``driver_disk`` are what the driver's task needs, Spark included.
        """
        outputs: Outputs = [*(column.name for column in self.job.columns), Stream(["address", "token"], DRIVER)]
        reads, drives = self._tasks()
        body = {"outputs": outputs, "job": self.job, "timestamps": self._timestamps}
        reader: type[Spout] = type(reads.__name__, (reads,), body)
        driver: type[Bolt] = type(drives.__name__, (drives,), {"job": self.job})
        companions: dict[str, Spec] = {}
        spec = reader.spec(name, par, inputs, config, tasks=tasks, cpu=cpu, ram=ram, disk=disk)
        spec = dataclasses.replace(spec, companions=companions)
        asked = {spec[DRIVER]: Grouping.GLOBAL}
        companions[DRIVER] = driver.spec(
            inputs=asked, config=config, tasks=1, cpu=driver_cpu, ram=driver_ram, disk=driver_disk
        )
        return spec

    def _tasks(self) -> tuple[type[StagedSpout], type[Driver]]:
        """What reads, and what runs Spark."""
        return StagedSpout, SparkDriver


def _problems(function: Any, partitions: Any, rows: Any, start: Any, storage: Any) -> Iterator[str]:
    if not inspect.isfunction(function):
        yield f"SparkSpout: its first argument is a function from a SparkSession to a DataFrame, not {function!r}"
    if partitions is not None and (type(partitions) is not int or partitions < 1):
        yield f"SparkSpout: partitions= takes a number from 1, not {partitions!r}"
    if type(rows) is not int or not 1 <= rows <= MAX_ROWS:
        yield f"SparkSpout: rows= takes a number from 1 to {MAX_ROWS:,}, not {rows!r}"
    if start not in ("early", "complete"):
        yield f"SparkSpout: start= takes 'early' or 'complete', not {start!r}"
    if storage is not None and not (storage == SERVE or "://" in storage or Path(storage).is_absolute()):
        yield f"SparkSpout: storage= takes 'serve', an absolute path or a URI, not {storage!r}"


class StagedSpout(Spout):
    """Emits the partitions that are its own; a task that is started again goes on where acks have a gap."""

    job: SparkJob
    positions = ListState(share="all")  # [partition, next batch, source], as of the last snapshot

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Finds the folder, which the driver may not have made yet, or makes one of its own."""
        self._clock = context.clock
        self._files: SharedFiles | FetchedFiles
        self._link: Link | None = None
        self._ask = 0.0
        shared = self.job.shared_folder(context.this_component_id, config, context)
        if shared is not None:
            self._folder, progress = shared, shared / PROGRESS
            self._files = SharedFiles(shared)
        else:
            own = self.job.own_folder(context)
            self._folder, progress = own / "mirror", own / PROGRESS
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder.mkdir(parents=True)
            progress.mkdir(exist_ok=True)
            self._link = link = Link(own_host(), self._folder)
            place = self.job.place(config)
            if place is None or place == SERVE:
                self._files = FetchedFiles(self._folder, served_pieces(lambda: link.driver), None, link.settle)
            else:
                uri = self.job.uri(place, context.this_component_id, context)
                self._files = FetchedFiles(self._folder, uri_pieces(uri), ATTEMPTS, link.settle)
        self._index = IndexReader(self._folder)
        self._follow(progress, config, context)

    def _follow(self, progress: Path, config: Mapping[str, Any], context: TopologyContext) -> None:
        self._kept: KeptProgress | None = None
        self._share(context)
        if Settings.of(config).remembers:
            self._kept = KeptProgress(progress, context.clock, items=self.positions, owns=self._owns)
        self._progress = self._kept or JobProgress(progress, context.clock)
        self._begun: dict[int, Partition] = {}
        self._dropped: dict[int, int] = {}  # begun, and not readable at the time -> the batch to go on with
        self._batches: Batches | None = None
        self._partition, self._next = -1, 0
        self._waiting = self._mine()

    def update(self, context: TopologyContext) -> None:
        """With other tasks, what this one has not begun is shared anew; with snapshots another object does it."""
        if self._kept is None:
            self._share(context)
            self._hand_over()
            self._waiting = self._mine()
            self._collector.reopen()  # a task that has finished is not asked again otherwise

    def _hand_over(self) -> None:
        """What is begun and another task's now goes on there at its mark, where all tasks see the marks."""
        if self._link is not None:
            return
        for number in (*self._dropped, *([] if self._batches is None else [self._partition])):
            if not self._owns(number):
                self._progress.leave(number)
                self._dropped.pop(number, None)
                del self._begun[number]
        if self._partition not in self._begun:
            self._batches = None

    def _share(self, context: TopologyContext) -> None:
        self._place = context.this_task_index
        self._tasks = len(context.component_tasks(context.this_component_id))

    def _owns(self, partition: int) -> bool:
        return partition % self._tasks == self._place

    def snapshot(self, number: int) -> None:
        """Writes down how far it is."""
        if self._kept is not None:
            self.positions[:] = self._kept.take(number)

    def committed(self, number: int) -> None:
        """The driver may remove what the snapshot covers."""
        if self._kept is not None:
            for partition in self._kept.counts(number):
                self.read_to_its_end(partition)

    def read_to_its_end(self, partition: int) -> None:
        """All rows of the partition are done with."""

    def next_tuple(self) -> None:
        """A batch, if one is there."""
        self._progress.keep()
        self._find_driver()
        if self._time is not None:
            (self._time.readable if self._may_be_idle() else self._time.unreadable)("")
        while (batches := self._batches or self._next_partition()) is not None:
            if (numbered := self._read(batches)) is not None:
                number, batch = numbered
                self._next = number + 1
                ids = ids_of(self._partition, number, batch.num_rows)
                self._progress.emitted(ids)
                self.emit_batch(batch, ids)
                return
            if self._batches is not None:
                return  # its file is on the way
        if self._index.complete is not None and not self._waiting:
            self.finish()

    def _may_be_idle(self) -> bool:
        """Whether nobody need wait for its watermark when nothing comes; of a job, rows come until it has finished."""
        return False

    def _find_driver(self) -> None:
        if (link := self._link) is None:
            return
        if link.failure is not None:
            raise link.failure
        if link.driver is None and (now := self._clock()) >= self._ask:
            self._ask = now + _ASK_AGAIN
            self.emit([link.own.address, link.own.token], stream=DRIVER)

    def idle(self) -> None:
        """Acks may have come, and no more do."""
        self._progress.keep()

    def ack_batch(self, tup_ids: Any) -> None:
        """Counts, by batch."""
        # Of a partition beyond 2047 they do not fit into 64 bits, and come as a list.
        ids = tup_ids if isinstance(tup_ids, np.ndarray) else np.array(tup_ids, dtype=object)
        keys, counts = np.unique(ids >> ROW_BITS, return_counts=True)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            self.acked(key << ROW_BITS, count)

    def acked(self, first_id: int, rows: int) -> None:
        """So many rows of one batch, which that id belongs to, are done with."""
        self._progress.acked(first_id, rows)

    def close(self) -> None:
        """Keeps how far it is, for it may be started again."""
        if self._link is not None:
            self._link.close()
        if isinstance(self._files, FetchedFiles):
            self._files.close()
            shutil.rmtree(self._folder, ignore_errors=True)
        self._progress.keep(at_once=True)

    def _read(self, batches: Batches) -> tuple[int, pa.RecordBatch] | None:
        try:
            return next(batches)
        except StopIteration:
            self._batches = None
        except ClusterError:
            away, begun = self._driver_is_away(), self._begun[self._partition]
            self._batches = None
            self._dropped[self._partition] = self._next
            self._look()
            same = self._index.partitions.get(self._partition) == begun
            if same and (self._index.complete is not None or not away):
                raise
            # The job has failed, and the driver, who has removed everything, says why; or the partition is taken up
            # again with the next news of the index, which comes with each driver; or it was acked and removed.
        return None

    def _driver_is_away(self) -> bool:
        """Or has given up; only then a file may be missing."""
        return not self._folder.exists() if self._link is None else self._link.driver is None

    def _next_partition(self) -> Batches | None:
        self._look()
        if not self._waiting or not self._may_begin():
            return None
        partition = self._waiting.popleft()
        self._begun[partition.number] = partition
        self._partition = partition.number
        mark = self._progress.begin(partition)
        if mark.source not in ("", partition.source):
            self._other_run(partition.number)
        self._next = self._dropped.pop(partition.number, mark.batch)
        self._batches = batches_of(self._files, partition, self._next)
        return self._batches

    def _look(self) -> None:
        """Whether more is published."""
        if self._index.poll():
            self._check_run()
            self._waiting = self._mine()

    def _may_begin(self) -> bool:
        """Whether what is published may be emitted already."""
        return self.job.start != "complete" or self._index.complete is not None

    def _check_run(self) -> None:
        """A driver that comes back without its folder, on another machine, begins another run."""
        for number, begun in self._begun.items():
            if self._index.partitions.get(number, begun if self._index.complete is None else None) != begun:
                self._other_run(number)

    def _other_run(self, partition: int) -> None:
        """It is not what this task, or a former life of it, has begun: ends the topology unless that is no matter."""
        if not self.job.deterministic:
            raise UserError(
                f"the Spark driver was lost with what it had staged, and partition {partition} comes of another run, "
                "which may give other rows: the topology ends",
                hint="Say deterministic=True if it cannot, or let storage= name a place that outlives a machine.",
            )

    def _mine(self) -> deque[Partition]:
        return deque(
            partition
            for number, partition in self._index.partitions.items()
            if number in self._dropped or (self._owns(number) and number not in self._begun)
        )
