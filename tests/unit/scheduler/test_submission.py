"""What is too large for an object of Kubernetes and a node of ZooKeeper is refused, whatever the scheduler."""

from __future__ import annotations

import random

import pytest

from ardea.errors import UserError
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
