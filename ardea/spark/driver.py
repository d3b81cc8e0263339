"""The driver: a task of its own that runs the job, publishes what is staged, and cleans up."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ardea.component import Bolt, Spec
from ardea.context import TopologyContext
from ardea.errors import ArdeaError, UserError, without_key
from ardea.metrics import JOB_TASKS, JOB_TASKS_DONE, AssignableMetric
from ardea.spark import session
from ardea.spark.access import Access
from ardea.spark.index import IndexWriter, Reports
from ardea.spark.job import DRIVER, PROGRESS, SERVE, SparkJob, driver_host
from ardea.spark.link import tell
from ardea.spark.stage import Run
from ardea.spark.storage import Folder, Served, Storage, Uri, file_system, remove
from ardea.spark.table import write_schema
from ardea.spark.work import JobWork, Work
from ardea.tuples import Tuple

if TYPE_CHECKING:
    from ardea.spark.depot import Depot

LOOK = 0.05
"""Seconds between two looks at what has been reported."""
SCRATCH = "scratch"
DRIVER_RAM = "2GiB"
"""Spark's default heap of 1 GiB, what a JVM takes beside it, this process, and two or three Python workers."""


class Driver(Bolt):
    """Reads who asks for it.  Spark runs on a thread of its own, so that the task goes on answering."""

    config = MappingProxyType({"topology.tick.tuple.freq.secs": LOOK})
    fixed_parallelism = True
    job: SparkJob

    @classmethod
    def spec(cls, *args: Any, ram: int | str | None = None, **more: Any) -> Spec:
        """As of any component; ``ram`` is Spark's, too, and by default ``DRIVER_RAM``."""
        return super().spec(*args, ram=DRIVER_RAM if ram is None else ram, **more)

    @abstractmethod
    def open_index(self, folder: Path) -> IndexWriter:
        """Reads what a former driver published."""

    @abstractmethod
    def prepare(self, storage: Storage, name: str, settings: Mapping[str, str]) -> Work:
        """What Spark is to do; UserError if what a former driver published does not allow it."""

    @abstractmethod
    def look(self) -> None:
        """Publishes and removes; called at each tick, before the end of the work is noticed too."""

    @abstractmethod
    def ended(self) -> None:
        """The work has ended well; UserError if what is published is not what it was."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Decides whether there is anything to run, and starts it."""
        if context.this_task_index:
            raise UserError(f"{context.this_component_id} has one task, for there is one index to write")
        if (former := context.task_data.pop(DRIVER, None)) is not None:
            vars(self).update({**vars(former), **vars(self)})  # Spark goes on; the engine's own are this object's
            self._context = context
            self.measure()
            return
        self.spout = context.this_component_id.removesuffix(f"_{DRIVER}")
        self.clock, self._topology, self._context = context.clock, context.topology_id, context
        shared = self.find_folder(config, context)
        self.folder = shared or self.job.own_folder(context)
        self._found_none = not self.folder.exists()
        (self.folder / PROGRESS).mkdir(parents=True, exist_ok=True)
        self.work: Work | None = None  # as long as it is not over
        self._begun: Work | None = None
        self._depot: Depot | None = None
        self.uri: str | None = None
        self._index = self.open_index(self.folder)
        try:
            self._keep_columns()
            settings = session.spark_settings(self.job, config, self.folder / SCRATCH)
            storage = self._storage(config, context) if shared is None else Folder(str(shared))
            complete = self._index.known.complete
            if complete is None or complete.topology != self._topology:
                self._begin(settings, storage, f"{context.topology_id} {self.spout}")
        except ArdeaError:
            self._give_up()
            raise

    def find_folder(self, config: Mapping[str, Any], context: TopologyContext) -> Path | None:
        """The staging folder that the spout's tasks see too; None: they see none."""
        return self.job.shared_folder(self.spout, config, context)

    def _keep_columns(self) -> None:
        """An update may bring others than those of what is staged, and is read on."""
        known = self._index.known
        anew = not known.partitions or (self.job.start == "complete" and known.complete is None)
        try:
            write_schema(self.folder, self.job.columns, overwrite=anew)
        except UserError as error:
            raise UserError(
                f"{error.message}: {self.spout} cannot read what is staged",
                hint="Keep schema= as it was, or submit the topology anew.",
            ) from error

    def _storage(self, config: Mapping[str, Any], context: TopologyContext) -> Storage:
        """Opens the folder to other machines."""
        from ardea.spark.depot import Depot  # a web server, which no other task of the topology needs

        host = config.get("spark.driver.host", driver_host(config))
        self._depot = Depot(self.folder, host, config.get("spark.driver.bindAddress", host))
        place = self.job.place(config)
        if place is None or place == SERVE:
            return Served(self._depot.access)
        self.uri = self.job.uri(place, self.spout, context)
        try:
            file_system(self.uri)
        except (ValueError, OSError) as error:
            raise UserError(
                without_key(f"storage={place!r} cannot be opened: {error}; the topology ends"),
                hint="docs/spark.md says which URIs there are.",
            ) from error
        return Uri(self.uri, self._depot.access)

    def _begin(self, settings: Mapping[str, str], storage: Storage, name: str) -> None:
        work = self.prepare(storage, name, settings)
        scratch = self.folder / SCRATCH
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        session.require_java()
        session.require_hadoop(settings)
        self.measure()
        self.work = self._begun = work
        work.start()

    def measure(self) -> None:
        """Registers what is told of it, where there is anything to run."""
        self._tasks = self._context.register_metric(JOB_TASKS, AssignableMetric())
        self._tasks_done = self._context.register_metric(JOB_TASKS_DONE, AssignableMetric())

    def process(self, tup: Tuple) -> None:
        """A spout task asks where the driver is.  One that does not hear asks again."""
        if self._depot is not None:
            try:
                tell(Access(*tup.values), self._depot.access)
            except OSError as error:
                self.logger.info("%s does not listen: %s", tup["address"], error)

    def process_tick(self, tup: Tuple) -> None:  # noqa: ARG002
        """Publishes what has been reported since, and looks whether the job has ended."""
        try:
            self._go_on()
        except ArdeaError:
            self._give_up()
            raise

    def _go_on(self) -> None:
        over = self.work is not None and self.work.over
        self.look()
        if self.work is None:
            return
        stages = self.work.stages
        self._tasks.update(stages.tasks)
        self._tasks_done.update(stages.done)
        if not over:
            return
        if self.work.error is not None:
            raise self.work.error
        self.ended()
        complete = self._index.complete(self._topology)
        self.logger.info("staged %d rows in %d partitions", complete.rows, complete.partitions)
        self.work = None

    def close(self) -> None:
        """Ends Spark, unless all go back to a snapshot.  What is staged goes only with the topology."""
        if self._context.rolling_back:
            self._context.task_data[DRIVER] = self
            return
        if self._begun is not None:
            self._begun.end()
        self.release()
        if self._context.topology_over:
            self.remove_staged()

    def release(self) -> None:
        """Serves and publishes nothing any more; what is staged stays, for the next driver."""
        if self._depot is not None:
            self._depot.close()
        self._index.close()

    def _give_up(self) -> None:
        """The topology fails, or an update is put back: the former version's driver goes on with what was found."""
        self.release()
        if self._found_none:
            self.remove_staged()

    def remove_staged(self) -> None:
        """All at once: a spout task that writes its progress meanwhile would keep the folder there."""
        if self.uri is not None:
            try:
                remove(self.uri)
            except OSError as error:
                self.logger.warning("%s", without_key(f"{self.uri} stays behind: {error}"))
        gone = self.folder.with_name(f".{self.folder.name}-{secrets.token_hex(4)}")
        with contextlib.suppress(FileNotFoundError):
            self.folder.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


