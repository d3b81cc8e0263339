"""How a topology ends: with replays, fails and kills, it is SUCCEEDED or FAILED with a reason, and never hangs."""

from __future__ import annotations

import logging
import threading
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea import Bolt, FailedException, Grouping, Spout, Topology
from ardea.protocol.wire_pb2 import REOPENED
from ardea.testing import Cluster, CollectBolt, RowsSpout, run
from ardea.testing.inside import Inside
from tests.simulation.parts import Identity, Running, TupleCounter
from tests.sizes import share


class Again(RowsSpout):
    """Decides for itself: emits what failed again."""

    def initialize(self, config, context):
        super().initialize(config, context)
        self.broken = deque()

    def next_tuple(self):
        if self.broken:
            place = self.broken.popleft()
            self.emit(self.rows[place], tup_id=place)
        else:
            super().next_tuple()

    def fail(self, tup_id):
        self.broken.append(tup_id)
        return True


class GivesUp(RowsSpout):
    """Decides for itself: lets go what failed."""

    def fail(self, tup_id):
        return False


class FailsOnce(Bolt):
    """Fails each fifth of its first fifty tuples, and passes the others on.

    With no such end, a row that three bolts get a dozen copies of would hardly ever come through whole.
    """

    outputs = ["row"]

    def initialize(self, config, context):
        self.count = 0

    def process(self, tup):
        self.count += 1
        if self.count % 5 == 0 and self.count <= 50:
            raise FailedException
        self.emit(list(tup.values))


class Holds(Bolt):
    """Keeps what it gets until there are seven, or all upstream rests."""

    auto_ack = False
    outputs = ["row"]

    def initialize(self, config, context):
        self.held = []

    def process(self, tup):
        self.held.append(tup)
        if len(self.held) == 7:
            self.flush()

    def flush(self):
        for tup in self.held:
            self.emit(list(tup.values), anchors=[tup])
            self.ack(tup)
        self.held = []


class Passes(Identity):
    outputs = ["row"]


GROUPINGS = [
    Grouping.SHUFFLE,
    Grouping.ALL,
    Grouping.GLOBAL,
    Grouping.LOCAL_OR_SHUFFLE,
    Grouping.fields("row"),
    Grouping.partial_key("row"),
]


@st.composite
def topologies(draw, spouts):
    """(topology, component -> the rows that must reach it)."""
    specs, expected = {}, {}
    for number in range(draw(st.integers(1, 2))):
        name = f"spout{number}"
        rows = [[f"{name}.{n}"] for n in range(draw(st.integers(0, 40)))]
        specs[name] = draw(spouts).of(["row"], rows).spec(name, par=draw(st.integers(1, 2)))
        expected[name] = {tuple(row) for row in rows}
    for number in range(draw(st.integers(1, 3))):
        name = f"bolt{number}"
        sources = draw(st.lists(st.sampled_from(sorted(specs)), min_size=1, max_size=2, unique=True))
        bolt = draw(st.sampled_from([Passes, FailsOnce, Holds]))
        inputs = {specs[source]: draw(st.sampled_from(GROUPINGS)) for source in sources}
        specs[name] = bolt.spec(name, par=draw(st.integers(1, 3)), inputs=inputs)
        expected[name] = set().union(*(expected[source] for source in sources))
    read = {source.name for spec in specs.values() if spec.inputs for source in spec.inputs}
    loose = [spec for name, spec in specs.items() if name not in read]
    specs["sink"] = CollectBolt.spec("sink", inputs=loose)
    expected["sink"] = set().union(*(expected[spec.name] for spec in loose))
    config = {"topology.message.timeout.secs": 60}  # thousands of rows, a millisecond each
    return type("Drawn", (Topology,), {**specs, "config": config}), expected


def kills(times):
    """(time, which process): a number, whatever processes there will be."""
    return st.lists(st.tuples(times, st.integers(0, 100)), max_size=4)


def run_with_kills(topology, deaths, **options):
    with Cluster(topology, **options) as cluster:
        for time, number in deaths:
            cluster.at(time, lambda c, number=number: c.kill(c.names[number % len(c.names)]))
        cluster.run_until(lambda: cluster.over, 600)
        return cluster


