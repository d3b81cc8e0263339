"""From the first master's registration to the last trace, whoever of the masters does it, and how often."""

from __future__ import annotations

import msgspec
import pytest

from ardea.errors import ClusterError
from ardea.plan.definition import Definition
from ardea.scheduler.kubernetes import objects
from ardea.scheduler.kubernetes.kill import Killing
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.scheduler.kubernetes.root_object import JOBS_END_WITHIN, VERDICT, RootObject
from ardea.scheduler.kubernetes.submission import submit
from ardea.scheduler.kubernetes.topologies import find
from ardea.state import open_state, paths, records
from ardea.state.records import ExecutionState, RunState
from ardea.state.topologies import remove


@pytest.fixture
def root_object(cluster, prepared, tmp_path):
    return registered(cluster, prepared(), tmp_path)


def registered(cluster, made, tmp_path):
    definition = msgspec.structs.replace(made.inputs.definition, state=str(tmp_path / "state"))
    made = msgspec_replace(made, definition)
    submit(cluster, made)
    now = [0.0]
    pause = lambda seconds: now.__setitem__(0, now[0] + seconds)  # noqa: E731
    made_root_object = RootObject(cluster, definition, clock=lambda: now[0], pause=pause)
    made_root_object.register(made_root_object.root())
    return made_root_object


def msgspec_replace(made, definition):
    import dataclasses

    return dataclasses.replace(made, inputs=msgspec.structs.replace(made.inputs, definition=definition))


def topology(cluster):
    return objects.record_of(cluster.find("ConfigMap", "sums")).id


def end(cluster, tmp_path, state, reason=""):
    with open_state(str(tmp_path / "state")) as manager:
        path = paths.execution_state(topology(cluster))
        manager.set(path, records.encode(ExecutionState(state, reason)), manager.get(path).version)


def known(cluster, tmp_path):
    with open_state(str(tmp_path / "state")) as manager:
        return [path for path in paths.every(topology(cluster)) if manager.exists(path)]


def finish_containers(cluster):
    for name in ("sums-container-1", "sums-container-2"):
        cluster.patch("Job", name, {"status": {"conditions": [{"type": "Complete", "status": "True"}]}})


@pytest.mark.parametrize(("active", "state"), [(True, RunState.RUNNING), (False, RunState.PAUSED)])
def test_what_is_submitted_inactive_is_known_as_such_from_the_beginning(cluster, prepared, tmp_path, active, state):
    """A master that dies as soon as it has registered the topology leaves that to the next one."""
    made = prepared()
    definition = msgspec.structs.replace(made.inputs.definition, state=str(tmp_path / "state"), active=active)
    submit(cluster, msgspec_replace(made, definition))
    root_object = RootObject(cluster, definition)
    root_object.register(root_object.root())
    with open_state(definition.state) as manager:
        path = paths.execution_state(definition.topology)
        assert records.decode(manager.get(path).data, ExecutionState, path) == ExecutionState(state)


def test_two_masters_register_once(cluster, root_object, tmp_path):
    root_object.register(root_object.root())
    assert len(known(cluster, tmp_path)) == 4


def test_a_state_that_has_lost_it_is_told_again_as_long_as_it_is_wanted(cluster, root_object, tmp_path):
    with open_state(str(tmp_path / "state")) as manager:
        remove(manager, topology(cluster))
    assert known(cluster, tmp_path) == []
    assert root_object.upheld()
    assert len(known(cluster, tmp_path)) == 4
    end(cluster, tmp_path, RunState.FAILED, "a row cannot be read")
    finish_containers(cluster)
    root_object.conclude()
    assert not root_object.upheld()
    assert known(cluster, tmp_path) == []


def test_a_state_that_has_lost_it_is_told_the_plan_of_the_last_update(cluster, root_object, tmp_path):
    """Masters' pods outlive an update: what was mounted in them is the plan that they began with."""
    root = cluster.objects["ConfigMap", "sums"]
    inputs = ManifestInputs.read(root)
    updated = msgspec.structs.replace(inputs.definition, epoch=2)
    root.update(objects.content(msgspec.structs.replace(inputs, definition=updated), objects.record_of(root)))
    with open_state(str(tmp_path / "state")) as manager:
        remove(manager, updated.topology)
        assert root_object.upheld()
        path = paths.physical_plan(updated.topology)
        assert Definition.unpacked(manager.get(path).data, path) == updated
        assert manager.get(path).version == 2


