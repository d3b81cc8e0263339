"""An author's StopIteration: it is said by its name and line, although Python lets no generator raise one."""

from __future__ import annotations

import pytest

from ardea import Bolt, Spout, Topology
from ardea.loader import place_of
from ardea.testing import Cluster
from tests.unit.heron_instance.bench import Bench


class Lines(Spout):
    outputs = ("line",)

    def next_tuple(self):
        self.emit([next(iter(()))])


class Quiet(Lines):
    def next_tuple(self): ...


class Reads(Bolt):
    def process(self, tup): ...


class Read(Topology):
    lines = Lines.spec()
    reads = Reads.spec(inputs=[lines])


class Waiting(Topology):
    lines = Quiet.spec()
    reads = Reads.spec(inputs=[lines])


@pytest.mark.parametrize("topology", [Read, Waiting])
def test_it_ends_the_executor_under_its_own_name_at_the_authors_line(topology):
    executor = Bench(topology, "lines").executor
    if topology is Waiting:
        executor.env.inbox.put(lambda: executor.submitted(lambda: next(iter(()))))
        executor.begin = lambda: None  # the loop takes it
    with pytest.raises(StopIteration) as raised:
        executor.run()
    assert place_of(raised.value, authors=True).startswith("test_exhausted.py:")


def test_it_does_so_in_a_simulation():
    with Cluster(Read, seed=1) as cluster:
        cluster.run_until(lambda: cluster.record.errors, 30)
        assert [(task, type(error)) for task, error in cluster.record.errors][:1] == [("lines-0", StopIteration)]
