"""A master that is started again goes on with what is stored: an end, the losses in it, a drain, a pause."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea import Bolt, Topology
from ardea.testing import Cluster, CollectBolt, RowsSpout
from ardea.testing.inside import Inside
from ardea.topology_master.departures import BACK_WITHIN
from tests.simulation.parts import Endless, Running, TupleCounter
from tests.sizes import share


class Total(Topology):
    spout = RowsSpout.of(["row"], [[n] for n in range(20)]).spec()
    count = TupleCounter.spec(par=2, inputs=[spout])
    sink = CollectBolt.spec(inputs=[count])


class GivesUp(RowsSpout):
    """Lets go what failed; a ``patient`` one waits before it finishes."""

    patient = False

    def fail(self, tup_id):
        return False

    def finish(self):
        if not self.patient:
            super().finish()


class Refuses(Bolt):
    auto_ack = False

    def process(self, tup):
        self.fail(tup)


class GivingUp(Topology):
    spout = GivesUp.of(["row"], [[n] for n in range(20)]).spec()
    sink = Refuses.spec(inputs=[spout])


def dies(cluster, *names):
    for name in names:
        cluster.kill(name)


@settings(max_examples=share(80))
@given(
    later=st.floats(0, 0.003),
    names=st.lists(st.sampled_from(["manager-1", "manager-2", "spout-0", "count-0", "count-1", "sink-0"]), min_size=1),
    seed=st.integers(0, 10**6),
)
def test_losses_after_the_declaration_are_noticed_by_a_new_master(later, names, seed):
    """Whoever dies together with the master: the final counts are complete, or the topology FAILED and says why."""
    with Cluster(Total, containers=2, seed=seed) as cluster:
        cluster.run_until(lambda: cluster.state == "ENDING")
        cluster.advance(later)
        if cluster.state == "ENDING":
            dies(cluster, "master", *dict.fromkeys(names))
        cluster.run_until(lambda: cluster.over, 120)
        if cluster.state == "FAILED":
            assert "after the end was declared" in cluster.reason
        else:
            total = sum(count for (count,) in cluster.record.inputs("sink"))
            assert total == 20 if "spout-0" not in names else 20 <= total <= 40


@pytest.mark.parametrize("name", ["count-0", "sink-0", "manager-1"])
def test_a_bolt_that_dies_with_the_master_fails_the_topology(name):
    """Right after the declaration nobody has ended, so something is lost for certain."""
    with Cluster(Total, containers=2, seed=5) as cluster:
        cluster.run_until(lambda: cluster.state == "ENDING")
        dies(cluster, "master", name)
        cluster.run_until(lambda: cluster.over, 120)
        who = "the stream manager of container 1" if name == "manager-1" else name
        assert (cluster.state, cluster.reason.startswith(f"{who} died after the end was declared")) == ("FAILED", True)


def test_a_new_master_alone_changes_nothing():
    with Cluster(Total, containers=2, seed=5) as cluster:
        cluster.run_until(lambda: cluster.state == "ENDING")
        dies(cluster, "master")
        cluster.run_until(lambda: cluster.over, 120)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")


def test_rows_given_up_are_not_forgotten():
    """The spout that gave rows up and the master die as the end is declared: FAILED, with the number."""
    with Cluster(GivingUp, containers=2, seed=3) as cluster:
        cluster.run_until(lambda: cluster.state == "ENDING")
        dies(cluster, "master", "spout-0")
        cluster.run_until(lambda: cluster.over, 120)
        assert cluster.state == "FAILED"
        assert cluster.reason.startswith("20 tuples were given up")


def test_rows_given_up_by_a_former_life_are_not_forgotten(monkeypatch):
    """The spout dies first, the master later, long before the end."""
    monkeypatch.setattr(GivesUp, "patient", True)
    with Cluster(GivingUp, containers=2, seed=3) as cluster:
        cluster.advance(2)
        cluster.kill("spout-0")
        cluster.advance(2)
        cluster.kill("master")
        cluster.advance(2)
        monkeypatch.setattr(GivesUp, "patient", False)
        cluster.run_until(lambda: cluster.over, 120)
        assert cluster.state == "FAILED"
        assert cluster.reason.startswith("40 tuples were given up")


@pytest.mark.parametrize("wait", [None, 1.0])
def test_a_drain_goes_on(wait):
    """KILLED as without the master's death; nothing stays open if there is time."""
    with Cluster(Running, containers=2, seed=1, cost={"spout": 0.01, "sink": 0.02}) as cluster:
        cluster.advance(3)
        cluster.drain(wait)
        cluster.advance(0.0005)
        cluster.kill("master")
        cluster.run_until(lambda: cluster.over, 60)
        assert cluster.state == "KILLED"
        assert wait is not None or cluster.reason == ""


