"""What people see of snapshots and rollbacks, while processes die and the store fails."""

from __future__ import annotations

import msgspec
import pytest

from ardea import AssignableMetric, CountMetric, Grouping, Topology
from ardea.health import HealthState
from ardea.heron_instance.meters import Meters
from ardea.heron_instance.queues import BoundedQueue
from ardea.metrics import Identity
from ardea.metrics.registry import Snapshot
from ardea.protocol.wire_pb2 import Ask
from ardea.scheduler.control import Status, status_in
from ardea.snapshots.manifest import decode_manifest, manifest_name, text_of
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from ardea.testing.memory_store import MemoryStore
from ardea.topology_master.gauges import Gauges
from ardea.topology_master.heard import Heard
from ardea.topology_master.snapshot_figures import Cause, Reason
from ardea.topology_master.snapshots import Phase
from ardea.topology_master.verbs import Verbs
from ardea.versions import PROTOCOL
from tests.simulation.snapshots.counted import Count, Counted, EffectivelyOnce, Endless, Many
from tests.simulation.snapshots.written import Goes, Table, Writes


class Seeing:
    """A topology, as its master tells of it."""

    def __init__(self, topology: Cluster) -> None:
        self.topology, self.inside = topology, Inside(topology)
        self._gauges = Gauges(Identity("counted", 0, "topology-master", life=1))

    @property
    def figures(self):
        return self.inside.master.coordination.figures

    def answer(self) -> Status:
        """To who asks the master, as ``describe`` does."""
        verbs = Verbs(self.inside.master, Heard(0.0, 1000.0), "token", "master", lambda: 1000.0)
        said = verbs.answer(Ask(verb="status", token="token", arguments={"stories": "1"}), PROTOCOL, self.topology.time)
        return status_in(said, PROTOCOL, "counted")

    @property
    def status(self):
        return self.answer().snapshots

    @property
    def committed(self) -> int:
        return self.inside.store.records[-1].committed

    def phase(self) -> Phase:
        return self.inside.master.coordination.snapshots.phase

    def health(self):
        return self.answer().health

    def story(self) -> list[str]:
        return [event.what for event in self.answer().stories["snapshots"]]

    def gauges(self) -> dict[str, float]:
        self._gauges.read(self.inside.master, 0, self.topology.time)
        read = msgspec.msgpack.decode(self._gauges.snapshot(), type=Snapshot)
        return {" ".join((name, *labels)): value for name, labels, value in (*read.counters, *read.gauges)}


def cluster(seed, topology=Counted, spout="words"):
    config = {"topology.stateful.checkpoint.interval.secs": 2.0}
    return Cluster(EffectivelyOnce(topology), containers=2, seed=seed, config=config, cost={spout: 0.02})


def test_numbers_are_right_after_kills():
    with cluster(1, Many) as topology:
        it = Seeing(topology)
        topology.advance(5.0)
        for count, name in enumerate(("count-1", "manager-2"), start=1):
            topology.kill(name)
            topology.run_until(lambda count=count: it.figures.rollbacks.total() == count)
            topology.run_until(lambda: it.phase() is Phase.RUNNING)
        topology.run_until(lambda it=it, former=it.committed: it.committed > former)
        figures, store = it.figures, it.inside.store
        assert dict(figures.rollbacks) == {Cause.TASK: 1, Cause.MANAGER: 1}
        assert figures.rollback.why == "the stream manager of container 2 has a new life"
        assert 0.0 < figures.rollback.restored < figures.down
        commits = {record.committed for record in store.records} - {0}
        assert figures.commits == len(commits)
        manifest = decode_manifest(store.files[manifest_name(it.committed)], it.committed)
        size = sum(len(store.files[name]) for name in manifest.names)
        gauges = it.gauges()
        assert gauges["ardea_tm_snapshot_bytes"] == figures.last.bytes == size
        assert gauges["ardea_tm_snapshots_committed_total"] == len(commits)
        assert gauges["ardea_tm_snapshot_number"] == it.committed
        assert gauges["ardea_tm_rollbacks_total task"] == gauges["ardea_tm_rollbacks_total manager"] == 1
        assert gauges["ardea_tm_rollbacks_total loss"] == 0
        assert [state for state in Phase if gauges[f"ardea_tm_snapshot_state {state.name}"]] == [Phase.RUNNING]
        assert (gauges["ardea_tm_timeline"], gauges["ardea_tm_snapshot_interval_seconds"]) == (3, 2.0)
        for task, part in manifest.parts.items():
            of = it.inside.process(topology.plan.tasks[task].name).shell.snapshots
            topology.run_until(lambda of=of: of.report.number == it.committed)
            assert of.state_bytes == sum(file.bytes for file in part.files)
            assert of.figures.restored > 0
            assert of.figures.write > 0.0
        assert it.status.last.number == text_of(it.committed)
        assert it.status.waits == []


