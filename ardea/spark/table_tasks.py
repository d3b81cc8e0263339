"""Folders of format ``ardea`` in a topology: a spout that reads what Spark wrote, a sink whose rows Spark reads."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from ardea.component import Bolt, Inputs, Spec, Spout
from ardea.context import TopologyContext
from ardea.errors import TopologyError, UserError
from ardea.spark.index import INDEX, IndexReader, IndexWriter
from ardea.spark.job import PROGRESS, container_folder
from ardea.spark.reading import SharedFiles
from ardea.spark.schema import Column, ddl_of, parse_schema
from ardea.spark.spout import FILE_BYTES, StagedSpout
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Folder
from ardea.spark.table import SCHEMA, arrow_schema, hold, read_schema, write_schema
from ardea.watermarks import Timestamps

SINK_ROWS = 8192


class ArdeaSpout:
    """Reads a folder that Spark wrote by ``format("ardea")``, and no :class:`ArdeaSink`."""

    def __init__(self, folder: str, schema: str, *, follow: bool = False, timestamps: Timestamps | None = None) -> None:
        """Nothing is read yet.

        Args:
            folder: its absolute path; all tasks see it.
            schema: its columns, in Spark's DDL.
            follow: goes on with what comes; False: ends behind what is there.
            timestamps: as :class:`ardea.spark.SparkSpout` takes it.

        Raises:
            TopologyError: an argument is wrong.
        """
        self._folder = _absolute("ArdeaSpout", folder)
        self._columns = parse_schema(schema)
        self._follow, self._timestamps = follow, timestamps

    def spec(
        self,
        name: str | None = None,
        par: int = 1,
        inputs: Inputs | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> Spec:
        """Places it in a topology, as :meth:`ardea.Component.spec` does."""
        body = {
            "outputs": [column.name for column in self._columns],
            "table": self._folder,
            "columns": self._columns,
            "follow": self._follow,
            "timestamps": self._timestamps,
        }
        spout: type[Spout] = type("TableSpout", (TableSpout,), body)
        return spout.spec(name, par, inputs, config)


class TableSpout(StagedSpout):
    """Emits the partitions that are its own, commit by commit; none is removed."""

    table: str
    columns: tuple[Column, ...]
    follow: bool

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Compares the columns, if anything was written yet."""
        self._folder = Path(self.table)
        if not self.follow or (self._folder / SCHEMA).exists():
            self._compare_columns()
        if sinks := sorted(index.parent.name for index in self._folder.glob(f"*/{INDEX}")):
            raise UserError(
                f"{self.table} has rows of a sink ({', '.join(sinks)}), and ArdeaSpout reads only what Spark wrote",
                hint="Let Spark append them to another folder, or connect the two topologies otherwise.",
            )
        component = context.this_component_id
        progress = container_folder(component) / "spark" / f"{component}-{context.this_task_index}" / PROGRESS
        progress.mkdir(parents=True, exist_ok=True)
        self._clock, self._link = context.clock, None
        self._files = SharedFiles(self._folder)
        self._index = IndexReader(self._folder)
        self._index.poll()
        self._stream: str | None = None
        self._follow(progress, config, context)

    def _compare_columns(self) -> None:
        if (found := read_schema(self._folder)) != self.columns:
            raise UserError(
                f"{self.table} has other columns than schema= declares: {ddl_of(found)}, not {ddl_of(self.columns)}"
            )

    def next_tuple(self) -> None:
        """A batch, if one is there."""
        super().next_tuple()
        if not self.follow and self._batches is None and not self._waiting:
            self.finish()

    def _hand_over(self) -> None:
        """Nobody else sees its marks."""

    def _look(self) -> None:
        """Only a spout that follows looks again."""
        if self.follow and self._index.poll():
            self._waiting = self._mine()
        self._check_run()

    def _may_begin(self) -> bool:
        """What Spark has committed is whole."""
        return True

    def _driver_is_away(self) -> bool:
        """There is none."""
        return False

    def _may_be_idle(self) -> bool:
        """Where it follows, nobody knows when more comes."""
        return self.follow

    def _check_run(self) -> None:
        if (head := self._index.head) is None or self._stream == head.stream:
            return
        if self._stream is not None:
            self._other_run(0)
        self._compare_columns()  # a spout that follows may have begun before there were any
        self._stream = head.stream

    def _other_run(self, partition: int) -> NoReturn:  # noqa: ARG002 -- all are others
        """Another stream, that is."""
        raise UserError(f"{self.table} was overwritten while it was read; the topology ends")


