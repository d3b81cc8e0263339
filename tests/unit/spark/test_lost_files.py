"""Files that a spout task cannot read, and drivers that lose theirs: real sockets, no Spark."""

from __future__ import annotations

import shutil
import threading

import pyarrow as pa
import pytest

from ardea import UserError
from ardea.errors import ClusterError
from ardea.spark import SparkSpout, SparkStreamSpout, depot
from ardea.spark.depot import Depot
from ardea.spark.index import IndexWriter, StreamIndexWriter
from ardea.spark.link import tell
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Folder
from tests.process.waiting import eventually
from tests.simulation.spark.test_spout import Task, load, thousands

HOST = "127.0.0.1"


class Driver:
    """What a driver stages and serves; each one is a run of its own."""

    def __init__(self, folder, run, kind=IndexWriter):
        (folder / run).mkdir(parents=True)
        (folder / "progress").mkdir()
        self.folder, self.run, self.index = folder, run, kind(folder)
        self.depot = Depot(folder, HOST, HOST)

    def written(self, number):
        """A partition of two batches of ten rows, each in a file."""
        halves = [range(number * 1000 + start, number * 1000 + start + 10) for start in (0, 10)]
        batches = [pa.record_batch({"n": pa.array(half, pa.int64())}) for half in halves]
        run = Run(Folder(str(self.folder)), self.run, 1, frozenset())
        return write_partition(run, number, 0, batches, self.folder)

    def publish(self, *numbers):
        for number in numbers:
            self.index.publish(self.written(number))

    def files(self):
        return sorted((self.folder / self.run).glob("part-*"))

    def lose(self):
        self.depot.close()
        self.index.close()
        shutil.rmtree(self.folder)


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """Makes drivers."""
    monkeypatch.setenv("ARDEA_FOLDER", str(tmp_path / "container-1"))
    monkeypatch.setattr(depot, "_PATIENCE", 0.1)
    made = []

    def make(run, kind=IndexWriter):
        made.append(Driver(tmp_path / f"driver-{run}", run, kind))
        return made[-1]

    yield make
    for each in made:
        each.depot.close()
        each.index.close()


@pytest.fixture
def reading():
    """Makes tasks that are told where the driver is."""
    made = []

    def make(spout, driver):
        made.append(Task(spout))
        return meets(made[-1], driver)

    yield make
    for each in made:
        each.task.close()


def meets(task, driver):
    task.emit = lambda *_: None  # the question where the driver is
    tell(task.task._link.own, driver.depot.access)
    eventually(lambda: task.task._link.driver == driver.depot.access, 10, "the task knows its driver")
    return task


def steps(task, enough):
    eventually(lambda: enough() or (task.task.next_tuple(), enough())[1], 20, "the task goes on")


def loses_all(driver, task):
    """Nothing that is fetched ahead is left either."""
    fetched = task.task._files._fetched
    eventually(lambda: all(file.done() for file in fetched.values()))
    fetched.clear()
    driver.lose()
    eventually(lambda: task.task._link.driver is None, 10, "the driver is missed")


def damaged(path):
    path.write_bytes(path.read_bytes()[::-1])


def removed(path):
    path.unlink()


@pytest.mark.parametrize(("harm", "told"), [(damaged, "has changed since Spark wrote it"), (removed, "is gone")])
@pytest.mark.parametrize("storage", ["serve", "uri"])
def test_a_file_that_cannot_be_read_ends_the_topology_while_spark_still_works(
    driver, reading, tmp_path, storage, harm, told
):
    first = driver("run-a")
    if storage == "uri":
        (tmp_path / "there" / "t").mkdir(parents=True)
        (tmp_path / "there" / "t" / "s").symlink_to(first.folder)
        storage = f"file://{tmp_path}/there"
    first.publish(0, 1)
    task = reading(SparkSpout(load, "n bigint", storage=storage), first)
    steps(task, lambda: len(task.ids) == 1)
    harm(first.files()[2])
    with pytest.raises(ClusterError, match=f"part-00001-0-0.arrow {told}.*; up to 10 rows would be missing"):
        steps(task, lambda: task.finished)
    assert task.rows == thousands(0)


def test_a_stream_whose_file_cannot_be_read_ends_too(driver, reading):
    only = driver("run-a", StreamIndexWriter)
    only.index.publish_batch("run-a", [only.written(0)])
    damaged(only.files()[1])
    task = reading(SparkStreamSpout(load, "n bigint", storage="serve"), only)
    with pytest.raises(ClusterError, match="has changed since Spark wrote it"):
        steps(task, lambda: len(task.ids) == 2)


