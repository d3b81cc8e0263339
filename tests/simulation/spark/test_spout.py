"""What SparkSpout makes of its arguments, and what a task emits of an index, without Spark."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from ardea import Topology, TopologyBuilder, TopologyError, UserError
from ardea.component import install
from ardea.errors import ClusterError
from ardea.spark import SparkSpout
from ardea.spark.access import Access
from ardea.spark.depot import Depot
from ardea.spark.index import IndexWriter
from ardea.spark.link import tell
from ardea.spark.schema import parse_schema
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Folder, below
from ardea.spark.table import read_schema, write_schema
from ardea.testing import CollectBolt, run
from tests.process.waiting import eventually


def load(spark):
    return spark.range(3)


def test_fields_and_driver():
    class Numbers(Topology):
        numbers = SparkSpout(load, "id bigint, word string").spec(par=3, config={"spark.master": "local[2]"})
        sink = CollectBolt.spec(inputs=[numbers])

    plan = Numbers.plan({"topology.tasks": 2})
    assert plan["numbers"].stream("default").fields == ("id", "word")
    assert (plan["numbers"].tasks, plan["numbers_driver"].tasks) == (2, 1)
    driver = plan["numbers_driver"]
    assert driver.cls.fixed_parallelism, "ardea update gives it no second task"
    assert driver.config == {"spark.master": "local[2]", "topology.tick.tuple.freq.secs": 0.05}
    assert driver.resource.ram == 2 << 30
    assert [(source.component, source.stream) for source in driver.inputs] == [("numbers", "driver")]


def test_a_builder_takes_it_too():
    builder = TopologyBuilder("numbers")
    spec = builder.add_spout("numbers", SparkSpout(load, "id bigint"), par=2)
    builder.add_bolt("sink", CollectBolt, inputs=[spec])
    assert {component.name for component in builder.plan()} == {"numbers", "numbers_driver", "sink"}


def test_a_second_component_of_the_drivers_name_is_refused():
    class Twice(Topology):
        numbers = SparkSpout(load, "id bigint").spec()
        numbers_driver = CollectBolt.spec(inputs=[numbers])

    with pytest.raises(TopologyError, match=r"Duplicate component ids: \[numbers_driver\]"):
        Twice.plan()


def test_all_that_is_wrong_is_told_at_once():
    with pytest.raises(TopologyError) as refusal:
        SparkSpout(
            "load", "a interval", partitions=0, rows=0, start="now", storage="here", file_bytes="big"
        )  # fmt: skip
    told = "\n".join(refusal.value.problems)
    for words in ("first argument", "partitions=", "rows=", "start=", "storage=", "file_bytes=", "[a interval]"):
        assert words in told


def test_building_loads_neither_spark_nor_arrow():
    source = (
        "import sys; from ardea.spark import SparkSpout; SparkSpout(lambda spark: spark, 'a int').spec()\n"
        "print([name for name in ('pyspark', 'pyarrow', 'pandas') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "[]\n"


def test_it_needs_real_processes(monkeypatch):
    monkeypatch.delenv("ARDEA_FOLDER", raising=False)

    class Simulated(Topology):
        numbers = SparkSpout(load, "id bigint").spec()
        sink = CollectBolt.spec(inputs=[numbers])

    result = run(Simulated)
    assert result.state == "FAILED"
    assert "needs a topology of real processes" in result.reason


class Task:
    """One task of a spout, by hand; ``ids`` and ``rows`` are what it emitted."""

    def __init__(self, spout, index=0, tasks=1, now=lambda: 0.0):
        self.task = spout.spec("s").cls()
        self.ids, self.rows, self.finished = [], [], False
        install(self.task, "s", self)
        self.context = SimpleNamespace(this_component_id="s", topology_id="t", clock=now)
        self.place(index, tasks)
        self.task.initialize({}, self.context)

    def place(self, index, tasks):
        self.context.this_task_index = index
        self.context.component_tasks = lambda name: range(tasks)

    def emit_batch(self, batch, tup_ids, stream):
        self.ids.append(tup_ids)
        self.rows += batch.column(0).to_pylist()

    def finish(self):
        self.finished = True

    def reopen(self):
        self.finished = False

    def exhaust(self):
        while True:
            before = len(self.ids)
            self.task.next_tuple()
            if len(self.ids) == before:
                return self.rows


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """Publishes partitions of two batches of ten rows each: partition 3 holds 3000 … 3019."""
    monkeypatch.setenv("ARDEA_FOLDER", str(tmp_path / "container-1"))
    folder = tmp_path / "spark" / "s"
    (folder / "progress").mkdir(parents=True)
    run = Run(Folder(str(folder)), "run-1", 1, frozenset())
    (folder / "run-1").mkdir()
    with IndexWriter(folder) as writer:

        def publish(number, rows=10, run=run):
            halves = (range(number * 1000 + start, number * 1000 + start + rows) for start in (0, rows))
            batches = [pa.record_batch({"n": pa.array(half, pa.int64())}) for half in halves]
            writer.publish(write_partition(run, number, 0, batches, tmp_path))

        yield SimpleNamespace(publish=publish, writer=writer, folder=folder, run=run)


def thousands(*numbers):
    return [n * 1000 + k for n in numbers for k in range(20)]


def test_partitions_are_read_as_they_are_published(stage):
    task = Task(SparkSpout(load, "n bigint"))
    assert task.exhaust() == []
    stage.publish(3)
    assert task.exhaust() == thousands(3)
    stage.publish(1, rows=0)
    stage.publish(0)
    assert task.exhaust() == thousands(3, 0)
    assert not task.finished
    stage.writer.complete()
    assert task.exhaust() == thousands(3, 0)
    assert task.finished


def test_a_complete_start_waits(stage):
    task = Task(SparkSpout(load, "n bigint", start="complete"))
    stage.publish(0)
    assert task.exhaust() == []
    stage.writer.restart()
    stage.publish(1)
    assert task.exhaust() == []
    stage.writer.complete()
    assert task.exhaust() == thousands(1)
    assert task.finished


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_partition_of_another_run_is_refused_unless_runs_are_equal(stage, deterministic):
    """A driver that has lost its folder begins anew; the partition's files are others then."""
    task = Task(SparkSpout(load, "n bigint", deterministic=deterministic))
    stage.publish(0)
    stage.publish(1)
    task.task.next_tuple()
    stage.writer.restart()
    (stage.folder / "run-2").mkdir()
    stage.publish(0, run=dataclasses.replace(stage.run, name="run-2"))
    if deterministic:
        assert task.exhaust()[:20] == thousands(0)
    else:
        with pytest.raises(UserError, match="partition 0 comes of another run"):
            task.exhaust()


