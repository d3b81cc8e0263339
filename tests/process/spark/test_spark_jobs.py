"""Real Spark jobs as spouts: values, failures, and whoever dies on the way."""

from __future__ import annotations

import contextlib
import datetime
import shutil
import time
import zoneinfo
from decimal import Decimal
from pathlib import Path

import pytest

from ardea.spark.index import IndexReader
from ardea.state.records import RunState
from tests.machine import out_of_patience
from tests.process.engine.running import Running
from tests.process.waiting import eventually

pytestmark = pytest.mark.cluster

JOBS = str(Path(__file__).parent / "topologies" / "jobs.py")
LONG = 150.0


@contextlib.contextmanager
def running(name, tmp_path, file=JOBS, **settings):
    """The topology; after it, nothing is left of Spark and its files."""
    dotted = {key.replace("_", "."): value for key, value in settings.items()}
    with Running(f"{file}:{name}", tmp_path, dotted) as topology:
        yield topology
        assert list((topology.folder / "spark").glob("*")) == []
    eventually(lambda: not spark_processes(topology.folder), 20, "Spark's processes are gone")


def spark_processes(folder):
    """Command lines of what has the topology's folder in its environment or arguments: JVM and Python workers."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str(folder).encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes())
    return found


def until_over(topology, seconds=LONG):
    """Steps until it has ended; returns how."""
    began = time.monotonic()
    while not topology.run.over:
        assert not out_of_patience(began, seconds), topology.logs()
        topology.run.step()
    return topology.run.outcome()


def fails(topology):
    """Waits for the end, which is FAILED; returns the reason."""
    outcome = until_over(topology)
    assert outcome.state is RunState.FAILED, f"{outcome}\n{topology.logs()}"
    return outcome.reason


def arrived(topology, component="arrived"):
    return {row for task in topology.left(component) for row in task}


def two_published(topology):
    index = IndexReader(topology.folder / "spark" / "rows")
    topology.until(lambda: (index.poll(), len(index.partitions) == 2)[1], "two partitions are published", LONG)


ALL = {repr((n,)) for n in range(6 * 2000)}


def test_every_type_arrives_as_it_is_promised(tmp_path):
    """Three tasks, empty partitions, a UDF of the topology's file; bolts for rows, batches and columns."""
    with running("EveryType", tmp_path) as topology:
        topology.finish(LONG)
        singly, batches = arrived(topology, "singly"), arrived(topology, "batches")
        as_rows, as_columns = topology.left("batches"), topology.left("columns")
    assert singly == batches
    names = {"datetime": datetime, "Decimal": Decimal, "zoneinfo": zoneinfo}
    rows = sorted((eval(row, names) for row in singly), key=lambda row: (row[0] is None, row[0]))
    words = [{eval(row, names)[4] for row in task} for task in as_rows]
    assert [{eval(row)[0] for row in task} for task in as_columns] == words
    assert words[0].isdisjoint(words[1])
    assert all(words)
    assert sum(len(task) for task in as_columns) == 9 * 2 + 1  # each word but null from two tasks of the spout
    assert rows[-1] == (None,) * 13
    start = datetime.datetime.fromisoformat("2024-05-01T08:00:00+00:00")
    assert rows[:-1] == [
        (
            n, n, n / 2, Decimal(f"{n}.50"), f"number {n}!", str(n).encode(), n % 2 == 0,
            start + datetime.timedelta(hours=n), datetime.datetime.fromisoformat("2024-05-01T10:00:00"),
            datetime.date(2024, 5, 1) + datetime.timedelta(days=n),
            [f"number {n}!", None], {"lat": n / 2, "deep": [n]}, {"a": n},
        )
        for n in range(9)
    ]  # fmt: skip
    assert rows[0][7].utcoffset() == datetime.timedelta(0)
    assert rows[0][8].tzinfo is None


@pytest.mark.thorough
def test_an_empty_dataframe_is_a_topology_without_rows(tmp_path):
    with running("Chosen", tmp_path, spark_test_case="empty") as topology:
        topology.finish(LONG)
        assert arrived(topology) == set()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("misspelt", ["[UNRESOLVED_COLUMN.WITH_SUGGESTION]", "`idd` cannot be resolved", "(jobs.py:"]),
        ("undeclared", ["column n is string, not bigint"]),
        ("full", ["OSError: [Errno 28]", "No space left on device"]),
        ("late", ["[DIVIDE_BY_ZERO]", "the Spark job of rows failed"]),
    ],
)
def test_a_failing_job_fails_the_topology_in_sparks_words(tmp_path, case, told):
    with running("Chosen", tmp_path, spark_test_case=case) as topology:
        reason = fails(topology)
    for words in told:
        assert words in reason
    assert reason.startswith(f"rows_driver-0 cannot go on: {told[0]}")