class ArdeaSink:
    """Writes rows into a folder that Spark reads by ``format("ardea")``."""

    def __init__(self, folder: str, schema: str, *, rows: int = SINK_ROWS, every: float = 1.0) -> None:
        """Nothing is written yet.

        Args:
            folder: its absolute path; all tasks, and Spark's executors, see it.
            schema: its columns, in Spark's DDL: fields of the tuples.
            rows: a file is written when a task has so many …
            every: … or so many seconds after the last one.

        Raises:
            TopologyError: an argument is wrong.
        """
        self._folder = _absolute("ArdeaSink", folder)
        self._columns = parse_schema(schema)
        if type(rows) is not int or rows < 1 or not every > 0:
            raise TopologyError([f"ArdeaSink: rows={rows!r}, every={every!r}: both have to be above 0"])
        self._rows, self._every = rows, every

    def spec(
        self,
        name: str | None = None,
        par: int = 1,
        inputs: Inputs | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> Spec:
        """Places it in a topology, as :meth:`ardea.Component.spec` does."""
        ticks = MappingProxyType({"topology.tick.tuple.freq.secs": self._every})
        body = {"table": self._folder, "columns": self._columns, "most": self._rows, "config": ticks}
        bolt: type[Bolt] = type("TableSink", (TableSink,), body)
        return bolt.spec(name, par, inputs, config)


class TableSink(Bolt):
    """Acks rows when they are on disk and in the task's index."""

    auto_ack = False
    auto_fail = False
    table: str
    columns: tuple[Column, ...]
    most: int

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ARG002
        """Goes on behind what a former life published."""
        write_schema(Path(self.table), self.columns)
        self._schema = arrow_schema(self.columns)
        folder = Path(self.table) / f"{context.this_component_id}-{context.this_task_index}"
        self._run = Run(Folder(str(folder)), f"run-{secrets.token_hex(4)}", FILE_BYTES, frozenset())
        self._lock = hold(folder)
        (folder / self._run.name).mkdir()
        self._index = IndexWriter(folder)
        self._held: list[Any] = []

    def process_batch(self, rows: Sequence[Any]) -> None:
        """Holds them."""
        self._held += rows
        if len(self._held) >= self.most:
            self._publish()

    def process_tick(self, tup: Any) -> None:  # noqa: ARG002
        """Writes what has come since."""
        self._publish()

    def flush(self) -> None:
        """Nothing comes for now."""
        self._publish()

    def close(self) -> None:
        """The index stays."""
        self._index.close()
        self._lock.close()

    def _publish(self) -> None:
        import pyarrow

        held, self._held = self._held, []
        if not held:
            return
        arrays = []
        for field in self._schema:
            try:
                arrays.append(pyarrow.array([tup[field.name] for tup in held], field.type))
            except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
                self.close()
                raise UserError(
                    f"column {field.name} of {self.table} takes no such value: {error}; the topology ends",
                    hint="Convert the values in the bolt before, or declare another type.",
                ) from error
        number = len(self._index.known.partitions)
        batch = pyarrow.record_batch(arrays, schema=self._schema)
        if not self._index.publish(write_partition(self._run, number, 0, [batch], Path(self.table))):
            self.close()
            raise UserError(
                f"another process has written file {number} into an index of {self.table}; the topology ends"
            )
        for tup in held:
            self.ack(tup)


def _absolute(what: str, folder: Any) -> str:
    if not (isinstance(folder, str) and folder.startswith("/")):
        raise TopologyError([f"{what}: its folder is an absolute path, not {folder!r}"])
    return folder
