"""A master whose state manager has lost what it held hears of it from the managers."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ardea import Topology
from ardea.plan.shape import shape_of
from ardea.protocol.incarnations import applicant
from ardea.snapshots.folder import Folder
from ardea.state import FileState, Term, paths, records
from ardea.state.records import ExecutionState, Incarnations, RunState
from ardea.testing import CollectBolt, RowsSpout
from ardea.topology_master.admissions import LARGEST_ADMISSION
from ardea.topology_master.forgotten import MOST, ForgottenError, Memory
from ardea.topology_master.state_store import StateStore
from ardea.topology_master.store import Place
from tests.unit.topology_master.test_addresses import Meeting

DEFINITION = Meeting().definition
RUNNING, PAUSED = ExecutionState(RunState.RUNNING), ExecutionState(RunState.PAUSED)


class KeepsSomething(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec()
    count = CollectBolt.spec(inputs=[words], config={"topology.state.access": True})


def memory(**more):
    return Memory(**{"container": 1, "term": 7, "epoch": 1, "paused": False, "ending": False, **more})


def test_what_runs_has_come_up_before():
    assert memory().correct(RUNNING, DEFINITION) == ExecutionState(RunState.RUNNING, came_up=True)
    assert memory(paused=True).correct(RUNNING, DEFINITION) == ExecutionState(RunState.PAUSED, came_up=True)
    assert memory(paused=True).correct(PAUSED, DEFINITION) == ExecutionState(RunState.PAUSED, came_up=True)


def test_what_was_submitted_paused_and_is_active_since_stays_active():
    """A manager without a plan does not know."""
    assert memory().correct(PAUSED, DEFINITION) == ExecutionState(RunState.RUNNING, came_up=True)
    assert memory(epoch=0).correct(PAUSED, DEFINITION) == ExecutionState(RunState.PAUSED, came_up=True)


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.FAILED, RunState.KILLED])
def test_a_final_state_stays(state):
    assert memory(epoch=5, ending=True).correct(ExecutionState(state, "why"), DEFINITION) == ExecutionState(
        state, "why"
    )


def test_what_nobody_knows_any_more_fails_the_topology():
    ended = memory(ending=True).correct(RUNNING, DEFINITION)
    assert (ended.state, ended.reason) == (
        RunState.FAILED,
        "the state manager has lost what it held, and the end of the topology was under way",
    )
    updated = memory(epoch=3).correct(RUNNING, replace(DEFINITION, epoch=2))
    assert (updated.state, updated.reason) == (
        RunState.FAILED,
        "the state manager has lost what it held: its plan is of epoch 2, and container 1 works by 3",
    )
    shape = shape_of(KeepsSomething.plan())
    kept = memory().correct(RUNNING, replace(DEFINITION, shape=shape))
    assert (kept.state, kept.reason) == (
        RunState.FAILED,
        "the state manager has lost what it held, and with it what count kept there",
    )


def test_an_end_that_is_stored_goes_on():
    ending = ExecutionState(RunState.ENDING)
    assert memory(ending=True).correct(ending, DEFINITION) == ExecutionState(RunState.ENDING, came_up=True)


def test_a_term_that_there_was_ends_a_master_of_the_same_one():
    meeting = Meeting()
    meeting.begins(3)
    with pytest.raises(ForgottenError) as forgotten:
        meeting.says_hello(1, "a", term=3, paused=True)
    assert forgotten.value.memory == Memory(container=1, term=3, epoch=0, paused=True, ending=False)


def test_a_plan_of_any_master_ends_one_that_has_found_nothing_whatever_its_term():
    meeting = Meeting()
    meeting.begins(3)
    with pytest.raises(ForgottenError):
        meeting.says_hello(1, "a", term=2)
    meeting.store.execution(memory(term=2).correct(meeting.store.held, DEFINITION))
    meeting.begins(4)
    meeting.says_hello(1, "a", term=2)


def test_a_term_that_is_too_far_away_is_not_begun_again():
    far = memory(term=MOST + 1)
    assert far.above == MOST
    assert far.correct(RUNNING, DEFINITION) == ExecutionState(
        RunState.FAILED,
        "the state manager has lost what it held: container 1 has heard of term 2,001, "
        "and none above 2,000 is begun again",
    )


def test_a_hello_of_another_topology_or_with_an_admission_out_of_all_bounds_changes_nothing():
    meeting = Meeting()
    meeting.says_hello(1, "a", known={1: LARGEST_ADMISSION + 1})
    meeting.says_hello(2, "b", term=1, topology="others")
    meeting.registers(2, "b", 12)
    meeting.registers(1, "a", 11)
    assert meeting.store.admissions() == {1: 1, 2: 1}


@pytest.mark.parametrize("remembered", [1, 3])
def test_a_newcomer_gets_an_admission_that_nobody_had_and_who_has_one_keeps_it(remembered):
    """Also where it registers first: its admission waits for all, and so for those who remember."""
    meeting = Meeting()
    meeting.store.execution(replace(RUNNING, came_up=True))
    meeting.begins(5)
    meeting.registers(2, "c", 22)
    assert meeting.store.admissions() == {}
    meeting.registers(1, "a", 11, term=4, admission=4, known={1: 4, 2: remembered})
    assert meeting.store.admissions() == {1: 4, 2: remembered + 1}
    assert meeting.master.admissions.containers[2].admission == remembered + 1


def test_what_a_former_master_has_stored_is_no_ignorance():
    """A manager that died between its admission and the plan is the holder still."""
    meeting = Meeting()
    meeting.registers(1, "a", 11)
    meeting.registers(2, "c", 22)
    meeting.begins(2)
    meeting.registers(2, "c", 22)
    meeting.registers(1, "a", 11, term=1, admission=1, known={1: 1, 2: 1})
    assert meeting.store.admissions() == {1: 1, 2: 1}


def test_who_was_replaced_before_the_loss_stays_out():
    meeting = Meeting()
    meeting.store.execution(replace(RUNNING, came_up=True))
    meeting.begins(5)
    meeting.registers(1, "a", 11, term=4, admission=1, known={1: 1, 2: 3})
    meeting.says_hello(2, "b", admission=2, known={1: 1, 2: 2})
    assert meeting.refused == [(applicant("b", 1), "REPLACED")]
    meeting.registers(2, "c", 22, admission=3, known={1: 1, 2: 3})
    assert meeting.store.admissions() == {1: 1, 2: 3}


@pytest.fixture
def store(tmp_path):
    with FileState(tmp_path) as state:
        yield StateStore(state, "words-1", Term.take(state, "words-1", "me"), lambda: Folder(tmp_path / "snapshots"))


def test_stored_admissions_are_never_below_what_is_remembered(store, tmp_path):
    assert store.admit([Place(1, "a", "h", 1)]) == [1]
    assert store.admit([Place(1, "a", "h", 1, remembered=1)]) == [1]
    assert store.admit([Place(1, "b", "h", 1, remembered=1)]) == [2]
    assert store.admit([Place(1, "b", "h", 2, remembered=5), Place(2, "c", "h", 1, remembered=3, had=3)]) == [6, 3]
    with FileState(tmp_path) as state:
        path = paths.incarnations("words-1")
        held = state.get(path)
        stored = records.decode(held.data, Incarnations, path).containers
    assert {number: (each.holder, each.admission, each.port) for number, each in stored.items()} == {
        1: ("b", 6, 2),
        2: ("c", 3, 1),
    }
    assert held.version == 3, "one write for all, and none where nothing is new"


def test_a_plan_that_is_lost_is_stored_under_its_epoch(store, tmp_path):
    definition = replace(DEFINITION, epoch=4)
    assert store.plans(definition) == (definition, None)
    with FileState(tmp_path) as state:
        assert state.get(paths.physical_plan("words-1")).version == 4
