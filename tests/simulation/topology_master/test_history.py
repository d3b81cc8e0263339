"""What a master says of the last minutes, of tasks that really count."""

from __future__ import annotations

import msgspec
import pytest

from ardea import Grouping, Topology
from ardea.metrics.samples import MOST_NAMES
from ardea.testing import Cluster
from ardea.topology_master.history import EVERY
from tests.simulation.parts import Endless, TupleCounter
from tests.simulation.topology_master.telling import WALL, Telling


class Numbers(Topology):
    config = {"topology.max.spout.pending": 100}
    n = Endless.spec()
    count = TupleCounter.spec(inputs={n: Grouping.SHUFFLE}, par=2)


@pytest.fixture(scope="module")
def told():
    with Cluster(Numbers, containers=2, cost={"n": 0.05, "count": 0.02}, check=False) as cluster:
        cluster.advance(5.0)
        made = Telling(cluster)
        made.runs(20)
        yield made


def test_a_master_says_what_its_components_did(told):
    said = told.status("history").history
    assert (said.since, said.interval) == (WALL + 5.0, EVERY)
    assert [at - WALL for at in said.times] == [6.0, 10.0, 15.0, 20.0, 25.0]
    assert {*said.series} == {"n", "count"}
    executed = said.series["count"]["executed"]
    assert executed[0] is None
    assert executed[1:] == pytest.approx([20.0] * 4, rel=0.1)
    assert said.series["count"]["capacity"][-1] == pytest.approx(0.2, rel=0.2)
    assert said.series["n"]["latency_p50"][-1] > 0.02
    assert 0.01 < said.series["count"]["latency_p50"][-1] <= 0.05


def test_who_asks_again_gets_only_what_is_new(told):
    everything = told.status("history", names="count-0,gone").history
    assert {*everything.series} == {"count-0"}
    later = told.status("history", names="count-0", since=repr(everything.times[-3])).history
    assert later.times == everything.times[-2:]
    assert later.series["count-0"]["acked"] == everything.series["count-0"]["acked"][-2:]
    assert told.status("history", since=repr(everything.times[-1])).history.times == []


@pytest.mark.parametrize("verb", ["status", "history"])
def test_a_brief_answer_says_nothing_of_each_task(told, verb):
    said, whole = told.status(verb, brief="yes"), told.status(verb)
    assert (len(whole.tasks), {*whole.components}, len(whole.edges)) == (3, {"n", "count"}, 1)
    assert whole.processes
    bare = {"tasks": {}, "components": {}, "processes": [], "edges": [], "supervised": []}
    assert said == msgspec.structs.replace(whole, **bare)


def test_a_status_has_no_history_unless_it_is_asked_for(told):
    assert told.status().history is None


@pytest.mark.parametrize(
    "arguments", [{"since": "yesterday"}, {"since": "nan"}, {"since": "-1"}, {"names": "x," * (MOST_NAMES + 1)}]
)
def test_a_question_that_cannot_be_is_refused(told, arguments):
    assert told.asks("history", **arguments).code == "BAD_ARGUMENT"


def test_a_master_says_what_flows_along_each_edge(told):
    (edge,) = told.status().edges
    assert (edge.source, edge.stream, edge.target, edge.grouping) == ("n", "default", "count", "shuffle")
    assert edge.rate == pytest.approx(20.0, rel=0.1)
    assert edge.tuples > 400
    assert told.status().stalls == []


class Slow(Topology):
    config = {"topology.message.timeout.secs": 10}
    n = Endless.spec()
    quick = TupleCounter.spec(inputs={n: Grouping.SHUFFLE})
    slow = TupleCounter.spec(inputs={n: Grouping.SHUFFLE})


def test_a_master_names_who_holds_spouts_back():
    with Cluster(Slow, containers=2, cost={"n": 0.005, "slow": 0.1, "quick": 0.001}, check=False) as cluster:
        made = Telling(cluster)
        made.runs(20)
        (stall,) = made.status().stalls
        assert (stall.task, stall.component, stall.spouts) == ("slow-0", "slow", ["n"])
        assert WALL < stall.since < WALL + 16.0
        assert stall.capacity > 0.9
        assert made.status().health.state == "HEALTHY"
