"""Storm's TopologyIntegrationTest, in simulated time."""

from __future__ import annotations

from collections import Counter

import pytest

from ardea import Bolt, Grouping, Spout, TaskHook, Topology, TopologyError, is_tick
from ardea.testing import AckEveryOther, Cluster, CollectBolt, FeederSpout, RowsSpout, run

from .parts import GlobalCounter, WordCounter

containers = pytest.mark.parametrize("containers", [1, 2])


@containers
def test_basic_topology(containers):
    """Word counts by fields grouping, a global count, and an aggregator behind it."""

    class Basic(Topology):
        spout = RowsSpout.of(["word"], [["nathan"], ["bob"], ["joey"], ["nathan"]]).spec(par=3)
        counts = WordCounter.spec(par=4, inputs={spout: Grouping.fields("word")})
        total = GlobalCounter.spec(inputs={spout: Grouping.GLOBAL})
        aggregate = GlobalCounter.spec(inputs={total: Grouping.GLOBAL})

    result = run(Basic, containers=containers)
    assert result.state == "SUCCEEDED"
    assert Counter(result.tuples("spout")) == {("nathan",): 2, ("bob",): 1, ("joey",): 1}
    assert sorted(result.tuples("counts")) == [("bob", 1), ("joey", 1), ("nathan", 1), ("nathan", 2)]
    assert result.tuples("total") == [(1,), (2,), (3,), (4,)]
    assert result.tuples("aggregate") == [(1,), (2,), (3,), (4,)]


@containers
def test_more_tasks_than_executors_with_the_all_grouping(containers):
    """Three executors, six tasks: one tuple reaches each task once."""

    class Where(Bolt):
        outputs = ["index"]

        def initialize(self, config, context):
            self.index = context.this_task_index

        def process(self, tup):
            self.emit([self.index])

    class MultiTasks(Topology):
        spout = RowsSpout.of(["word"], [["a"]]).spec()
        where = Where.spec(par=3, tasks=6, inputs={spout: Grouping.ALL})

    assert sorted(run(MultiTasks, containers=containers).tuples("where")) == [(n,) for n in range(6)]


def test_the_system_stream_can_be_read():
    """Every component has a stream ``__system``."""

    class System(Topology):
        spout = RowsSpout.of(["word"], [["a"]]).spec()
        bolt = CollectBolt.spec(inputs=[spout, spout["__system"]])

    assert run(System).inputs("bolt") == [("a",)]


@containers
def test_a_timeout_fails_exactly_the_tree_that_was_not_acked(containers):
    """Ten seconds: 1 and 3 are acked, 2 is neither at +9 s and timed out at +12 s."""

    class Timeout(Topology):
        spout = FeederSpout.of("word").spec()
        bolt = AckEveryOther.spec(inputs=[spout])
        config = {"topology.message.timeout.secs": 10}

    with Cluster(Timeout, containers=containers) as cluster:
        cluster.advance(1)
        feeder = cluster.task("spout-0", FeederSpout)
        for number in (1, 2, 3):
            feeder.feed(["a"], tup_id=number)
        cluster.advance(9)
        assert cluster.record.acked["spout"] == [1, 3]
        assert cluster.record.timed_out["spout"] == []
        cluster.advance(3)
        assert cluster.record.timed_out["spout"] == [2]
        assert cluster.record.failed["spout"] == []


class Resets(Bolt):
    """The first tuple is held, its time begins anew at each of the next three, the fifth acks it; the second lost."""

    auto_ack = False

    def initialize(self, config, context):
        self.got = []

    def process(self, tup):
        self.got.append(tup)
        if len(self.got) in (2, 3, 4):
            self.reset_timeout(self.got[0])
        if len(self.got) > 2:
            self.ack(tup)
        if len(self.got) == 5:
            self.ack(self.got[0])


