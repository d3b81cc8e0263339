"""Driver and spout tasks that share no folder, and Spark on processes of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ardea.spark.index import IndexReader
from tests.process.spark.standalone import cluster
from tests.process.spark.test_spark_jobs import ALL, LONG, arrived, fails, running

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

ELSEWHERE = str(Path(__file__).parent / "topologies" / "elsewhere.py")


def published(topology, partitions):
    (folder,) = topology.folder.glob("container-*/spark/rows_driver-0")
    index = IndexReader(folder)
    topology.until(lambda: (index.poll(), len(index.partitions) >= partitions)[1], f"{partitions} are published", LONG)
    return index


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


def test_a_killed_worker_of_a_standalone_cluster(tmp_path):
    """Spark runs elsewhere, so that files are served; it repeats the task, and nothing of the first attempt is read."""
    settings = {"spark_test_scar": str(tmp_path / "scar"), "spark_executor_memory": "512m"}
    with (
        cluster(tmp_path / "cluster", cores=2) as master,
        running("Mortal", tmp_path, ELSEWHERE, spark_master=master, **settings) as topology,
    ):
        totals = topology.finish(LONG).components["rows"]
        assert (tmp_path / "scar").exists()
        assert arrived(topology) == {repr((n,)) for n in range(16_000)}
        assert totals.acked == 16_000
        assert left_behind(topology) == []


def test_a_killed_worker_of_a_local_master_fails_the_topology(tmp_path):
    """There Spark does not repeat a task."""
    settings = {"spark_test_scar": str(tmp_path / "scar"), "spark_master": "local[2]"}
    with running("Mortal", tmp_path, ELSEWHERE, **settings) as topology:
        assert "Python worker exited unexpectedly (crashed)" in fails(topology)
        assert (tmp_path / "scar").exists()