def test_without_java_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with running("Chosen", tmp_path, spark_test_case="empty") as topology:
        assert "Spark needs Java 17 or newer, and there is no java" in fails(topology)


@pytest.mark.thorough
def test_effectively_once_spark_goes_on_while_all_go_back(tmp_path):
    """A reader and a counter are killed in the middle of a job that could not be run again."""
    gate = tmp_path / "gate"
    with running("GatedOnce", tmp_path, spark_test_gate=str(gate), test_hold=str(gate), test_slow=0.02) as topology:
        two_published(topology)
        topology.until(lambda: topology.total("executed", "counted") > 500, "rows arrive", LONG)
        driver = topology.pid("rows_driver-0")
        for name in ("rows-0", "counted-0"):
            topology.returned(name, topology.kill(name), LONG)
        assert topology.pid("rows_driver-0") == driver
        gate.touch()
        topology.finish(LONG)
        assert topology.left("counted") == [[6 * 2000, []]]


def test_a_killed_spout_task_goes_on_where_acks_have_a_gap(tmp_path):
    with running("Gated", tmp_path, spark_test_gate=str(tmp_path / "gate"), test_slow=0.02) as topology:
        two_published(topology)
        done = lambda: (topology.total("job_tasks_done", "rows_driver"), topology.total("job_tasks", "rows_driver"))  # noqa: E731
        topology.until(lambda: done() == (2, 6), "two of six Spark tasks are done, as is said", LONG)
        topology.until(lambda: topology.total("executed", "arrived") > 500, "rows arrive", LONG)
        topology.returned("rows-0", topology.kill("rows-0"), LONG)
        (tmp_path / "gate").touch()
        topology.until(lambda: topology.total("executed", "arrived") > 5000, "more rows arrive", LONG)
        topology.kill("rows-1")
        topology.finish(LONG)
        assert arrived(topology) == ALL


@pytest.mark.thorough
def test_a_driver_that_dies_leaves_a_run_that_cannot_go_on(tmp_path):
    with running("Gated", tmp_path, spark_test_gate=str(tmp_path / "gate")) as topology:
        two_published(topology)
        topology.kill("rows_driver-0")
        assert "died after it had published 2 partitions: another run may give other rows" in fails(topology)
        shutil.rmtree(topology.folder / "spark" / "rows")  # which stays


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Deterministic", "AllOrNothing"])
def test_another_run_takes_over_where_the_author_allows_it(tmp_path, name):
    with running(name, tmp_path, spark_test_gate=str(tmp_path / "gate")) as topology:
        two_published(topology)
        if name == "Deterministic":
            topology.until(lambda: topology.total("acked", "rows") == 4000, "what is there is acked", LONG)
        topology.returned("rows_driver-0", topology.kill("rows_driver-0"), LONG)
        (tmp_path / "gate").touch()
        totals = topology.finish(LONG).components["rows"]
        assert arrived(topology) == ALL
        assert totals.acked == len(ALL)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Gated", "Deterministic", "AllOrNothing"])
def test_a_driver_that_dies_before_it_has_published_begins_anew(tmp_path, name):
    with running(name, tmp_path, spark_test_gate=str(tmp_path / "gate"), spark_test_closed="yes") as topology:
        staged = topology.folder / "spark" / "rows"
        topology.until(lambda: topology.total("job_tasks", "rows_driver") == 6, "Spark is at work", LONG)
        (former,) = staged.glob("run-*")
        life = topology.kill("rows_driver-0")
        assert (staged / "index.jsonl").read_text() == ""
        topology.returned("rows_driver-0", life, LONG)
        topology.until(lambda: {*staged.glob("run-*")} > {former}, "another run has begun", LONG)
        (tmp_path / "gate").touch()
        totals = topology.finish(LONG).components["rows"]
        assert arrived(topology) == ALL
        assert totals.acked == len(ALL)
