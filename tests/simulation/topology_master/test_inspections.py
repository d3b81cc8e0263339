"""The way of a request to its task and back, through a master, a stream manager and a gateway."""

from __future__ import annotations

import pytest

from ardea import Grouping, Topology
from ardea.heron_instance.inspector import Inspector
from ardea.protocol.inspection import unpack
from ardea.testing import Cluster
from ardea.testing.instance import SimulatedInstance
from tests.simulation.parts import Endless, TupleCounter
from tests.simulation.topology_master.telling import Telling


class Numbers(Topology):
    config = {"topology.max.spout.pending": 100}
    n = Endless.spec()
    count = TupleCounter.spec(inputs={n: Grouping.SHUFFLE}, par=2)


@pytest.fixture
def looks(monkeypatch):
    """Simulated tasks look at the threads of this process; who was asked."""
    asked = []

    def inspect(self, order):
        inspector = Inspector(self.task, self.life, list)
        inspector.asked(order)
        while inspector.ready:
            asked.append(self.name)
            self.shell.gateway.tell(inspector.ready.popleft())

    monkeypatch.setattr(SimulatedInstance, "inspect", inspect)
    return asked


@pytest.fixture
def cluster():
    with Cluster(Numbers, containers=2, cost={"n": 0.05, "count": 0.02}, check=False) as made:
        made.advance(5.0)
        yield made


def stacks(cluster, task="count-1", request="x"):
    return Telling(cluster).status("inspect", id=request, task=task, what="stacks").inspection


def test_only_the_task_that_is_asked_answers_and_once(cluster, looks):
    assert stacks(cluster).document is None
    cluster.advance(1.0)
    found = unpack(stacks(cluster).document)
    assert (found.task, found.what, looks) == ("count-1", "stacks", ["count-1"])
    cluster.kill("manager-1")
    cluster.kill("manager-2")
    cluster.advance(10.0)
    assert looks == ["count-1"], "a manager in a new life says nothing of it"


def test_the_state_of_tasks_is_not_touched_by_it(cluster, looks):
    before = Telling(cluster).status().tasks
    stacks(cluster)
    cluster.advance(1.0)
    after = Telling(cluster).status().tasks
    assert {task: (each.state, each.life) for task, each in after.items()} == {
        task: (each.state, each.life) for task, each in before.items()
    }


def test_who_stands_still_does_not_answer(cluster, looks):
    cluster.freeze("count-1", 5.0)
    stacks(cluster)
    cluster.advance(3.0)
    assert stacks(cluster).document is None


@pytest.mark.parametrize(
    "wrong", [{"task": "nobody-0"}, {"what": "core"}, {"id": ""}, {"what": "profile", "seconds": "1e9"}]
)
def test_what_cannot_be_is_refused(cluster, wrong):
    asked = {"id": "x", "task": "count-1", "what": "stacks", **wrong}
    assert Telling(cluster).asks("inspect", **asked).code == "BAD_ARGUMENT"