def test_a_drain_of_a_stuck_topology_ends_although_the_master_dies():
    """Patience begins again with the new master, and ends."""
    with Cluster(Running, containers=2, seed=1, cost={"spout": 0.01, "sink": 100}) as cluster:
        cluster.advance(3)
        cluster.drain(5)
        cluster.advance(3)
        cluster.kill("master")
        start = cluster.time
        cluster.run_until(lambda: cluster.state == "KILLED", 60)
        assert 4.9 <= cluster.time - start <= 6
        assert "tuples were still open" in cluster.reason


def test_one_tuple_that_is_still_open_is_one():
    pending = {"topology.max.spout.pending": 1}
    with Cluster(Running, config=pending, seed=1, cost={"spout": 0.01, "sink": 100}) as cluster:
        cluster.advance(3)
        cluster.drain(1)
        cluster.run_until(lambda: cluster.state == "KILLED", 60)
        assert cluster.reason == "1 tuple was still open"


def test_a_drain_during_the_end_waits_for_it():
    """Everything has been processed: the last word is the end's, not the drain's."""
    with Cluster(Total, containers=2, seed=5) as cluster:
        cluster.run_until(lambda: cluster.state == "ENDING")
        cluster.drain()
        cluster.run_until(lambda: cluster.over, 5)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")


def test_a_hurried_drain_ends_sooner():
    with Cluster(Running, containers=2, seed=1, cost={"spout": 0.01, "sink": 100}) as cluster:
        cluster.advance(3)
        cluster.drain(50)
        cluster.drain(0)
        cluster.run_until(lambda: cluster.state == "KILLED", 2)


def test_a_steady_state_writes_nothing():
    """But once that all have come up."""
    with Cluster(Running, containers=2, seed=1, cost={"spout": 0.01, "sink": 0.01}) as cluster:
        cluster.advance(5)
        cluster.kill("master")
        cluster.kill("sink-0")
        cluster.advance(30)
        assert Inside(cluster).writes == 1


def test_a_drain_that_is_repeated_is_written_once():
    with Cluster(Running, containers=2, seed=1, cost={"spout": 0.01, "sink": 100}) as cluster:
        cluster.advance(3)
        before = Inside(cluster).writes
        for _ in range(5):
            cluster.drain(60)
            cluster.advance(1)
        assert Inside(cluster).writes == before + 1


# --- a deactivated topology -------------------------------------------------------------------------------------------


def finished_while_deactivated(cluster):
    """The spout has finished, but its last trees complete only after the deactivation."""
    cluster.run_until(lambda: cluster.record.emitted["spout"])
    cluster.deactivate()
    cluster.advance(30)


@pytest.mark.parametrize("deaths", [(), ("master",), ("spout-0",), ("sink-0",), ("manager-1", "master")])
def test_a_deactivated_topology_does_not_end(deaths):
    """Whoever dies meanwhile; it ends when it is activated again."""
    with Cluster(Total, containers=2, seed=5, cost={"count": 0.1}) as cluster:
        finished_while_deactivated(cluster)
        assert cluster.state == "PAUSED"
        dies(cluster, *deaths)
        cluster.advance(30)
        assert cluster.state == "PAUSED"
        cluster.activate()
        cluster.run_until(lambda: cluster.over, 120)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        assert sum(count for (count,) in cluster.record.inputs("sink")) >= 20


