"""Where little may wait, since a barrier waits after it, a slow bolt has work all the same while its spouts pause."""

from __future__ import annotations

import pytest

from ardea import Bolt, Grouping, Spout, Topology
from ardea.testing import Cluster

ROW = 0.0002
"""Seconds of the bolt."""


class Fast(Spout):
    outputs = ("n",)
    replayable = False

    def next_tuple(self):
        for n in range(10):
            self.emit((n,))


class Slow(Bolt):
    done = 0

    def process(self, tup):
        Slow.done += 1


class Pressed(Topology):
    fast = Fast.spec()
    slow = Slow.spec(inputs={fast: Grouping.fields("n")})
    config = {"topology.reliability.mode": "EFFECTIVELY_ONCE", "topology.stateful.checkpoint.interval.secs": 2.0}


@pytest.mark.parametrize("containers", [1, 2])
def test_a_bolt_that_is_slower_than_its_spout_is_never_idle(containers):
    """A manager that counted rows twice, as held and as sent, kept spouts paused for up to a second too long."""
    with Cluster(Pressed, containers=containers, seed=1, cost={"fast": ROW / 2, "slow": ROW}) as cluster:
        cluster.advance(8.0)
        began = Slow.done
        for tenth in range(1, 61):
            cluster.advance(0.1)
            assert Slow.done - began >= 0.95 * 0.1 * tenth / ROW, f"idle {tenth / 10} s later"
