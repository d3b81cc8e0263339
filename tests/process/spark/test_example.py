"""The example at a small size: it compares by itself with what Spark alone computes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.machine import patient
from tests.process.pages import Reader

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[3]


def test_taxed_orders_equal_what_spark_alone_computes(tmp_path):
    folder = tmp_path / "orders"
    settings = [f"spark.orders.folder={folder}", "spark.orders.rows=20000", "spark.sql.shuffle.partitions=2"]
    settings += ["spark.driver.memory=512m", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"]
    command = [sys.executable, "-P", "-m", "ardea.cli", "run", "examples/spark_orders.py", "--logs", "report"]
    command += ["--state", str(tmp_path / "state"), *(f"--set={setting}" for setting in settings)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=patient(200), check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "equal, number by number"
    written = pq.read_table(folder / "taxed")
    customers = written["customer"].to_pylist()
    assert 1500 < len(customers) == len(set(customers)) <= 2000
    assert written["tax"].null_count == 0


@pytest.mark.thorough
def test_the_first_steps_of_the_page(tmp_path):
    reader = Reader(tmp_path, patience=400.0)  # beside three other tests Spark alone may take minutes
    reader.follow("docs/spark.md", until="## The spout")
    assert reader.typed == ["ardea run orders.py --logs total"]
