"""What Spark's Python workers and spout tasks import: each waits for it before its first row."""

from __future__ import annotations

import subprocess
import sys


def loaded(code, *arguments):
    """The modules that a new process has after it ran the code."""
    code += "\nimport sys\nprint(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


STAGING = """
import sys
from pathlib import Path

import pyarrow
from pyspark import SparkFiles, TaskContext

from ardea.spark.stage import Run, stager
from ardea.spark.storage import Folder

folder = Path(sys.argv[1])
(folder / "run-1" / "reports").mkdir(parents=True)
context = TaskContext()
context._partitionId, context._taskAttemptId = 7, 3
TaskContext._setTaskContext(context)
SparkFiles._root_directory, SparkFiles._is_running_on_worker = str(folder), True
column = pyarrow.Array.from_buffers(pyarrow.int64(), 2, [None, pyarrow.py_buffer(bytes(16))])
batches = [pyarrow.RecordBatch.from_arrays([column], ["n"])]
(answer,) = stager(Run(Folder(str(folder)), "run-1", 1 << 20, frozenset()))(iter(batches))
assert answer.num_rows == 1
assert answer.schema.names == ["staged"]
assert (folder / "run-1" / "part-00007-3-0.arrow").exists()
"""


def test_a_worker_loads_neither_the_engine_nor_what_drivers_need():
    found = loaded("import ardea.spark.stage")
    assert "ardea" in found
    assert not found & {"ardea.heron_instance", "numpy", "pyarrow", "pyspark", "starlette", "uvicorn"}


def test_staging_a_partition_does_not_load_pandas(tmp_path):
    """Arrow imports it for a Python value, which takes longer than to stage a partition."""
    found = loaded(STAGING, str(tmp_path))
    assert {"pyarrow", "pyspark"} <= found
    assert "pandas" not in found


def test_a_spout_task_loads_no_web_server():
    found = loaded("import ardea.spark.spout")
    assert "numpy" in found
    assert not found & {"starlette", "uvicorn"}