def test_a_file_that_is_on_its_way_holds_nothing_up(stage):
    task = Task(SparkSpout(load, "n bigint"))
    shared, task.task._files = task.task._files, SimpleNamespace(local=lambda file: None)
    stage.publish(0)
    stage.writer.complete()
    assert task.exhaust() == []
    assert not task.finished
    task.task._files.local = shared.local
    task.task._files.expect = task.task._files.done = shared.done
    assert task.exhaust() == thousands(0)


def test_an_empty_job_finishes(stage):
    stage.writer.complete()
    task = Task(SparkSpout(load, "n bigint"))
    assert task.exhaust() == []
    assert task.finished


def test_tasks_share_the_partitions(stage):
    for number in range(5):
        stage.publish(number)
    stage.writer.complete()
    spout = SparkSpout(load, "n bigint")
    assert [Task(spout, index, 3).exhaust() for index in range(3)] == [
        thousands(0, 3), thousands(1, 4), thousands(2)
    ]  # fmt: skip


def test_a_new_life_goes_on_at_the_first_batch_with_a_gap(stage):
    stage.publish(0)
    stage.publish(1)
    stage.writer.complete()
    spout = SparkSpout(load, "n bigint")
    former = Task(spout)
    former.exhaust()
    first, second, third, fourth = former.ids
    former.task.ack_batch(np.array([*first, *second[1:], *third[:3]]))  # as the engine tells it
    former.task.ack_batch([*third[3:], *fourth[:-1]])
    assert Task(spout).exhaust() == [*range(10, 20), *range(1010, 1020)]