def test_a_micro_batch_that_was_acked_and_removed_is_skipped_though_that_is_not_known_yet(driver, reading):
    """Another task had it before; the mirror of the index lags behind until the file is asked for."""
    only = driver("run-a", StreamIndexWriter)
    only.index.publish_batch("run-a", [only.written(0)])
    task = reading(SparkStreamSpout(load, "n bigint", storage="serve"), only)
    heard, read, settle = threading.Event(), only.depot._index_file.read, task.task._files._settle
    look = only.depot._index_file.look
    only.depot._index_file.look = lambda: not heard.is_set() or look()
    only.depot._index_file.read = lambda after: read(after) if heard.is_set() else b""
    task.task._files._settle = lambda: (heard.set(), settle())
    only.index.publish_batch("run-a", [only.written(1)])
    only.index.remove_first()
    for file in only.files()[:2]:
        file.unlink()
    steps(task, lambda: len(task.ids) == 2)
    assert task.rows == thousands(1)


@pytest.mark.parametrize("complete", [False, True])
def test_an_equal_run_is_read_on_where_the_lost_one_ended(driver, reading, complete):
    first = driver("run-a")
    first.publish(0, 1)
    if complete:
        first.index.complete()
    task = reading(SparkSpout(load, "n bigint", storage="serve", deterministic=True), first)
    steps(task, lambda: len(task.ids) == 1)
    loses_all(first, task)
    second = driver("run-b")
    meets(task, second)
    steps(task, lambda: task.task._dropped)
    assert not task.finished
    second.publish(1, 0)
    second.index.complete()
    steps(task, lambda: task.finished)
    assert sorted(task.rows) == thousands(0, 1)
    assert len(task.ids) == 4


def test_rows_of_another_run_do_not_follow(driver, reading):
    first = driver("run-a")
    first.publish(0)
    task = reading(SparkSpout(load, "n bigint", storage="serve"), first)
    steps(task, lambda: len(task.ids) == 1)
    loses_all(first, task)
    second = driver("run-b")
    second.publish(0)
    meets(task, second)
    with pytest.raises(UserError, match="partition 0 comes of another run"):
        steps(task, lambda: task.finished)


def test_nor_does_a_run_that_ends_without_the_partition(driver, reading):
    first = driver("run-a")
    first.publish(0, 1)
    task = reading(SparkSpout(load, "n bigint", storage="serve"), first)
    steps(task, lambda: len(task.ids) == 3)
    loses_all(first, task)
    second = driver("run-b")
    meets(task, second)
    second.index.complete()
    with pytest.raises(UserError, match="partition 0 comes of another run"):
        steps(task, lambda: task.finished)


@pytest.mark.parametrize("acked", [True, False])
@pytest.mark.parametrize("deterministic", [False, True])
def test_a_new_life_knows_which_run_its_former_one_read(driver, reading, deterministic, acked):
    spout = SparkSpout(load, "n bigint", storage="serve", deterministic=deterministic)
    first = driver("run-a")
    first.publish(0)
    former = reading(spout, first)
    steps(former, lambda: len(former.ids) == 1)
    if acked:
        former.task.ack_batch(former.ids[0])
    former.task.close()
    first.lose()
    second = driver("run-b")
    second.publish(0)
    second.index.complete()
    task = reading(spout, second)
    if not deterministic:
        with pytest.raises(UserError, match="partition 0 comes of another run"):
            steps(task, lambda: task.finished)
    else:
        steps(task, lambda: task.finished)
        assert task.rows == thousands(0)[10 * acked :]


@pytest.mark.parametrize("gone", [False, True])
def test_a_new_life_knows_which_stream_its_former_one_read(driver, reading, gone):
    """By its mark, which would tell the driver that a micro-batch is acked which nobody has read; ``gone``: without."""
    spout = SparkStreamSpout(load, "n bigint", storage="serve")
    first, second = (driver(run, StreamIndexWriter) for run in ("run-a", "run-b"))
    for each in (first, second):
        each.index.publish_batch(each.run, [each.written(0)])
    former = reading(spout, first)
    steps(former, lambda: len(former.ids) == 2)
    for ids in former.ids:
        former.task.ack_batch(ids)
    if gone:
        former.task._progress.forget(0)
    former.task.close()
    task = reading(spout, second)
    with pytest.raises(UserError, match="began the stream again"):
        steps(task, lambda: False)
    assert task.ids == []


def test_a_mirror_of_the_index_without_room_is_told(driver, reading):
    """On a full device, which Linux has."""
    spout, only = SparkSpout(load, "n bigint", storage="serve"), driver("run-a")
    task = Task(spout)
    (task.task._folder / "index.new").symlink_to("/dev/full")
    only.publish(0)
    task.emit = lambda *_: None
    tell(task.task._link.own, only.depot.access)
    with pytest.raises(UserError, match=r"the index cannot be kept in .*mirror: .* No space left on device"):
        steps(task, lambda: task.ids)
    task.task.close()
