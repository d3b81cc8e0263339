"""Rows of a two-phase sink are outside once each, in order, whatever dies and however long they are refused."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.heron_instance import commits, intervals
from ardea.heron_instance.intervals import is_rows
from ardea.snapshots.manifest import decode_manifest, manifest_name
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from ardea.testing.instance import SimulatedInstance
from tests.simulation.snapshots.counted import EffectivelyOnce
from tests.simulation.snapshots.written import (
    ROWS,
    Endless,
    Goes,
    Numbered,
    Table,
    Writes,
    Written,
    check,
    covered,
    whole,
)
from tests.sizes import size

CONFIG = {"topology.stateful.checkpoint.interval.secs": 1.0}


class Keeps(Bolt):
    def process(self, tup):
        pass


def rests(cluster):
    """Of each spout, whether it is held."""
    return [Inside(cluster).executor(f"rows-{index}").lifecycle.hold for index in range(2)]


@pytest.fixture(autouse=True)
def table():
    Writes.table = Table()
    return Writes.table


def run(topology=Written, **options):
    options = {"containers": 2, "config": CONFIG, "cost": {"rows": 0.02}, **options}
    return Cluster(EffectivelyOnce(topology), **options)


def ended(cluster, within=300.0, *, ordered=True):
    cluster.run_until(lambda: cluster.over, within)
    assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
    whole(ordered=ordered)


def test_rows_are_outside_when_their_snapshot_counts_and_all_are_at_the_end(table):
    with run() as cluster:
        seen = set()
        while not cluster.over:
            cluster.advance(0.05)
            check(cluster)
            seen.add(len(table.rows))
        assert len(seen) > 2, "intervals were written while rows flowed"
        ended(cluster)


@pytest.mark.parametrize("name", ["rows-1", "sink-0", "manager-1", "manager-2", "master"])
def test_who_dies_between_a_snapshot_and_its_commit_changes_nothing(name, table):
    with run() as cluster:
        cluster.advance(1.0)
        table.down = True
        before = covered(cluster)
        cluster.run_until(lambda: covered(cluster) > before, 30)
        cluster.kill(name)
        cluster.advance(2.0)
        table.down = False
        while not cluster.over:
            cluster.advance(0.1)
            check(cluster)
        ended(cluster)


def test_a_database_that_is_down_ends_no_task_and_snapshots_go_on(table):
    with run() as cluster:
        cluster.advance(0.5)
        table.down = True
        lives = {name: cluster.life(name) for name in cluster.running}
        counted = {record.committed for record in Inside(cluster).store.records}
        cluster.advance(4.0)
        assert len({record.committed for record in Inside(cluster).store.records} - counted) >= 3
        assert "ConnectionError: the database is down; it tries again, and" in Inside(cluster).error("sink-0")
        table.down = False
        ended(cluster)
        assert Inside(cluster).error("sink-0") == ""
        assert {name: cluster.life(name) for name in lives} == lives


def test_the_end_waits_for_what_is_not_outside(table):
    with run() as cluster:
        cluster.run_until(lambda: cluster.state == "ENDING", 60)
        table.down = True
        cluster.advance(30.0)
        assert cluster.state == "ENDING"
        cluster.kill("sink-1")
        cluster.advance(10.0)
        table.down = False
        ended(cluster, 60)


def test_with_too_many_intervals_the_sink_takes_no_rows_and_spouts_pause(table, monkeypatch):
    monkeypatch.setattr(commits, "MOST_WAITING", 3)
    config = {**CONFIG, "topology.stateful.checkpoint.timeout.secs": 5.0, "heron.instance.internal.queue.bytes": 2000}
    with run(Goes, config=config) as cluster:
        cluster.advance(1.0)
        table.down = True
        cluster.advance(30.0)
        before = covered(cluster)
        cluster.advance(30.0)
        assert covered(cluster) == before, "no snapshot is taken any more"
        position = cluster.task("rows-0", Goes.rows.cls).position
        cluster.advance(10.0)
        assert cluster.task("rows-0", Goes.rows.cls).position == position, "the spout waits"
        table.down = False
        cluster.run_until(lambda: min(covered(cluster)) > max(before) + 100, 60)
        check(cluster)


def test_what_is_not_outside_yet_is_in_each_snapshot_until_it_is(table):
    """All go back twice in the meantime."""
    with run() as cluster:
        cluster.advance(1.0)
        table.down = True
        for name in ("rows-0", "sink-1"):
            before = covered(cluster)
            cluster.run_until(lambda before=before: covered(cluster) > before, 30)
            cluster.kill(name)
        cluster.advance(3.0)
        table.down = False
        ended(cluster)


def named(cluster):
    """The files of rows that the last snapshot names."""
    store = Inside(cluster).store
    number = store.records[-1].committed
    parts = decode_manifest(store.files[manifest_name(number)], number).parts.values()
    return number, [file.name for part in parts for file in part.files if is_rows(file.name)]


class Plain(Topology):
    """Its sink is none that writes whole intervals."""

    rows = Endless.spec(par=2)
    sink = Keeps.spec(par=2, inputs={rows: Grouping.fields("word")})


def test_a_paused_topology_whose_rows_are_outside_has_a_snapshot_without_them(table):
    """Whatever the sink becomes by an update, they are not written again."""
    with run(Goes) as cluster:
        cluster.advance(1.5)
        table.down = True
        cluster.advance(1.5)
        cluster.deactivate()
        cluster.advance(3.0)
        assert named(cluster)[1]
        table.down = False
        cluster.advance(40.0)  # it tries again ever more seldom
        last, rows = named(cluster)
        assert not rows
        check(cluster)
        assert len(table.rows) == sum(covered(cluster)) > 0
        cluster.advance(30.0)
        assert named(cluster) == (last, []), "and no more snapshots, for nothing moves"
        done = cluster.updated(cluster.update_request(EffectivelyOnce(Plain)))
        assert (done.step, done.reason) == ("done", "")
        cluster.activate()
        before = covered(cluster)
        cluster.run_until(lambda: min(covered(cluster)) > max(before), 30)


class Elsewhere(Topology):
    """Without the sink."""

    rows = Numbered.spec(par=2)
    kept = Keeps.spec(par=1, inputs=[rows])


@pytest.mark.parametrize("down", [0.0, 5.0, 1000.0])
def test_a_sink_that_goes_writes_what_it_has_before(down, table):
    """Or the update is refused, and the rows are written later."""
    config = {**CONFIG, "topology.message.timeout.secs": 10}
    with run(cost={"rows": 0.2}, config=config) as cluster:
        cluster.advance(1.5)
        table.down = down > 0
        request = cluster.update_request(EffectivelyOnce(Elsewhere))
        cluster.update(request)
        cluster.run_until(lambda: all(rests(cluster)), 30)
        cluster.advance(down if down < 100 else 3.0)
        seen = cluster.update(request)
        if down == 5.0:
            assert (seen.step, seen.late[0]) == ("draining", "sink-0 has rows that are not outside")
        table.down = down > 100
        done = cluster.updated(request)
        if down > 100:
            assert done.step == "refused"
            says = "sink-0, sink-1 would end, with rows that are not outside and that no other task can write"
            assert done.reason == says
            table.down = False
            ended(cluster)
            return
        assert done.step == "done"
        most = covered(cluster)
        assert sorted(table.rows) == [(spout, place) for spout in range(2) for place in range(most[spout])]
        assert 0 < sum(most) < 2 * ROWS


@pytest.mark.parametrize("tasks", [[1, 3], [3, 1], [5, 2], [4, 2, 4], [5, 3, 5, 2]])
def test_rows_of_tasks_that_are_gone_are_written_by_others(tasks, table):
    with run(cost={"rows": 0.2}) as cluster:
        cluster.advance(1.0)
        table.down = True
        for count in tasks:
            cluster.advance(1.5)
            done = cluster.updated(cluster.update_request(parallelism={"sink": count}))
            assert (done.step, done.reason) == ("done", "")
        cluster.advance(3.0)  # tasks that are there again have taken rows of their own
        table.down = False
        ended(cluster, ordered=False)


def test_each_file_of_rows_is_read_by_the_task_that_keeps_it(table, monkeypatch):
    """All tasks of a sink look whose rows it has, and its head says that."""
    readers, read = defaultdict(set), SimulatedInstance.read

    def noted(instance, file, *most):
        if file.endswith(".rows") and not most:
            readers[instance.shell.snapshots.timeline.number, file].add(instance.task.index)
        return read(instance, file, *most)

    monkeypatch.setattr(SimulatedInstance, "read", noted)
    with run(cost={"rows": 0.2}) as cluster:
        cluster.advance(1.0)
        table.down = True
        for count in (4, 2, 4):
            cluster.advance(1.5)
            cluster.updated(cluster.update_request(parallelism={"sink": count}))
        table.down = False
        ended(cluster, ordered=False)
    assert len(readers) > 4
    assert {len(tasks) for tasks in readers.values()} == {1}


def test_a_full_store_keeps_rows_in_memory_and_then_the_sink_waits(table, monkeypatch):
    monkeypatch.setattr(intervals, "FILE", 50)
    monkeypatch.setattr(commits, "MOST_UNSTORED", 400)
    with run() as cluster:
        store = Inside(cluster).store
        cluster.advance(0.5)
        store.full = True
        cluster.advance(10.0)
        kept = Inside(cluster).executor("sink-0").env.commits.intervals.unstored
        assert 400 <= kept < 4000
        assert "rows cannot be stored" in Inside(cluster).error("sink-0")
        assert "no space left" in Inside(cluster).error("sink-0")
        store.full = False
        ended(cluster)


def test_rows_are_stored_while_they_come(table, monkeypatch):
    """An interval has many files, and is one transaction."""
    monkeypatch.setattr(intervals, "FILE", 50)
    with run() as cluster:
        ended(cluster)
        written = [name for name in {**Inside(cluster).store.deleted, **Inside(cluster).store.files} if "rows" in name]
        assert len(written) > 3 * len(table.calls)
        assert set(table.calls.values()) == {1}


def test_a_file_of_rows_that_is_damaged_fails_the_topology(table):
    with run() as cluster:
        store = Inside(cluster).store
        table.down = True
        cluster.run_until(lambda: any(name.endswith(".rows") for name in store.files) and covered(cluster) > [0, 0], 30)
        name = min(name for name in store.files if name.endswith(".rows"))
        store.files[name] = store.files[name][:-1]
        table.down = False
        cluster.run_until(lambda: cluster.over, 60)
        assert cluster.state == "FAILED"
        assert f"{name}, rows of a sink, is damaged" in cluster.reason


@pytest.mark.parametrize("seed", range(size(12, 4000, whole=50)))
def test_whoever_dies_whenever_and_whatever_is_refused(seed, table, monkeypatch):
    dice = random.Random(seed)
    if dice.random() < 0.5:
        monkeypatch.setattr(intervals, "FILE", 60)
    with run(containers=dice.randint(1, 3), seed=seed) as cluster:
        for _ in range(dice.randint(2, 8)):
            cluster.advance(dice.choice([0.03, 0.5, 2.0]) * dice.random())
            check(cluster)
            what = dice.random()
            if cluster.over:
                break
            if what < 0.3:
                table.down = not table.down
            elif what < 0.4:
                Inside(cluster).store.full = not Inside(cluster).store.full
            elif what < 0.5:
                cluster.freeze(dice.choice([name for name in cluster.running if name != "master"]), dice.uniform(0, 8))
            else:
                cluster.kill(dice.choice(cluster.running))
        Inside(cluster).store.full = table.down = False
        ended(cluster)


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "ATMOST_ONCE"])
def test_in_other_modes_a_tuple_is_acked_when_its_row_is_outside(mode, table):
    with Cluster(Written, containers=2, config={"topology.reliability.mode": mode}) as cluster:
        cluster.run_until(lambda: cluster.over, 60)
        assert cluster.state == "SUCCEEDED"
        whole()
        assert set(table.calls) == {None}


def test_in_other_modes_what_is_refused_comes_again(table):
    with Cluster(Written, containers=2, cost={"rows": 0.01}) as cluster:
        cluster.advance(0.3)
        table.down = True
        cluster.advance(2.0)
        assert not cluster.over
        table.down = False
        cluster.run_until(lambda: cluster.over, 600)
        assert cluster.state == "SUCCEEDED"
        assert len(set(table.rows)) == 240


class OnlyMakes(Writes):
    def commit(self, mark, rows):
        return (super().commit(mark, [row]) for row in rows)


class NeverWritten(Topology):
    rows = Numbered.spec()
    sink = OnlyMakes.spec(inputs=[rows])


@pytest.mark.parametrize("mode", ["EFFECTIVELY_ONCE", "ATLEAST_ONCE"])
def test_a_commit_that_only_makes_what_would_write_ends_the_topology(mode):
    with Cluster(NeverWritten, config={"topology.reliability.mode": mode}) as cluster:
        cluster.run_until(lambda: cluster.over, 60)
    assert cluster.state == "FAILED"
    assert "OnlyMakes.commit returned generator, which nobody runs" in cluster.reason
