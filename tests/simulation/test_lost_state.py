"""The state manager comes back empty while a topology runs: managers know what was lost, and a new master asks them."""

from __future__ import annotations

import random

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.testing import Cluster, CollectBolt, RowsSpout
from ardea.testing.inside import Inside
from tests.sizes import size

ROWS = 60
SEEDS = range(size(40, 2_000, whole=120))


class Double(Bolt):
    outputs = ["number"]

    def process(self, tup):
        self.emit([tup[0] * 2])


class Numbers(Topology):
    numbers = RowsSpout.of(["number"], [[n] for n in range(ROWS)]).spec(par=2)
    double = Double.spec(inputs=[numbers], par=2)
    collect = CollectBolt.spec(inputs={double: Grouping.fields("number")}, par=2)
    config = {"topology.message.timeout.secs": 10, "topology.max.spout.pending": 5}


def cluster(seed=0, containers=3, **more):
    return Cluster(Numbers, containers=containers, seed=seed, cost={"numbers": 0.2}, **more)


def arrived(running):
    return {number for (number,) in running.record.inputs("collect")}


def term(running):
    return Inside(running).term


def runs_again(running, former):
    running.run_until(lambda: running.state == "RUNNING" and term(running) > former)


def test_it_goes_on_under_a_higher_term_and_nothing_is_missing():
    with cluster() as running:
        running.advance(0.5)
        running.kill("master")
        running.advance(2.0)
        former = term(running)
        assert former == 2
        running.lose_state()
        runs_again(running, former)
        running.run_until(lambda: running.over, 120)
        assert (running.state, running.reason) == ("SUCCEEDED", "")
        assert arrived(running) == {2 * n for n in range(ROWS)}


def test_what_was_submitted_paused_goes_on_where_it_was_activated():
    with cluster(active=False) as running:
        running.advance(0.5)
        running.activate()
        running.advance(1.0)
        former = term(running)
        running.lose_state()
        runs_again(running, former)
        running.run_until(lambda: running.over, 120)
        assert arrived(running) == {2 * n for n in range(ROWS)}


@pytest.mark.parametrize("masters", [0, 1, 2])
def test_it_stays_paused(masters):
    """Also where as many masters as there were have died before they heard of anything."""
    with cluster() as running:
        running.advance(0.5)
        running.deactivate()
        running.advance(1.0)
        running.lose_state()
        for _ in range(masters):
            running.kill("master")
            life = running.life("master")
            running.run_until(lambda life=life: "master" in running.running and running.life("master") > life)
        running.run_until(lambda: Inside(running).admission(1), 60)
        assert term(running) >= 2
        assert running.state == "PAUSED"
        before = len(running.record.inputs("collect"))
        running.advance(20.0)
        assert (running.state, len(running.record.inputs("collect"))) == ("PAUSED", before)
        running.activate()
        running.run_until(lambda: running.over, 120)
        assert running.state == "SUCCEEDED"


def test_a_container_that_is_replaced_meanwhile_gets_an_admission_that_nobody_had():
    with cluster() as running:
        running.advance(0.5)
        running.lose_state()
        running.kill("master")
        running.kill("container-2")
        running.run_until(lambda: running.over, 120)
        assert (running.state, running.reason) == ("SUCCEEDED", "")
        assert arrived(running) == {2 * n for n in range(ROWS)}
        assert [Inside(running).admission(container) for container in (1, 2, 3)] == [1, 2, 1]


def test_an_end_that_was_under_way_is_not_invented():
    with cluster() as running:
        running.run_until(lambda: running.state == "ENDING", 120)
        running.lose_state()
        running.run_until(lambda: running.over, 120)
        assert running.state == "FAILED"
        assert running.reason == "the state manager has lost what it held, and the end of the topology was under way"
        assert arrived(running) == {2 * n for n in range(ROWS)}


def chaos(seed):
    """State lost once, twice or thrice, with masters, managers and containers that die about then."""
    dice = random.Random(f"loss {seed}")
    containers = dice.randint(1, 3)
    victims = ["master", *(f"manager-{n}" for n in range(1, containers + 1))]
    victims += [f"container-{n}" for n in range(containers + 1)]
    faults = []
    for _ in range(dice.randint(1, 3)):
        at = dice.uniform(0.1, 7.0)
        faults.append((at, lambda running: running.lose_state()))
        for _ in range(dice.randint(0, 3)):
            victim = dice.choice(victims)
            faults.append((max(0.0, at + dice.uniform(-0.5, 1.5)), lambda running, victim=victim: running.kill(victim)))
    return containers, faults


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_dies_with_it_nothing_that_was_tracked_is_missing(seed):
    containers, faults = chaos(seed)
    with cluster(seed, containers, faults=faults) as running:
        running.run_until(lambda: running.over, 600)
        if running.state == "FAILED":
            assert "has lost what it held" in running.reason or "after the end was declared" in running.reason
        else:
            assert (running.state, running.reason) == ("SUCCEEDED", "")
            assert arrived(running) == {2 * n for n in range(ROWS)}
