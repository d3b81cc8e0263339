"""The state manager comes back empty: which snapshot counts is found in the store, and no word is counted twice."""

from __future__ import annotations

import random

import pytest

from ardea.snapshots.manifest import manifest_name
from ardea.state import Fenced
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import MOST, Counted, EffectivelyOnce, check, states
from tests.simulation.snapshots.test_put_back import Afraid, version
from tests.sizes import size

SEEDS = range(size(3, 2_000, whole=15))
CONFIG = {"topology.stateful.checkpoint.interval.secs": 1.0}
LOST = "the state manager has lost what it held"


def cluster(seed=0, **more):
    return Cluster(EffectivelyOnce(Counted), containers=2, seed=seed, config=CONFIG, cost={"words": 0.02}, **more)


def positions(store):
    """Of the last snapshot that counts; zeros: none does."""
    numbers = [record.committed for record in store.records if record.committed]
    return states(store, numbers[-1])[0] if numbers else [0, 0]


def all_counted(store):
    return positions(store) == [MOST, MOST]


def test_it_goes_on_from_the_newest_snapshot():
    with cluster() as running:
        store = Inside(running).store
        running.run_until(lambda: min(positions(store)) > 100, 60)
        before = store.records[-1]
        running.lose_state()
        running.run_until(lambda: store.records[-1].timeline > before.timeline, 60)
        assert store.records[-1].restore >= before.committed
        running.run_until(lambda: all_counted(store), 120)
        assert check(store) == [MOST, MOST]


def test_lost_again_before_a_snapshot_counts_it_goes_on_from_the_same_one():
    """Tasks work in a timeline by then of which the store knows nothing."""
    with cluster() as running:
        store = Inside(running).store
        running.run_until(lambda: min(positions(store)) > 100, 60)
        for _ in range(2):
            began = len(store.records)
            running.lose_state()
            running.run_until(lambda began=began: len(store.records) > began, 60)
        running.run_until(lambda: running.over or all_counted(store), 120)
        assert not running.over, running.reason
        assert check(store) == [MOST, MOST]


def test_a_store_that_is_lost_with_it_ends_the_topology():
    """Whatever it would begin from would be a guess."""
    with cluster() as running:
        store = Inside(running).store
        running.run_until(lambda: min(positions(store)) > 100, 60)
        running.lose_state()
        store.files.clear()
        running.run_until(lambda: running.over, 120)
        assert (running.state, running.reason) == ("FAILED", f"{LOST} of snapshots, and the store has none either")


@pytest.mark.parametrize("killed", [False, True])
def test_while_the_store_answers_with_errors_rows_flow_and_then_it_goes_on_from_the_newest_snapshot(killed):
    """Also where the next master asks the store before a manager has told it what the state has lost."""
    with cluster() as running:
        store = Inside(running).store
        running.run_until(lambda: min(positions(store)) > 100, 60)
        before = store.records[-1]
        store.unreadable = True
        running.lose_state()
        if killed:
            running.kill("master")
        running.advance(30.0)
        assert (running.state, store.records[-1]) == ("RUNNING", before)
        assert Inside(running).master.begins.endswith(" cannot be read: OSError: no answer")
        assert [Inside(running).executor(f"words-{n}").env.component.position for n in range(2)] == [MOST, MOST]
        store.unreadable = False
        running.run_until(lambda: store.records[-1].timeline > before.timeline, 60)
        assert store.records[-1].restore >= before.committed
        running.run_until(lambda: all_counted(store), 120)
        assert check(store) == [MOST, MOST]


def test_an_update_that_is_put_back_before_the_store_answers_loses_nothing():
    """Nothing is known then of what counts: no plan may be stored with a timeline that begins with nothing."""
    with cluster() as running:
        store = Inside(running).store
        running.run_until(lambda: min(positions(store)) > 100, 60)
        request = running.update_request(version(Afraid), patience=20.0)
        running.run_until(lambda: (seen := running.update(request)) is not None and seen.step == "switching", 60)
        before = store.records[-1]
        assert min(positions(store)) > 100
        store.unreadable = True
        store.forget_timeline()
        running.kill("master")
        assert running.updated(request).step == "refused"
        running.advance(5.0)
        assert store.records[-1] == before
        store.unreadable = False
        running.run_until(lambda: running.over or all_counted(store), 120)
        assert check(store) == [MOST, MOST]


@pytest.mark.parametrize("rolled_back", [False, True])
@pytest.mark.parametrize("victims", [(), ("count-1",), ("container-1", "container-2")])
def test_an_older_copy_of_the_same_term_is_not_believed(rolled_back, victims):
    """The term tells nothing: the copy's snapshot may be deleted by now, and what came after it may be outside."""
    with cluster() as running:
        store = Inside(running).store
        running.run_until(lambda: min(positions(store)) > 50, 60)
        former, comes_back = store.records[-1], store.copied()
        if rolled_back:
            running.kill("count-0")
            running.run_until(lambda: store.records[-1].timeline > former.timeline, 60)
        running.run_until(lambda: min(positions(store)) > 150, 60)
        assert manifest_name(former.committed) not in store.files
        lost = store.records[-1]
        began = len(store.records)
        comes_back()
        for victim in ("master", *victims):
            running.kill(victim)
        running.run_until(lambda: running.over or all_counted(store), 120)
        assert not running.over, running.reason
        assert min(record.committed for record in store.records[began:]) >= lost.committed
        assert check(store) == [MOST, MOST]


@pytest.mark.parametrize("answers", [False, True])
def test_a_list_whose_record_was_not_written_any_more_counts_and_nobody_goes_back(answers, monkeypatch):
    """Nor while the store does not answer, to any master that has the record."""
    with cluster() as running:
        store, stored = Inside(running).store, []
        running.run_until(lambda: min(positions(store)) > 50, 60)

        def lost(record):
            stored.append(record)
            monkeypatch.undo()
            raise Fenced("there is no such term any more")

        monkeypatch.setattr(store, "begin_timeline", lost)
        store.unreadable = not answers
        running.run_until(lambda: bool(stored), 60)
        before = len(store.records)
        if not answers:
            running.advance(20.0)
            assert (running.state, len(store.records)) == ("RUNNING", before)
            assert [Inside(running).executor(f"words-{n}").env.component.position for n in range(2)] == [MOST, MOST]
            assert Inside(running).master.begins == ""
            store.unreadable = False
        running.run_until(lambda: len(store.records) > before, 60)
        assert store.records[before] == stored[0]
        running.run_until(lambda: running.over or all_counted(store), 120)
        assert {record.timeline for record in store.records} == {1}
        assert check(store) == [MOST, MOST]


def chaos(seed):
    """Lost once or twice, with masters, managers and containers that die about then."""
    dice = random.Random(f"lost record {seed}")
    victims = ["master", "manager-1", "manager-2", *(f"container-{n}" for n in range(3))]
    faults = []
    for _ in range(dice.randint(1, 2)):
        at = dice.uniform(1.0, 8.0)
        faults.append((at, lambda running: running.lose_state()))
        for _ in range(dice.randint(0, 3)):
            victim = dice.choice(victims)
            faults.append((max(0.0, at + dice.uniform(-1.0, 2.0)), lambda running, victim=victim: running.kill(victim)))
    return faults


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_dies_with_it_each_snapshot_is_exact(seed):
    with cluster(seed, faults=chaos(seed)) as running:
        store = Inside(running).store
        running.run_until(lambda: running.over or all_counted(store), 600)
        check(store)
        assert not running.over, running.reason