@containers
def test_a_tuple_whose_timeout_is_reset_does_not_time_out(containers):
    class Reset(Topology):
        spout = FeederSpout.of("word").spec()
        bolt = Resets.spec(inputs=[spout])
        config = {"topology.message.timeout.secs": 10, "topology.max.tuple.replays": 0}

    with Cluster(Reset, containers=containers) as cluster:
        cluster.advance(1)
        feeder = cluster.task("spout-0", FeederSpout)
        for number in (1, 2, 3, 4):
            feeder.feed(["a"], tup_id=number)
            cluster.advance(6)
        assert cluster.record.timed_out["spout"] == [2]
        assert cluster.record.acked["spout"] == [3, 4], "at +24 s the first is open"
        feeder.feed(["a"], tup_id=5)
        cluster.advance(1)
        assert sorted(cluster.record.acked["spout"]) == [1, 3, 4, 5]
        assert cluster.record.timed_out["spout"] == [2]
        assert cluster.record.failed["spout"] == []


def test_timeouts_are_exact():
    """A tree times out a moment after its ten seconds, not at a turn of some wheel."""

    class Never(Bolt):
        auto_ack = False

        def process(self, tup):
            pass

    class Timeout(Topology):
        spout = FeederSpout.of("word").spec()
        bolt = Never.spec(inputs=[spout])
        config = {"topology.message.timeout.secs": 10}

    for start in (1.0, 1.37, 2.9):
        with Cluster(Timeout) as cluster:
            cluster.advance(start)
            cluster.task("spout-0", FeederSpout).feed(["a"], tup_id=1)
            cluster.run_until(lambda cluster=cluster: cluster.record.emitted["spout"])
            emitted = cluster.time
            cluster.run_until(lambda cluster=cluster: cluster.record.timed_out["spout"])
            assert 10.0 <= cluster.time - emitted < 10.01


def test_submitted_inactive():
    """Nothing is initialised before ``activate``; then all is, and the tuple fed to it is acked."""
    began = []

    class Source(FeederSpout):
        outputs = ["word"]

        def initialize(self, config, context):
            began.append("spout")
            self.feed(["a"], tup_id=1)

        def activate(self):
            began.append("activate")

        def deactivate(self):
            began.append("deactivate")

    class Prepared(CollectBolt):
        def initialize(self, config, context):
            began.append("bolt")

    class Inactive(Topology):
        spout = Source.spec()
        bolt = Prepared.spec(inputs=[spout])

    with Cluster(Inactive, active=False) as cluster:
        cluster.advance(5)
        assert (cluster.state, began) == ("PAUSED", [])
        cluster.activate()
        cluster.advance(5)
        assert sorted(began) == ["activate", "bolt", "spout"]
        assert cluster.record.acked["spout"] == [1]
        cluster.deactivate()
        cluster.advance(1)
        cluster.task("spout-0", Source).feed(["b"], tup_id=2)
        cluster.advance(5)
        assert (cluster.state, began[-1], cluster.record.acked["spout"]) == ("PAUSED", "deactivate", [1])
        cluster.kill("master")
        cluster.advance(5)
        assert (cluster.state, cluster.record.acked["spout"]) == ("PAUSED", [1])
        cluster.activate()
        cluster.advance(5)
        assert cluster.record.acked["spout"] == [1, 2]


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        pytest.param(lambda spout: {"nobody": Grouping.SHUFFLE}, "nobody", id="component"),
        pytest.param(lambda spout: {spout: Grouping.fields("nothing")}, "nothing", id="field"),
        pytest.param(lambda spout: {spout["no stream"]: Grouping.SHUFFLE}, "no stream", id="stream"),
    ],
)
def test_invalid_topologies(inputs, problem):
    """A component, field or stream that does not exist refuses the topology."""
    spout = RowsSpout.of(["word"], []).spec("spout")
    invalid = type("Invalid", (Topology,), {"s": spout, "b": CollectBolt.spec("bolt", inputs=inputs(spout))})
    with pytest.raises(TopologyError, match=problem):
        run(invalid)


