"""The driver of a stream: publishes micro-batches in Spark's order, each once, and removes those that are acked."""

from __future__ import annotations

import logging
import secrets
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ardea.errors import UserError, without_key
from ardea.metrics import STREAM_BATCHES, STREAM_BATCHES_OPEN, AssignableMetric
from ardea.spark.driver import Driver
from ardea.spark.index import IndexWriter, MicroBatch, Reports, StreamIndexWriter
from ardea.spark.job import PROGRESS, SparkJob
from ardea.spark.progress import read_mark
from ardea.spark.stage import Run
from ardea.spark.storage import Storage, below, remove
from ardea.spark.work import Work, stage

CHECKPOINT = "checkpoint"
HEARTBEAT = 60.0
"""Seconds between two words about waiting for acks."""
_LOOK = 1.0


@dataclass(frozen=True, slots=True)
class StreamJob(SparkJob):
    """What :class:`ardea.spark.SparkStreamSpout` was given; there its arguments are documented."""

    mode: str
    every: str | None
    available_now: bool
    ahead: int


class Publisher:
    """The index of a stream, for two threads: Spark's, which publishes, and the driver's, which removes."""

    def __init__(
        self, index: StreamIndexWriter, ahead: int, clock: Callable[[], float], logger: logging.Logger
    ) -> None:
        """``ahead``: how many micro-batches may be published and not acked."""
        self.index = index
        self._ahead, self._clock, self._logger = ahead, clock, logger
        self._changed = threading.Condition()
        self._stopped = False

    def admit(self, number: int) -> bool:
        """Waits until a micro-batch can be published.  False: it is, and Spark repeats it after a driver's death.

        Raises:
            UserError: it is neither the last one nor the next: index and checkpoint do not belong together; or the
                topology ends.
        """
        with self._changed:
            if number == self.index.next_batch - 1:
                self._logger.info("micro-batch %d is published already", number)
                return False
            if number != self.index.next_batch:
                raise UserError(
                    f"Spark's checkpoint goes on at micro-batch {number}, the index at {self.index.next_batch}: "
                    "one of them was lost, so the topology ends",
                    hint="Submit the topology again; let storage= name a folder that outlives a machine.",
                )
            heartbeat = self._clock() + HEARTBEAT
            while not self._stopped and len(self.index.known.batches) >= self._ahead:
                self._changed.wait(_LOOK)
                if self._clock() >= heartbeat:
                    heartbeat += HEARTBEAT
                    self._logger.info("Spark waits: %d micro-batches are not acked", len(self.index.known.batches))
            self._go_on()
            return True

    def publish(self, run: str, reports: Reports) -> None:
        """Appends the micro-batch; the first report of each partition wins."""
        first = {partition.number: partition for partition in reversed([*reports.new()])}
        with self._changed:
            self._go_on()
            batch = self.index.publish_batch(run, (first[number] for number in sorted(first)))
        rows = sum(partition.rows for partition in batch.partitions)
        self._logger.info("published micro-batch %d: %d rows", batch.number, rows)

    def remove_acked(self, marks: Path) -> list[MicroBatch]:
        """Those before the first that is not acked; Spark may go on."""
        removed = []
        with self._changed:
            while (oldest := next(iter(self.index.known.batches.values()), None)) is not None and all(
                read_mark(marks, partition.number).batch >= partition.batches for partition in oldest.partitions
            ):
                removed.append(self.index.remove_first())
            self._changed.notify_all()
        return removed

    def _go_on(self) -> None:
        if self._stopped:
            raise UserError("the topology ends: no micro-batch is published any more")

    def stop(self) -> None:
        """Nobody waits any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


class StreamWork(Work):
    """The streaming query."""

    def __init__(
        self,
        job: StreamJob,
        name: str,
        settings: Mapping[str, str],
        logger: logging.Logger,
        *,
        folder: Path,
        storage: Storage,
        publisher: Publisher,
    ) -> None:
        super().__init__(job, name, settings, logger)
        self._query, self._folder, self._storage, self._publisher = job, folder, storage, publisher

    def work(self, frame: Any) -> None:
        """Ends with the query, which ends by itself if ``available_now``."""
        job = self._query
        if not frame.isStreaming:
            raise UserError(
                f"{job.function.__name__}() returned a DataFrame that is not streaming",
                hint="Read it with spark.readStream, or give the function to SparkSpout.",
            )
        writer = frame.writeStream.outputMode(job.mode).foreachBatch(self._publish)
        writer = writer.option("checkpointLocation", str(self._folder / CHECKPOINT))
        if job.available_now:
            writer = writer.trigger(availableNow=True)
        elif job.every is not None:
            writer = writer.trigger(processingTime=job.every)
        writer.start().awaitTermination()

    def _publish(self, frame: Any, number: int) -> None:
        try:
            if not self._publisher.admit(number):
                return
            run = Run(self._storage, f"run-{secrets.token_hex(4)}", self._query.file_bytes, frozenset())
            reports = Reports(self._folder / run.name)
            stage(frame, run)
            self._publisher.publish(run.name, reports)
        except BaseException as error:
            self.fail(error)  # here, while its words are not wrapped into those of the query
            raise


class StreamDriver(Driver):
    """Of a stream."""

    job: StreamJob

    def open_index(self, folder: Path) -> IndexWriter:
        """One line a micro-batch."""
        index = StreamIndexWriter(folder)
        self._publisher = Publisher(index, self.job.ahead, self.clock, self.logger)
        return index

    def prepare(self, storage: Storage, name: str, settings: Mapping[str, str]) -> StreamWork:
        """Goes on where the checkpoint says; without one Spark would begin at 0, as if that were the next number."""
        following = self._publisher.index.next_batch
        if following and not any((self.folder / CHECKPOINT / "offsets").glob("[0-9]*")):
            raise UserError(
                f"the checkpoint of Spark in {self.folder} is lost, and the index goes on at micro-batch {following}: "
                "the topology ends",
                hint="Restore it, or begin the stream anew in another folder.",
            )
        self._sweep()
        return StreamWork(
            self.job, name, settings, self.logger, folder=self.folder, storage=storage, publisher=self._publisher
        )

    def measure(self) -> None:
        """Registers micro-batches, too."""
        super().measure()
        self._batches = self._context.register_metric(STREAM_BATCHES, AssignableMetric())
        self._open = self._context.register_metric(STREAM_BATCHES_OPEN, AssignableMetric())

    def look(self) -> None:
        """Removes what is acked, and tells how far all is."""
        removed = self._publisher.remove_acked(self.folder / PROGRESS)
        if self._begun is not None:
            self._batches.update(self._publisher.index.next_batch)
            self._open.update(len(self._publisher.index.known.batches))
        for batch in removed:
            self._remove(batch.run)
        self._sweep_marks()  # also of what went earlier: who had read the index before may write a mark behind it

    def ended(self) -> None:
        """All that the query gave is published."""

    def release(self) -> None:
        """Ends Spark's waiting first."""
        self._publisher.stop()
        super().release()

    def _sweep(self) -> None:
        """Removes what a former driver staged and did not publish, or forgot and did not remove."""
        runs = {batch.run for batch in self._publisher.index.known.batches.values()}
        for folder in self.folder.glob("run-*"):
            if folder.name not in runs:
                self._remove(folder.name)
        self._sweep_marks()

    def _remove(self, run: str) -> None:
        """Its folder here goes last: as long as it is there, the next driver knows what is to be removed."""
        if self.uri is not None:
            folder = below(self.uri, run)
            try:
                remove(folder)
            except OSError as error:
                self.logger.warning("%s", without_key(f"{folder} stays until the driver starts again: {error}"))
                return
        shutil.rmtree(self.folder / run, ignore_errors=True)

    def _sweep_marks(self) -> None:
        for mark in (self.folder / PROGRESS).iterdir():
            if mark.name.isdecimal() and int(mark.name) < self._publisher.index.head.partitions:
                mark.unlink(missing_ok=True)
