"""What an update touches, and when it may go on: whatever the plans and reports, in whatever order they come."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ardea import Topology
from ardea.errors import ProtocolError
from ardea.plan.change import UpdateProgress, UpdateRequest
from ardea.plan.definition import Definition
from ardea.plan.physical import PhysicalPlan
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.protocol.rounds import Rounds
from ardea.protocol.wire_pb2 import ACTIVE, RESTING, TaskReport
from ardea.scheduler.next_definition import wanted
from ardea.scheduler.packing import packing_for
from ardea.state.manager import TooLarge
from ardea.state.records import EndFacts, ExecutionState, RunState
from ardea.testing import CollectBolt, RowsSpout
from ardea.topology_master.changing import Advice, Draining, PlanDifference, renumbered
from ardea.topology_master.ending import Ending
from ardea.topology_master.execution import Execution
from ardea.topology_master.updates import KNOWN, Updates, plan_of


class Pass(CollectBolt):
    outputs = ["n"]


class Graph(Topology):
    """Two spouts; a chain and a branch of its own."""

    left = RowsSpout.of(["n"], []).spec(par=2)
    right = RowsSpout.of(["n"], []).spec()
    first = Pass.spec(inputs=[left], par=2)
    second = Pass.spec(inputs=[first], par=2)
    last = CollectBolt.spec(inputs=[second])
    apart = CollectBolt.spec(inputs=[right])
    config = {"topology.message.timeout.secs": 10}


PLAN = Graph.plan({"topology.stmgrs": 2})


def submitted():
    packing = packing_for(PLAN.config).pack(PLAN)
    return Definition(
        topology="graph-1",
        state="",
        location="g.py",
        config={},
        shape=shape_of(PLAN),
        packing=packing_to_bytes(packing),
    )


def changed(present, parallelism, *, rebuilt=False):
    return wanted(present, PLAN, parallelism=parallelism, location="g.py", config={}, rebuilt=rebuilt)


def difference(parallelism, *, rebuilt=False):
    present = submitted()
    next_ = changed(present, parallelism, rebuilt=rebuilt)
    return PlanDifference.between(plan_of(present), plan_of(next_), rebuilt=rebuilt)


def test_neighbours_are_touched_and_what_lies_upstream_waits():
    """The branch of ``right`` has nothing to do with it."""
    found = difference({"second": 3})
    assert "second" in found.changed
    assert {"first", "second", "last"} <= found.touched
    assert found.waits == {"left", "first", "second", "last"}
    assert found.held == {"left"}


def test_other_code_touches_all():
    found = difference({}, rebuilt=True)
    assert found.changed == found.waits == {c.name for c in PLAN}
    assert found.held == {"left", "right"}
    assert found.leaving == set(plan_of(submitted()).tasks)


CHANGES = st.dictionaries(st.sampled_from([c.name for c in PLAN]), st.integers(1, 6), min_size=1)


@given(st.lists(CHANGES, min_size=1, max_size=6))
def test_containers_that_are_replaced_as_a_whole_take_their_tasks_with_them(changes):
    """Whoever shares one with a task that comes or goes starts again; whoever does not, does not."""
    present = msgspec.structs.replace(submitted(), whole=True)
    for parallelism in changes:
        next_ = changed(present, parallelism)
        former, plan = plan_of(present), plan_of(next_)
        found = PlanDifference.between(former, plan, rebuilt=False, whole=next_.whole)
        tasks = [{n: {t for t in p.tasks if p.tasks[t].container == n} for n in p.containers} for p in (former, plan)]
        same = {n for n in former.containers if tasks[0][n] == tasks[1].get(n)}
        assert found.leaving == {t for t, task in former.tasks.items() if task.container not in same}
        assert {former.tasks[t].component for t in found.leaving} <= found.changed
        alone = PlanDifference.between(former, plan, rebuilt=False)
        assert found.changed >= alone.changed
        assert found.leaving >= alone.leaving
        present = msgspec.structs.replace(next_, epoch=present.epoch + 1)


@given(st.lists(CHANGES, max_size=6))
def test_ids_are_never_used_again(changes):
    """Whatever follows whatever: living tasks keep theirs, new ones get higher ones than there ever were."""
    present, ever = submitted(), set(plan_of(submitted()).tasks)
    for parallelism in changes:
        next_ = changed(present, parallelism)
        former, plan = plan_of(present), plan_of(next_)
        assert renumbered(former, plan, present.highest) == ""
        fresh = set(plan.tasks) - set(former.tasks)
        assert not fresh & ever
        assert not fresh or min(fresh) > max(ever)
        ever |= fresh
        found = PlanDifference.between(former, plan, rebuilt=False)
        assert found.changed <= found.touched <= found.waits | set(plan.component_tasks)
        for name in found.waits:
            assert former.logical.upstream(name) <= found.waits
        assert found.leaving >= set(former.tasks) - set(plan.tasks)
        present = msgspec.structs.replace(next_, epoch=present.epoch + 1)


def test_renumbering_is_noticed():
    present = plan_of(submitted())
    swapped = {**present.tasks, 1: present.tasks[2], 2: present.tasks[1]}
    assert "would be" in renumbered(present, PhysicalPlan(2, PLAN, swapped, present.component_tasks), 0)
    used = {**present.tasks, 50: present.tasks[1]}
    assert "not above 60" in renumbered(present, PhysicalPlan(2, PLAN, used, present.component_tasks), 60)


def test_where_all_rest_nobody_looks_again_before_it_is_too_late():
    """A snapshot may be awaited yet, and a master that is due at once would do nothing else."""
    plan = plan_of(submitted())
    draining = Draining(plan, PlanDifference.without(plan, ()), timeout=30.0, now=0.0)
    assert draining.due == 30.0
    assert draining.look(Ending(plan, EndFacts()), 1.0) is Advice.GO_ON
    assert draining.due == 60.0


class Board:
    """A topology that only notes what is done to it."""

    def __init__(self):
        self.number, self.held, self.definitions, self.former, self.switch_record = 0, None, [submitted()], None, None
        self.settles = 0

    def hold(self, spouts, leaving, *, settle):
        self.number += 1
        self.held, self.leaving = set(spouts), set(leaving)
        self.settles += settle
        return self.number

    def resume(self):
        self.number += 1
        self.held = None

    def switch(self, wanted, former, switch):
        assert wanted.epoch == self.definitions[-1].epoch + 1
        self.definitions.append(wanted)
        self.former, self.switch_record = former, switch

    def settled(self):
        self.former = self.switch_record = None


class AnUpdate(RuleBasedStateMachine):
    """Reports, time, requests and new masters in any order."""

    def __init__(self):
        super().__init__()
        self.board, self.now, self.life, self.memory = Board(), 0.0, {}, self.made_memory()
        self.began, self.rested = None, frozenset()
        self._master()
        self.request = None

    def made_memory(self):
        """Of a topology without snapshots."""

    def _master(self):
        board = self.board
        self.plan = plan_of(board.definitions[-1])
        self.ending = Ending(self.plan, EndFacts())
        definition, former, switch = board.definitions[-1], board.former, board.switch_record
        self.updates = Updates(board, board, self.memory, definition, former, switch, self.now)

    def _after(self):
        if self.plan.epoch != self.board.definitions[-1].epoch:
            self.plan = plan_of(self.board.definitions[-1])
            self.ending.replanned(self.plan)
        if not self.updates.running:
            self.began = None

    @precondition(lambda self: not self.updates.running)
    @rule(name=st.sampled_from(["left", "second", "apart"]), tasks=st.integers(1, 4), rebuilt=st.booleans())
    def requests(self, name, tasks, rebuilt):
        present = self.board.definitions[-1]
        next_ = changed(present, {name: tasks}, rebuilt=rebuilt)
        self.request = UpdateRequest(f"{self.now} {present.epoch}", next_, present.epoch, 20.0)
        self.began = self.now
        self.updates.requested(self.request, self.ending, self.now, ends="")
        differs = PlanDifference.between(plan_of(present), plan_of(next_), rebuilt=next_.build != present.build)
        self.rested = differs.waits
        early = self.board.definitions[-1] is not present and differs.changed
        assert not early or self._stuck, "switched before any spout could obey"
        self._after()

    @precondition(lambda self: self.updates.running and self.request is not None)
    @rule()
    def repeats(self):
        """The same request again changes nothing."""
        before = len(self.board.definitions), self.board.number
        self.updates.requested(self.request, self.ending, self.now, ends="")
        assert before == (len(self.board.definitions), self.board.number)

    @precondition(lambda self: self.updates.running and not self._back)
    @rule()
    def another(self):
        """Another one is refused while one is under way."""
        present = self.board.definitions[-1]
        other = UpdateRequest("other", changed(present, {"last": 5, "first": 7}), present.epoch, 1.0)
        with pytest.raises(ProtocolError, match="UPDATE_RUNS"):
            self.updates.requested(other, self.ending, self.now, ends="")

    @precondition(lambda self: self._back)
    @rule(name=st.sampled_from(["left", "second", "apart"]), tasks=st.integers(1, 4), rebuilt=st.booleans())
    def another_instead(self, name, tasks, rebuilt):
        """A former plan may not come up: another one is taken, unless it changes what did not have to rest."""
        present, board = self.board.definitions[-1], self.board
        next_ = changed(present, {name: tasks}, rebuilt=rebuilt)
        waits = PlanDifference.between(plan_of(present), plan_of(next_), rebuilt=next_.build != present.build).waits
        before, rows = (len(board.definitions), board.number), self._rows_of_spouts_that_leave(present, next_)
        self.request = UpdateRequest(f"{self.now} {present.epoch}", next_, present.epoch, 20.0)
        try:
            self.updates.requested(self.request, self.ending, self.now, ends="")
        except ProtocolError:
            self.request = None
        if board.definitions[-1] is present:
            assert before == (len(board.definitions), board.number)
            gone = set(plan_of(present).tasks) - set(plan_of(next_).tasks)
            lost = (not waits <= self.rested or rows) if self.memory is None else self.memory.bound(gone)
            assert lost or next_.same_as(present), "refused without need"
        else:
            assert self.memory is not None or waits <= self.rested, "switched while somebody did not rest"
            assert self.memory is not None or not rows, "switched while rows of a spout that leaves wait"
            assert (board.former, board.switch_record.put_back) == (present, "")
        self._after()

    def _rows_of_spouts_that_leave(self, present, next_):
        rebuilt = next_.build != present.build
        leaving = PlanDifference.between(plan_of(present), plan_of(next_), rebuilt=rebuilt).leaving
        return sum(self.ending.tasks[task].open for task in leaving)

    @property
    def _back(self):
        return self.board.switch_record is not None and self.board.switch_record.put_back

    @rule(data=st.data(), rests=st.booleans(), open_=st.integers(0, 3), waiting=st.integers(0, 3), obeys=st.booleans())
    def reports(self, data, rests, open_, waiting, obeys):
        task = data.draw(st.sampled_from(sorted(self.plan.tasks)))
        self._report(task, rests=rests, open_=open_, waiting=waiting, obeys=obeys)

    @rule()
    def all_rest(self):
        for task in sorted(self.plan.tasks):
            self._report(task, rests=True, open_=0, waiting=0, obeys=True)

    def _report(self, task, *, rests, open_, waiting, obeys):
        place = self.plan.tasks.get(task)
        if place is None:
            return
        spout = place.component in ("left", "right")
        self.life[task] = self.life.get(task, 0) + 1
        report = TaskReport(
            task=task, life=1, version=self.life[task], state=RESTING if rests else ACTIVE, round=1,
            open=(open_ + waiting) if spout else 0, waiting=waiting if spout else 0,
            epoch=self.plan.epoch if obeys else 0, hold=self.board.number if obeys and self.board.held else 0,
        )  # fmt: skip
        report.seen = Rounds(dict.fromkeys(self.plan.upstream(place.component), 1)).digest if rests else 0
        if self.ending.reported(report):
            self._look()

    def _look(self):
        before, back = len(self.board.definitions), self.board.former is not None
        ready = self._ready()
        self.updates.look(self.ending, self.now)
        over = back and self.board.switch_record is None
        assert not over or not self._stuck, "over before all have their state"
        if len(self.board.definitions) > before and self.board.former is not None and not self._stuck:
            assert ready, "switched while somebody did not rest"
            assert self.memory is None or self.memory.stored, "switched before all was stored"
        self._after()

    @property
    def _stuck(self):
        return self.memory is not None and self.memory.waits

    def _ready(self):
        """Seen from outside: whether the held spouts obey, have nothing open, and all that waits rests."""
        draining = self.updates._draining
        if draining is None:
            return False
        for name in draining.difference.waits:
            for task in self.plan.component_tasks[name]:
                told = self.ending.tasks[task]
                if told.state == ACTIVE:
                    return False
                if name in draining.difference.held:
                    left = told.open if task in draining.difference.leaving else told.open - told.waiting
                    if told.hold != self.board.number or left > 0:
                        return False
        return True

    @rule(seconds=st.floats(0.1, 30))
    def time_passes(self, seconds):
        self.now = min(self.now + seconds, max(self.now, self.updates.due))
        self._look()

    @rule()
    def a_new_master(self):
        """It goes on with a switch; else spouts go on, which departures see to."""
        self._master()
        self.rested = frozenset() if self.board.former is None else self.updates._difference.waits
        self.updates.begun()
        if not self.updates.running:
            self.board.resume()
        assert (self.board.held is not None) == (self.board.switch_record is not None)
        self._after()

    @invariant()
    def held_only_while_it_runs(self):
        """No spout waits for ever: whoever is held, is held for an update that has a deadline or a way forward."""
        assert (self.board.held is not None) == self.updates.running

    @invariant()
    def in_time(self):
        """Draining ends after two message timeouts at the latest."""
        if self.updates._draining is not None and self.began is not None:
            assert self.now <= self.began + 20

    @invariant()
    def the_way_back(self):
        """There is one only in a switch."""
        assert self.board.former is None or self.updates.switching


class Memory:
    """What a coordinator of snapshots says."""

    def __init__(self):
        self.stored, self.asked, self.waits = False, False, False

    def restoring(self):
        return ["first-1 cannot begin"] if self.waits else []

    def stuck(self, *, late):
        return self.waits

    def settle(self, now):
        self.asked = True
        return self.stored

    def owing(self, tasks):
        return []

    def bound(self, tasks):
        return [f"first-{task}" for task in tasks if task % 2]


class AnUpdateOfState(AnUpdate):
    """Where the topology's state has to be in a snapshot first."""

    def made_memory(self):
        return Memory()

    @rule(stored=st.booleans())
    def a_snapshot(self, stored):
        self.memory.stored = stored
        self._look()

    @rule(waits=st.booleans())
    def a_task_cannot_begin(self, waits):
        """Nothing can be stored then, and nothing need be."""
        self.memory.waits = waits
        self._look()

    @precondition(lambda self: self.updates.switching)
    @rule()
    def the_code_is_of_no_use(self):
        """That is put back at once, with what was said; a plan without a way back is not."""
        can, epoch = self.board.former is not None, self.plan.epoch
        assert self.updates.unusable("it cannot be read") is can
        self._look()
        if can:
            assert self.board.former is None
            assert self.board.switch_record.put_back == "it cannot be read"
            assert self.plan.epoch == epoch + 1

    @invariant()
    def nobody_loses_a_state_of_his_own(self):
        if self.updates.switching and self.board.former is not None:
            gone = set(plan_of(self.board.former).tasks) - set(self.plan.tasks)
            assert self.memory.bound(gone) == []

    @invariant()
    def all_of_it_rests(self):
        if self.updates._draining is not None:
            assert self.updates._draining.difference.held == {"left", "right"}
            assert self.updates._draining.difference.waits == set(self.plan.component_tasks)


