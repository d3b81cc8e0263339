"""What a new master makes of losses that it did not see itself."""

from __future__ import annotations

import pytest

from ardea import Topology
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.rounds import Rounds
from ardea.protocol.wire_pb2 import ACTIVE, DONE, ENDED, RESTING, TaskReport
from ardea.scheduler.packing import packing_for
from ardea.state import records
from ardea.state.records import EndFacts, ExecutionState, RunState
from ardea.testing import CollectBolt, RowsSpout
from ardea.topology_master.ending import Ending


class Chain(Topology):
    spout = RowsSpout.of(["word"], [["a"]]).spec()
    count = RowsSpout.of(["word"], [["b"]]).spec()
    sink = CollectBolt.spec(inputs=[spout, count])
    last = CollectBolt.spec(inputs=[spout])


@pytest.fixture
def plan():
    logical = Chain.plan({"topology.stmgrs": 2})
    return PhysicalPlan.of(logical, packing_for(logical.config).pack(logical), 1)


def report_of(plan, name, life=1, state=ENDED, version=1):
    (task,) = plan.component_tasks[name]
    return TaskReport(task=task, life=life, state=state, version=version)


def former(plan, *ended):
    """The facts that a master leaves which heard all, and of these that they had ended."""
    ending = Ending(plan, EndFacts())
    for name in plan.component_tasks:
        ending.reported(report_of(plan, name, state=RESTING))
    for container in plan.containers:
        ending.manager_met(container, 1)
    ending.declared()
    ending.unsaved = False
    for name in ended:
        ending.reported(report_of(plan, name, version=2))
    assert ending.unsaved == bool(ended)
    execution = ExecutionState(RunState.ENDING, end=ending.facts(RunState.ENDING, None))
    return records.decode(records.encode(execution), ExecutionState, "x").end


def successor(plan, facts):
    ending = Ending(plan, facts)
    ending.declared()
    return ending


def test_a_bolt_that_had_ended_and_died_with_the_master_did_no_harm(plan):
    ending = successor(plan, former(plan, "sink"))
    ending.reported(report_of(plan, "sink", life=2, state=ACTIVE))
    assert not ending.failure


def test_where_all_go_back_nobody_who_dies_fails_the_topology(plan):
    """A task, or a manager with what it holds."""
    ending = Ending(plan, former(plan, "last"), goes_back=True)
    ending.declared()
    ending.reported(report_of(plan, "sink", life=2))
    for container in plan.containers:
        ending.manager_met(container, 2)
    assert not ending.failure


def test_one_that_had_not_ended_did_whatever_is_reported_since(plan):
    """Its new life has ended, by the markers that it was sent again."""
    ending = successor(plan, former(plan, "last"))
    ending.reported(report_of(plan, "sink", life=2))
    assert "sink-0 died after the end was declared" in ending.failure
    assert ending.verdict() == (False, ending.failure, "sink-0")


@pytest.mark.parametrize("ended", [["sink"], ["sink", "last"], []])
def test_a_manager_that_died_with_the_master_did_no_harm_if_all_that_it_held_and_fed_had_ended(plan, ended):
    everybody = {"spout", "count", "sink", "last"}
    ending = successor(plan, former(plan, *ended))
    for name in everybody - set(ended):
        ending.reported(report_of(plan, name, version=3))  # since, by whatever markers
    container = next(iter(plan.containers))
    held = {plan.tasks[t.task].component for t in plan.tasks_in(container)}
    touched = held | ({"sink", "last"} if "spout" in held else set()) | ({"sink"} if "count" in held else set())
    ending.manager_met(container, 2)
    assert bool(ending.failure) == bool(touched - set(ended))
    assert ending.culprit == (f"container-{container}/stream-manager" if ending.failure else "")


def test_a_loss_that_this_master_sees_is_judged_by_what_it_has_heard(plan):
    ending = successor(plan, former(plan))
    ending.reported(report_of(plan, "sink", version=3))
    ending.reported(report_of(plan, "sink", life=2, state=ACTIVE))
    assert not ending.failure


def test_a_master_that_finds_all_ended_need_not_ask(plan):
    assert successor(plan, former(plan, *plan.component_tasks)).all_ended


