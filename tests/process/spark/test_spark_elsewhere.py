"""Driver and spout tasks that share no folder, and Spark on processes of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ardea.spark.index import IndexReader
from tests.process.spark.test_spark_jobs import ALL, LONG, arrived, running

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
    with running("Served", tmp_path, ELSEWHERE, spark_test_gate=str(tmp_path / "gate"), test_slow=0.02) as topology:
        topology.until(lambda: topology.total("executed", "arrived") > 500, "rows arrive", LONG)
        published(topology, 2)
        topology.returned("rows_driver-0", topology.kill("rows_driver-0"), LONG)
        (tmp_path / "gate").touch()
        index = published(topology, 6)
        topology.until(lambda: (index.poll(), index.complete)[1], "the job has ended", LONG)
        topology.returned("rows_driver-0", topology.kill("rows_driver-0"), LONG)
        topology.kill("rows-1")
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
