"""Savepoints while rows flow, and topologies that begin from them: nothing is counted twice or lost."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from ardea import Grouping, Topology
from ardea.errors import ProtocolError
from ardea.plan.definition import Begins
from ardea.snapshots.manifest import decode_manifest, manifest_name
from ardea.snapshots.retention import superfluous
from ardea.snapshots.savepoint import NUMBER, read
from ardea.state import Unavailable
from ardea.state.records import TimelineRecord
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from ardea.testing.memory_store import Held
from ardea.topology_master.savepoints import SavepointRequest
from tests.simulation.snapshots.counted import MOST, Count, Counted, EffectivelyOnce, Words, check, folded, states, word
from tests.simulation.snapshots.test_updates import CONFIG, all_counted
from tests.sizes import size


@pytest.fixture
def cluster():
    with Cluster(EffectivelyOnce(Counted), containers=2, config=CONFIG, cost={"words": 0.02}) as topology:
        copying(topology)
        yield topology


def copying(cluster, least=0.1, most=0.6):
    """A copy takes so many seconds."""
    dice = random.Random(1)
    Inside(cluster).store.copies = lambda copy: cluster.at(cluster.time + dice.uniform(least, most), lambda _: copy())


def asked(cluster, request):
    """How far it is; None: no master answers."""
    if "master" not in cluster.running:
        return None
    master = Inside(cluster).master
    try:
        master.save(request, cluster.time)
    except Unavailable:
        return None
    return master.savepoints.progress()


def saved(cluster, request, timeout=120.0):
    """Asks again and again, as the verb does."""
    end = cluster.time + timeout
    while (progress := asked(cluster, request)) is None or progress.running:
        assert cluster.time < end, (progress, cluster.describe())
        cluster.advance(0.1)
    return progress


def content(files):
    """Positions and counts in a savepoint, once each of its counts is found to be of exactly the words before them."""
    savepoint = read(Held(files))
    positions, counts = {}, Counter()
    for part in savepoint.manifest.parts.values():
        tables = folded((files[file.name], file.name) for file in part.files)
        if part.component == "words":
            positions[part.index] = tables["position"]
        else:
            counts.update(tables.get("counts", {}))
    assert counts == Counter(word(spout, p) for spout, most in positions.items() for p in range(most))
    return [position for _, position in sorted(positions.items())]


@pytest.fixture
def begun(tmp_path):
    """Makes a cluster that begins from these files of a savepoint."""

    def make(topology, files, **options):
        given = {"config": CONFIG, "cost": {"words": 0.02}, **options}
        cluster = Cluster(EffectivelyOnce(topology), **given)
        store = Inside(cluster).store
        store.definition = msgspec.structs.replace(store.definition, begins=Begins(str(laid(tmp_path, files))))
        copying(cluster)
        cluster.kill("master")  # which was started without
        return cluster

    return make


def laid(tmp_path, files):
    """Where masters reach them."""
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def request(name="one", patience=30.0, *, ends=False):
    return SavepointRequest(name, f"/{name}", patience, ends=ends)


def test_a_savepoint_holds_all_before_it_and_stays(cluster):
    cluster.advance(3.0)
    emitted = [cluster.task(f"words-{index}", object).position for index in range(2)]
    done = saved(cluster, request())
    store = Inside(cluster).store
    files = store.savepoints["/one"]
    savepoint = read(Held(files))
    assert (done.step, done.bytes, done.files) == ("done", savepoint.manifest.bytes, len(savepoint.manifest.names))
    assert (savepoint.number, savepoint.manifest.number) == (done.number, NUMBER)
    assert savepoint.components == {"count": 2, "words": 2}
    assert all(there >= before for there, before in zip(content(files), emitted, strict=True)), "it was taken at once"
    before = dict(files)
    all_counted(cluster)
    assert files == before


def test_none_of_its_files_is_deleted_while_it_is_copied(cluster):
    copying(cluster, 9.0, 9.0)
    cluster.advance(3.0)
    store = Inside(cluster).store
    commits = len(store.records)
    assert saved(cluster, request()).step == "done"
    assert len(store.records) >= commits + 3, "snapshots went on meanwhile"
    content(store.savepoints["/one"])
    number = store.records[-1].committed
    assert superfluous(store.files, decode_manifest(store.files[manifest_name(number)], number)) == []
    all_counted(cluster)


@pytest.mark.parametrize("tasks", [1, 2, 5])
def test_another_topology_goes_on_with_other_parallelism(cluster, tasks, begun):
    cluster.advance(3.0)
    saved(cluster, request())
    files = Inside(cluster).store.savepoints["/one"]
    positions = content(files)

    with begun(scaled(tasks), files, containers=2) as other:
        other.run_until(lambda: [record.timeline for record in Inside(other).store.records] == [0, 1], 30)
        assert Inside(other).store.records[-1].restore == NUMBER
        other.run_until(lambda: Inside(other).store.records[-1].committed > NUMBER, 30)
        number = Inside(other).store.records[-1].committed
        first, manifest = states(Inside(other).store, number)[0], Inside(other).store.files[manifest_name(number)]
        assert not any(name.startswith("t0/") for name in decode_manifest(manifest, number).names), "bases come next"
        assert all(there >= before for there, before in zip(first, positions, strict=True))
        all_counted(other)
        assert not any(name.startswith("t0/") for name in Inside(other).store.files), "what it began from is deleted"


def scaled(tasks):
    class Scaled(Topology):
        words = Words.spec(par=2)
        count = Count.spec(par=tasks, inputs={words: Grouping.fields("word")})

    return Scaled


def test_it_is_updated_before_it_was_ever_active(cluster, begun):
    """What it begins from is not forgotten, though the next definition does not name it."""
    cluster.advance(3.0)
    saved(cluster, request())
    files = Inside(cluster).store.savepoints["/one"]
    positions = content(files)
    with begun(scaled(2), files, containers=2, active=False) as other:
        other.advance(5.0)
        assert other.updated(other.update_request(parallelism={"count": 3})).step == "done"
        other.activate()
        other.run_until(lambda: Inside(other).store.records[-1].committed > NUMBER, 30)
        store = Inside(other).store
        first = states(store, store.records[-1].committed)[0]
        assert all(there >= before for there, before in zip(first, positions, strict=True))
        all_counted(other)


def test_it_is_a_snapshot_that_was_begun_after_it_was_asked_for(cluster):
    """And that is begun as soon as the one before is over, though nothing else asks for it."""
    cluster.advance(2.0)
    snapshots = Inside(cluster).master.coordination.snapshots
    cluster.run_until(lambda: snapshots.taking is not None)
    taking, began = snapshots.taking.number, cluster.time
    assert saved(cluster, request()).number == taking + 1
    assert cluster.time < began + 2.0, "sooner than the next one would be"


def test_while_paused_too(cluster):
    cluster.advance(3.0)
    cluster.deactivate()
    cluster.advance(5.0)
    positions = [cluster.task(f"words-{index}", object).position for index in range(2)]
    assert saved(cluster, request()).step == "done"
    assert content(Inside(cluster).store.savepoints["/one"]) == positions


@pytest.mark.parametrize("ends", [False, True])
def test_not_while_paused_tasks_have_no_state(cluster, ends):
    """An update has started them again, and they read it when the topology is activated."""
    cluster.advance(3.0)
    cluster.deactivate()
    cluster.advance(2.0)
    for tasks in (3, 2):
        began = cluster.time
        assert cluster.updated(cluster.update_request(parallelism={"count": tasks})).step == "done"
        assert cluster.time < began + 5.0, "a message timeout is longer"
        cluster.advance(2.0)
        with pytest.raises(ProtocolError, match="its tasks read their state when it is activated: activate it first"):
            asked(cluster, request(ends=ends))
    cluster.activate()
    all_counted(cluster)
    assert saved(cluster, request()).step == "done"


def test_a_topology_ends_with_its_savepoint(cluster, begun):
    cluster.advance(3.0)
    ends = request(ends=True)
    while cluster.state == "RUNNING":
        asked(cluster, ends)
        cluster.advance(0.1)
    assert (cluster.state, cluster.reason) == ("KILLED", "its savepoint is /one")
    store = Inside(cluster).store
    files = store.savepoints["/one"]
    assert content(files) == states(store, store.records[-1].committed)[0]
    with begun(Counted, files) as other:
        all_counted(other)


@pytest.mark.parametrize("ends", [False, True])
def test_a_store_that_is_full(cluster, ends):
    cluster.advance(3.0)
    Inside(cluster).store.full = True
    done = saved(cluster, request(ends=ends))
    assert done.step == "refused"
    assert done.reason.startswith("3 snapshots in a row were abandoned, the last one because of ")
    assert done.reason.endswith("no space left on device")
    Inside(cluster).store.full = False
    all_counted(cluster)
    assert (cluster.state, Inside(cluster).store.savepoints) == ("RUNNING", {})


def test_what_is_not_there_in_time_is_refused(cluster):
    copying(cluster, 9.0, 9.0)
    cluster.advance(3.0)
    done = saved(cluster, request(patience=3.0, ends=True))
    assert (done.step, done.reason) == ("refused", "the snapshot was not copied to /one within 3 s")
    all_counted(cluster)
    assert Inside(cluster).store.savepoints["/one"] == {}, "what was begun is deleted"


@pytest.mark.parametrize("ends", [False, True])
def test_a_topology_that_fails_meanwhile_has_none(cluster, ends):
    """And what is copied by then is deleted."""
    copying(cluster, 9.0, 9.0)
    cluster.advance(3.0)
    cluster.run_until(lambda: asked(cluster, request(ends=ends)).step == "copying")
    master = Inside(cluster).master
    master.fail("no route")
    done = master.savepoints.progress()
    assert (done.step, done.reason) == ("refused", "the topology is FAILED")
    cluster.advance(20.0)
    assert (cluster.state, Inside(cluster).store.savepoints["/one"]) == ("FAILED", {})


def test_refused_at_once(cluster):
    cluster.advance(3.0)
    saved(cluster, request())
    done = saved(cluster, SavepointRequest("two", "/one", 30.0))
    assert done.reason.endswith("a savepoint lies there already, which is never overwritten")
    asked(cluster, request("three"))
    with pytest.raises(ProtocolError, match="the savepoint three is under way"):
        asked(cluster, request("four"))
    with pytest.raises(ProtocolError, match="a savepoint is under way"):
        cluster.update(cluster.update_request(parallelism={"count": 3}))
    with Cluster(Counted) as tracked:
        tracked.advance(1.0)
        with pytest.raises(ProtocolError, match="in the mode ATLEAST_ONCE, which keeps no state"):
            asked(tracked, request())


@pytest.mark.parametrize("seed", range(size(6, 1000, whole=15)))
def test_whoever_dies_meanwhile(seed, begun):
    """Two savepoints, and six deaths anywhere in their course; then one with which it ends, or does not."""
    dice = random.Random(seed)
    options = {"containers": dice.randint(1, 3), "seed": seed, "config": CONFIG, "cost": {"words": 0.02}}
    with Cluster(EffectivelyOnce(Counted), **options) as cluster:
        copying(cluster)
        store = Inside(cluster).store
        cluster.advance(dice.uniform(0.5, 4.0))
        for name in ("one", "two"):
            for _ in range(3):
                asked(cluster, request(name))
                cluster.advance(dice.choice([0.05, 0.3, 1.0]) * dice.random())
                cluster.kill(dice.choice([name for name in cluster.running if name != "report"]))
            assert saved(cluster, request(name)).step == "done"
            content(store.savepoints[f"/{name}"])
        ends = request("last", ends=True)
        for _ in range(2):
            asked(cluster, ends)
            cluster.advance(dice.random())
            if not cluster.over:
                cluster.kill(dice.choice(list(cluster.running)))
        while cluster.state == "RUNNING":
            asked(cluster, ends)
            cluster.advance(0.1)
        last = content(store.savepoints["/last"])
        assert last == states(store, store.records[-1].committed)[0], "nothing comes after it"
        check(store)
    with begun(Counted, store.savepoints["/last"], containers=dice.randint(1, 3), seed=seed) as other:
        other.advance(dice.uniform(0.0, 2.0))
        other.kill(dice.choice(list(other.running)))
        all_counted(other)
    assert last <= [MOST, MOST]


# --- beginning --------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(cluster):
    """Of a savepoint."""
    cluster.advance(3.0)
    saved(cluster, request())
    return Inside(cluster).store.savepoints["/one"]


def test_a_beginning_takes_time_and_is_said(files, begun):
    with begun(Counted, files, containers=2) as other:
        copying(other, 5.0, 5.0)
        other.advance(4.0)
        master, store = Inside(other).master, Inside(other).store
        assert master.begins.endswith("is not copied yet, but for 0 of 0 bytes")
        assert master.coordination.status(other.time).waits == [master.begins]
        assert not master.execution.came_up
        assert store.records == []
        other.run_until(lambda: store.records, 5)
        assert store.records[0] == TimelineRecord(restore=NUMBER, committed=NUMBER)
        all_counted(other)
        assert master.begins == ""
        assert master.execution.came_up


def test_what_cannot_be_begun_from_fails_the_topology(files, begun):
    del files[next(name for name in files if name.endswith(".base"))]
    with begun(Counted, files) as other:
        other.run_until(lambda: other.over, 30)
        assert other.state == "FAILED"
        assert "is missing" in other.reason
        assert Inside(other).store.records == []
        assert not any(name.endswith(".manifest") for name in Inside(other).store.files)


def test_a_copy_that_takes_too_long_fails_the_topology(files, begun):
    config = {**CONFIG, "topology.stateful.checkpoint.timeout.secs": 3}
    with begun(Counted, files, config=config) as other:
        copying(other, 60.0, 60.0)
        other.kill("master")
        other.run_until(lambda: other.over, 20)
        assert other.state == "FAILED"
        assert other.reason.endswith(
            "is not copied yet, but for 0 of 0 bytes after 3 s (topology.stateful.checkpoint.timeout.secs)"
        )
        other.advance(90.0)
        assert Inside(other).store.files == {}, "the thread has given up"


def test_it_begins_once(files, begun):
    """Also where the record is lost: the store knows more than the savepoint."""
    with begun(Counted, files) as other:
        store = Inside(other).store
        other.run_until(lambda: store.records and store.records[-1].committed > NUMBER, 60)
        committed = store.records[-1].committed
        store.forget_timeline()
        other.kill("master")
        other.run_until(lambda: store.records[-1].timeline > 1, 60)
        assert store.records[-1].restore >= committed
        all_counted(other)


def test_a_master_lists_what_is_kept(cluster, tmp_path):
    config = {**CONFIG, "topology.stateful.storage": str(tmp_path)}
    with Cluster(EffectivelyOnce(Counted), config=config, cost={"words": 0.02}) as other:
        other.advance(3.0)
        saved(other, request())
        place = tmp_path / "savepoints" / "Counted-1" / "one"
        for name, content in Inside(other).store.savepoints["/one"].items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(content)
        master = Inside(other).master
        listings = master.coordination.listings
        assert listings.last is None
        listings.asked("r", master.admissions.definition, "Counted")
        found, number = listings.last, Inside(other).store.records[-1].committed
        assert (found.request, found.error, found.committed.number) == ("r", "", number)
        assert [kept.folder for kept in found.savepoints] == [str(place)]
        Inside(other).store.files.clear()
        listings.asked("r", master.admissions.definition, "Counted")
        assert listings.last is found, "who asks again gets what was found"
        listings.asked("s", master.admissions.definition, "Counted")
        assert "is missing in the store of snapshots" in listings.last.error


def test_where_record_and_store_are_lost_it_does_not_begin_again(files, begun):
    with begun(Counted, files) as other:
        store = Inside(other).store
        other.run_until(lambda: store.records and store.records[-1].committed > NUMBER, 60)
        store.forget_timeline()
        store.files.clear()
        other.kill("master")
        other.run_until(lambda: other.over, 60)
        assert other.state == "FAILED"
        assert "the store has none either" in other.reason


@pytest.mark.parametrize("seed", range(size(12, 1000, whole=20)))
def test_masters_die_while_it_begins(seed, files, begun):
    """At any step, several times; a former one's thread goes on copying."""
    dice = random.Random(seed)
    with begun(scaled(dice.randint(1, 4)), files, containers=2, seed=seed) as other:
        for _ in range(dice.randint(1, 4)):
            other.advance(dice.choice([0.01, 0.3, 1.0, 6.0]) * dice.random())
            other.kill("master" if dice.random() < 0.7 else dice.choice(list(other.running)))
        store = Inside(other).store
        all_counted(other)
        assert store.records[0].restore == NUMBER
        assert [record.timeline for record in store.records] == sorted(record.timeline for record in store.records)
        check(store)
