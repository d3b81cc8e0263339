"""A container that is away, or a task: what waits for it comes once more at most, however often its trees time out."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.testing import Cluster
from tests.simulation.parts import Endless

PENDING = 100
PARTS = 4
BURST = 500


class Parts(Bolt):
    """Of each number some go to the lost container, and some do not."""

    outputs = ["n", "part"]

    def process(self, tup):
        for part in range(PARTS):
            self.emit([tup["n"], part])


class Takes(Bolt):
    def process(self, tup):
        """Nothing; the simulation notes it."""


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def cluster(timeout, seed, par=2):
    class Parted(Topology):
        spout = Endless.spec()
        parts = Parts.spec(inputs=[spout], par=par)
        takes = Takes.spec(inputs={parts: Grouping.fields("n", "part")}, par=par)
        config = {"topology.max.spout.pending": PENDING, "topology.message.timeout.secs": timeout}

    return Cluster(Parted, containers=2, seed=seed, cost={"spout": 1e-3, "takes": 0.01}, check=False)


def away_from_the_spout(parted):
    """The other container."""
    [spout] = [task for task in parted.plan.tasks.values() if task.component == "spout"]
    return f"container-{3 - spout.container}"


def trees(parted):
    return len(parted.record.acked["spout"])


def again(parted):
    """How often each part came that came more than once."""
    return {part: times for part, times in Counter(parted.record.inputs("takes")).items() if times > 1}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("timeout", [6, 60])
@pytest.mark.parametrize("fault", [Cluster.kill, lambda parted, name: parted.freeze(name, 9)], ids=["killed", "frozen"])
def test_of_a_container_that_is_away_nothing_comes_three_times(fault, timeout, seed):
    with cluster(timeout, seed) as parted:
        parted.run_until(lambda: trees(parted) > 200)
        assert not again(parted)
        fault(parted, away_from_the_spout(parted))
        open_trees = trees(parted)
        parted.run_until(lambda: trees(parted) > open_trees + 3 * PENDING)
        came = again(parted)
        assert max(came.values(), default=0) <= 2
        assert len({n for n, _ in came}) <= PENDING


@pytest.mark.parametrize("timeout", [6, 60])
def test_a_container_that_went_while_nothing_moved_is_missed_with_the_next_rows(timeout):
    """The links rest when it goes; nobody has missed it yet when the spout begins again."""
    with cluster(timeout, 3) as parted:
        parted.run_until(lambda: trees(parted) > 200)
        parted.deactivate()
        parted.advance(40.0)
        done = trees(parted)
        parted.freeze(away_from_the_spout(parted), 9)
        parted.activate()
        parted.run_until(lambda: trees(parted) > done + 3 * PENDING)
        came = again(parted)
        assert max(came.values(), default=0) <= 2
        assert len({n for n, _ in came}) <= PENDING


def test_spouts_go_on_soon_after_a_container_is_heard_again():
    with cluster(60, 1) as parted:
        parted.run_until(lambda: trees(parted) > 200)
        parted.freeze(away_from_the_spout(parted), 6)
        parted.advance(5.9)
        before = trees(parted)
        parted.advance(2.5)
        assert trees(parted) > before + PENDING


def test_what_waits_for_a_task_that_dies_is_not_sent_to_its_next_life():
    """Its trees are lost, and come again; twice comes only what the task had taken and not yet acked."""
    with cluster(6, 1, par=1) as parted:
        parted.run_until(lambda: trees(parted) > 200)
        parted.kill("takes-0")
        parted.run_until(lambda: trees(parted) > 600)
        assert len({n for n, _ in again(parted)}) <= 1


class Bursts(Endless):
    """Much at a time, which its manager holds."""

    def next_tuple(self):
        for _ in range(BURST):
            super().next_tuple()


class Held(Topology):
    """Two spouts and the bolt that both feed, each in a container of its own; it is slower than each of them."""

    left = Bursts.spec()
    right = Endless.spec()
    takes = Takes.spec(inputs=[left, right])
    config = {"topology.message.timeout.secs": 6}


def test_what_a_container_held_that_is_away_holds_no_other_spout_back():
    """Nothing comes from there; heard again, it says how much there still is."""
    with Cluster(Held, containers=3, seed=1, cost={"takes": 0.01}, check=False) as held:
        acked, places = held.record.acked, {task.name: task.container for task in held.plan.tasks.values()}
        assert len(set(places.values())) == 3
        held.run_until(lambda: len(acked["left"]) > 100)
        held.network.cut(f"manager-{places['left-0']}", f"manager-{places['takes-0']}")
        held.advance(10.0)
        before = len(acked["right"])
        held.advance(20.0)
        assert len(acked["right"]) > before + 1800
