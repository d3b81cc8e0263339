"""The driver: a task of its own that runs the job, publishes what is staged, and cleans up."""

from __future__ import annotations

import contextlib
import difflib
import logging
import secrets
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ardea.component import Bolt
from ardea.context import TopologyContext
from ardea.errors import ArdeaError, UserError
from ardea.spark import session
from ardea.spark.access import Access
from ardea.spark.depot import Depot
from ardea.spark.index import IndexWriter, Reports
from ardea.spark.job import DRIVER, PROGRESS, SERVE, SparkJob, own_host
from ardea.spark.link import tell
from ardea.spark.schema import Column
from ardea.spark.stage import STAGED, Run, stager
from ardea.spark.storage import Folder, Served, Storage, Uri, file_system, remove
from ardea.tuples import Tuple

LOOK = 0.05
"""Seconds between two looks at what has been reported."""
SCRATCH = "scratch"


class SparkDriver(Bolt):
    """Reads who asks for it.  Spark runs on a thread of its own, so that the task goes on answering."""

    config = MappingProxyType({"topology.tick.tuple.freq.secs": LOOK})
    job: SparkJob

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Decides whether there is anything to run, and starts it."""
        if context.this_task_index:
            raise UserError(f"{context.this_component_id} has one task, for there is one index to write")
        self._spout = context.this_component_id.removesuffix(f"_{DRIVER}")
        shared = self.job.shared_folder(self._spout, config, context)
        self._folder = shared or self.job.own_folder(context)
        (self._folder / PROGRESS).mkdir(parents=True, exist_ok=True)
        self._index = IndexWriter(self._folder)
        self._work: _Work | None = None
        self._depot: Depot | None = None
        self._uri: str | None = None
        try:
            settings = session.spark_settings(self.job, config, self._folder / SCRATCH)
            storage = self._storage(config, context) if shared is None else Folder(str(shared))
            if self._index.known.complete is None:
                self._take_over()
                self._begin(settings, storage, f"{context.topology_id} {self._spout}")
        except ArdeaError:
            self._discard()
            raise

    def _storage(self, config: Mapping[str, Any], context: TopologyContext) -> Storage:
        """Opens the folder to other machines."""
        host = config.get("spark.driver.host", own_host())
        self._depot = Depot(self._folder, host, config.get("spark.driver.bindAddress", host))
        place = self.job.place(config)
        if place is None or place == SERVE:
            return Served(self._depot.access)
        self._uri = self.job.uri(place, self._spout, context)
        try:
            file_system(self._uri)
        except (ValueError, OSError) as error:
            raise UserError(
                f"storage={place!r} cannot be opened: {error}; the topology ends",
                hint="docs/spark.md says which URIs there are.",
            ) from error
        return Uri(self._uri, self._depot.access)

    def _take_over(self) -> None:
        """What a former driver has published binds this one."""
        published = len(self._index.known.partitions)
        if not published or (self.job.deterministic and self.job.start == "early"):
            return
        if self.job.start == "complete":
            self._index.restart()
            return
        raise UserError(
            f"the Spark driver of {self._spout} died after it had published {published} partitions: "
            "another run may give other rows, so the topology ends",
            hint='Say deterministic=True if it cannot, or start="complete" to emit nothing before Spark is done.',
        )

    def _begin(self, settings: Mapping[str, str], storage: Storage, name: str) -> None:
        scratch = self._folder / SCRATCH
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        session.require_java()
        run = Run(storage, f"run-{secrets.token_hex(4)}", self.job.file_bytes, frozenset(self._index.known.partitions))
        self._reports = Reports(self._folder / run.name)
        self._work = _Work(self.job, name, settings, run, self.logger)
        self._work.start()

    def process(self, tup: Tuple) -> None:
        """A spout task asks where the driver is.  One that does not hear asks again."""
        if self._depot is not None:
            try:
                tell(Access(*tup.values), self._depot.access)
            except OSError as error:
                self.logger.info("%s does not listen: %s", tup["address"], error)

    def process_tick(self, tup: Tuple) -> None:  # noqa: ARG002
        """Publishes what has been reported since, and looks whether the job has ended."""
        if self._work is None:
            return
        running = self._work.is_alive()
        for partition in self._reports.new():
            if self._index.publish(partition):
                self.logger.info("published partition %d: %d rows", partition.number, partition.rows)
        if running:
            return
        if self._work.error is not None:
            self._discard()
            raise self._work.error
        self._check(self._work.partitions)
        complete = self._index.complete()
        self.logger.info("staged %d rows in %d partitions", complete.rows, complete.partitions)
        self._work = None

    def _check(self, partitions: int) -> None:
        if self._index.known.partitions.keys() == set(range(partitions)):
            return
        published = len(self._index.known.partitions)
        self._discard()
        raise UserError(
            f"the Spark job of {self._spout} has {partitions} partitions, yet {published} are published: "
            "it was declared deterministic and is not, so the topology ends"
        )

    def close(self) -> None:
        """Ends Spark and removes what is staged: the topology is over."""
        if self._work is not None:
            session.end_jvm()
        self._discard()

    def _discard(self) -> None:
        if self._depot is not None:
            self._depot.close()
        self._index.close()
        if self._uri is not None:
            try:
                remove(self._uri)
            except OSError as error:
                self.logger.warning("%s stays behind: %s", self._uri, error)
        # All at once: a spout task that writes its progress meanwhile would keep the folder there.
        gone = self._folder.with_name(f".{self._folder.name}-{secrets.token_hex(4)}")
        with contextlib.suppress(FileNotFoundError):
            self._folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


class _Work(threading.Thread):
    """The job.  When the thread has ended, ``error`` says why it failed, or ``partitions`` how many it has."""

    def __init__(self, job: SparkJob, name: str, settings: Mapping[str, str], run: Run, logger: logging.Logger) -> None:
        super().__init__(name="spark", daemon=True)
        self._job, self._app, self._settings, self._run, self._logger = job, name, settings, run, logger
        self._spark: Any = None
        self.error: ArdeaError | None = None
        self.partitions = 0

    def run(self) -> None:
        try:
            self._spark = session.open_session(self._app, self._settings)
            frame = _frame(self._job, self._spark)
            self.partitions = len(frame.mapInArrow(stager(self._run), STAGED).collect())
        except BaseException as error:  # the executor's thread raises it
            self.error = error if isinstance(error, ArdeaError) else self._told(error)
        finally:
            if self._spark is not None:
                with contextlib.suppress(Exception):  # a JVM that has died cannot be stopped
                    self._spark.stop()
            session.end_jvm()

    def _told(self, error: BaseException) -> UserError:
        """While the JVM is there, which has the words of many errors."""
        cause = session.cause_of(error, self._job.function.__code__.co_filename)
        self._logger.error("the Spark job failed", exc_info=error)
        return UserError(
            f"{cause}: the Spark job of {self._app.rpartition(' ')[2]} failed, and the topology with it",
            hint="The whole story is above, in the log of the driver.",
        )


def _frame(job: SparkJob, spark: Any) -> Any:
    """What the author's function returns, with the declared columns."""
    from pyspark.sql import DataFrame

    frame = job.function(spark)
    name = job.function.__name__
    if not isinstance(frame, DataFrame):
        raise UserError(f"{name}() returned a {type(frame).__qualname__}, and not a Spark DataFrame")
    found = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    if problems := list(differences(job.columns, found)):
        raise UserError(
            f"{'; '.join(problems)}: the DataFrame of {name}() is not what schema= declares",
            hint="Correct schema=, or select, alias and cast in the function.",
        )
    frame = frame.select(*(f"`{column.name.replace('`', '``')}`" for column in job.columns))
    return frame if job.partitions is None else frame.repartition(job.partitions)


def differences(declared: Sequence[Column], found: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each declared column that the DataFrame, name -> type, does not have."""
    for column in declared:
        if (has := found.get(column.name)) is None:
            near = difflib.get_close_matches(column.name, found, n=1)
            meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(found) or 'none'}"
            yield f"no column {column.name} ({meant})"
        elif has != column.type:
            yield f"column {column.name} is {has}, not {column.type}"
