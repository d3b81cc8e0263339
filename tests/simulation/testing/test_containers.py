"""Whole simulated containers: killed, frozen, replaced, and continued when another has their place."""

from __future__ import annotations

import logging

import pytest

from ardea import Bolt, Grouping, Topology, UserError
from ardea.state import Fenced
from ardea.testing import Cluster, CollectBolt, RowsSpout
from ardea.testing.inside import Inside

ROWS = 300
LONG = 14.0
"""Seconds: longer than the ten after which another container comes."""


class Twice(Bolt):
    outputs = ["number", "half"]

    def process(self, tup):
        for half in range(2):
            self.emit([tup[0], half])


class Halves(Topology):
    numbers = RowsSpout.of(["number"], [[n] for n in range(ROWS)]).spec(par=2)
    twice = Twice.spec(inputs=[numbers], par=2)
    count = CollectBolt.spec(inputs={twice: Grouping.fields("number", "half")}, par=2)
    config = {"topology.message.timeout.secs": 10, "topology.max.spout.pending": 15}


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def cluster(seed, containers=2):
    return Cluster(Halves, containers=containers, seed=seed, cost={"numbers": 0.2, "twice": 0.01})


def finishes(halves):
    """It succeeds, with everything; nobody who was replaced is left."""
    halves.run_until(lambda: halves.over, 600)
    assert (halves.state, halves.reason) == ("SUCCEEDED", "")
    assert set(halves.record.inputs("count")) == {(n, half) for n in range(ROWS) for half in range(2)}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(8))
def test_a_container_that_was_replaced_is_refused_when_it_goes_on(seed):
    """It says what it had to say, hears that another has its place, and ends; that one is never disturbed."""
    with cluster(seed, containers=2 + seed % 2) as halves:
        inside = Inside(halves)
        halves.advance(0.5 + seed * 0.013)
        halves.freeze("container-1", LONG)
        halves.advance(LONG - 0.1)
        replaced = inside.replaced
        assert {process.name for process in replaced} >= {"manager-1"}
        assert inside.holder(1) == "supervisor-2-of-container-1"
        [manager] = [process for process in replaced if process.name == "manager-1"]
        peer = manager.shell.manager.members.peers[2]
        sent = peer.statistics.sent
        halves.run_until(lambda: not inside.replaced, 10)
        assert peer.statistics.sent > sent
        assert inside.holder(1) == "supervisor-2-of-container-1"
        finishes(halves)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(5))
def test_a_master_that_was_replaced_is_refused_when_it_goes_on(seed):
    """Its first write ends it, or else the look at its lease."""
    with cluster(seed) as halves:
        halves.advance(1 + seed * 0.1)
        inside = Inside(halves)
        former = inside.process("master")
        halves.freeze("container-0", LONG)
        halves.advance(LONG - 0.1)
        assert inside.replaced == (former,)
        writes = inside.writes
        with pytest.raises(Fenced):
            former.master.drain(halves.time, 0)
        halves.run_until(lambda: not inside.replaced, 10)
        assert (inside.writes, halves.state) == (writes, "RUNNING")
        finishes(halves)


def test_a_container_that_stands_still_for_a_moment_goes_on():
    """Nobody is started again, not even who died meanwhile, before it goes on."""
    with cluster(1) as halves:
        halves.advance(1)
        halves.freeze("container-1", 5)
        victim = next(task.name for task in halves.plan.tasks_in(1) if task.name.endswith("-0"))
        halves.kill(victim)
        halves.advance(4.9)
        assert victim not in halves.running
        halves.advance(0.2)
        assert victim in halves.running
        assert not Inside(halves).replaced
        finishes(halves)
        assert halves.life("manager-1") == 1


def test_a_killed_container_comes_back_as_another():
    with cluster(1) as halves:
        halves.advance(1)
        halves.kill("container-2")
        halves.kill("container-0")
        halves.run_until(lambda: Inside(halves).holder(2) == "supervisor-2-of-container-2", 20)
        assert (halves.life("manager-2"), halves.life("manager-1"), halves.life("master")) == (2, 1, 2)
        finishes(halves)


def test_a_container_that_is_not_there_is_named():
    with cluster(1) as halves, pytest.raises(UserError, match="there is no process container-3"):
        halves.kill("container-3")
