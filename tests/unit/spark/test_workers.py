"""What Spark's Python workers import: each waits for it before its first row."""

from __future__ import annotations

import subprocess
import sys


def test_a_worker_loads_neither_the_engine_nor_what_drivers_need():
    code = "import sys, ardea.spark.stage; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "ardea" in loaded
    assert not loaded & {"heron_instance", "numpy", "pyarrow", "pyspark", "starlette", "uvicorn"}
