"""Watermarks on the real engine, on simulated time: what they promise, in all modes, whatever dies (docs/time.md)."""

from __future__ import annotations

import math
import random

import pytest

from ardea import END, Bolt, Grouping, Source, SourceSpout, Timers, Timestamps, Topology
from ardea.errors import TopologyError
from ardea.heron_instance.meters import Meters
from ardea.heron_instance.queues import BoundedQueue
from ardea.testing import Cluster, CollectBolt, run
from ardea.testing.inside import Inside
from ardea.testing.kit import Schedule
from tests.simulation.schedules import targets
from tests.simulation.snapshots.counted import EffectivelyOnce, tables_of
from tests.simulation.watermarks.timed import (
    WINDOW,
    Exact,
    Passes,
    Results,
    Sees,
    Stamped,
    Timed,
    Windowed,
    Windows,
    begin,
    late,
    windows,
)
from tests.sizes import size

COST = {"rows": 0.06}
ROWS = 4 * Stamped.most
MODES = ["ATLEAST_ONCE", "ATMOST_ONCE"]


@pytest.fixture(autouse=True)
def nothing_seen():
    begin()


@pytest.mark.parametrize("mode", MODES)
def test_no_row_is_late_time_goes_on_and_ends(mode):
    result = run(Timed, containers=2, seed=1, cost=COST, config={"topology.reliability.mode": mode})
    assert result.state == "SUCCEEDED"
    assert len(Sees.seen) == ROWS
    assert late() == []
    known = [row[4] for row in Sees.seen if row[4] is not None]
    assert len(known) > ROWS * 3 / 4
    assert max(known) > Stamped.most * 0.4
    assert len({*known}) > 10
    assert Sees.ends == [math.inf, math.inf]


@pytest.mark.parametrize("name", ["rows-0", "passes-1", "sees-0", "manager-1", "manager-2", "master", "container-1"])
def test_at_least_once_time_goes_on_whoever_dies(name):
    """What comes again may be late; what readers of a new life have to hear, they are told."""
    faults = [(2.5, lambda cluster: cluster.kill(name))]
    result = run(Timed, containers=2, seed=2, cost=COST, faults=faults, config={"topology.message.timeout.secs": 10})
    assert result.state == "SUCCEEDED"
    assert len({row[1:3] for row in Sees.seen}) == ROWS / 2
    assert Sees.ends[-2:] == [math.inf, math.inf]
    assert max(row[4] or 0.0 for row in Sees.seen) > Stamped.most * 0.4


@pytest.mark.parametrize("tasks", [1, 3])
def test_with_another_number_of_tasks_time_goes_on(tasks):
    with Cluster(Timed, containers=2, seed=4, cost=COST) as cluster:
        cluster.run_until(lambda: len(Sees.seen) > 100)
        done = cluster.updated(cluster.update_request(parallelism={"passes": tasks}))
        assert (done.step, done.reason) == ("done", "")
        cluster.run_until(lambda: cluster.over)
        assert cluster.state == "SUCCEEDED"
    assert max(row[4] or 0.0 for row in Sees.seen) > Stamped.most * 0.4
    assert Sees.ends == [math.inf, math.inf]


# --- effectively once -------------------------------------------------------------------------------------------------

NAMES = ["rows-1", "passes-0", "sees-1", "manager-1", "master", "container-2"]


def exactly(seed, containers, faults):
    """Raises what a promise that is broken raises."""
    begin()
    config = {"topology.stateful.checkpoint.interval.secs": 0.5}
    options = {"containers": containers, "seed": seed, "config": config, "cost": COST}
    with Cluster(EffectivelyOnce(Timed), **options, faults=faults) as cluster:
        exact = Exact(cluster)
        while not exact.all_there and not cluster.over:
            assert cluster.time < 400.0, cluster.describe()
            cluster.advance(1.0)
            exact.look()
        cluster.run_until(lambda: cluster.over, timeout=200)
        exact.look()
        assert (cluster.state, exact.all_there) == ("SUCCEEDED", True)
    assert late() == [], "no row is late that was not when it was emitted"
    assert exact.watermark > 0.0
    assert Sees.ends[-2:] == [math.inf, math.inf]


@pytest.mark.parametrize("name", NAMES)
def test_effectively_once_no_row_is_ever_late_whoever_dies(name):
    exactly(5, 2, [(3.5, lambda cluster: cluster.kill(name))])