def test_a_spout_has_begun_also_when_an_update_has_moved_it_since(plan):
    ending = Ending(plan, EndFacts())
    ending.reported(report_of(plan, "sink", state=ACTIVE))
    assert not ending.begun
    moving = next(name for name in ("spout", "count") if plan.tasks[plan.component_tasks[name][0]].container == 2)
    ending.reported(report_of(plan, moving, state=ACTIVE))
    ending.reported(report_of(plan, "sink", state=ACTIVE, version=2))
    assert ending.begun
    logical = Chain.plan({"topology.stmgrs": 1})
    ending.replanned(PhysicalPlan.of(logical, packing_for(logical.config).pack(logical), 2))
    assert not ending.tasks[plan.component_tasks[moving][0]].version
    assert ending.begun


def test_who_has_moved_has_not_been_heard_from(plan):
    ending = Ending(plan, EndFacts())
    for name in plan.component_tasks:
        assert ending.reported(report_of(plan, name, state=ACTIVE))
    assert not ending.unheard
    logical = Chain.plan({"topology.stmgrs": 1})
    ending.replanned(PhysicalPlan.of(logical, packing_for(logical.config).pack(logical), 2))
    assert set(ending.unheard) == {task for task, place in plan.tasks.items() if place.container == 2}


def test_the_task_that_reports_a_failure_is_the_culprit_whatever_the_reason_names(plan):
    ending = successor(plan, EndFacts())
    for name in ("last", "sink"):
        report = report_of(plan, name)
        report.failure = "spout-0 and count-0 are given up"
        ending.reported(report)
    assert ending.verdict() == (False, "spout-0 and count-0 are given up", "last-0")


def test_the_task_of_the_last_error_is_the_culprit_where_rows_were_given_up(plan):
    ending = successor(plan, EndFacts())
    report = report_of(plan, "spout")
    report.given_up = 2
    ending.reported(report)
    assert ending.verdict() == (False, "2 tuples were given up", "")
    report = report_of(plan, "last")
    report.error = "sink-0 is not to blame"
    ending.reported(report)
    assert ending.errors() == {"last-0": "sink-0 is not to blame"}
    assert ending.verdict() == (False, "2 tuples were given up; the last error: sink-0 is not to blame", "last-0")


def test_an_error_that_is_named_stays_until_one_of_another_kind_comes(plan):
    """What its row is called may come before the error, after it, or never."""
    ending = Ending(plan, EndFacts())

    def raised(version, text, tree):
        report = report_of(plan, "sink", state=ACTIVE, version=version)
        report.error, report.error_tree = text, tree
        ending.reported(report)
        return ending.errors()["sink-0"]

    spout = report_of(plan, "spout", state=ACTIVE)
    spout.broken.update({7: "tup_id 3"})
    assert raised(1, "ValueError: no (tuple 1)", 7) == "ValueError: no (tuple 1)"
    ending.reported(spout)
    assert ending.errors()["sink-0"] == "ValueError: no (tuple 1); tup_id 3 of spout"
    assert raised(2, "ValueError: no (tuple 2)", 8) == "ValueError: no (tuple 1); tup_id 3 of spout"
    assert raised(3, "KeyError: other (tuple 3)", 9) == "KeyError: other (tuple 3)"


def rests(plan, name, seen, version, state=RESTING, round_=1):
    report = report_of(plan, name, state=state, version=version)
    report.round, report.seen = round_, seen
    return report


def test_all_rest_only_when_each_has_seen_the_present_rest_of_all_upstream(plan):
    """A sink whose report is from before the spout rested again has data on its way."""
    ending = Ending(plan, EndFacts())
    spout, count = (plan.component_tasks[name][0] for name in ("spout", "count"))
    both, one = Rounds({spout: 1, count: 1}).digest, Rounds({spout: 1}).digest
    for name in ("spout", "count"):
        ending.reported(rests(plan, name, 0, 1, state=DONE))
    ending.reported(rests(plan, "sink", one, 1))
    ending.reported(rests(plan, "last", one, 1))
    assert list(ending.restless(plan.tasks)) == [*plan.component_tasks["sink"]]
    ending.reported(rests(plan, "sink", both, 2))
    assert ending.quiet
    ending.reported(rests(plan, "spout", 0, 2, state=DONE, round_=2))
    assert not ending.quiet
    assert set(ending.restless(plan.tasks)) == {*plan.component_tasks["sink"], *plan.component_tasks["last"]}