@pytest.fixture(autouse=True)
def quiet():
    """The bolts here fail on purpose."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def bolts(expected):
    return {name: rows for name, rows in expected.items() if not name.startswith("spout")}


@pytest.mark.thorough
@settings(max_examples=share(60))
@given(
    drawn=topologies(st.sampled_from([RowsSpout, Again])),
    deaths=kills(st.floats(0, 0.05) | st.floats(0, 3)),
    cost=st.sampled_from([1e-5, 1e-3]),
    containers=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
def test_replayed_rows_reach_everybody(drawn, deaths, cost, containers, seed):
    """Spouts that replay: SUCCEEDED means that each row was processed wherever it had to; only kills may fail it."""
    topology, expected = drawn
    cluster = run_with_kills(
        topology, deaths, containers=containers, seed=seed, cost=dict.fromkeys(bolts(expected), cost)
    )
    if cluster.state == "SUCCEEDED":
        for name, rows in bolts(expected).items():
            assert rows <= set(cluster.record.inputs(name))
    else:
        assert cluster.state == "FAILED"
        assert "after the end was declared" in cluster.reason
        assert deaths


@settings(max_examples=share(25))
@given(drawn=topologies(st.just(GivesUp)), containers=st.integers(1, 2), seed=st.integers(0, 10**6))
def test_rows_that_are_given_up_fail_the_topology(drawn, containers, seed):
    """FAILED exactly if a tree failed, and the reason has the number."""
    topology, _ = drawn
    result = run(topology, containers=containers, seed=seed)
    broken = sum(len(ids) for ids in result.failed.values())
    if broken:
        assert result.state == "FAILED"
        assert result.reason.startswith("1 tuple was given up" if broken == 1 else f"{broken} tuples were given up")
    else:
        assert result.state == "SUCCEEDED"


class Total(Topology):
    spout = RowsSpout.of(["row"], [[n] for n in range(20)]).spec()
    count = TupleCounter.spec(par=2, inputs=[spout])
    sink = CollectBolt.spec(inputs=[count])


@pytest.mark.parametrize("name", ["master", "manager-1", "manager-2", "spout-0", "count-0", "count-1", "sink-0"])
@pytest.mark.parametrize("later", [0.0, 0.0001, 0.0003, 0.0008])
def test_a_process_dies_as_the_end_is_declared(name, later):
    """Masters change nothing, spouts repeat at most; else the final counts are complete or the topology FAILED."""
    with Cluster(Total, containers=2, seed=5) as cluster:
        cluster.run_until(lambda: cluster.state == "ENDING")
        cluster.advance(later)
        cluster.kill(name)
        cluster.run_until(lambda: cluster.over, 120)
        if cluster.state == "FAILED":
            assert name not in ("master", "spout-0")
            assert "after the end was declared" in cluster.reason
        else:
            assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
            total = sum(count for (count,) in cluster.record.inputs("sink"))
            # A spout that starts again before the order reaches its manager begins at its beginning, as ever.
            assert 20 <= total <= 40 if name == "spout-0" else total == 20


def test_an_unbounded_spout_keeps_the_topology_running():
    """One branch rests, the other goes on: no end."""

    class Endless(RowsSpout):
        def next_tuple(self):
            self.emit(["more"])

    class Half(Topology):
        spout = RowsSpout.of(["row"], [["a"]]).spec()
        other = Endless.of(["row"], []).spec()
        sink = CollectBolt.spec(inputs=[spout, other])

    assert run(Half, until=2, cost={"other": 0.01}).state == "RUNNING"


def test_nobody_is_left_when_a_topology_fails_with_held_output():
    """A spout's exception that no restart can mend, while a bolt waits for credit: every process ends."""

    class Flood(Bolt):
        outputs = ["row"]

        def process(self, tup):
            for n in range(2000):
                self.emit([n])

    def fail(cluster):
        cluster.task("bad-0", Bad).broken = True

    class Bad(RowsSpout):
        broken = False

        def next_tuple(self):
            if self.broken:
                self.emit(["x"], stream="no such stream")

    class Held(Topology):
        spout = RowsSpout.of(["row"], [["a"]]).spec()
        flood = Flood.spec(inputs=[spout])
        bad = Bad.of(["row"], []).spec()
        sink = CollectBolt.spec(inputs=[flood])
        other = CollectBolt.spec(inputs=[bad])

    with Cluster(Held, containers=2, cost={"sink": 0.5}) as cluster:
        cluster.at(5, fail)
        cluster.advance(4.9)
        assert Inside(cluster).held_bytes("flood-0")
        cluster.run_until(lambda: cluster.over, 60)
        assert cluster.state == "FAILED"
        assert cluster.reason.startswith("bad-0 cannot go on: Unknown stream ID: no such stream")


