"""What is stored of a submitted topology: each process builds the same with it, and what is too large is refused."""

from __future__ import annotations

import enum
import random

import pytest

from ardea import loader
from ardea.errors import UserError
from ardea.plan.definition import Definition
from ardea.scheduler.submission import MAX_DEFINITION_BYTES, Submission

FILE = """
from ardea import Bolt, Spout, Topology

class Source(Spout):
    outputs = ["n"]
    def next_tuple(self):
        self.finish()

class Sink(Bolt):
    def process(self, tup):
        pass

class Sized(Topology):
    source = Source.spec(par=2)
    sink = Sink.spec(inputs=[source], par=1232)
"""


@pytest.fixture
def submit(tmp_path):
    """Submits the topology with as many bytes of configuration that do not compress, as text."""
    file = tmp_path / "sized.py"
    file.write_text(FILE)

    def submit(incompressible: int) -> Submission:
        # Sixteen of 256 values in each byte: hexadecimal digits compress to half of their length, and no further.
        ballast = {"test.ballast": random.Random(7).randbytes(incompressible).hex()}
        return Submission.of(f"{file}:Sized", ballast, f"file://{tmp_path}/state")

    return submit


def test_a_definition_that_is_too_large_is_refused_with_its_size_and_number_of_tasks(submit):
    assert MAX_DEFINITION_BYTES == 900 << 10
    said = r"Sized take 1,\d{3} KiB compressed, with 1,234 tasks; 900 KiB are possible; nothing was started or changed"
    with pytest.raises(UserError, match=said) as caught:
        submit(1000 << 10)
    assert "fewer tasks" in (caught.value.hint or "")


def test_what_fits_is_taken(submit):
    """Compressed: what is written down is twice as long."""
    assert len(submit(600 << 10).packing.instances) == 1234


class Mode(enum.StrEnum):
    FAST = "fast"


def test_processes_build_what_was_submitted_whatever_the_overrides_are(tmp_path):
    file, written = tmp_path / "sized.py", tmp_path / "definition"
    file.write_text(FILE.replace("1232", "2"))
    overrides = {
        "my.sizes": (1, (2,)),
        "my.mode": Mode.FAST,
        "topology.workers": 2,
        "topology.component.rammap": "sink:1GB",
    }
    made = Submission.of(f"{file}:Sized", overrides, f"file://{tmp_path}/state")
    made.definition.write(written)
    read = Definition.read(written)
    assert read == made.definition
    assert loader.load(read.location).plan(read.config).digest() == read.shape.digest
    assert read.config == {
        "my.sizes": [1, [2]],
        "my.mode": "fast",
        "topology.stmgrs": 2,
        "topology.component.rammap": {"sink": 10**9},
    }


@pytest.mark.parametrize("storage", ["snaps", "./snaps", "file://snaps", "~nobody-here/snaps"])
def test_a_place_of_snapshots_that_is_another_one_in_each_working_folder_is_refused(tmp_path, storage):
    """Who kills the topology elsewhere would not find it."""
    file = tmp_path / "sized.py"
    file.write_text(FILE.replace("1232", "2").replace("Source(Spout):", "Source(Spout):\n    replayable = False"))

    def submit(storage):
        overrides = {"topology.reliability.mode": "EFFECTIVELY_ONCE", "topology.stateful.storage": storage}
        return Submission.of(f"{file}:Sized", overrides, f"file://{tmp_path}/state").plan.config

    with pytest.raises(UserError, match=rf"topology\.stateful\.storage = '{storage}' is no absolute path") as caught:
        submit(storage)
    assert "begins with /" in caught.value.hint
    for fine in ("/snaps", "~/snaps", "file:///snaps", "s3://bucket/snaps"):
        assert submit(fine)["topology.stateful.storage"] == fine
