"""Spark's part of a driver: the session, on a thread of its own."""

from __future__ import annotations

import contextlib
import difflib
import logging
import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ardea.errors import ArdeaError, UserError
from ardea.spark import session
from ardea.spark.job import SparkJob, is_local
from ardea.spark.schema import Column, quoted, type_of
from ardea.spark.stage import STAGED, Run, stager

_LOOK = 0.5
"""Seconds between two looks at Spark's stages."""
_STOPPING = 5.0
"""Seconds that Spark has to stop when nothing is left to do."""


class Stages(NamedTuple):
    """How far the jobs are that Spark runs at present: tasks of all their stages that it has planned."""

    tasks: int = 0
    done: int = 0


class StageWatch(threading.Thread):
    """Asks Spark's status tracker, on a thread of its own: a JVM may be slow to answer."""

    def __init__(self, spark: Any) -> None:
        super().__init__(name="stages", daemon=True)
        self._tracker = spark.sparkContext.statusTracker()
        self._stopped = threading.Event()
        self.stages = Stages()
        self.start()

    def run(self) -> None:
        """Until it is stopped."""
        while not self._stopped.wait(_LOOK):
            try:
                self.stages = stages_of(self._tracker)
            except Exception:
                break  # the JVM has died, and the job fails
        self.stages = Stages()

    def stop(self) -> None:
        """Asks no more."""
        self._stopped.set()
        self.join()


def stages_of(tracker: Any) -> Stages:
    """What a pyspark.StatusTracker knows."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
    numbers = {stage for job in jobs if job is not None for stage in job.stageIds}
    stages = [stage for number in numbers if (stage := tracker.getStageInfo(number)) is not None]
    return Stages(sum(stage.numTasks for stage in stages), sum(stage.numCompletedTasks for stage in stages))


class Work(threading.Thread):
    """What is done in Spark.  When the thread has ended, ``error`` says why it failed, or is None."""

    def __init__(self, job: SparkJob, name: str, settings: Mapping[str, str], logger: logging.Logger) -> None:
        super().__init__(name="spark", daemon=True)
        self._job, self._app, self._settings, self._logger = job, name, settings, logger
        self._watch: StageWatch | None = None
        self._done = threading.Event()
        self._ending = False
        self.error: ArdeaError | None = None

    @property
    def over(self) -> bool:
        """All is staged, while Spark may still be stopping; or Spark has ended without."""
        return self._done.is_set() or not self.is_alive()

    @property
    def stages(self) -> Stages:
        """How far it is."""
        return Stages() if self._watch is None else self._watch.stages

    @abstractmethod
    def work(self, frame: Any) -> None:
        """Ends when there is nothing left to do with the author's DataFrame; may raise anything."""

    def run(self) -> None:
        """Starts and ends Spark."""
        spark: Any = None
        try:
            spark = session.open_session(self._app, self._settings)
            self._watch = StageWatch(spark)
            if not is_local(self._settings):
                session.carry(self._job.function)
            self.work(frame_of(self._job, spark))
            self._done.set()
        except BaseException as error:  # the executor's thread raises it
            self.fail(error)
        finally:
            if self._watch is not None:
                self._watch.stop()
            if spark is not None:
                with contextlib.suppress(Exception):  # a JVM that has died cannot be stopped
                    spark.stop()
            session.end_jvm()

    def end(self) -> None:
        """Ends Spark: it may stop by itself if it has nothing left to do.  What breaks off by that has not failed."""
        self._ending = True
        if self._done.is_set():
            self.join(_STOPPING)
        session.end_jvm()

    def fail(self, error: BaseException) -> None:
        """Keeps the first error, in the words of the JVM while that is there."""
        if self.error is None and not self._ending:
            self.error = error if isinstance(error, ArdeaError) else self._as_user_error(error)

    def _as_user_error(self, error: BaseException) -> UserError:
        cause = session.jvm_death() or session.cause_of(error, self._job.function.__code__.co_filename)
        self._logger.error("the Spark job failed", exc_info=error)
        return UserError(
            f"{cause}: the Spark job of {self._app.rpartition(' ')[2]} failed, and the topology with it",
            hint="The whole story is above, in the log of the driver.",
        )


class JobWork(Work):
    """A batch job; ``partitions`` says how many it had."""

    def __init__(self, job: SparkJob, name: str, settings: Mapping[str, str], logger: logging.Logger, run: Run) -> None:
        super().__init__(job, name, settings, logger)
        self._run = run
        self.partitions = 0

    def work(self, frame: Any) -> None:
        """Stages all that is not staged yet."""
        if frame.isStreaming:
            raise UserError(
                f"{self._job.function.__name__}() returned a streaming DataFrame",
                hint="SparkStreamSpout takes one; SparkSpout takes those that end.",
            )
        self.partitions = stage(frame, self._run)


def stage(frame: Any, run: Run) -> int:
    """Has each partition written and reported; returns how many there are."""
    return len(frame.mapInArrow(stager(run), STAGED).collect())


def frame_of(job: SparkJob, spark: Any) -> Any:
    """What the author's function returns, with the declared columns."""
    from pyspark.sql import DataFrame

    frame = job.function(spark)
    name = job.function.__name__
    if not isinstance(frame, DataFrame):
        raise UserError(f"{name}() returned a value of type {type(frame).__qualname__}, and not a Spark DataFrame")
    found = {field.name: type_of(field.dataType) for field in frame.schema.fields}
    if problems := list(differences(job.columns, found)):
        raise UserError(
            f"{'; '.join(problems)}: the DataFrame of {name}() is not what schema= declares",
            hint="Correct schema=, or select, alias and cast in the function.",
        )
    frame = frame.select(*(quoted(column.name) for column in job.columns))
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