def test_a_new_master_knows_the_number_and_counts_anew():
    with cluster(2, Many) as topology:
        it = Seeing(topology)
        topology.advance(5.0)
        topology.kill("master")
        topology.run_until(lambda: "master" in topology.running and it.phase() is Phase.RUNNING)
        assert (it.figures.commits, it.status.last.number, it.status.last.ago) == (0, text_of(it.committed), None)
        assert it.gauges()["ardea_tm_snapshot_age_seconds"] == 0.0
        topology.run_until(lambda: it.figures.commits == 1)
        assert it.status.last.number == text_of(it.committed)


def test_a_store_that_fails_three_times_is_told_with_its_error():
    with cluster(4, Many) as topology:
        it = Seeing(topology)
        topology.advance(3.5)
        it.inside.store.full = True
        topology.run_until(lambda: it.figures.abandoned == 1)
        assert it.health().state is HealthState.HEALTHY
        topology.run_until(lambda: it.figures.abandoned == 3)
        assert dict(it.figures.abandonments) == {Reason.STORE: 3}
        status, health = it.status, it.health()
        assert "cannot be stored: no space left on device" in status.why
        assert status.why.split(": ")[0] in topology.names, "it names a task"
        assert health.state is HealthState.DEGRADED
        assert [(each.who, status.why in each.why) for each in health.troubles] == [("snapshots", True)]
        assert it.story()[-1].startswith("3 snapshots in a row were abandoned, the last one because of ")
        assert it.gauges()["ardea_tm_snapshots_abandoned_in_a_row"] == 3
        it.inside.store.full = False
        topology.run_until(lambda: it.figures.abandoned == 0)
        assert it.health().state is HealthState.HEALTHY
        assert it.story()[-1].endswith("counts, after 3 that were abandoned")


def test_a_sink_that_cannot_write_is_seen_and_the_age_outlives_a_rollback():
    Writes.table = table = Table()
    with cluster(6, Goes, "rows") as topology:
        it = Seeing(topology)
        topology.run_until(lambda: len(table.rows) > 0, 30)
        table.down = True
        topology.advance(9.0)
        says = "cannot commit: ConnectionError: the database is down"
        assert {sink.why for sink in it.status.sinks} == {says}
        assert it.health().state is HealthState.HEALTHY
        gauges = it.gauges()
        assert gauges["ardea_tm_sink_waiting_intervals sink"] >= 4
        assert 8.0 < gauges["ardea_tm_sink_waiting_seconds sink"] < 10.0
        topology.kill("sink-0")
        topology.advance(6.0)
        later = gauges["ardea_tm_sink_waiting_seconds sink"] + 6.0
        assert it.gauges()["ardea_tm_sink_waiting_seconds sink"] == pytest.approx(later)
        health = it.health()
        assert health.state is HealthState.DEGRADED
        assert {each.who for each in health.troubles} == {"sink-0", "sink-1"}
        table.down = False
        topology.run_until(lambda: all(sink.seconds < 3.0 for sink in it.status.sinks), 60)
        assert it.health().state is HealthState.HEALTHY
        topology.run_until(lambda: it.gauges()["ardea_tm_sink_waiting_intervals sink"] == 0)
        assert it.gauges()["ardea_tm_sink_waiting_seconds sink"] == 0.0


