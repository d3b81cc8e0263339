"""The driver's part of a job: its index is complete, and its error told, whatever Spark is still doing."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from ardea.component import install
from ardea.errors import UserError
from ardea.spark import SparkSpout, SparkStreamSpout, session, stream_driver, work
from ardea.spark.stage import write_partition
from tests.process.waiting import eventually


def load(spark):
    return spark.range(2)


class Spark:
    """What the driver asks of a session; it stops when it may."""

    def __init__(self, monkeypatch):
        self.stopping, self.may_stop = threading.Event(), threading.Event()
        self.ends = []
        tracker = SimpleNamespace(getActiveJobsIds=list)
        self.sparkContext = SimpleNamespace(statusTracker=lambda: tracker)
        monkeypatch.setattr(session, "require_java", lambda: None)
        monkeypatch.setattr(session, "open_session", lambda name, settings: self)
        monkeypatch.setattr(session, "end_jvm", lambda: self.ends.append("killed"))
        monkeypatch.setattr(work, "frame_of", lambda job, spark: SimpleNamespace(isStreaming=False))

    def stop(self):
        self.stopping.set()
        assert self.may_stop.wait(30)
        self.ends.append("stopped")


@pytest.fixture
def spark(monkeypatch):
    found = Spark(monkeypatch)
    yield found
    found.may_stop.set()


@pytest.fixture
def driver(tmp_path, monkeypatch, spark):
    """Of a job of two partitions."""
    monkeypatch.setenv("ARDEA_FOLDER", str(tmp_path / "container-1"))

    def staged(frame, run):
        for number in range(2):
            batch = pa.record_batch({"n": pa.array([number], pa.int64())})
            run.storage.report(run.name, write_partition(run, number, number, [batch], tmp_path))
        return 2

    monkeypatch.setattr(work, "stage", staged)
    return driver_of(SparkSpout(load, "n bigint"))


def driver_of(spout):
    task = spout.spec("s").companions["driver"].cls()
    install(task, "s_driver", None)
    task.start = lambda **config: task.initialize(
        config,
        SimpleNamespace(
            this_task_index=0,
            this_component_id="s_driver",
            topology_id="t",
            clock=float,
            register_metric=lambda name, metric: metric,
            task_data={},
            rolling_back=False,
            topology_over=True,
        ),
    )
    return task


def completes(driver):
    """Looks again and again, as ticks do; the driver's index."""
    index = driver._index.known
    eventually(lambda: (driver.process_tick(None), index.complete)[1])
    return index


def test_without_hadoops_configuration_no_jvm_is_started_for_yarn(driver, spark, monkeypatch, tmp_path):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match="yarn needs Hadoop's configuration"):
        driver.start(**{"spark.master": "yarn", "spark.driver.host": "127.0.0.1"})
    assert driver.work is None
    assert list((tmp_path / "container-1" / "spark").iterdir()) == []


def test_the_index_is_complete_while_spark_is_still_stopping(driver, spark, tmp_path):
    driver.start()
    index = completes(driver)
    assert (index.complete.partitions, index.complete.rows) == (2, 2)
    assert spark.stopping.wait(10)
    assert driver._begun.is_alive()
    threading.Timer(0.2, spark.may_stop.set).start()
    driver.close()
    assert spark.ends[:2] == ["stopped", "killed"]
    assert list((tmp_path / "spark").iterdir()) == []


def test_what_is_staged_stays_for_the_next_process(driver, spark):
    """One that is only told to stop, while the topology goes on."""
    spark.may_stop.set()
    driver.start()
    completes(driver)
    driver._context.topology_over = False
    driver.close()
    following = type(driver)()
    following.initialize({}, driver._context)
    assert following._index.known.complete.rows == 2
    assert following.work is None
    following._index.close()


def test_the_object_of_after_a_rollback_ends_spark_with_its_own_context(driver, spark):
    """That of before it is void: it takes no metric any more, and says for ever that all go back."""
    spark.may_stop.set()
    driver.start()
    completes(driver)
    before, measured = driver._context, []
    before.rolling_back = True
    driver.close()
    following = type(driver)()
    install(following, "s_driver", None)
    following.initialize(
        {}, SimpleNamespace(**{**vars(before), "rolling_back": False, "register_metric": lambda *a: measured.append(a)})
    )
    assert measured, "by the new context"
    following.close()
    assert "killed" in spark.ends
    assert "driver" not in before.task_data


