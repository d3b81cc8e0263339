"""Who is held for containers that leave, who may go when, and that nobody is held for ever, in whatever order."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ardea import Topology
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.rounds import Rounds
from ardea.protocol.wire_pb2 import ACTIVE, RESTING, TaskReport
from ardea.scheduler.packing import packing_for
from ardea.state.records import EndFacts
from ardea.testing import CollectBolt, RowsSpout
from ardea.topology_master.departures import BACK_WITHIN, Departures
from ardea.topology_master.ending import Ending


class Pass(CollectBolt):
    outputs = ["n"]


class Graph(Topology):
    """Two chains that have nothing to do with each other."""

    left = RowsSpout.of(["n"], []).spec()
    first = Pass.spec(inputs=[left], par=2)
    last = CollectBolt.spec(inputs=[first])
    right = RowsSpout.of(["n"], []).spec()
    apart = CollectBolt.spec(inputs=[right])


LOGICAL = Graph.plan({"topology.stmgrs": 6, "heron.kubernetes.grace.secs": 30})
PLAN = PhysicalPlan.of(LOGICAL, packing_for(LOGICAL.config).pack(LOGICAL), 1)
PATIENCE = 20.0
"""Seconds: the grace without what processes take to end."""
SPOUTS = frozenset(spout.name for spout in LOGICAL.spouts)


def container_of(component):
    return PLAN.tasks[PLAN.component_tasks[component][0]].container


def reaching(containers):
    """The components of which something may be on its way to these, and those in them."""
    there = {PLAN.tasks[task.task].component for number in containers for task in PLAN.tasks_in(number)}
    return there.union(*map(LOGICAL.upstream, there))


class Board:
    """A topology that notes what is done to it, and tasks that report to it."""

    def __init__(self):
        self.number, self.held, self.left, self.now = 0, None, [], 0.0
        self.versions, self.lives = dict.fromkeys(PLAN.tasks, 0), dict.fromkeys(PLAN.tasks, 1)
        self.begin()

    def begin(self):
        self.ending, self.departures = Ending(PLAN, EndFacts()), Departures(self)
        for task in PLAN.tasks:
            self.report(task)

    def another_master(self, silent=()):
        """It hears of everybody anew, but for these containers."""
        self.held = self.held or set()  # whether somebody was held, it does not know
        self.ending, self.departures = Ending(PLAN, EndFacts()), Departures(self)
        self.departures.begun(PLAN, self.now)
        for number in sorted(set(PLAN.containers) - set(silent)):
            for task in PLAN.tasks_in(number):
                self.report(task.task)

    def hold(self, spouts, leaving, *, settle):
        self.number += 1
        self.held = set(spouts)
        return self.number

    def resume(self):
        assert self.held is not None, "resumed although nobody was held"
        self.number += 1
        self.held = None

    def leave(self, containers):
        self.left += containers

    def ask(self, container):
        self.departures.asked(container, PLAN, self.ending, self.now)

    def wait(self, seconds):
        self.now += seconds
        self.look()

    def look(self):
        self.departures.look(self.ending, PLAN, self.now)

    def report(self, task, *, rests=False, open_=0, waiting=0, obeys=False):
        spout = PLAN.tasks[task].component in SPOUTS
        self.versions[task] += 1
        report = TaskReport(
            task=task, life=self.lives[task], version=self.versions[task], state=RESTING if rests else ACTIVE,
            round=1, open=open_ if spout else 0, waiting=waiting if spout else 0, epoch=1,
            hold=self.number if obeys and self.held else 0,
        )  # fmt: skip
        report.seen = Rounds(dict.fromkeys(PLAN.upstream(PLAN.tasks[task].component), 1)).digest if rests else 0
        assert self.ending.reported(report)
        self.look()

    def rest(self, silent=()):
        """All but these containers do as they are told, and nothing is on its way any more."""
        for number, task in PLAN.tasks.items():
            if task.container not in silent:
                self.report(number, rests=True, obeys=True)

    def back(self, container):
        """The container's next life: its tasks work."""
        for task in PLAN.tasks_in(container):
            self.lives[task.task] += 1
            self.report(task.task)


@pytest.fixture
def board():
    return Board()


LAST = container_of("last")
APART = container_of("apart")


def test_each_component_has_a_container_of_its_own():
    assert len({task.container for task in PLAN.tasks.values()}) == 6


def test_it_leaves_when_nothing_is_on_its_way_to_it_and_the_spouts_wait_until_it_is_back(board):
    board.ask(LAST)
    assert board.held == {"left"}
    assert board.left == []
    board.rest()
    assert board.left == [LAST]
    assert board.held == {"left"}
    board.wait(BACK_WITHIN - 1)
    assert board.held == {"left"}
    board.back(LAST)
    assert board.held is None
    assert not board.departures.running


def test_open_trees_keep_it(board):
    board.ask(LAST)
    for task in PLAN.tasks:
        board.report(task, rests=True, obeys=True, open_=1)
    assert board.left == []
    board.rest()
    assert board.left == [LAST]