def test_a_mark_without_room_is_told(stage, monkeypatch):
    """On a full device, which Linux has."""
    stage.publish(0)
    task = Task(SparkSpout(load, "n bigint"))
    task.exhaust()
    monkeypatch.setattr("secrets.token_hex", lambda _: "full")
    (stage.folder / "progress" / ".0-full").symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"of partition 0 .* cannot be kept in .*progress: .* No space left on device"):
        task.task.ack_batch(task.ids[0])


def test_fewer_tasks_take_over_what_is_left(stage):
    for number in range(4):
        stage.publish(number)
    stage.writer.complete()
    task = Task(SparkSpout(load, "n bigint"), 0, 2)
    task.task.next_tuple()
    task.place(0, 1)
    task.task.update(task.context)
    assert sorted(task.exhaust()) == thousands(0, 1, 2, 3)


def test_more_tasks_go_on_with_a_partition_where_it_was_left(stage):
    for number in range(4):
        stage.publish(number)
    stage.writer.complete()
    spout = SparkSpout(load, "n bigint")
    former = Task(spout)
    for _ in range(3):
        former.task.next_tuple()
    for ids in former.ids:
        former.task.ack_batch(ids)
    former.place(0, 2)
    former.task.update(former.context)
    assert sorted(former.exhaust() + Task(spout, 1, 2).exhaust()) == thousands(0, 1, 2, 3)


def test_a_task_that_has_finished_reads_what_another_number_of_tasks_brings_it(stage):
    for number in range(5):
        stage.publish(number)
    stage.writer.complete()
    task = Task(SparkSpout(load, "n bigint"), 1, 2)
    assert task.exhaust() == thousands(1, 3)
    task.place(1, 3)
    task.task.update(task.context)
    assert not task.finished, "nobody would ask it again"
    assert task.exhaust() == thousands(1, 3, 4)
    assert task.finished


@pytest.mark.parametrize("complete", [False, True])
def test_files_that_are_gone_are_an_error_unless_the_driver_gave_up(stage, complete):
    stage.publish(0)
    task = Task(SparkSpout(load, "n bigint"))
    task.task.next_tuple()
    if complete:
        stage.writer.complete()
        task.task._index.poll()
    shutil.rmtree(stage.folder)
    if complete:
        with pytest.raises(ClusterError, match="is gone"):
            task.exhaust()
    else:
        task.exhaust()
        task.task.ack_batch(task.ids[0])
    assert not task.finished


