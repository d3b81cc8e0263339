"""Names and ids of topologies, on every state manager."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ardea.errors import Conflict, NotFound, UserError
from ardea.state import Check, paths, records, topologies
from ardea.state.records import ExecutionState, RunState, TopologyRecord


def record(topology_id, hour=0):
    return TopologyRecord(
        id=topology_id,
        name=paths.name_of(topology_id),
        location="/home/user/wc.py",
        topology_class="WordCount",
        config={"topology.debug": True},
        submitted_by="user",
        submitted_at=datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=hour),
        submitted_from="host",
        ardea_version="0.1.0",
        digest="0" * 16,
        components={"count": "1" * 16},
    )


def submit(state, topology_id, hour=0):
    scheduler = state.lease(paths.scheduler(topology_id), b"")
    topologies.register(state, record(topology_id, hour))
    return scheduler


@pytest.mark.parametrize(("active", "first"), [(True, RunState.RUNNING), (False, RunState.PAUSED)])
def test_what_is_submitted_inactive_is_paused_from_the_beginning(state, active, first):
    state.lease(paths.scheduler("wc-00000001"), b"")
    topologies.register(state, record("wc-00000001"), active=active)
    assert topologies.status(state, "wc-00000001").execution == ExecutionState(first)


def finish(state, topology_id, how=RunState.SUCCEEDED):
    path = paths.execution_state(topology_id)
    state.set(path, records.encode(ExecutionState(how)), state.get(path).version)


def test_an_id_is_the_name_and_eight_hex_digits():
    first, second = paths.new_topology_id("word-count"), paths.new_topology_id("word-count")
    assert first != second
    assert paths.name_of(first) == "word-count"
    assert len(bytes.fromhex(first.removeprefix("word-count-"))) == 4
    assert paths.new_topology_id("wc", token=lambda: "00c0ffee") == "wc-00c0ffee"


@pytest.mark.parametrize("name", ["", "a/b", "..", ".a", "a b", "a\n", "-a", "a\\b", "n" * 181, "é" * 91])
def test_a_name_that_cannot_be_a_path_is_refused(name):
    with pytest.raises(UserError, match="cannot name a topology"):
        paths.new_topology_id(name)


@pytest.mark.parametrize("name", ["wc", "Wörter_2.x", "$batch", "n" * 180])
def test_any_other_name_makes_a_path(name):
    for path in paths.every(paths.new_topology_id(name)):
        assert paths.split(path)


def test_a_submitted_topology_is_found_by_name_and_by_id(state, other):
    submit(state, "wc-00000001")
    for key in ("wc", "wc-00000001"):
        found = topologies.find(other, key)
        assert found.id == "wc-00000001"
        assert found.name == "wc"
        assert found.running
        assert found.record == record("wc-00000001")
        assert found.execution == ExecutionState(RunState.RUNNING)


@pytest.mark.parametrize("key", ["wc", "wc-00000001", "w", "not a name", "../../etc", "n" * 999])
def test_what_was_never_submitted_is_not_found(state, key):
    submit(state, "other-00000001")
    with pytest.raises(NotFound, match="no topology is called"):
        topologies.find(state, key)


def test_a_second_running_topology_of_a_name_is_refused_and_leaves_nothing(state, other):
    submit(state, "wc-00000001")
    with other.lease(paths.scheduler("wc-00000002"), b""):
        with pytest.raises(Conflict, match="named wc is running, as wc-00000001") as caught:
            topologies.register(other, record("wc-00000002"))
        assert "ardea kill wc" in caught.value.hint
    assert [t.id for t in topologies.listing(state)] == ["wc-00000001"]
    assert topologies.orphans(state) == ()
    submit(other, "wc-2-00000003")


def test_of_two_that_submit_at_once_the_later_claim_loses(state, other, monkeypatch):
    """Both look, and see the name free; the second to write it is refused."""
    scheduler = other.lease(paths.scheduler("wc-00000002"), b"")
    create = state.create

    def create_late(path, data):
        topologies.register(other, record("wc-00000002"))
        return create(path, data)

    monkeypatch.setattr(state, "create", create_late)
    with pytest.raises(Conflict):
        submit(state, "wc-00000001")
    assert topologies.find(state, "wc").id == "wc-00000002"
    assert [t.id for t in topologies.listing(state)] == ["wc-00000002"]
    scheduler.release()


@pytest.mark.parametrize("end", ["final", "scheduler gone", "removed", "never registered"])
def test_leftovers_never_block_a_submit(state, end):
    scheduler = submit(state, "wc-00000001")
    if end == "final":
        finish(state, "wc-00000001")
    elif end == "scheduler gone":
        scheduler.release()
    elif end == "removed":
        state.delete(paths.topology("wc-00000001"))
    else:
        scheduler.release()
        topologies.remove(state, "wc-00000001")
        state.create(paths.name("wc"), b"wc-00000001")
    submit(state, "wc-00000002", hour=1)
    assert topologies.find(state, "wc").id == "wc-00000002"


def test_the_running_topology_comes_before_a_newer_one_and_else_the_newest(state):
    submit(state, "wc-00000001", hour=5)
    finish(state, "wc-00000001", RunState.FAILED)
    running = submit(state, "wc-00000002", hour=3)
    assert [t.id for t in topologies.listing(state, "wc")] == ["wc-00000001", "wc-00000002"]
    assert topologies.find(state, "wc").id == "wc-00000002"
    running.release()
    assert topologies.find(state, "wc").id == "wc-00000001"
    assert topologies.listing(state, "other") == []


def test_a_final_topology_does_not_run_though_its_scheduler_is_there(state):
    submit(state, "wc-00000001")
    finish(state, "wc-00000001", RunState.KILLED)
    assert not topologies.find(state, "wc").running


def test_remove_leaves_nothing_and_can_be_repeated(state):
    scheduler = submit(state, "wc-00000001")
    state.create(paths.term("wc-00000001"), b"")
    scheduler.release()
    for _ in range(2):
        topologies.remove(state, "wc-00000001")
        assert not any(state.exists(path) for path in paths.every("wc-00000001"))
        assert not state.exists(paths.name("wc"))


def test_remove_leaves_the_name_to_its_next_holder(state):
    submit(state, "wc-00000001").release()
    submit(state, "wc-00000002")
    topologies.remove(state, "wc-00000001")
    assert state.get(paths.name("wc")).data == b"wc-00000002"


def test_remove_under_a_failed_check_removes_nothing(state):
    submit(state, "wc-00000001")
    state.create(paths.term("wc-00000001"), b"")
    with pytest.raises(Conflict):
        topologies.remove(state, "wc-00000001", checks=(Check(paths.term("wc-00000001"), 2),))
    assert topologies.find(state, "wc").running


def test_what_is_left_without_a_root_is_an_orphan_unless_somebody_is_submitting(state):
    state.create(paths.term("wc-00000001"), b"")
    submitting = state.lease(paths.scheduler("wc-00000002"), b"")
    submit(state, "other-00000003")
    assert topologies.orphans(state) == ("wc-00000001",)
    submitting.release()
    assert topologies.orphans(state) == ("wc-00000001",)
    topologies.remove(state, "wc-00000001")
    assert topologies.orphans(state) == ()


def test_a_record_that_cannot_be_read_hides_no_other_and_can_be_removed(state):
    submit(state, "wc-00000001")
    path = paths.topology("wc-00000001")
    state.set(path, b"{}", 1)
    submit(state, "other-00000002")
    assert {t.id for t in topologies.listing(state)} == {"wc-00000001", "other-00000002"}
    broken = topologies.find(state, "wc")
    assert broken.record is None
    assert path in str(broken.problem)
    topologies.remove(state, "wc-00000001")
    assert [t.id for t in topologies.listing(state)] == ["other-00000002"]