TestAnUpdate = AnUpdate.TestCase
TestAnUpdateOfState = AnUpdateOfState.TestCase


def put_back(parallelism, *, rebuilt=False, waiting=0):
    """A topology whose update did not come up, nor the former plan; spouts have rows that wait to be sent again."""
    present, board = submitted(), Board()
    ending, plan = Ending(plan_of(present), EndFacts()), plan_of(present)
    updates = Updates(board, board, None, present, None, None, 0.0)
    first = UpdateRequest("first", changed(present, parallelism, rebuilt=rebuilt), 1, 20.0)
    updates.requested(first, ending, 0.0, ends="")
    for task, place in plan.tasks.items():
        seen = Rounds(dict.fromkeys(plan.upstream(place.component), 1)).digest
        rows = waiting if place.component == "left" else 0
        report = TaskReport(task=task, life=1, version=1, state=RESTING, round=1, seen=seen, hold=1)
        report.open = report.waiting = rows
        ending.reported(report)
    for now in (1.0, 21.0):
        updates.look(ending, now)
    assert updates.progress().step == "putting back"
    return board, updates, ending


def test_rows_that_wait_in_a_spout_stay_where_another_update_comes_in_place_of_one_that_is_put_back():
    """Its process would end with them; where it stays, they are sent again."""
    board, updates, ending = put_back({"second": 3}, waiting=4)
    present = board.definitions[-1]
    leaves = UpdateRequest("leaves", changed(present, {"left": 1}), present.epoch, 20.0)
    with pytest.raises(ProtocolError, match=r"left-1 has 4 rows to send again, and would end"):
        updates.requested(leaves, ending, 30.0, ends="")
    assert board.definitions[-1] is present
    stays = UpdateRequest("stays", changed(present, {"second": 4}), present.epoch, 20.0)
    updates.requested(stays, ending, 30.0, ends="")
    assert updates.progress().step == "switching"