def test_a_deactivated_topology_is_drained():
    with Cluster(Total, containers=2, seed=5, cost={"count": 0.1}) as cluster:
        finished_while_deactivated(cluster)
        cluster.drain()
        cluster.run_until(lambda: cluster.over, 30)
        assert (cluster.state, cluster.reason) == ("KILLED", "")


ALL = ("manager-1", "manager-2", "spout-0", "sink-0")


def test_a_paused_topology_stays_paused_when_all_of_it_is_started_again():
    """Not a row leaves the spout, though a manager may remember the plan from before the pause."""
    with Cluster(Running, containers=2, seed=5, cost={"spout": 0.02}) as cluster:
        cluster.advance(3)
        cluster.deactivate()
        cluster.advance(3)
        emitted = len(cluster.record.emitted["spout"])
        dies(cluster, "master", *ALL)
        cluster.advance(20)
        assert (cluster.state, len(cluster.record.emitted["spout"])) == ("PAUSED", emitted)
        cluster.activate()
        cluster.advance(3)
        assert len(cluster.record.emitted["spout"]) > emitted


def test_a_paused_topology_stays_paused_while_no_master_acts():
    with Cluster(Running, containers=2, seed=5, cost={"spout": 0.02}) as cluster:
        cluster.advance(3)
        cluster.deactivate()
        cluster.advance(3)
        emitted = len(cluster.record.emitted["spout"])
        cluster.freeze("master", 9)
        dies(cluster, *ALL)
        cluster.advance(8)
        assert len(cluster.record.emitted["spout"]) == emitted


def test_an_activated_topology_goes_on_when_all_of_it_is_started_again():
    """It was submitted deactivated."""
    with Cluster(Running, containers=2, seed=5, cost={"spout": 0.02}, active=False) as cluster:
        cluster.advance(3)
        cluster.activate()
        cluster.advance(3)
        emitted = len(cluster.record.emitted["spout"])
        dies(cluster, "master", *ALL)
        cluster.advance(20)
        assert cluster.state == "RUNNING"
        assert len(cluster.record.emitted["spout"]) > emitted


def test_a_container_that_missed_the_pause_does_not_emit():
    """It was cut off when the topology was deactivated, and comes back to another master."""
    with Cluster(Running, containers=2, seed=5, cost={"spout": 0.02}) as cluster:
        place = next(task.container for task in cluster.plan.tasks.values() if task.name == "spout-0")
        cluster.advance(3)
        cluster.freeze(f"manager-{place}", 5)
        cluster.advance(0.1)
        cluster.deactivate()
        cluster.advance(0.1)
        dies(cluster, "master", f"manager-{place}", "spout-0")
        cluster.advance(5)
        emitted = len(cluster.record.emitted["spout"])
        cluster.advance(10)
        assert (cluster.state, len(cluster.record.emitted["spout"])) == ("PAUSED", emitted)


class Apart(Topology):
    """Two branches, which the packing gives a container each."""

    near = Endless.spec()
    end = CollectBolt.spec(inputs=[near])
    far = Endless.spec()
    slow = CollectBolt.spec(inputs=[far])


def test_a_drain_is_revoked_where_a_container_is_missing():
    """An update has held the spouts, and the next master does not hear of one container, which may be away."""
    cost = {"near": 0.05, "far": 0.05, "slow": 0.2}
    with Cluster(Apart, containers=2, seed=3, cost=cost, config={"topology.max.spout.pending": 20}) as cluster:
        places = {task.name: task.container for task in cluster.plan.tasks.values()}
        assert places["near-0"] == places["end-0"] != places["slow-0"]
        cluster.advance(5)
        assert cluster.update(cluster.update_request(config={"topology.message.timeout.secs": 60})).running
        cluster.advance(0.1)
        cluster.network.cut("master", f"manager-{places['slow-0']}")
        cluster.kill("master")
        emitted = len(cluster.record.emitted["near"])
        cluster.advance(BACK_WITHIN + 10)
        assert len(cluster.record.emitted["near"]) > emitted