@pytest.mark.parametrize("wait", [None, 0.0])
def test_drain(wait):
    """A running topology is told to end: KILLED; with time, nothing is open any more."""

    with Cluster(Running, containers=2, cost={"spout": 0.01, "sink": 0.01}) as cluster:
        cluster.advance(3)
        cluster.drain(wait)
        cluster.run_until(lambda: cluster.over, 60)
        assert cluster.state == "KILLED"
        if wait is None:
            assert cluster.reason == ""
            assert set(cluster.record.acked["spout"]) == {row.tup_id for row in cluster.record.emitted["spout"]}


def test_a_kill_ends_an_update_whose_plan_is_not_written():
    """What the update changes would rest, and the plan be written, long before the other branch is done."""

    class Branches(Topology):
        spout = RowsSpout.of(["row"], [[n] for n in range(1000)]).spec()
        sink = CollectBolt.spec(inputs=[spout])
        apart = RowsSpout.of(["row"], [[n] for n in range(1000)]).spec()
        slow = CollectBolt.spec(inputs=[apart])
        config = {"topology.max.spout.pending": 20}

    with Cluster(Branches, containers=2, cost={"spout": 0.01, "sink": 0.01, "slow": 0.5}) as cluster:
        cluster.advance(3)
        request = cluster.update_request(parallelism={"sink": 2})
        assert cluster.update(request).step == "draining"
        cluster.drain(60.0)
        progress = cluster.update(request)
        assert (progress.step, progress.reason) == ("refused", "the topology is being killed")
        cluster.run_until(lambda: cluster.over, 60)
        assert (cluster.state, cluster.reason, cluster.plan.epoch) == ("KILLED", "", 1)
        assert len(cluster.record.acked["apart"]) == len(cluster.record.emitted["apart"])


@pytest.mark.parametrize("frozen", [1, 2])
def test_what_has_not_begun_is_not_waited_for(frozen):
    """As while a long import runs; but one spout that has begun is enough to wait for."""

    class Starting(Topology):
        spout = RowsSpout.of(["row"], [["a"]]).spec(par=2)
        sink = CollectBolt.spec(inputs=[spout])

    with Cluster(Starting, containers=2, cost={"sink": 5.0}) as cluster:
        for task in range(frozen):
            cluster.freeze(f"spout-{task}", 9.0)
        cluster.advance(4)
        cluster.drain()
        cluster.advance(0.5)
        assert (cluster.state == "KILLED") is (frozen == 2)
        cluster.run_until(lambda: cluster.over, 60)
        assert cluster.state == "KILLED"


class FinishesOnce(Spout):
    """Says it once, and looks on as rows fail."""

    outputs = ["row"]
    emitted = 0

    def next_tuple(self):
        if self.emitted < 10:
            self.emit([self.emitted], tup_id=self.emitted)
            self.emitted += 1
            if self.emitted == 10:
                self.finish()
        elif again.is_set():
            self.finish()

    def fail(self, tup_id):
        pass


again = threading.Event()


@pytest.mark.parametrize("stops", [False, True])
def test_a_spout_that_has_to_finish_again_is_named(stops):
    """As nothing is open, nobody could see what the topology waits for."""
    again.clear()

    class Logs(Topology):
        rows = FinishesOnce.spec()
        sink = FailsOnce.spec(inputs=[rows])

    def waits():
        told = Inside(cluster).master.ending.tasks
        return [cluster.plan.tasks[task].name for task, each in told.items() if each.state == REOPENED]

    with Cluster(Logs) as cluster:
        cluster.run_until(waits, 10)
        cluster.advance(10.0)
        assert (waits(), cluster.state) == (["rows-0"], "RUNNING")
        if stops:
            cluster.drain()
        else:
            again.set()
        cluster.run_until(lambda: cluster.over, 10)
        assert cluster.state == ("KILLED" if stops else "FAILED")
