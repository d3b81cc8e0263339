"""What a sample of emitted rows leaves behind: nothing."""

from __future__ import annotations

import pytest

from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.parts import Running


@pytest.mark.parametrize("again", ["spout-0", "manager-1", "manager-2", "update"])
def test_a_later_life_logs_no_rows(capsys, again):
    """The verb asks again and again while somebody reads."""
    with Cluster(Running, containers=2, cost={"spout": 0.05}) as cluster:
        cluster.advance(2)
        Inside(cluster).master.debug("spout", 15)
        cluster.advance(20)
        assert "spout-0.emits" in capsys.readouterr().out
        if again == "update":
            assert cluster.updated(cluster.update_request(config={"topology.max.spout.pending": 70})).step == "done"
        else:
            cluster.kill(again)
        emitted = len(cluster.record.emitted["spout"])
        cluster.advance(20)
        assert len(cluster.record.emitted["spout"]) > emitted
        assert "spout-0.emits" not in capsys.readouterr().out
