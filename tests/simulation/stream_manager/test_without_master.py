"""What dies while no master acts comes back without one."""

from __future__ import annotations

import pytest

from ardea import Bolt, Topology
from ardea.testing import Cluster
from tests.simulation.parts import Endless


class Sees(Bolt):
    def process(self, tup):
        pass


class Flowing(Topology):
    spout = Endless.spec()
    bolt = Sees.spec(par=2, inputs=[spout])
    config = {"topology.max.spout.pending": 100, "topology.message.timeout.secs": 5}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["bolt-1", "spout-0", "manager-1", "manager-2"])
def test_whoever_dies_while_the_master_stands_still_works_again_before_it_does(name):
    with Cluster(Flowing, containers=2, cost={"spout": 0.02}) as cluster:
        cluster.run_until(lambda: len(cluster.record.inputs("bolt")) > 20)
        cluster.freeze("master", 9)
        stands = cluster.time + 9
        cluster.kill(name)
        life = cluster.life(name)
        cluster.advance(5)
        before = len(cluster.record.inputs("bolt"))
        cluster.advance(3)
        assert cluster.time < stands
        assert cluster.life(name) == life + 1
        assert len(cluster.record.inputs("bolt")) > before + 50