def test_a_topology_that_takes_the_name_meanwhile_hears_nothing_of_its_predecessors_end(
    cluster, root_object, prepared, tmp_path, monkeypatch
):
    """The first word of the end makes room for the name; the last one comes when all containers have heard of it."""
    end(cluster, tmp_path, RunState.FAILED, "no water")
    former, list_ = topology(cluster), cluster.list

    def taken_meanwhile(kind, selector=""):
        if kind == "Job" and monkeypatch.undo() is None:
            submit(cluster, prepared())
        return list_(kind, selector)

    monkeypatch.setattr(cluster, "list", taken_meanwhile)
    assert root_object.conclude().removed
    root = cluster.find("ConfigMap", "sums")
    assert objects.record_of(root).id != former
    assert objects.status_of(root) is None
    assert all("status" not in job for job in cluster.list("Job"))
    with open_state(str(tmp_path / "state")) as manager:
        assert not manager.exists(paths.topology(former))


def test_there_is_no_verdict_before_the_end(cluster, root_object):
    assert root_object.conclude() is None
    assert root_object.wanted()
    assert objects.status_of(cluster.find("ConfigMap", "sums")) is None


def test_a_failure_says_why_in_the_root_and_in_the_jobs_and_is_forgotten(cluster, root_object, tmp_path):
    end(cluster, tmp_path, RunState.FAILED, "a row cannot be read")
    finish_containers(cluster)
    for _ in range(2):
        verdict = root_object.conclude()
        assert (verdict.state, verdict.reason, verdict.removed) == ("FAILED", "a row cannot be read", True)
    for name in ("sums-master-1", "sums-master-2"):
        (condition,) = cluster.find("Job", name)["status"]["conditions"]
        assert (condition["type"], condition["message"]) == (VERDICT, "a row cannot be read")
    assert known(cluster, tmp_path) == []
    assert not root_object.wanted()


def test_containers_hear_of_the_end_before_the_state_is_gone(cluster, root_object, tmp_path):
    end(cluster, tmp_path, RunState.SUCCEEDED)
    looked = []
    root_object._pause = lambda _: (looked.append(len(known(cluster, tmp_path))), finish_containers(cluster))
    root_object.conclude()
    assert looked == [4]
    assert known(cluster, tmp_path) == []


def owners(cluster):
    return {
        (each["kind"], each["name"], each["uid"])
        for each in cluster.find("ConfigMap", "sums")["metadata"].get("ownerReferences", ())
    }


def masters(cluster):
    return [cluster.find("Job", f"sums-master-{number}") for number in (1, 2)]


@pytest.fixture
def configured(cluster, root_object):
    """Writes another configuration into the root, as an update does."""

    def write(**config):
        root = cluster.objects["ConfigMap", "sums"]
        inputs = ManifestInputs.read(root)
        shape = inputs.definition.shape
        shape = msgspec.structs.replace(shape, config={**shape.config, **config})
        definition = msgspec.structs.replace(inputs.definition, shape=shape)
        root.update(objects.content(msgspec.structs.replace(inputs, definition=definition), objects.record_of(root)))

    return write


@pytest.mark.parametrize(
    ("said", "seconds"),
    [({}, 604_800), ({"heron.kubernetes.ttl.secs": 2.5}, 3), ({"heron.kubernetes.ttl.secs": 1e12}, 2**31 - 1)],
)
def test_after_the_end_the_root_belongs_to_masters_that_go_after_a_time(
    cluster, root_object, tmp_path, configured, said, seconds
):
    configured(**said)
    assert root_object.conclude() is None
    assert owners(cluster) == set(), "a Job may still be made anew, and would take the root along"
    end(cluster, tmp_path, RunState.FAILED, "no water")
    finish_containers(cluster)
    for _ in range(2):
        root_object.conclude()
        assert [job["spec"]["ttlSecondsAfterFinished"] for job in masters(cluster)] == [seconds] * 2
        assert owners(cluster) == {("Job", job["metadata"]["name"], job["metadata"]["uid"]) for job in masters(cluster)}
    for reference in cluster.find("ConfigMap", "sums")["metadata"]["ownerReferences"]:
        assert not {"controller", "blockOwnerDeletion"} & reference.keys(), "kill deletes the root before its owners"


def test_what_is_to_stay_for_ever_stays(cluster, root_object, tmp_path, configured):
    configured(**{"heron.kubernetes.ttl.secs": None})
    end(cluster, tmp_path, RunState.SUCCEEDED)
    finish_containers(cluster)
    assert root_object.conclude().removed
    assert owners(cluster) == set()
    assert not any("ttlSecondsAfterFinished" in job["spec"] for job in masters(cluster))