@pytest.mark.parametrize("seed", range(size(3, 2000, whole=40)))
def test_effectively_once_under_a_schedule_of_faults(seed):
    containers = random.Random(f"containers of {seed}").randint(1, 3)
    schedule = Schedule.seeded(seed, targets(Timed, containers), faults=6, seconds=6.0)
    exactly(seed, containers, [*schedule.simulated()])


def test_what_was_late_stays_late_after_a_rollback():
    """A bolt goes on from the watermark of the snapshot, before anything has come."""
    config = {"topology.stateful.checkpoint.interval.secs": 1.0}
    with Cluster(EffectivelyOnce(Timed), containers=2, seed=6, config=config, cost=COST) as cluster:
        exact = Exact(cluster)
        cluster.advance(5.0)
        exact.look()
        assert exact.watermark > 0.0
        assert Sees.begins == [None, None]
        cluster.kill("rows-0")
        cluster.run_until(lambda: len(Sees.begins) == 4, timeout=60)
        assert min(Sees.begins[2:]) >= exact.watermark


def test_more_tasks_begin_with_what_those_had_whose_keys_they_take():
    config = {"topology.stateful.checkpoint.interval.secs": 1.0}
    with Cluster(EffectivelyOnce(Timed), containers=2, seed=7, config=config, cost=COST) as cluster:
        exact = Exact(cluster)
        cluster.advance(4.0)
        done = cluster.updated(cluster.update_request(parallelism={"sees": 3}))
        assert (done.step, done.reason) == ("done", "")
        cluster.run_until(lambda: cluster.over, timeout=300)
        exact.look()
        assert (cluster.state, exact.all_there) == ("SUCCEEDED", True)
    assert late() == []


# --- timers that go by the watermark ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_window_is_over_once_time_has_passed_it_and_no_row_of_it_is_missing(mode):
    config = {"topology.reliability.mode": mode}
    result = run(Windowed, containers=2, seed=9, cost=COST, config=config)
    assert result.state == "SUCCEEDED"
    assert sorted(Results.all) == sorted((*key, count) for key, count in windows().items())


@pytest.mark.parametrize("mode", MODES)
def test_windows_close_while_rows_come_and_not_only_at_the_end(mode):
    with Cluster(Windowed, containers=2, seed=9, cost=COST, config={"topology.reliability.mode": mode}) as cluster:
        cluster.advance(5.0)
        assert cluster.state == "RUNNING"
        assert len(Results.all) > 8


def test_timers_come_ahead_of_the_next_row_and_what_they_emit_ahead_of_the_watermark():
    cost, config = {"rows": 0.01, "windows": 0.05}, {"topology.reliability.mode": "ATMOST_ONCE"}
    result = run(Windowed, containers=2, seed=9, cost=cost, config=config)
    assert result.record.exceptions == []
    assert sorted(Results.all) == sorted((*key, count) for key, count in windows().items())


class Slow(Stamped):
    """Its time is far ahead, so that it holds nobody's; each of its calls is long, and so it passes barriers late."""

    most = 8

    def initialize(self, config, context):
        super().initialize(config, context)
        self._me = 7
        self._stamps = [1000.0 + stamp for stamp in self._stamps]


class Aside(Topology):
    rows = Stamped.spec()
    slow = Slow.spec()
    windows = Windows.spec(inputs={rows: Grouping.fields("spout"), slow: Grouping.fields("spout")})


def test_timers_come_ahead_of_the_next_row_where_both_were_set_aside_for_a_barrier():
    """Several watermarks, each with rows behind it, are taken one after the other."""
    config = {"topology.reliability.mode": "EFFECTIVELY_ONCE", "topology.stateful.checkpoint.interval.secs": 0.5}
    result = run(Aside, seed=9, cost={"rows": 0.06, "slow": 0.9}, config=config)
    assert (result.state, result.record.errors) == ("SUCCEEDED", [])
    assert sum(count for _, _, count in result.record.tuples("windows")) == Stamped.most + Slow.most


class Again(Bolt):
    """A timer that sets itself again, and one of another key, which it would move."""

    outputs = ("spout", "at", "watermark")
    timers = Timers(time="event")

    def process(self, tup):
        for spout in (tup["spout"], "other"):
            if self.timers.get(spout) is None:
                self.timers.set(spout, tup["at"] + WINDOW)

    def on_timer(self, name, key, at):
        assert at < 1000.0, "without end"
        self.emit((key, at, self.watermark))
        self.timers.set(key, at + WINDOW)
        self.timers.set("other", at + WINDOW)