def test_a_task_that_cannot_read_its_state_says_so_until_it_can():
    with cluster(5, Many) as topology:
        it = Seeing(topology)
        topology.advance(5.0)
        it.inside.store.unreadable = True
        topology.kill("count-1")
        topology.run_until(lambda: len(it.figures.reading) == len(topology.plan.tasks))
        says = "cannot read its state: no answer; it tries again"
        assert it.status.state == "RESTORING"
        assert f"count-1 {says}" in it.status.waits
        assert {(each.who, each.why) for each in it.health().troubles} == {
            (place.name, says) for place in topology.plan.tasks.values()
        }
        it.inside.store.unreadable = False
        topology.run_until(lambda: it.phase() is Phase.RUNNING)
        assert (it.status.waits, it.health().state) == ([], HealthState.HEALTHY)
        assert it.story()[-2] == "rolls back: count-1 has a new life"
        assert it.story()[-1].startswith(f"timeline 2 goes on from snapshot {text_of(it.committed)}, ")


class Tallies(Count):
    def initialize(self, config, context):
        self._tally = context.register_metric("tally", CountMetric())
        number = context.task_data["objects"] = context.task_data.get("objects", 0) + 1
        context.register_metric(f"level-{number}", AssignableMetric(number))
        context.register_metric(f"begun-{number}", CountMetric()).incr()

    def process(self, tup):
        super().process(tup)
        self._tally.incr()


class Tallied(Topology):
    words = Endless.spec(par=2)
    count = Tallies.spec(inputs={words: Grouping.fields("word")})


@pytest.mark.parametrize(
    ("task", "series"), [("count-0", "ardea_user_counts_total"), ("words-1", "ardea_instance_tuples_emitted_total")]
)
def test_what_a_task_counts_goes_on_after_a_rollback(task, series):
    """The new object of its component registers another metric under the name, and has another executor."""
    with Cluster(EffectivelyOnce(Tallied), seed=3, cost={"words": 0.02}) as cluster:
        shell = Inside(cluster).process(task).shell
        meters, seen = Meters(shell, BoundedQueue("data_out", 8, 1000), lambda: 0), []

        def told() -> float:
            meters.hand_over(0, lambda _: None)
            values = msgspec.msgpack.decode(shell.registry.snapshot(), type=Snapshot).counters
            seen.append(sum(value for name, _, value in values if name == series))
            return seen[-1]

        cluster.run_until(lambda: told() > 100, timeout=60)
        former = shell.executor
        cluster.kill("words-0")
        cluster.run_until(lambda: shell.executor is not former, timeout=60)
        before = told()
        cluster.run_until(lambda: told() > before, timeout=60)
        assert seen == sorted(seen)


def test_only_the_present_object_of_a_component_has_values_and_what_others_have_counted_stays():
    with Cluster(EffectivelyOnce(Tallied), seed=3, cost={"words": 0.02}) as cluster:
        shell = Inside(cluster).process("count-0").shell
        meters = Meters(shell, BoundedQueue("data_out", 8, 1000), lambda: 0)

        def told() -> set[str]:
            meters.hand_over(0, lambda _: None)
            snapshot = msgspec.msgpack.decode(shell.registry.snapshot(), type=Snapshot)
            assert all(value >= 1 for name, labels, value in snapshot.counters if labels[:1] == ("begun-1",))
            return {
                labels[0] for name, labels, _ in snapshot.counters + snapshot.gauges if name.startswith("ardea_user")
            }

        cluster.run_until(lambda: told() == {"tally", "level-1", "begun-1"}, timeout=20)
        cluster.kill("words-0")
        cluster.run_until(lambda: told() == {"tally", "level-2", "begun-1", "begun-2"}, timeout=20)


@pytest.mark.parametrize("active", [True, False])
def test_a_topology_does_not_run_before_its_store_has_answered(monkeypatch, active):
    survey, asked = MemoryStore.survey, []
    monkeypatch.setattr(MemoryStore, "survey", lambda store, *given: asked.append((store, *given)))
    with Cluster(EffectivelyOnce(Counted), active=active) as topology:
        it = Seeing(topology)
        topology.advance(5.0)
        assert (it.answer().complete, it.answer().came_up, it.health().state) == (False, False, HealthState.STARTING)
        survey(*asked.pop())
        topology.advance(5.0)
        assert (it.answer().complete, it.answer().came_up, it.health().state) == (True, True, HealthState.HEALTHY)
