"""Spark's executors in containers of YARN."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.machine import patient
from tests.process.spark.standalone import SPARK
from tests.process.spark.test_spark_elsewhere import ELSEWHERE, left_behind
from tests.process.spark.test_spark_jobs import LONG, arrived, running

pytestmark = [pytest.mark.soak(only=True), pytest.mark.cluster, pytest.mark.timeout(600)]

SCRIPT = Path(__file__).parents[3] / "scripts" / "yarn.sh"


@pytest.fixture
def yarn(tmp_path, monkeypatch):
    """A cluster of one machine, for which HADOOP_CONF_DIR is set; the folder of its logs."""
    if shutil.which("mvn") is None:
        pytest.skip("no YARN: there is no Maven to fetch it with")
    data = tmp_path / "yarn"
    environment = {**os.environ, "PYTHON": sys.executable, "YARN_DATA": str(data)}
    try:
        # Its processes would keep a pipe open.
        with (tmp_path / "up").open("wb") as said:
            subprocess.run([SCRIPT, "up"], env=environment, stdout=said, check=True, timeout=patient(150))
        monkeypatch.setenv("HADOOP_CONF_DIR", str(data / "conf"))
        yield data / "logs"
    finally:
        subprocess.run([SCRIPT, "down"], env=environment, check=True, timeout=patient(60))


def test_a_killed_executor(tmp_path, yarn):
    """YARN starts another one; nothing of the first attempt is read."""
    settings = {"spark_test_scar": str(tmp_path / "scar"), "spark_executor_instances": 1}
    settings |= {"spark_yarn_stagingDir": f"file://{tmp_path}/staging", "spark_yarn_jars": f"local:{SPARK}/jars/*"}
    with running("Bereft", tmp_path, ELSEWHERE, spark_master="yarn", **settings) as topology:
        totals = topology.finish(LONG).components["rows"]
        assert (tmp_path / "scar").exists()
        assert arrived(topology) == {repr((n,)) for n in range(16_000)}
        assert totals.acked == 16_000
        assert left_behind(topology) == []
    containers = list(yarn.glob("application_*/container_*"))
    assert len(containers) == 3, "of the application master, an executor, and the one that came instead"
    assert list((tmp_path / "staging").rglob("application_*")) == []