class SetAgain(Topology):
    rows = Stamped.spec()
    again = Again.spec(inputs={rows: Grouping.GLOBAL})


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
def test_at_the_end_each_timer_that_is_set_is_called_and_sets_no_other(mode):
    result = run(SetAgain, seed=9, cost=COST, config={"topology.reliability.mode": mode})
    assert (result.state, result.record.errors) == ("SUCCEEDED", [])
    rows = result.tuples("again")
    assert sorted(str(key) for key, _, watermark in rows if watermark == math.inf) == ["0", "other"]
    assert all(watermark == math.inf or at <= watermark for _, at, watermark in rows)
    assert len(rows) > 10, "they set themselves again while rows came"


def windowed(seed, containers, faults):
    """Raises what a promise that is broken raises."""
    begin()
    config = {"topology.stateful.checkpoint.interval.secs": 0.5}
    options = {"containers": containers, "seed": seed, "config": config, "cost": COST}
    with Cluster(EffectivelyOnce(Windowed), **options, faults=faults) as cluster:
        cluster.run_until(lambda: cluster.over, timeout=400)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        store, rows, times = Inside(cluster).store, {}, {}
        for tables in tables_of(store, store.records[-1].committed):
            rows.update(tables.get("rows", {}))
            times.update(tables.get("times", {}))
    assert rows == windows(), "all rows of each window"
    assert {*times.values()} == {1}, "each window once"


@pytest.mark.parametrize("name", ["rows-0", "windows-1", "results-0", "manager-2"])
def test_effectively_once_each_window_closes_once_with_all_its_rows_whoever_dies(name):
    windowed(10, 2, [(3.0, lambda cluster: cluster.kill(name))])


@pytest.mark.parametrize("seed", range(size(3, 2000, whole=40)))
def test_effectively_once_windows_are_exact_under_a_schedule_of_faults(seed):
    containers = random.Random(f"containers of {seed}").randint(1, 3)
    schedule = Schedule.seeded(seed, targets(Windowed, containers), faults=6, seconds=6.0)
    windowed(seed, containers, [*schedule.simulated()])


def test_timers_by_event_time_where_no_row_has_a_time_are_refused(monkeypatch):
    monkeypatch.setattr(Stamped, "timestamps", None)
    with pytest.raises(TopologyError, match=r"\[windows\]: timers go by event time, and no spout that it reads"):
        Windowed.plan({})


# --- partitions -------------------------------------------------------------------------------------------------------


class Parted(Source):
    """Partitions of stamps; None at the end of one: nothing more comes of it, and it does not end."""

    outputs = ("partition", "at")
    timestamps = Timestamps("at", lateness=1.0)

    def __init__(self, **parts):
        self.parts = parts
        self.broken = set()

    def list_partitions(self):
        return list(self.parts)

    def open(self, partition, position):
        return PartedReader(self, partition, position or 0)


class PartedReader:
    def __init__(self, source, name, at):
        self.source, self.name, self.at = source, name, at

    def read(self, most):
        if self.name in self.source.broken:
            raise OSError("no answer")
        stamps = self.source.parts[self.name]
        if self.at >= len(stamps):
            return END
        if stamps[self.at] is None:
            return []
        self.at += 1
        return [(self.name, stamps[self.at - 1])]

    def position(self):
        return self.at

    def close(self):
        pass


class PassesOn(Passes):
    outputs = Parted.outputs


def parted(source, **options):
    rows = SourceSpout(source, **options).spec()
    return type("Parts", (Topology,), {"rows": rows, "kept": CollectBolt.spec(inputs=[rows])})


def watermark_after(topology, seconds):
    with Cluster(topology, seed=8) as cluster:
        cluster.advance(seconds)
        return cluster.task("kept-0", CollectBolt).watermark


def test_the_slowest_partition_holds_time():
    assert watermark_after(parted(Parted(a=[10.0, 20.0, None], b=[5.0, 9.0, None])), 3.0) == 8.0


def test_one_that_has_ended_holds_nobody_up():
    assert watermark_after(parted(Parted(a=[10.0, 20.0, None], b=[5.0, 9.0])), 3.0) == 19.0