def test_component_configuration():
    """A component's configuration wins over its class's and the topology's; user code sees the merged one."""
    seen = {}

    class Configured(Spout):
        outputs = ["word"]
        config = {"fake.config": 123, "topology.max.task.parallelism": 20, "topology.max.spout.pending": 30}

        def initialize(self, config, context):
            seen.update(config)

        def next_tuple(self):
            self.finish()

    class Merge(Topology):
        spout = Configured.spec(par=4, config={"fake.config2": 987, "topology.max.task.parallelism": 2})
        bolt = CollectBolt.spec(inputs=[spout])
        config = {"fake.config": 1, "fake.topology": 5, "topology.max.spout.pending": 7}

    with Cluster(Merge) as cluster:
        cluster.advance(1)
        assert len(cluster.plan.component_tasks["spout"]) == 2
    wanted = {
        "fake.config": 123,
        "fake.config2": 987,
        "fake.topology": 5,
        "topology.max.task.parallelism": 2,
        "topology.max.spout.pending": 30,
    }
    assert {key: seen[key] for key in wanted} == wanted


def test_task_hooks():
    """What a hook of the bolt has counted at each tuple: emitted, acked, failed, executed."""

    class Counts(TaskHook):
        def __init__(self):
            self.emitted = self.acked = self.failed = self.executed = 0

        def emit(self, info):
            self.emitted += 1

        def bolt_ack(self, info):
            self.acked += 1

        def bolt_fail(self, info):
            self.failed += 1

        def bolt_execute(self, info):
            self.executed += 1

    class Hooked(Bolt):
        outputs = ["emitted", "acked", "failed", "executed"]
        auto_ack = False

        def initialize(self, config, context):
            self.acks = True
            self.hook = Counts()
            context.add_task_hook(self.hook)

        def process(self, tup):
            hook = self.hook
            self.emit([hook.emitted, hook.acked, hook.failed, hook.executed])
            self.emit([0, 0, 0, 0], stream="more")
            (self.ack if self.acks else self.fail)(tup)
            self.acks = not self.acks

    from ardea import Stream

    Hooked.outputs = [*Hooked.outputs, Stream(["a", "b", "c", "d"], name="more")]

    class HookTopology(Topology):
        spout = FeederSpout.of("word").spec()
        bolt = Hooked.spec(inputs=[spout])

    with Cluster(HookTopology) as cluster:
        cluster.advance(1)
        for number in range(4):
            cluster.task("spout-0", FeederSpout).feed(["a"])
            cluster.run_until(lambda n=number: len(cluster.record.tuples("bolt")) > n)
        assert cluster.record.tuples("bolt") == [(0, 0, 0, 0), (2, 1, 0, 1), (4, 1, 1, 2), (6, 2, 1, 3)]


def test_ticks():
    """A tick each second reaches the bolt, and no ``process``."""
    ticks = []

    class Ticking(CollectBolt):
        config = {"topology.tick.tuple.freq.secs": 1}

        def process_tick(self, tup):
            ticks.append((is_tick(tup), tup["rate_secs"]))

    class Ticks(Topology):
        spout = FeederSpout.of("word").spec()
        bolt = Ticking.spec(inputs=[spout])

    with Cluster(Ticks) as cluster:
        cluster.advance(10.5)
    assert ticks == [(True, 1.0)] * 10
    assert cluster.record.inputs("bolt") == []


@pytest.mark.parametrize("mode", [{"topology.reliability.mode": "ATMOST_ONCE"}, {"topology.acker.executors": 0}])
def test_acked_at_once(mode):
    """Without acking, a tuple is acked as it is emitted, whatever becomes of it."""

    class AtOnce(Topology):
        spout = RowsSpout.of(["word"], [[n] for n in range(50)]).spec()
        bolt = AckEveryOther.spec(inputs=[spout])

    result = run(AtOnce, config=mode)
    assert (result.state, result.acked["spout"]) == ("SUCCEEDED", list(range(50)))
    assert result.time < 5
