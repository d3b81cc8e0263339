"""Driver and spout tasks that share no folder, and Spark on processes of its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ardea.spark.index import IndexReader
from tests.process.spark.standalone import cluster
from tests.process.spark.test_spark_jobs import ALL, LONG, arrived, fails, running

pytestmark = [pytest.mark.thorough, pytest.mark.cluster]

ELSEWHERE = str(Path(__file__).parent / "topologies" / "elsewhere.py")
EAGER = {
    "spark_executor_memory": "512m",
    "spark_speculation": True,
    "spark_speculation_interval": "50ms",
    "spark_speculation_multiplier": 0.1,
    "spark_speculation_quantile": 0.1,
    "spark_buffer_size": 1024,
}
"""Speculation runs a task twice as soon as another one has ended; rows are staged as soon as they are computed."""


def published(topology, partitions):
    (folder,) = topology.folder.glob("container-*/spark/rows_driver-0")
    index = IndexReader(folder)
    topology.until(lambda: (index.poll(), len(index.partitions) >= partitions)[1], f"{partitions} are published", LONG)
    return index


def attempts(topology, partition):
    """Those that have staged anything of it."""
    files = topology.folder.glob(f"container-*/spark/rows_driver-0/run-*/part-{partition:05d}-*.arrow")
    return {file.name.split("-")[2] for file in files}


def left_behind(topology):
    """Files but those that say how far a task was."""
    files = [path for path in topology.folder.glob("container-*/spark/**/*") if path.is_file()]
    return [path for path in files if path.parent.name != "progress"]


def test_served_files_outlive_the_death_of_the_driver_and_of_a_spout_task(tmp_path):
    gates = {"spark_test_gate": str(tmp_path / "gate"), "test_hold": str(tmp_path / "hold")}
    with running("Served", tmp_path, ELSEWHERE, **gates) as topology:
        topology.until(lambda: topology.total("acked", "rows") == 4000, "what is there is acked", LONG)
        topology.returned("rows_driver-0", topology.kill("rows_driver-0"), LONG)
        (tmp_path / "gate").touch()
        index = published(topology, 6)
        topology.until(lambda: (index.poll(), index.complete)[1], "the job has ended", LONG)
        topology.returned("rows_driver-0", topology.kill("rows_driver-0"), LONG)
        topology.returned("rows-1", topology.kill("rows-1"), LONG)
        (tmp_path / "hold").touch()
        topology.finish(LONG)
        assert arrived(topology) == ALL
        assert left_behind(topology) == []


def test_files_in_a_file_system_of_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setenv("ARDEA_TEST_STORAGE", f"file://{tmp_path}/storage")
    (tmp_path / "gate").touch()
    with running("InAFileSystem", tmp_path, ELSEWHERE, spark_test_gate=str(tmp_path / "gate")) as topology:
        topology.finish(LONG)
        assert arrived(topology) == ALL
        assert left_behind(topology) == []
    assert [path for path in (tmp_path / "storage").rglob("*") if path.is_file()] == []


def test_two_attempts_of_a_task_on_a_standalone_cluster(tmp_path):
    """Spark runs elsewhere, so that files are served.  One task is repeated as its worker was killed, one is slow, and
    speculation runs it twice at the same time: one attempt's rows are read, and nothing of the other."""
    settings = {"spark_test_scar": str(tmp_path / "scar"), "spark_test_gate": str(tmp_path / "gate")}
    with (
        cluster(tmp_path / "cluster", workers=2) as master,  # a second attempt runs on another host, or not at all
        running("Mortal", tmp_path, ELSEWHERE, spark_master=master, **settings, **EAGER) as topology,
    ):
        topology.until(lambda: len(attempts(topology, 2)) == 2, "two attempts have staged rows", LONG)
        (tmp_path / "gate").touch()
        totals = topology.finish(LONG).components["rows"]
        assert (tmp_path / "scar").exists()
        rows = [ast.literal_eval(row) for row in arrived(topology)]
        assert sorted(n for n, _ in rows) == [*range(16_000)]
        assert totals.acked == 16_000
        assert len({attempt for _, attempt in rows}) == 3, "of each partition one attempt is read"
        assert left_behind(topology) == []


def test_a_killed_worker_of_a_local_master_fails_the_topology(tmp_path):
    """There Spark does not repeat a task."""
    settings = {"spark_test_scar": str(tmp_path / "scar"), "spark_master": "local[2]"}
    with running("Mortal", tmp_path, ELSEWHERE, **settings) as topology:
        assert "Python worker exited unexpectedly (crashed)" in fails(topology)
        assert (tmp_path / "scar").exists()
