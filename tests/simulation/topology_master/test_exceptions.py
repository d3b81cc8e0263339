"""What a bolt raises, as its master tells of it: in groups, over the lives of its tasks."""

from __future__ import annotations

from ardea import Bolt, Grouping, Topology
from ardea.testing import Cluster
from tests.simulation.parts import Endless
from tests.simulation.topology_master.telling import WALL, Telling


class Picky(Bolt):
    outputs = ["n"]

    def process(self, tup):
        if tup["n"] % 3 == 0:
            raise ValueError(f"{tup['n']} is a multiple of three")
        if tup["n"] % 7 == 0:
            raise KeyError(tup["n"])
        self.emit((tup["n"],))


class Numbers(Topology):
    config = {"topology.max.spout.pending": 10}
    n = Endless.spec()
    picky = Picky.spec(inputs={n: Grouping.fields("n")}, par=2)


def test_a_master_tells_what_is_raised_where_how_often_and_of_which_tuple():
    with Cluster(Numbers, containers=2, cost={"n": 0.1}, check=False) as cluster:
        cluster.advance(8.0)
        asked = Telling(cluster)
        by_type = {group.type: group for group in asked.status(exceptions="yes").exceptions}
        threes, sevens = by_type["ValueError"], by_type["KeyError"]
        assert threes.count > sevens.count >= 3
        assert {*threes.tasks} == {"picky-0", "picky-1"}
        assert threes.component == "picky"
        assert threes.message.endswith(" is a multiple of three")
        assert "in process" in threes.stack
        assert "of n, stream default: (" in threes.row
        assert WALL < threes.first < threes.last <= WALL + cluster.time
        assert asked.status().exceptions == []

        before = threes.count
        cluster.kill("picky-0")
        cluster.advance(8.0)
        (after,) = (g for g in asked.status(exceptions="yes").exceptions if g.type == "ValueError")
        assert after.count > before
        assert after.tasks["picky-0"] > threes.tasks["picky-0"]