def test_a_spark_that_does_not_stop_does_not_hold_the_end_up(driver, spark, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "_STOPPING", 0.05)
    driver.start()
    completes(driver)
    driver.close()
    assert driver._begun.is_alive()
    assert spark.ends == ["killed"]
    assert list((tmp_path / "spark").iterdir()) == []


def test_a_job_that_fails_is_told_when_spark_has_ended(driver, spark, tmp_path, monkeypatch):
    def fails(frame, run):
        raise RuntimeError("no room")

    monkeypatch.setattr(work, "stage", fails)
    driver.start()
    assert spark.stopping.wait(10)
    driver.process_tick(None)
    assert driver._index.known.complete is None
    spark.may_stop.set()
    driver._begun.join(10)
    with pytest.raises(UserError, match=r"RuntimeError: no room .*: the Spark job of s failed"):
        driver.process_tick(None)
    assert list((tmp_path / "spark").iterdir()) == []


def test_what_was_found_stays_where_the_job_fails(driver, spark, tmp_path):
    """An update may be put back, and the former version goes on with it."""
    (tmp_path / "spark" / "s").mkdir(parents=True)
    driver.start()
    assert driver.folder == tmp_path / "spark" / "s"
    spark.may_stop.set()
    driver.work.fail(UserError("no such column"))
    driver._begun.join(30)
    with pytest.raises(UserError, match="no such column"):
        driver.process_tick(None)
    assert driver.folder.is_dir()


def test_a_job_that_breaks_off_as_it_is_ended_has_not_failed(driver, spark, monkeypatch, caplog):
    ended = threading.Event()

    def breaks_off(frame, run):
        assert ended.wait(30)
        raise ConnectionError("the JVM is gone")

    monkeypatch.setattr(work, "stage", breaks_off)
    monkeypatch.setattr(session, "end_jvm", ended.set)
    spark.may_stop.set()
    driver.start()
    driver.close()
    driver._begun.join(30)
    assert not driver._begun.is_alive()
    assert "the Spark job failed" not in caplog.text


def test_an_index_without_room_is_told(driver, spark, tmp_path):
    """On a full device, which Linux has."""
    spark.may_stop.set()
    driver.start()
    driver._index._file.close()
    driver._index._file = Path("/dev/full").open("ab", buffering=0)  # noqa: SIM115 -- the driver closes it
    with pytest.raises(UserError, match=r"the index /dev/full cannot be written: .* No space left on device"):
        completes(driver)
    driver._begun.join(10)
    assert list((tmp_path / "spark").iterdir()) == []


def test_spark_goes_on_when_all_go_back_and_ends_with_the_topology(driver, spark, tmp_path):
    """Another object takes the place of the one that has begun the job."""
    driver.start()
    driver._context.rolling_back = True
    driver.close()
    again = type(driver)()
    install(again, "s_driver", object())
    again.initialize({}, driver._context)
    assert again.work is driver.work
    assert again._collector is not driver._collector
    driver._context.rolling_back = False
    assert completes(again).complete.rows == 2
    spark.may_stop.set()
    again.close()
    assert spark.ends.count("stopped") == 1
    assert list((tmp_path / "spark").iterdir()) == []


def test_what_the_driver_of_a_stream_staged_as_it_died_is_removed(driver, spark, tmp_path, monkeypatch, caplog):
    """At the URI first: what cannot be removed there is known to the next driver by the folder here."""
    spark.may_stop.set()
    away = tmp_path / "bucket" / "t" / "s" / "run-dead"
    here = tmp_path / "container-1" / "spark" / "s_driver-0" / "run-dead"
    for folder in (away, here):
        folder.mkdir(parents=True)
    (away / "part-0.arrow").write_bytes(b"rows")

    def refuses(uri):
        raise OSError("no answer")

    def start():
        stream = driver_of(SparkStreamSpout(load, "n bigint", storage=f"file://{tmp_path}/bucket"))
        stream.start()
        stream._context.topology_over = False
        stream.close()

    with monkeypatch.context() as patched:
        patched.setattr(stream_driver, "remove", refuses)
        start()
    assert here.is_dir()
    assert "run-dead stays until the driver starts again: no answer" in caplog.text
    start()
    assert (here.exists(), away.exists()) == (False, False)