def test_where_nobody_may_own_the_root_the_end_is_told_all_the_same(
    cluster, root_object, tmp_path, monkeypatch, caplog
):
    patch = cluster.patch

    def refused(kind, name, change, subresource=""):
        if "ownerReferences" in change.get("metadata", {}):
            raise ClusterError("cannot change ConfigMap sums: you may not delete it")
        return patch(kind, name, change, subresource)

    monkeypatch.setattr(cluster, "patch", refused)
    end(cluster, tmp_path, RunState.SUCCEEDED)
    finish_containers(cluster)
    assert root_object.conclude().state == "SUCCEEDED"
    assert "what is left of the topology stays until it is killed" in caplog.text
    assert all(job["spec"]["ttlSecondsAfterFinished"] for job in masters(cluster))


def test_containers_that_never_hear_of_the_end_go(cluster, root_object, tmp_path):
    end(cluster, tmp_path, RunState.SUCCEEDED)
    assert root_object.conclude().removed
    assert root_object._clock() >= JOBS_END_WITHIN
    assert [name for kind, name in cluster.objects if kind == "Job"] == ["sums-master-1", "sums-master-2"]


def test_a_kill_waits_for_no_container(cluster, root_object, tmp_path):
    cluster.patch("ConfigMap", "sums", {"metadata": {"annotations": {objects.KILL: "5"}}})
    end(cluster, tmp_path, RunState.KILLED)
    assert root_object.conclude().removed
    assert root_object._clock() == 0.0
    assert known(cluster, tmp_path) == []


@pytest.fixture
def remembering(cluster, prepared, tmp_path):
    """A topology with snapshots."""
    once = {"topology.reliability.mode": "EFFECTIVELY_ONCE", "topology.stateful.storage": str(tmp_path / "store")}
    made = prepared(once)
    root_object = registered(cluster, made, tmp_path)
    (tmp_path / "store" / topology(cluster) / "t1").mkdir(parents=True)
    (tmp_path / "store" / topology(cluster) / "t1" / "1.base").write_text("state")
    (tmp_path / "store" / "other").mkdir()
    return root_object


@pytest.mark.parametrize("state", [RunState.KILLED, RunState.SUCCEEDED])
def test_what_it_remembered_goes_when_nobody_writes_any_more(cluster, remembering, tmp_path, state):
    if state is RunState.KILLED:
        cluster.patch("ConfigMap", "sums", {"metadata": {"annotations": {objects.KILL: "5"}}})
    end(cluster, tmp_path, state)
    assert (remembering.conclude().removed, remembering.conclude().snapshots) == (True, "")
    assert remembering._clock() >= JOBS_END_WITHIN, "its containers had not ended"
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["other"]


def test_what_a_failed_one_remembered_stays(cluster, remembering, tmp_path):
    end(cluster, tmp_path, RunState.FAILED, "no words")
    place = tmp_path / "store" / topology(cluster)
    assert remembering.conclude().snapshots == str(place)
    assert (place / "t1" / "1.base").exists()
    said = []
    Killing(cluster, find(cluster, "Sums"), said.append, clock=remembering._clock, pause=remembering._pause).kill(0.0)
    assert said[-1].endswith(f": its snapshots stay in {place}; no master of it has deleted them")
    assert (place / "t1" / "1.base").exists()


def test_a_store_that_cannot_be_removed_is_named(cluster, remembering, tmp_path, monkeypatch, caplog):
    def refuse(self):
        raise PermissionError("it is not yours")

    monkeypatch.setattr("ardea.snapshots.folder.Folder.remove", refuse)
    finish_containers(cluster)
    end(cluster, tmp_path, RunState.SUCCEEDED)
    place = str(tmp_path / "store" / topology(cluster))
    assert remembering.conclude().snapshots == place
    assert f"the snapshots in {place} stay: it is not yours" in caplog.text
    assert known(cluster, tmp_path) == []


def test_another_topology_of_the_name_is_none_of_its_business(cluster, root_object):
    root = cluster.objects["ConfigMap", "sums"]
    record = objects.record_of(root)
    other = msgspec.structs.replace(record, id="Sums-other")
    root["data"][objects.RECORD] = msgspec.json.encode(other).decode()
    assert not root_object.wanted()
    assert root_object.conclude().state == "KILLED"
    assert objects.status_of(root) is None
