"""More than fits into the memory of a spout task, nearly all of it in one partition."""

from __future__ import annotations

import contextlib
import datetime
import re
from pathlib import Path

import pytest

from tests.process.spark.test_spark_jobs import LONG, running

pytestmark = [pytest.mark.thorough, pytest.mark.cluster]

SIZES = str(Path(__file__).parent / "topologies" / "sizes.py")


def anonymous(pid):
    """Bytes of memory that no file backs."""
    found = re.search(r"^Anonymous: +(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    return int(found[1]) * 1024


def first_published(topology):
    """When, in Unix seconds."""
    text = "".join(file.read_text() for file in topology.folder.glob("container-*/logs/rows_driver-0.log"))
    moment = re.search(r"^(\S+ \S+),(\d+) INFO rows_driver: published", text, re.MULTILINE)
    return datetime.datetime.fromisoformat(f"{moment[1]}.{moment[2]}").timestamp()


def test_a_skewed_job_passes_in_little_memory(tmp_path, capsys):
    most = {"rows-0": 0, "rows-1": 0}

    def look():
        for name, process in topology.processes().items():
            if name in most and process["pid"]:
                with contextlib.suppress(OSError, TypeError):
                    most[name] = max(most[name], anonymous(process["pid"]))

    with running("Skewed", tmp_path, SIZES) as topology:
        topology.finish(LONG, look)
        ((first, rows, tasks),) = topology.left("sum")
        waited = first - first_published(topology)
    assert rows == 252_500
    assert tasks == [2500, 250_000]
    with capsys.disabled():
        print(f"\nfirst tuple {waited:.2f} s after the first published partition; anonymous memory at most "
              + ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in most.items()))  # fmt: skip
    assert 0 < max(most.values()) < 200e6
