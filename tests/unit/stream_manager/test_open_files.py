"""A manager whose connections would not fit says so before it dials anybody."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from ardea.errors import ExitCode, TooFewFiles
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.scheduler.packing import packing_for
from ardea.stream_manager.container_setup import check_open_files
from ardea.versions import FORMAT
from tests.unit.stream_manager.mesh import topology

CONTAINERS = 200


@pytest.fixture(scope="module")
def definition():
    logical = topology(CONTAINERS).plan({"topology.stmgrs": CONTAINERS})
    packing = packing_to_bytes(packing_for(logical.config).pack(logical))
    return Definition(
        topology="many-1", state="", location="", config={}, shape=shape_of(logical), packing=packing, format=FORMAT
    )


def test_as_many_as_it_needs_are_enough(definition):
    needed = 6 * 4 + 6 * CONTAINERS + 64
    check_open_files(definition, 1, needed)
    with pytest.raises(TooFewFiles, match=r"about 1,288 open files for 4 tasks among 200 containers, and 1,287 are"):
        check_open_files(definition, 1, needed - 1)


def test_the_process_ends_for_good_and_says_what_to_do(definition, tmp_path):
    definition.write(tmp_path / "definition")

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

    where = ["--definition", tmp_path / "definition", "--folder", tmp_path]
    ways = [f"--{way}=ipc://{tmp_path / way}" for way in ("control", "data", "metrics")]
    command = [sys.executable, "-m", "ardea.stream_manager", *where, "--container=3", *ways]
    run = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True, timeout=30)
    assert run.returncode == ExitCode.PERMANENT
    assert "raise the hard limit of the container runtime" in run.stderr
    assert "Traceback" not in run.stderr
