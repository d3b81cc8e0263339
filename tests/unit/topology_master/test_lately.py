"""What each task, component, edge and pause was between two looks, from counters that only grow."""

from __future__ import annotations

import math

import msgspec
import pytest

from ardea import Grouping, Topology
from ardea.metrics import Identity, Overview, Registry
from ardea.metrics.samples import FIELDS
from ardea.metrics_manager.metrics_state import MetricsState
from ardea.plan.physical import PhysicalPlan
from ardea.scheduler.packing import packing_for
from ardea.testing import CollectBolt, RowsSpout
from ardea.topology_master.lately import Lately


class Words(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec()
    count = CollectBolt.spec(inputs={words: Grouping.fields("word")}, par=2)


class Topo:
    """Its tasks, a metrics manager a container and a master's overview; seconds pass when told."""

    def __init__(self):
        logical = Words.plan({"topology.stmgrs": 2})
        self.plan = PhysicalPlan.build(logical, packing_for(logical.config).pack(logical), 1)
        self.now, self.overview, self.lately = 0.0, Overview(), Lately()
        self.managers = {number: MetricsState() for number in self.plan.containers}
        self.homes = {place.name: place.container for place in self.plan.tasks.values()}
        self.registries = {place.name: self.registry(place) for place in self.plan.tasks.values()}
        self.mute = set()

    def registry(self, place):
        return Registry(Identity("t", place.container, place.name, place.component, place.task, 1))

    def executes(self, task, count, seconds=0.001):
        registry = self.registries[task]
        registry.counter(
            "ardea_instance_tuples_executed_total", source_component="words", stream="default"
        ).value += count
        registry.histogram("ardea_instance_execute_duration_seconds").observe(seconds, count)
        registry.counter("ardea_instance_busy_seconds_total").value += count * seconds

    def tells(self):
        """Each container's metrics manager."""
        for task, registry in self.registries.items():
            self.managers[self.homes[task]].accept(registry.snapshot(), self.now)
        for number, manager in self.managers.items():
            if number not in self.mute:
                self.overview.accept(msgspec.msgpack.encode(manager.summary(number, 1)), self.now)

    def looks(self):
        rows = self.lately.look(self.overview.counts(), self.plan, self.now)
        return {name: dict(zip(FIELDS, row, strict=True)) for name, row in rows.items()}

    def after(self, seconds=5.0):
        self.now += seconds
        self.tells()
        return self.looks()


@pytest.fixture
def topology():
    made = Topo()
    made.tells()
    made.looks()
    return made


def test_the_first_look_knows_no_rates():
    made = Topo()
    made.executes("count-0", 500)
    row = made.after()["count-0"]
    assert math.isnan(row["executed"])
    assert math.isnan(row["capacity"])
    assert [edge.rate for edge in made.lately.edges(made.plan)] == [None]


def test_rates_latencies_and_shares_since_the_look_before(topology):
    topology.executes("count-0", 500, 0.004)
    topology.executes("count-1", 100, 0.001)
    rows = topology.after()
    assert (rows["count-0"]["executed"], rows["count-1"]["executed"], rows["count"]["executed"]) == (100.0, 20.0, 120.0)
    assert (rows["count-0"]["capacity"], rows["count-1"]["capacity"]) == pytest.approx((0.4, 0.02))
    assert rows["count"]["capacity"] == pytest.approx(0.4)
    assert 0.0005 < rows["count-1"]["latency_p50"] <= 0.001 < rows["count-0"]["latency_p50"] <= 0.005
    assert rows["count"]["latency_p50"] > 0.002
    quiet = topology.after()["count"]
    assert quiet["executed"] == 0.0
    assert math.isnan(quiet["latency_p50"])


def test_who_is_not_heard_is_not_known_and_catches_up_over_the_whole_time(topology):
    gone = topology.homes["count-0"]
    topology.mute = {gone}
    topology.executes("count-0", 500)
    row = topology.after()["count-0"]
    assert all(math.isnan(value) for value in row.values())
    topology.mute = set()
    assert topology.after()["count-0"]["executed"] == 50.0


def test_what_waits_is_said_of_input_and_of_open_trees(topology):
    spout, bolt = topology.registries["words-0"], topology.registries["count-0"]
    spout.gauge("ardea_spout_pending_tuples").value = 7
    for queue, size in (("data_in", 1000), ("data_out", 5)):
        bolt.gauge("ardea_queue_bytes", queue=queue).value = size
    rows = topology.after()
    assert (rows["words"]["pending"], rows["count"]["queued_bytes"]) == (7.0, 1000.0)
    assert math.isnan(rows["count-0"]["pending"])


def test_what_stream_managers_hold_for_a_task_waits_for_it_too(topology):
    task = next(number for number, place in topology.plan.tasks.items() if place.name == "count-0")
    topology.registries["count-0"].gauge("ardea_queue_bytes", queue="data_in").value = 1000
    for number, size in ((1, 200), (2, 30)):
        manager = Registry(Identity("t", number, "stream-manager", life=1))
        manager.gauge("ardea_stmgr_held_bytes", destination=task).value = size
        manager.gauge("ardea_stmgr_held_bytes", destination=99).value = 5
        topology.managers[number].accept(manager.snapshot(), topology.now)
    rows = topology.after()
    assert (rows["count-0"]["queued_bytes"], rows["count"]["queued_bytes"]) == (1230.0, 1230.0)


def test_what_flows_along_an_edge_is_what_its_reader_has_processed(topology):
    for _ in range(2):
        topology.executes("count-0", 500)
        topology.executes("count-1", 100)
        topology.after()
    (edge,) = topology.lately.edges(topology.plan)
    assert (edge.source, edge.stream, edge.target, edge.grouping) == ("words", "default", "count", "fields(word)")
    assert (edge.rate, edge.tuples) == (120.0, 1200)


def test_an_edge_is_a_sum_of_those_that_were_heard_before(topology):
    """What a task has counted before a new master was there is no rate."""
    fresh = Lately()
    topology.mute = {topology.homes["count-0"]}
    topology.lately, topology.overview = fresh, Overview()
    topology.executes("count-0", 10**6)
    topology.after()
    topology.mute = set()
    topology.executes("count-1", 50)
    topology.after()
    assert [(edge.rate, edge.tuples) for edge in fresh.edges(topology.plan)] == [(10.0, 10**6 + 50)]


def test_who_pauses_spouts_is_said_of_the_task(topology):
    number = topology.homes["count-1"]
    manager = Registry(Identity("t", number, "stream-manager", life=1))
    paused = manager.counter("ardea_stmgr_backpressure_seconds_total", initiator="count-1")
    for seconds in (0.0, 2.0):
        paused.value += seconds
        topology.managers[number].accept(manager.snapshot(), topology.now)
        rows = topology.after()
    assert topology.lately.initiates == {"count-1": 0.4}
    assert (rows["count-1"]["initiates"], rows["count-0"]["initiates"], rows["count"]["initiates"]) == (0.4, 0.0, 0.4)


@pytest.mark.parametrize("name", ["a b c d", "a", "a b", ""])
def test_a_series_of_an_odd_name_is_left_out(topology, name):
    summary = topology.managers[1].summary(1, 1)
    for series in ("ardea_instance_tuples_executed_total", "ardea_stmgr_backpressure_seconds_total"):
        for process in summary.processes:
            process.current[f"{series} {name}"] = (1.0,)
    topology.overview.accept(msgspec.msgpack.encode(summary), topology.now)
    assert topology.after()["count"]["executed"] == 0.0


def test_a_task_that_has_moved_begins_anew(topology):
    place = next(place for place in topology.plan.tasks.values() if place.name == "count-0")
    other = next(number for number in topology.plan.containers if number != place.container)
    topology.executes("count-0", 500)
    topology.after()
    topology.registries["count-0"] = Registry(Identity("t", other, "count-0", "count", place.task, 1))
    topology.homes["count-0"] = other
    moved = {**topology.plan.tasks, place.task: type(place)(place.task, "count", 0, other)}
    topology.plan = PhysicalPlan(2, topology.plan.logical, moved, topology.plan.component_tasks)
    assert math.isnan(topology.after()["count-0"]["executed"])
    topology.executes("count-0", 500)
    assert topology.after()["count-0"]["executed"] == 100.0


def test_a_task_that_is_gone_is_not_another_one_of_its_name_that_came_after_it(topology):
    """The metrics manager goes on to tell of both."""
    place = next(place for place in topology.plan.tasks.values() if place.name == "count-0")
    gone = Registry(Identity("t", place.container, "count-0", "count", 99, 1))
    gone.counter("ardea_instance_tuples_executed_total", source_component="words", stream="default").value = 7000
    topology.managers[place.container].accept(gone.snapshot(), topology.now)
    topology.after()
    topology.executes("count-0", 500)
    assert topology.after()["count-0"]["executed"] == 100.0
