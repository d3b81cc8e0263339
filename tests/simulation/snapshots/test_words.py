"""The thin slice on the real engine: whatever dies or freezes, each committed snapshot is exact, and all is counted."""

from __future__ import annotations

import random

import pytest

from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import (
    MOST,
    Counted,
    EffectivelyOnce,
    Flawed,
    Flooded,
    Many,
    Mistaken,
    check,
    positions_of,
)

NAMES = ("words-0", "words-1", "count-0", "count-1", "manager-1", "manager-2", "master")


def cluster(seed, **options):
    config = {"topology.stateful.checkpoint.interval.secs": 2.0}
    return Cluster(EffectivelyOnce(Counted), containers=2, seed=seed, config=config, cost={"words": 0.02}, **options)


def counted(cluster, store, within=200.0):
    """Until all words are in a snapshot that counts."""
    deadline = cluster.time + within
    while not (store.records and store.records[-1].committed and positions_of(store) == [MOST, MOST]):
        assert cluster.time < deadline, cluster.describe()
        cluster.advance(2.0)
    assert check(store) == [MOST, MOST]


def test_all_words_are_counted_and_an_idle_topology_takes_no_more_snapshots():
    with cluster(1) as topology:
        store = Inside(topology).store
        counted(topology, store)
        records = len(store.records)
        topology.advance(60.0)
        assert len(store.records) == records
        assert store.records[0].committed == 0
        assert check(store) == [MOST, MOST]


@pytest.mark.parametrize("name", NAMES)
def test_whoever_dies_all_go_back_together_and_the_others_live_on(name):
    with cluster(2) as topology:
        store = Inside(topology).store
        topology.advance(5.0)
        lives = {each: topology.life(each) for each in topology.names}
        topology.kill(name)
        topology.advance(5.0)
        timelines = {record.timeline for record in store.records}
        assert timelines == ({1} if name == "master" else {1, 2})
        assert {each: life for each, life in lives.items() if topology.life(each) != life}.keys() == {name}
        counted(topology, store)


def test_between_batches_what_was_stored_is_merged():
    """A task that did not would read through more layers, and merge all at its next barrier."""
    with cluster(5) as topology:
        inside = Inside(topology)
        topology.advance(5.0)
        former = len(inside.store.records)
        topology.run_until(lambda: len(inside.store.records) > former)
        topology.advance(0.2)  # the next snapshot is taken later
        for task in ("count-0", "count-1"):
            lower = inside.process(task).shell.executor.env.component.counts.lower
            assert (lower.layer, len(lower.base) > 0) == (None, True)


def test_a_file_that_is_damaged_ends_the_topology_and_is_named():
    with cluster(3) as topology:
        store = Inside(topology).store
        topology.advance(5.0)
        last = store.records[-1].committed
        damaged = next(name for name in store.files if f"/{last >> 32}.{last & 0xFFFFFFFF}/1-" in name)
        store.files[damaged] += b"x"
        topology.kill("words-1")
        topology.run_until(lambda: topology.over)
        assert topology.state == "FAILED"
        assert f"{damaged} of snapshot" in topology.reason


def test_a_full_store_abandons_snapshots_and_rows_flow_on():
    with cluster(4) as topology:
        inside = Inside(topology)
        topology.advance(3.5)
        inside.store.full = True
        committed = inside.store.records[-1].committed
        topology.advance(4.5)
        figures = inside.master.coordination.figures
        assert inside.store.records[-1].committed == committed
        assert figures.abandoned >= 2
        inside.store.full = False
        counted(topology, inside.store)
        assert {record.timeline for record in inside.store.records} == {1}


def test_an_exception_of_the_author_takes_all_back_and_ends_no_process(monkeypatch):
    """What was half done of the row counts for nothing."""
    monkeypatch.setattr(Flawed, "mistakes", 2)
    monkeypatch.setattr(Flawed, "closed", 0)
    config = {"topology.stateful.checkpoint.interval.secs": 1.0}
    with Cluster(EffectivelyOnce(Mistaken), containers=2, seed=6, config=config, cost={"words": 0.02}) as topology:
        inside = Inside(topology)
        counted(topology, inside.store)
        assert inside.store.records[-1].timeline == 3
        assert {topology.life(name) for name in topology.names} == {1}
        assert Flawed.closed == 2 * len(topology.plan.component_tasks["count"]), "at each rollback"
        assert len(inside.executor("count-0").env.context.hooks) == 1, "those of the present object"
        assert "raised ValueError: half counted" in inside.master.coordination.figures.cause


def test_a_call_that_waits_for_the_dead_inside_an_emit_hears_of_the_next_timeline():
    """It would never return by itself, and while it does not, nothing but what was planned happens here."""
    config = {"topology.stateful.checkpoint.interval.secs": 1.0}
    dies = [(at, lambda it: it.kill("count-1")) for at in (2.0, 4.0)]
    with Cluster(
        EffectivelyOnce(Flooded), containers=2, seed=7, config=config, cost={"count": 0.001}, faults=dies
    ) as topology:
        spout = Inside(topology).process("words-0").shell.snapshots
        topology.advance(3.0)
        assert spout.timeline.number == 2
        assert topology.life("words-0") == 1


def test_under_back_pressure_a_snapshot_takes_no_longer_than_what_waits_before_its_barrier():
    """Spouts could emit a hundred times as much as the counters take."""
    config = {"topology.stateful.checkpoint.interval.secs": 2.0}
    cost = {"words": 1e-4, "count": 0.02}
    with Cluster(EffectivelyOnce(Many), containers=2, seed=5, config=config, cost=cost) as topology:
        inside = Inside(topology)
        topology.advance(5.0)
        took, began, last = [], None, 0
        while topology.time < 40.0:
            topology.advance(0.05)
            taking = inside.master.coordination.snapshots.taking
            committed = inside.store.records[-1].committed
            if committed != last and began is not None:
                took.append(topology.time - began)
            last, began = committed, began if taking is None else taking.began
        assert len(took) > 5
        assert max(took) < 3.0
        check(inside.store)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(0, 24, 6))
def test_schedules(first):
    """Kills, freezes and cut links at any time."""
    for seed in range(first, first + 6):
        scheduled(seed)


def scheduled(seed):
    rng = random.Random(seed)
    with cluster(seed) as topology:
        for _ in range(rng.randint(1, 5)):
            name, at = rng.choice(NAMES), rng.uniform(0.0, 9.0)
            if rng.random() < 0.7:
                topology.at(at, lambda it, name=name: name in it.running and it.kill(name))
            else:
                frozen = rng.uniform(1.0, 25.0)
                topology.at(at, lambda it, name=name, frozen=frozen: name in it.running and it.freeze(name, frozen))
        topology.advance(9.0)
        counted(topology, Inside(topology).store)
