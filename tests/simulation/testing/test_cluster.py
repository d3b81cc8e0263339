"""The simulated cluster itself."""

from __future__ import annotations

from asyncio import CancelledError

import pytest

from ardea import Bolt, Grouping, Topology, TopologyBuilder, UserError
from ardea.testing import Cluster, CollectBolt, Emitted, FeederSpout, Received, RowsSpout, run
from ardea.testing.inside import Inside


class Upper(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit([tup[0].upper()])


class Small(Topology):
    words = RowsSpout.of(["word"], [["a"], ["b"], ["c"]]).spec()
    upper = Upper.spec(inputs={words: Grouping.GLOBAL})
    sink = CollectBolt.spec(inputs=[upper])


class Fed(Topology):
    words = FeederSpout.of("word").spec()
    sink = CollectBolt.spec(inputs=[words])


def test_a_result_has_all_that_happened():
    """Rows, tuples, ids, state and time."""
    result = run(Small, containers=2, seed=1)
    assert (result.state, result.reason) == ("SUCCEEDED", "")
    assert 0 < result.time < 1
    assert result.emitted["words"] == [Emitted((w,), "default", 3, n) for n, w in enumerate("abc")]
    assert result.emitted["upper"] == [Emitted((w,), "default", 2) for w in "ABC"]
    assert result.received["sink"] == [Received((w,), "upper", "default", 2, 1) for w in "ABC"]
    assert result.tuples("upper") == result.inputs("sink") == [("A",), ("B",), ("C",)]
    assert sorted(result.acked["words"]) == [0, 1, 2]
    assert not result.failed["words"]


def test_a_builder_runs_too():
    builder = TopologyBuilder("built")
    words = builder.add_spout("words", RowsSpout.of(["word"], [["a"]]))
    builder.add_bolt("upper", Upper, inputs=[words])
    assert run(builder).tuples("upper") == [("A",)]


def test_the_same_seed_gives_the_same_run():
    """Event by event; another seed gives another one."""

    def stories(seed):
        with Cluster(Small, containers=2, seed=seed, faults=[(0.0005, lambda c: c.kill("upper-0"))]) as cluster:
            cluster.run_until(lambda: cluster.over)
            return [cluster.story(name) for name in cluster.names]

    assert stories(7) == stories(7)
    assert stories(7) != stories(8)


def test_the_checks_change_nothing():
    """A run without them goes the same way."""
    assert run(Small, seed=3, check=False).time == run(Small, seed=3).time


def test_until_stops_in_the_middle():
    result = run(Fed, until=2.5)
    assert (result.state, result.time) == ("RUNNING", 2.5)


def test_without_until_an_unbounded_topology_is_an_error():
    """After an hour of simulated time, saying where everything stands."""
    with pytest.raises(TimeoutError, match="the topology is RUNNING; running: master, manager-1"):
        run(Fed, config={"topology.spout.wait.ms": 1000})


def test_feeding():
    with Cluster(Fed) as cluster:
        cluster.advance(1)
        feeder = cluster.task("words-0", FeederSpout)
        feeder.feed(["a"], tup_id="first")
        cluster.run_until(lambda: cluster.record.acked["words"] == ["first"])
        assert 1 <= cluster.time < 1.1
        feeder.end()
        cluster.run_until(lambda: cluster.over)
        assert cluster.state == "SUCCEEDED"


def test_costs_are_simulated_time():
    """A hundred tuples of 50 ms take five seconds; on three tasks a third of that."""
    rows = RowsSpout.of(["word"], [[n] for n in range(99)])
    for tasks, seconds in ((1, 4.95), (3, 1.65)):
        words = rows.spec("words")
        slow = CollectBolt.spec("slow", par=tasks, inputs=[words])
        topology = type("Slow", (Topology,), {"a": words, "b": slow})
        assert run(topology, cost={"slow": 0.05}).time == pytest.approx(seconds, rel=0.15)


def test_batches_cost_by_the_tuple():
    class Batches(Bolt):
        def process_batch(self, rows):
            pass

    class Batched(Topology):
        words = RowsSpout.of(["word"], [[n] for n in range(100)]).spec()
        slow = Batches.spec(inputs=[words])

    result = run(Batched, cost={"slow": 0.05})
    assert result.time == pytest.approx(5, rel=0.15)
    assert sorted(result.inputs("slow")) == [(n,) for n in range(100)]


@pytest.mark.parametrize("name", ["words-0", "sink-0", "manager-1", "manager-2", "master"])
def test_a_killed_process_comes_back(name):
    """With a new life, without what it knew; the topology goes on."""
    with Cluster(Fed, containers=2) as cluster:
        cluster.advance(1)
        cluster.task("words-0", FeederSpout).feed(["a"], tup_id=1)
        cluster.run_until(lambda: cluster.record.acked["words"] == [1])
        cluster.kill(name)
        assert name not in cluster.running
        cluster.advance(5)
        assert name in cluster.running
        cluster.task("words-0", FeederSpout).feed(["b"], tup_id=2)
        cluster.run_until(lambda: 2 in cluster.record.acked["words"], 10)


def test_a_process_that_has_lived_for_long_comes_back_at_once():
    """As that of a real supervisor, which counts only restarts in a row."""
    with Cluster(Fed, config={"topology.spout.wait.ms": 1000}) as cluster:
        cluster.advance(1)
        for _ in range(4):
            cluster.kill("sink-0")
            cluster.advance(2.5)
        assert cluster.life("sink-0") == 5
        cluster.advance(0.5)
        for life in range(6, 16):
            cluster.advance(60)
            cluster.kill("sink-0")
            cluster.advance(0.5)
            assert (cluster.life("sink-0"), "sink-0" in cluster.running) == (life, True)


def test_an_update_after_one_that_changes_nothing_is_made():
    """Each request is one of its own, though all are of one plan."""
    with Cluster(Fed) as cluster:
        cluster.advance(1)
        requests, same = [], {"config": {"topology.message.timeout.secs": 20}}
        for wanted in (same, same, {"parallelism": {"sink": 2}}):
            requests.append(cluster.update_request(**wanted))
            done = cluster.updated(requests[-1])
            assert (done.step, done.reason) == ("done", "")
        assert "sink-1" in cluster.names
        assert [cluster.update(each).id for each in requests] == [each.id for each in requests]


def test_an_exception_ends_a_process_and_is_kept():
    """It is started again; the record has the exception."""

    class Breaks(CollectBolt):
        auto_fail = False
        broken = []

        def process(self, tup):
            if not self.broken:
                self.broken.append(tup[0])
                raise ValueError("once")

    class Once(Topology):
        words = RowsSpout.of(["word"], [["a"]]).spec()
        sink = Breaks.spec(inputs=[words])

    result = run(Once)
    assert result.state == "SUCCEEDED"
    assert [(name, repr(error)) for name, error in result.record.errors] == [("sink-0", "ValueError('once')")]
    assert result.record.lost["words"] == [0]
    assert result.inputs("sink") == [("a",), ("a",)]


def test_mistakes_are_named():
    with pytest.raises(UserError, match="cost= names nobody, which Small does not have"):
        Cluster(Small, cost={"nobody": 1})
    with Cluster(Small) as cluster:
        with pytest.raises(UserError, match="there is no process nobody; there are master, manager-1, sink-0"):
            cluster.kill("nobody")
        with pytest.raises(UserError, match="no FeederSpout runs as words-0 now"):
            cluster.task("words-0", FeederSpout)
        with pytest.raises(
            TimeoutError, match=r"0\.001 simulated seconds have passed, and the condition is still false"
        ):
            cluster.run_until(lambda: False, 0.001)


def test_leaving_closes_what_runs():
    closed = []

    class Closes(CollectBolt):
        def close(self):
            closed.append(1)

    class Open(Topology):
        words = FeederSpout.of("word").spec()
        sink = Closes.spec(par=2, inputs=[words])

    with Cluster(Open) as cluster:
        cluster.advance(1)
        cluster.kill("sink-0")
        assert not closed
        cluster.advance(1)
    assert len(closed) == 2


def test_what_close_raises_is_kept_and_the_others_are_closed():
    closed = []

    class Closes(CollectBolt):
        def close(self):
            closed.append(1)
            raise ValueError("no connection")

    class Open(Topology):
        words = FeederSpout.of("word").spec()
        sink = Closes.spec(par=3, inputs=[words])

    with Cluster(Open) as cluster:
        cluster.advance(1)
        assert cluster.updated(cluster.update_request(parallelism={"sink": 2})).step == "done"
        cluster.advance(1)
        assert [(name, str(error)) for name, error in cluster.record.errors] == [("sink-2", "no connection")]
        assert set(cluster.running) == set(cluster.names)
    assert len(closed) == len(cluster.record.errors) == 3
    assert len(run(Open, until=1).record.errors) == 3
    with pytest.raises(ValueError, match="no connection"):
        run(Open, until=1, raise_errors=True)


@pytest.mark.parametrize("error", [SystemExit("no table"), CancelledError()])
def test_one_that_is_no_exception_ends_a_process_as_a_real_one(error):
    class Ends(CollectBolt):
        def initialize(self, config, context):
            if not ended:
                ended.append(1)
                raise error

    class Once(Topology):
        words = RowsSpout.of(["word"], [["a"]]).spec()
        sink = Ends.spec(inputs=[words])

    ended = []
    result = run(Once)
    assert (result.state, result.record.errors) == ("SUCCEEDED", [("sink-0", error)])


def test_a_failed_test_is_no_end_of_a_process():
    class Looks(CollectBolt):
        def process(self, tup):
            pytest.fail("not what was expected")

    class Looking(Topology):
        words = RowsSpout.of(["word"], [["a"]]).spec()
        sink = Looks.spec(inputs=[words])

    with pytest.raises(pytest.fail.Exception, match="not what was expected"):
        run(Looking)


def test_rows_are_shared_by_tasks():
    topology = type("Shared", (Topology,), {})
    words = RowsSpout.of(["word"], [[n] for n in range(10)], tracked=False).spec("words", par=3)
    topology = type("Shared", (Topology,), {"a": words, "b": CollectBolt.spec("sink", inputs=[words])})
    result = run(topology)
    assert sorted(result.inputs("sink")) == [(n,) for n in range(10)]
    by_task = {}
    for row in result.emitted["words"]:
        by_task.setdefault(row.task, []).append(row.values[0])
    assert sorted(by_task.values()) == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]
    assert not result.acked["words"]


def test_a_manager_that_is_told_the_end_before_it_has_a_plan_ends_at_once():
    """As the real process does; the master need not wait for it either."""
    with Cluster(Small, containers=2) as cluster:
        cluster.network.cut("manager-2", "master")
        cluster.run_until(lambda: "master" in cluster.running and Inside(cluster).master.admissions.missing == [2], 10)
        cluster.drain(0.0)
        cluster.run_until(lambda: cluster.state == "KILLED", 10)
        cluster.advance(0.1)
        assert not {"manager-1", "master"}.intersection(cluster.running)


def test_metrics_name_the_topology_by_its_id():
    """As those of real processes do."""
    with Cluster(Small) as cluster:
        inside = Inside(cluster)
        cluster.run_until(lambda: inside.executor("upper-0"), 10)
        identity = inside.executor("upper-0").env.instruments.registry.identity
        assert (identity.topology, identity.process) == ("Small-simulated", "upper-0")