@pytest.mark.parametrize(("leaves", "goes"), [("left", False), ("last", True)])
def test_a_spout_that_leaves_takes_no_row_with_it_that_is_to_be_sent_again(board, leaves, goes):
    """One that stays sends it again afterwards."""
    container = container_of(leaves)
    board.ask(container)
    for task in PLAN.tasks:
        board.report(task, rests=True, open_=1, waiting=1, obeys=True)
    assert board.left == ([container] if goes else [])
    board.rest()
    assert board.left == [container]


def test_whoever_does_not_come_back_is_not_waited_for_for_ever(board):
    board.ask(LAST)
    board.rest()
    board.wait(BACK_WITHIN)
    assert board.held is None
    assert not board.departures.running


def test_a_bolt_that_does_not_rest_keeps_it_for_its_patience(board):
    board.ask(LAST)
    board.wait(PATIENCE - 0.1)
    board.look()
    assert board.left == []
    board.wait(0.1)
    assert board.left == [LAST]
    assert board.departures.running


def test_whoever_asks_again_on_its_way_out_is_told_again(board):
    board.ask(LAST)
    board.rest()
    board.ask(LAST)
    assert board.left == [LAST, LAST]


def test_one_that_asks_twice_is_given_no_more_time(board):
    board.ask(LAST)
    board.wait(PATIENCE / 2)
    board.ask(LAST)
    board.wait(PATIENCE / 2)
    assert board.left == [LAST]


def test_the_spouts_of_one_that_is_away_wait_on_when_another_asks(board):
    board.ask(LAST)
    board.rest()
    board.ask(APART)
    assert board.held == {"left", "right"}
    board.back(LAST)
    board.rest()
    assert board.left == [LAST, APART]
    assert board.held is not None
    board.back(APART)
    assert board.held is None


def test_one_whose_place_is_taken_before_is_told_nothing_and_its_next_tasks_are_awaited(board):
    board.ask(LAST)
    board.departures.replaced(LAST, PLAN, board.ending, board.now)
    board.rest()
    assert board.left == []
    assert board.held == {"left"}
    board.back(LAST)
    assert board.held is None


def test_whoever_takes_a_place_and_asks_at_once_is_emptied_too(board):
    board.ask(LAST)
    board.departures.replaced(LAST, PLAN, board.ending, board.now)
    board.ask(LAST)
    assert board.left == []
    board.rest()
    assert board.left == [LAST]


def test_whoever_takes_the_place_of_one_that_was_let_go_and_asks_is_emptied_too(board):
    board.ask(LAST)
    board.rest()
    assert board.left == [LAST]
    board.departures.replaced(LAST, PLAN, board.ending, board.now)
    board.ask(LAST)
    assert board.left == [LAST]
    board.rest()
    assert board.left == [LAST, LAST]


def test_the_spouts_of_whoever_comes_to_a_new_master_are_told_to_wait_for_others_that_are_away(board):
    board.another_master(silent={LAST, container_of("left")})
    board.departures.replaced(container_of("left"), PLAN, board.ending, board.now)
    assert board.held == {"left"}
    ordered = board.number
    board.departures.replaced(LAST, PLAN, board.ending, board.now)
    assert board.number == ordered, "who comes later finds that order"
    board.back(container_of("left"))
    assert board.held == {"left"}
    board.back(LAST)
    assert board.held is None


def test_others_are_waited_for_when_the_place_of_one_is_taken(board):
    board.ask(LAST)
    board.ask(APART)
    board.departures.replaced(LAST, PLAN, board.ending, board.now)
    assert board.held == {"left", "right"}
    board.back(LAST)
    assert board.held == {"right"}
    board.rest()
    assert board.left == [APART]


def test_somebody_else_says_what_the_spouts_do(board):
    board.ask(LAST)
    board.departures.cancelled()
    assert board.left == [LAST]
    assert not board.departures.running
    board.wait(BACK_WITHIN * 2)
    assert board.held == {"left"}, "it was resumed by somebody who no longer decides"


def test_a_new_master_lets_spouts_go_on_when_it_has_heard_of_all(board):
    """A container of which it has not may have been let go by the former one."""
    board.ask(LAST)
    board.rest()
    board.another_master(silent={LAST})
    assert board.held == {"left"}
    assert board.departures.running
    board.back(LAST)
    assert board.held is None
    assert not board.departures.running


def test_a_new_master_waits_no_longer_than_for_one_that_it_has_let_go_itself(board):
    board.ask(LAST)
    board.rest()
    board.another_master(silent={LAST})
    board.wait(BACK_WITHIN - 1.0)
    assert board.held == {"left"}
    board.wait(1.0)
    assert board.held is None


def test_a_new_master_holds_no_spout_for_longer_than_it_has_to_whoever_asks_it_meanwhile(board):
    """All but one have been heard of; what reaches neither that one nor who asks goes on."""
    silent = {container_of("right")}
    board.another_master(silent)
    board.ask(LAST)
    assert board.held == {"left", "right"}
    board.back(*silent)
    assert board.held == {"left"}
    board.rest()
    assert board.left == [LAST]