@pytest.mark.parametrize("name", ["rows-0", "rows-1", "rows-2"])
def test_a_task_that_is_started_again_holds_nobody_up_though_it_has_no_partition(name):
    """It says so at once, before its readers hear of its new life."""
    source = Parted(a=[*range(10_000), None])
    source.every = 10.0
    rows = SourceSpout(source).spec(par=3)
    topology = type("Parts", (Topology,), {"rows": rows, "kept": CollectBolt.spec(inputs=[rows])})
    with Cluster(topology, seed=8, cost={"rows": 0.01}) as cluster:
        cluster.advance(5.0)
        cluster.kill(name)
        cluster.advance(20.0)
        former = cluster.task("kept-0", CollectBolt).watermark
        cluster.advance(10.0)
        assert cluster.task("kept-0", CollectBolt).watermark > former + 500.0


def test_one_without_a_row_holds_time_until_it_is_idle():
    stamps = Timestamps("at", idle_after=4.0)
    topology = parted(Parted(a=[*range(10, 200), None], b=[None]), timestamps=stamps)
    assert watermark_after(topology, 2.0) is None
    assert watermark_after(topology, 8.0) == 199.0


def test_one_that_cannot_be_read_is_not_idle():
    source = Parted(a=[10.0, None], b=[5.0])
    source.broken.add("b")
    assert watermark_after(parted(source, timestamps=Timestamps("at", idle_after=4.0)), 20.0) is None


def test_the_watermark_is_told_before_an_idle_spout_is_left_out():
    """Two tasks: one has finished, and the other is waited for."""
    source = Parted(a=[10.0, 20.0], b=[5.0, 9.0, None])
    rows = SourceSpout(source).spec(par=2)
    topology = type("Two", (Topology,), {"rows": rows, "kept": CollectBolt.spec(inputs=[rows])})
    assert watermark_after(topology, 3.0) == 8.0


@pytest.mark.parametrize("name", ["kept-0", "passes-0", "manager-1", "manager-2", "container-1"])
def test_a_new_life_hears_what_was_said_before_it(name):
    """Although no row comes any more."""
    rows = SourceSpout(Parted(a=[10.0, 20.0, None], b=[5.0, 9.0, None])).spec(par=2)
    passes = PassesOn.spec(inputs=[rows], par=2)
    kept = CollectBolt.spec(inputs=[passes], par=2)
    topology = type("Lives", (Topology,), {"rows": rows, "passes": passes, "kept": kept})

    def known():
        return {cluster.task(f"kept-{number}", CollectBolt).watermark for number in (0, 1)}

    with Cluster(topology, containers=2, seed=8) as cluster:
        cluster.advance(3.0)
        assert known() == {8.0}
        cluster.kill(name)
        cluster.advance(20.0)
        assert known() == {8.0}


def test_metrics_say_how_far_behind_time_is_and_which_stamps_are_odd():
    with Cluster(parted(Parted(a=[10.0, 20.0, 3.0, None])), seed=8) as cluster:
        cluster.advance(0.001)
        for name in ("rows-0", "kept-0"):
            shell = Inside(cluster).process(name).shell
            meters = Meters(shell, BoundedQueue("data_out", 8, 1000), lambda: 0)
            cluster.run_until(lambda: cluster.task("kept-0", CollectBolt).watermark == 19.0)
            meters.hand_over(0, lambda _: None)
            lag = shell.registry.gauge("ardea_watermark_lag_seconds").value
            assert lag == shell.executor.env.context.now() - 19.0
        rows = Inside(cluster).process("rows-0").shell.instruments.stamps
        assert (rows.ahead, rows.none) == (0, 0)


# --- nothing is paid where no row has a stamp -------------------------------------------------------------------------


def test_a_topology_without_stamps_knows_nothing_of_time(monkeypatch):
    monkeypatch.setattr(Parted, "timestamps", None)
    rows = SourceSpout(Parted(a=[1.0, None])).spec()
    topology = type("Plain", (Topology,), {"rows": rows, "kept": CollectBolt.spec(inputs=[rows])})
    with Cluster(topology) as cluster:
        cluster.advance(2.0)
        for name in ("rows-0", "kept-0"):
            executor = Inside(cluster).executor(name)
            assert executor.reporter.time is None
            assert executor.env.states.time is None
        assert cluster.task("kept-0", CollectBolt).watermark is None