@pytest.mark.parametrize(
    ("options", "published", "told"),
    [
        ({}, 0, "Spark needs Java"),
        ({}, 2, "died after it had published 2 partitions: another run may give other rows"),
        ({"deterministic": True}, 2, "Spark needs Java"),
        ({"start": "complete"}, 2, "Spark needs Java"),
    ],
)
def test_what_a_driver_does_about_its_predecessor(stage, monkeypatch, tmp_path, options, published, told):
    """It goes on to start Spark, for which there is no Java here, or refuses; either way what it has found stays."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for number in range(published):
        stage.publish(number)
    driver = SparkSpout(load, "n bigint", **options).spec("s").companions["driver"].cls()
    with pytest.raises(UserError, match=told):
        driver.initialize(
            {},
            SimpleNamespace(
                this_task_index=0, this_component_id="s_driver", topology_id="t", clock=float, task_data={}
            ),
        )
    assert list(stage.folder.parent.iterdir()) == [stage.folder]


def context_of_the_driver(*, over=False):
    return SimpleNamespace(
        this_task_index=0,
        this_component_id="s_driver",
        topology_id="t",
        clock=float,
        task_data={},
        rolling_back=False,
        topology_over=over,
    )


def test_columns_other_than_those_of_what_is_staged_are_refused(stage):
    context = context_of_the_driver()
    kept, other = (SparkSpout(load, ddl).spec("s").companions["driver"].cls for ddl in ("n bigint", "m bigint"))
    stage.publish(0)
    stage.writer.complete("t")
    for driver in (kept(), kept()):
        driver.initialize({}, context)
        driver.close()
    with pytest.raises(UserError, match=r"has the columns `n` bigint, not `m` bigint: s cannot read what is staged"):
        other().initialize({}, context)
    assert list(stage.folder.parent.iterdir()) == [stage.folder]


def test_a_job_that_begins_anew_may_have_other_columns(stage, monkeypatch):
    """Nobody has read what is staged."""
    write_schema(stage.folder, parse_schema("n bigint"), overwrite=True)
    stage.publish(0)
    driver = SparkSpout(load, "m bigint", start="complete").spec("s").companions["driver"].cls()
    monkeypatch.setattr(driver, "_begin", lambda *_: None)
    driver.initialize({}, context_of_the_driver())
    driver.close()
    assert read_schema(stage.folder) == parse_schema("m bigint")


def test_a_driver_that_finds_everything_staged_has_nothing_to_do(stage):
    stage.publish(0)
    stage.writer.complete("t")
    driver = SparkSpout(load, "n bigint").spec("s").companions["driver"].cls()
    driver.initialize({}, context_of_the_driver(over=True))
    driver.process_tick(None)
    driver.close()
    assert list(stage.folder.parent.iterdir()) == []


def test_a_driver_has_one_task(stage):
    cls = SparkSpout(load, "n bigint").spec("s").companions["driver"].cls
    context = SimpleNamespace(
        this_task_index=1, this_component_id="s_driver", topology_id="t", clock=float, task_data={}
    )
    with pytest.raises(UserError, match="s_driver has one task"):
        cls().initialize({}, context)


@pytest.mark.parametrize(
    ("storage", "master", "pod", "place"),
    [
        (None, "local[2]", None, None),
        (None, "local[2]", "10.0.0.7", "serve"),
        (None, "spark://head:7077", None, "serve"),
        ("/shared", "spark://head:7077", "10.0.0.7", "/shared"),
        ("s3://bucket/path", "local", None, "s3://bucket/path"),
    ],
)
def test_where_files_are_staged(monkeypatch, storage, master, pod, place):
    monkeypatch.delenv("POD_IP", raising=False)
    if pod is not None:
        monkeypatch.setenv("POD_IP", pod)
    assert SparkSpout(load, "n bigint", storage=storage).job.place({"spark.master": master}) == place


@pytest.mark.parametrize(
    ("place", "folder"),
    [
        ("s3://bucket/path/", "s3://bucket/path/t/s/run-1"),
        ("s3://bucket/path?region=eu-north-1&scheme=http", "s3://bucket/path/t/s/run-1?region=eu-north-1&scheme=http"),
        ("hdfs:///path/?user=me", "hdfs:///path/t/s/run-1?user=me"),
    ],
)
def test_the_options_of_a_uri_stay_behind_its_path(place, folder):
    uri = SparkSpout(load, "n bigint", storage=place).job.uri(place, "s", SimpleNamespace(topology_id="t"))
    assert below(uri, "run-1") == folder


def test_a_spout_task_asks_for_its_driver_each_second_until_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("ARDEA_FOLDER", str(tmp_path / "container-1"))
    (tmp_path / "driver").mkdir()
    seconds = 0.0
    task = Task(SparkSpout(load, "n bigint", storage="serve"), now=lambda: seconds)
    asked = []
    task.emit = lambda values, tup_id, stream, *_: asked.append((stream, Access(*values)))
    for passed in (0.0, 0.5, 0.5, 0.9, 0.1):
        seconds += passed
        task.task.next_tuple()
    assert asked == [("driver", task.task._link.own)] * 3
    with IndexWriter(tmp_path / "driver") as writer:
        depot = Depot(tmp_path / "driver", "127.0.0.1", "127.0.0.1")
        tell(asked[0][1], depot.access)
        eventually(lambda: task.task._link.driver is not None)
        seconds = 9.0
        task.task.next_tuple()
        assert len(asked) == 3
        writer.complete()
        eventually(lambda: (task.task.next_tuple(), task.finished)[1])
        task.task.close()
        depot.close()
    assert [path.name for path in (tmp_path / "container-1/spark/s-0").iterdir()] == ["progress"]
