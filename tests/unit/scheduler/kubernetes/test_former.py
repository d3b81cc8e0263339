"""A root that is deleted, and made again from the same file: what ends, what begins anew, what goes on."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from ardea.scheduler.kubernetes import manifest_file, objects
from ardea.scheduler.kubernetes.decisions import STUCK_AFTER
from ardea.scheduler.kubernetes.former import Former, former
from ardea.scheduler.kubernetes.keeper import LOOK_EVERY, ROOTLESS_FOR, Keeper
from ardea.scheduler.kubernetes.root_object import RootObject
from ardea.state import open_state, paths, records
from ardea.state.records import ExecutionState, RunState, SchedulerLocation
from ardea.state.term import Term

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROOT = {"metadata": {"name": "sums", "uid": "root", "creationTimestamp": "2026-01-01T11:59:30Z"}}
JOBS = [{"metadata": {"name": f"sums-{number}", "uid": f"job-{number}"}} for number in (1, 2)]


def pod(job="job-1", *, made=10, deleted=None, phase="Running"):
    """``made`` so many seconds after the root; to be gone ``deleted`` seconds from now."""
    metadata = {
        "name": "p",
        "uid": "p",
        "creationTimestamp": stamp(datetime(2026, 1, 1, 11, 59, 30, tzinfo=UTC) + timedelta(seconds=made)),
        "ownerReferences": [{"uid": job}],
    }
    if deleted is not None:
        metadata["deletionTimestamp"] = stamp(NOW + timedelta(seconds=deleted))
    return {"kind": "Pod", "metadata": metadata, "status": {"phase": phase}}


def stamp(time):
    return time.isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize(
    ("pods", "left"),
    [
        ([], Former.GONE),
        ([pod(), pod("job-2", made=0)], Former.GONE),
        ([pod("gone", made=-60, deleted=20)], Former.ENDS),
        ([pod("gone", made=-60)], Former.ENDS),
        ([pod("gone", made=-60, deleted=-STUCK_AFTER)], Former.ENDS),
        ([pod("gone", made=-60, deleted=-STUCK_AFTER - 1)], Former.GONE),
        ([pod("gone", made=-60, phase="Succeeded"), pod("gone", made=-60, phase="Failed")], Former.GONE),
        ([pod("gone", made=-60, deleted=20), pod(made=-60)], Former.RUNS),
        ([pod(made=-60, phase="Succeeded"), pod()], Former.GONE),
    ],
    ids=["nothing", "own", "ends", "about to end", "late", "on a lost node", "over", "going on", "over, Job kept"],
)
def test_what_is_left_of_a_former_life(pods, left):
    assert former(ROOT, JOBS, pods, NOW) is left


class World:
    """A topology that kubectl has made of a file, and made again; its state is in files."""

    def __init__(self, cluster, prepared, state):
        made = prepared()
        definition = msgspec.structs.replace(made.inputs.definition, state=str(state))
        inputs = msgspec.structs.replace(made.inputs, definition=definition)
        self.prepared = dataclasses.replace(made, inputs=inputs)
        self.cluster, self.definition, self.topology = cluster, definition, definition.topology
        self.meanwhile, self.now = [], NOW
        self.manifests = manifest_file.preview(self.prepared, None, include_secrets=True).manifests

    def apply(self):
        for manifest in self.manifests:
            if self.cluster.find(manifest["kind"], manifest["metadata"]["name"]) is None:
                self.cluster.apply(manifest)

    def delete(self):
        for manifest in self.manifests:
            self.cluster.delete(manifest["kind"], manifest["metadata"]["name"])

    def master(self):
        """One more process of a master, not registered yet."""
        return RootObject(self.cluster, self.definition, pause=self.pause, now=lambda: self.now)

    def registered(self):
        master = self.master()
        master.register(master.root())
        return master

    def pause(self, seconds):
        self.now += timedelta(seconds=seconds)
        if self.meanwhile:
            self.meanwhile.pop(0)()

    def stays(self, **of_the_pod):
        """A pod of the former life, on its way out."""
        made = pod("gone", made=-60, **of_the_pod)
        made["metadata"]["labels"] = {"ardea.dev/topology-id": self.topology}
        self.cluster.apply(made)

    def jobs(self):
        return [name for kind, name in self.cluster.objects if kind == "Job"]

    def state(self):
        return open_state(self.definition.state)

    def execution(self):
        path = paths.execution_state(self.topology)
        with self.state() as state:
            return records.decode(state.get(path).data, ExecutionState, path)

    def location(self):
        path = paths.scheduler(self.topology)
        with self.state() as state:
            return records.decode(state.get(path).data, SchedulerLocation, path)

    def known(self):
        with self.state() as state:
            return [path for path in paths.every(self.topology) if state.exists(path)]

    def acts(self):
        """What an acting master writes."""
        with self.state() as state:
            term = Term.take(state, self.topology, "a test")
            for path in (paths.physical_plan, paths.former_plan, paths.incarnations):
                if not state.exists(path(self.topology)):
                    state.create(path(self.topology), b"of this life")
            path = paths.execution_state(self.topology)
            state.set(path, records.encode(ExecutionState(RunState.FAILED, "a row")), state.get(path).version)
            return term.number


@pytest.fixture
def world(cluster, prepared, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    world = World(cluster, prepared, tmp_path / "state")
    world.apply()
    return world


def test_masters_whose_root_is_deleted_end_the_jobs_and_forget_the_state(world, cluster):
    master = world.registered()
    cluster.delete("ConfigMap", "sums")
    assert len(world.jobs()) == 4
    assert (master.wanted(), master.conclude().state) == (False, "KILLED")
    assert (world.jobs(), world.known()) == ([], [])


def test_the_same_file_applied_again_begins_anew_where_nobody_could_clean_up(world):
    world.registered()
    term, former_root = world.acts(), world.location().root
    world.delete()
    world.apply()
    master = world.registered()
    assert world.location().root not in ("", former_root)
    assert world.execution() == ExecutionState(RunState.RUNNING)
    left = {paths.topology, paths.execution_state, paths.scheduler, paths.term}
    assert set(world.known()) == {path(world.topology) for path in left}
    with world.state() as state:
        assert state.get(paths.term(world.topology)).version == term, "a former master that wakes up is fenced"
    assert master.conclude() is None


def test_it_does_so_once_its_former_pods_are_gone(world, cluster):
    world.registered()
    world.acts()
    world.delete()
    world.stays(deleted=20)
    world.apply()
    waited = []

    def looks():
        waited.append(world.execution().state)
        if len(waited) == 3:
            cluster.delete("Pod", "p")

    world.meanwhile = [looks] * 10
    world.registered()
    assert waited == [RunState.FAILED] * 3
    assert world.execution().state is RunState.RUNNING


def test_pods_on_a_lost_node_are_not_waited_for_for_ever(world):
    world.registered()
    world.delete()
    world.stays(deleted=20)
    world.apply()
    world.registered()
    assert 20 + STUCK_AFTER < (world.now - NOW).total_seconds() < 20 + STUCK_AFTER + 2


def test_two_masters_begin_anew_once(world, cluster, monkeypatch):
    """The second one has looked before the first one wrote."""
    world.registered()
    world.acts()
    world.delete()
    world.apply()
    first, second = world.master(), world.master()
    beginning = second._beginning

    def late(state, root):
        writes = beginning(state, root)
        monkeypatch.setattr(second, "_beginning", beginning)
        first.register(first.root())
        world.acts()
        return writes

    monkeypatch.setattr(second, "_beginning", late)
    second.register(second.root())
    assert world.execution().state is RunState.FAILED, "what the first one has begun goes on"


def test_a_root_that_is_made_again_beside_running_jobs_goes_on(world, cluster):
    world.registered()
    world.acts()
    (job,) = (job for job in cluster.list("Job") if job["metadata"]["name"] == "sums-container-1")
    cluster.delete("ConfigMap", "sums")
    world.apply()
    running = pod(job["metadata"]["uid"], made=-9999)
    running["metadata"]["creationTimestamp"] = "2025-12-31T00:00:00Z"
    running["metadata"]["labels"] = {"ardea.dev/topology-id": world.topology}
    cluster.apply(running)
    before = world.known()
    master = world.registered()
    assert (world.known(), world.execution().state) == (before, RunState.FAILED)
    cluster.delete("ConfigMap", "sums")
    master.conclude()
    assert world.known() == [], "it is this topology's, whichever root it was registered under"


def test_a_master_of_the_former_life_forgets_nothing_of_the_next(world, cluster):
    """It has seen that the root is gone, and the next one has been registered meanwhile."""
    former_master = world.registered()
    world.delete()
    world.apply()
    world.registered()
    hidden = cluster.objects.pop(("ConfigMap", "sums"))
    former_master.conclude()
    cluster.objects["ConfigMap", "sums"] = hidden
    assert len(world.known()) == 3


def test_jobs_of_a_file_that_is_applied_again_meanwhile_are_left(world, cluster, monkeypatch):
    """The master has found no root; before it looks for Jobs, there are both."""
    master = world.registered()
    world.delete()
    list_ = cluster.list

    def late(kind, selector=""):
        world.apply()
        return list_(kind, selector)

    monkeypatch.setattr(cluster, "list", late)
    master.conclude()
    assert len(world.jobs()) == 4


class Client:
    """Nobody is asked for anything while there is no root."""


@pytest.fixture
def keeper(world):
    with world.state() as state:
        yield Keeper(
            world.cluster, world.prepared.inputs, state, Client(), lambda: True, "tcp://x:1", now=lambda: world.now
        )


def after(world, keeper, seconds):
    for _ in range(round(seconds / LOOK_EVERY)):
        keeper.round()
        world.pause(LOOK_EVERY)


def test_an_acting_master_whose_root_is_gone_ends_the_jobs_after_a_while(world, cluster, keeper):
    """At once would be too early: kubectl, which is at work, fails where something is gone already."""
    assert ROOTLESS_FOR > 2 * LOOK_EVERY
    cluster.delete("ConfigMap", "sums")
    after(world, keeper, ROOTLESS_FOR)
    assert len(world.jobs()) == 4
    after(world, keeper, LOOK_EVERY)
    assert world.jobs() == []
    assert [name for _, name in cluster.objects if "container" in name or "master" in name] == []


def test_a_root_that_is_back_in_time_is_as_if_it_had_never_gone(world, cluster, keeper, monkeypatch):
    cluster.delete("ConfigMap", "sums")
    after(world, keeper, ROOTLESS_FOR)
    world.apply()
    monkeypatch.setattr(keeper, "_ask", lambda: None)
    keeper.round()
    cluster.delete("ConfigMap", "sums")
    after(world, keeper, ROOTLESS_FOR)
    assert len(world.jobs()) == 4


def test_so_it_does_when_the_name_is_anothers(world, cluster, keeper):
    record = objects.record_of(cluster.find("ConfigMap", "sums"))
    other = msgspec.structs.replace(record, id="Sums-other")
    cluster.objects["ConfigMap", "sums"]["data"][objects.RECORD] = msgspec.json.encode(other).decode()
    after(world, keeper, ROOTLESS_FOR + LOOK_EVERY)
    assert world.jobs() == []