def test_what_reaches_nobody_any_more_goes_on_while_another_is_away(board):
    board.ask(LAST)
    board.ask(APART)
    board.rest()
    assert set(board.left) == {LAST, APART}
    board.back(APART)
    assert board.held == {"left"}
    board.back(LAST)
    assert board.held is None


def test_one_that_a_master_has_let_go_is_told_so_again_though_a_task_was_never_heard_of(board):
    board.another_master(silent={LAST})
    board.ask(LAST)
    board.wait(PATIENCE)
    assert board.left == [LAST]
    board.ask(LAST)
    assert board.left == [LAST, LAST]


def test_one_that_asks_a_new_master_before_it_has_reported_is_emptied(board):
    board.ask(LAST)
    board.another_master(silent={LAST})
    board.ask(LAST)
    assert board.left == []
    board.rest()
    assert board.left == [LAST]
    board.back(LAST)
    assert board.held is None


class ADeparture(RuleBasedStateMachine):
    """Requests, reports, time and new masters in any order."""

    def __init__(self):
        super().__init__()
        self.board = Board()
        self.asked = {}
        self.away = {}
        self.unknown = set()  # of these, those that this master has not let go, and of which it has not heard since
        self.ready = False

    def _after(self):
        """Whoever was let go, rightly; whoever came back."""
        board = self.board
        for number in board.left:
            if number in self.asked:
                newest = max(self.asked.values())
                assert self.ready or board.now >= newest + PATIENCE, "it went although something was on its way to it"
        gone = self.asked.keys() & set(board.left)
        board.left.clear()
        self.asked = {number: at for number, at in self.asked.items() if number not in gone}
        self.away.update(dict.fromkeys(gone, board.now))
        self.ready = False

    @rule(number=st.sampled_from(sorted(PLAN.containers)))
    def asks(self, number):
        if number in self.unknown:
            self.unknown.remove(number)
            del self.away[number]
            for task in PLAN.tasks_in(number):
                self.board.report(task.task)
        if number not in self.asked and number not in self.away:
            self.asked[number] = self.board.now
        self.board.ask(number)
        assert (self.board.left == [number]) or number not in self.away, "it asked again, and was not told"
        self._after()

    @rule(task=st.sampled_from(sorted(PLAN.tasks)), rests=st.booleans(), open_=st.integers(0, 2), obeys=st.booleans())
    def reports(self, task, rests, open_, obeys):
        if PLAN.tasks[task].container in self.unknown:
            return
        self.board.report(task, rests=rests, open_=open_, obeys=obeys)
        self.ready = self._nothing_is_on_its_way()
        self._after()

    @rule()
    def all_rest(self):
        self.ready = True
        self.board.rest(self.unknown)
        self._after()
        assert self.unknown or not self.asked, "nothing was on its way to those who asked, and they were kept"

    def _nothing_is_on_its_way(self):
        told, board = self.board.ending.tasks, self.board
        for name in reaching(self.asked):
            for task in PLAN.component_tasks[name]:
                if told[task].state == ACTIVE:
                    return False
                if name in SPOUTS and (told[task].open or told[task].hold != board.number):
                    return False
        return True

    @precondition(lambda self: self.away)
    @rule(data=st.data())
    def is_back(self, data):
        number = data.draw(st.sampled_from(sorted(self.away)))
        del self.away[number]
        self.unknown.discard(number)
        self.board.back(number)
        self._after()

    @rule(seconds=st.floats(0.1, 100))
    def time_passes(self, seconds):
        self.board.now = min(self.board.now + seconds, max(self.board.now, self.board.departures.due))
        self.board.look()
        self._after()
        self.away = {number: at for number, at in self.away.items() if self.board.now < at + BACK_WITHIN}
        self.unknown &= self.away.keys()

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def is_replaced(self, data):
        number = data.draw(st.sampled_from(sorted(self.asked)))
        del self.asked[number]
        self.away[number] = self.board.now
        self.unknown.add(number)
        self.board.departures.replaced(number, PLAN, self.board.ending, self.board.now)
        self._after()

    @rule()
    def a_new_master(self):
        """It lets spouts go on when those are back that it does not hear of, and is asked again."""
        self.board.another_master(self.away)
        asked, self.asked = sorted(self.asked), {}
        self.away = dict.fromkeys(self.away, self.board.now)
        self.unknown = set(self.away)
        for number in asked:
            self.asks(number)

    @invariant()
    def held_only_while_it_runs(self):
        """No spout waits for ever: whoever is held, is held for somebody who has a deadline."""
        assert (self.board.held is not None) == self.board.departures.running
        assert self.board.departures.running == bool(self.asked or self.away)
        if self.board.departures.running:
            assert self.board.now <= self.board.departures.due < float("inf")

    @invariant()
    def those_that_reach_it_are_held(self):
        """Nothing is sent to a container that is about to leave, or that is away."""
        if self.board.departures.running:
            assert self.board.held >= reaching({*self.asked, *self.away}) & SPOUTS


TestADeparture = ADeparture.TestCase