class Full:
    """A store that takes no two plans at once."""

    def switch(self, *_):
        raise TooLarge("cannot write: 2,000 bytes in one transaction; nothing was changed")


def rests(plan, ending):
    """All tasks obey the first order to rest."""
    for task, place in plan.tasks.items():
        seen = Rounds(dict.fromkeys(plan.upstream(place.component), 1)).digest
        ending.reported(TaskReport(task=task, life=1, version=1, state=RESTING, round=1, seen=seen, hold=1))


def test_plans_that_the_store_does_not_take_at_once_are_refused_and_the_rows_go_on():
    """The master would die of it, and the next one, too, as the verb asks again."""
    present, board = submitted(), Board()
    ending, plan = Ending(plan_of(present), EndFacts()), plan_of(present)
    execution = Execution(Full(), ExecutionState(RunState.RUNNING))
    board.switch = lambda wanted, former, switch: execution.switch(wanted, former, switch, ending, None)
    updates = Updates(board, board, None, present, None, None, 0.0)
    updates.requested(UpdateRequest("one", changed(present, {"second": 3}), 1, 20.0), ending, 0.0, ends="")
    rests(plan, ending)
    updates.look(ending, 1.0)
    over = updates.progress("one")
    assert (over.step, over.reason) == ("refused", "cannot write: 2,000 bytes in one transaction; nothing was changed")
    assert (board.definitions, board.held, updates.running) == ([present], None, False)


def test_of_the_last_updates_it_is_known_how_they_went():
    """Who did not hear it at the time may ask while another one is under way, and later."""
    present, board = submitted(), Board()
    ending, updates = Ending(plan_of(present), EndFacts()), Updates(board, board, None, present, None, None, 0.0)
    same = [UpdateRequest(f"{n}", present, 1, 20.0) for n in range(KNOWN)]
    for request in same:
        updates.requested(request, ending, 0.0, ends="")
    other = UpdateRequest("other", changed(present, {"second": 3}), 1, 20.0)
    updates.requested(other, ending, 0.0, ends="")
    assert updates.progress().step == "draining"
    updates.requested(same[0], ending, 0.0, ends="")
    assert updates.progress("0") == UpdateProgress("0", "done")
    updates.ended("the topology ends")
    refused = UpdateProgress("other", "refused", reason="the topology ends")
    assert updates.progress() == updates.progress("other") == refused
    assert (updates.progress("1").id, updates.progress("0").id) == ("1", "other"), "no more than so many"