class SparkDriver(Driver):
    """Of a batch job: publishes each partition as soon as it is reported."""

    def open_index(self, folder: Path) -> IndexWriter:
        """One line a partition."""
        return IndexWriter(folder)

    def prepare(self, storage: Storage, name: str, settings: Mapping[str, str]) -> JobWork:
        """What a former driver has published binds this one."""
        self._take_over()
        done = frozenset(self._index.known.partitions)
        run = Run(storage, f"run-{secrets.token_hex(4)}", self.job.file_bytes, done)
        self._reports = Reports(self.folder / run.name)
        self._job_work = JobWork(self.job, name, settings, self.logger, run)
        return self._job_work

    def _take_over(self) -> None:
        published = len(self._index.known.partitions)
        if not published or (self.job.deterministic and self.job.start == "early"):
            return
        if self.job.start == "complete":
            self._index.restart()
            return
        raise UserError(
            f"the Spark driver of {self.spout} died after it had published {published} partitions: "
            "another run may give other rows, so the topology ends",
            hint='Say deterministic=True if it cannot, or start="complete" to emit nothing before Spark is done.',
        )

    def look(self) -> None:
        """Publishes what has been reported since."""
        if self.work is None:
            return
        for partition in self._reports.new():
            if self._index.publish(partition):
                self.logger.info("published partition %d: %d rows", partition.number, partition.rows)

    def ended(self) -> None:
        """Compares the number of partitions."""
        if self._index.known.partitions.keys() == set(range(self._job_work.partitions)):
            return
        published = len(self._index.known.partitions)
        raise UserError(
            f"the Spark job of {self.spout} has {self._job_work.partitions} partitions, yet {published} are published: "
            "it was declared deterministic and is not, so the topology ends"
        )
