"""The author's ``SparkStreamSpout``, and the spout that its tasks run: following what the driver publishes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from ardea.context import TopologyContext
from ardea.errors import TopologyError, UserError
from ardea.spark.driver import Driver
from ardea.spark.index import Partition
from ardea.spark.link import Acknowledger
from ardea.spark.reading import Batches
from ardea.spark.spout import FILE_BYTES, SparkSpout, StagedSpout
from ardea.spark.stream_driver import StreamDriver, StreamJob
from ardea.watermarks import Timestamps

MODES = ("append", "update", "complete")


class SparkStreamSpout(SparkSpout):
    """A streaming DataFrame as a spout, one micro-batch after the other.  Guarantees and failures: docs/spark.md."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        schema: str,
        *,
        partitions: int | None = None,
        rows: int = 8192,
        mode: str = "append",
        every: str | None = None,
        available_now: bool = False,
        ahead: int = 4,
        file_bytes: int | str = FILE_BYTES,
        storage: str | None = None,
        timestamps: Timestamps | None = None,
    ) -> None:
        """What is not explained here is as :class:`SparkSpout` takes it.

        Args:
            function: from a SparkSession to a streaming DataFrame.
            schema: see there.
            partitions: of each micro-batch.
            rows: see there.
            mode: Spark's output mode: ``append``, ``update``, ``complete``.
            every: how often a micro-batch begins, in Spark's words, ``"5 seconds"``; None: as soon as there is news.
            available_now: the stream ends, and with it the topology, with what is there when it starts.
            ahead: micro-batches that may be published and not acked; before another one Spark waits.
            file_bytes: see there.
            storage: see there.
            timestamps: see there.

        Raises:
            TopologyError: an argument is wrong, or a column cannot be kept; all problems at once.
        """
        problems = list(_problems(mode, every, available_now, ahead))
        try:
            super().__init__(
                function,
                schema,
                partitions=partitions,
                rows=rows,
                file_bytes=file_bytes,
                storage=storage,
                timestamps=timestamps,
            )
        except TopologyError as error:
            problems = [*error.problems, *problems]
        if problems:
            problems = [problem.replace("SparkSpout:", "SparkStreamSpout:") for problem in problems]
            raise TopologyError(problems, hint="docs/spark.md says what a SparkStreamSpout takes.")
        given = {field.name: getattr(self.job, field.name) for field in dataclasses.fields(self.job)}
        self.job = StreamJob(**given, mode=mode, every=every, available_now=available_now, ahead=ahead)

    def _tasks(self) -> tuple[type[StagedSpout], type[Driver]]:
        return StreamedSpout, StreamDriver


def _problems(mode: Any, every: Any, available_now: Any, ahead: Any) -> Iterator[str]:
    if mode not in MODES:
        yield f"SparkStreamSpout: mode= takes {', '.join(MODES)}, not {mode!r}"
    if every is not None and not (isinstance(every, str) and every.strip()):
        yield f'SparkStreamSpout: every= takes an interval like "5 seconds", not {every!r}'
    if not isinstance(available_now, bool):
        yield f"SparkStreamSpout: available_now= takes True or False, not {available_now!r}"
    elif available_now and every is not None:
        yield "SparkStreamSpout: every= and available_now= exclude each other"
    if type(ahead) is not int or ahead < 1:
        yield f"SparkStreamSpout: ahead= takes a number from 1, not {ahead!r}"


class StreamedSpout(StagedSpout):
    """Emits its partitions of each micro-batch, and lets the driver know which of them are acked."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """As for a batch job; the driver is told where it does not see the marks."""
        super().initialize(config, context)
        self._acknowledger = None if self._link is None else Acknowledger(self._link)
        # Of a shared folder whatever was published goes with the marks; a folder of its own outlives the driver's.
        self._stream = None if self._link is None else self._progress.stream()

    def acked(self, first_id: int, rows: int) -> None:
        """Counts."""
        if (partition := self._progress.acked(first_id, rows)) is not None:
            self.read_to_its_end(partition)

    def read_to_its_end(self, partition: int) -> None:
        """The driver hears of it."""
        self._tell(self._begun[partition])

    def close(self) -> None:
        """As for a batch job."""
        if self._acknowledger is not None:
            self._acknowledger.close()
        super().close()

    def _may_be_idle(self) -> bool:
        """While there is somebody who would publish more."""
        return not self._driver_is_away()

    def _next_partition(self) -> Batches | None:
        batches = super()._next_partition()
        if batches is not None:
            self._tell(self._begun[self._partition])  # a former life may have emitted it to its end
        return batches

    def _tell(self, partition: Partition) -> None:
        if self._acknowledger is not None and self._progress.mark(partition.number) == partition.batches:
            self._acknowledger.tell(partition.number, partition.batches)

    def _check_run(self) -> None:
        """Forgets what is removed."""
        head = self._index.head
        if head is None:
            return
        if self._stream not in (None, head.stream):
            self._other_run(head.partitions)
        if self._stream is None and self._link is not None:
            self._progress.of_stream(head.stream)
        self._stream = head.stream
        for number in [number for number in self._begun if number < head.partitions]:
            del self._begun[number]
            self._dropped.pop(number, None)
            self._progress.forget(number)

    def _other_run(self, partition: int) -> NoReturn:  # noqa: ARG002 -- all are others
        """As for a batch job."""
        raise UserError(
            "the Spark driver was lost with what it had published, and began the stream again: the topology ends",
            hint="Let storage= name a folder that outlives a machine.",
        )
