"""A DataFrame through a topology to its end, while Spark runs; against Spark alone writing the same one as Parquet.

Both are timed from outside, with all that starts and ends.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks.column_topology import CONFIG, Note
from benchmarks.columns import check_sinks
from benchmarks.harness import run_topology
from benchmarks.results import BenchmarkError
from benchmarks.spark_alone import SETTINGS
from benchmarks.topologies import FOLDER

WITHIN = 600.0
TOPOLOGY = """
from ardea import Topology
from ardea.spark import SparkSpout
from benchmarks.column_topology import SCHEMA, RaiseColumns, SinkColumns
from benchmarks.spark_alone import frame


def orders(spark):
    return frame(spark, {rows})


class SparkBenchmark(Topology):
    staged = SparkSpout(orders, schema=SCHEMA).spec()
    raised = RaiseColumns.spec(inputs=[staged])
    sink = SinkColumns.spec(inputs=[raised])
    config = {config}
"""


class SparkResult(msgspec.Struct, frozen=True, kw_only=True):
    """One round, in seconds; ``ratio`` is ours over Spark's."""

    rows: int
    ours: float
    parquet: float
    ratio: float


def rounds(rows: int, count: int) -> list[SparkResult]:
    """The topology, then Spark alone.

    Raises:
        BenchmarkError: one of them did not end, or not every row arrived.
    """
    return [_round(rows) for _ in range(count)]


def _round(rows: int) -> SparkResult:
    ours, parquet = _ours(rows), _parquet(rows)
    return SparkResult(rows=rows, ours=ours, parquet=parquet, ratio=ours / parquet)


def _ours(rows: int) -> float:
    began = time.monotonic()

    def source(notes: Path) -> str:
        return TOPOLOGY.format(rows=rows, config={**CONFIG, **SETTINGS, FOLDER: str(notes)})

    with run_topology(source) as topology:
        topology.finish(WITHIN, lambda: None)
        ended = time.monotonic()
        check_sinks([msgspec.json.decode(path.read_bytes(), type=Note) for path in topology.notes.iterdir()], rows)
    return ended - began


def _parquet(rows: int) -> float:
    with tempfile.TemporaryDirectory(prefix="ardea-benchmark-") as folder:
        command = [sys.executable, "-m", "benchmarks.spark_alone", str(rows), f"{folder}/parquet"]
        began = time.monotonic()
        try:
            subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=True)
        except subprocess.CalledProcessError as error:
            last = error.stderr.strip().rpartition("\n")[2]
            raise BenchmarkError(f"Spark alone ended with {error.returncode}: {last}") from error
        except subprocess.TimeoutExpired as error:
            raise BenchmarkError(f"Spark alone did not end within {WITHIN:g} s") from error
        return time.monotonic() - began
