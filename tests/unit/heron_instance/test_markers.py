"""Rest and end markers over two tasks and over a diamond, with tasks and managers that die in between."""

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ardea.heron_instance.markers import Markers
from ardea.protocol.rounds import Rounds
from tests.sizes import share

PAIR = {1: (2,), 2: ()}
DIAMOND = {1: (2, 3), 2: (4,), 3: (4,), 4: ()}
TWO_SPOUTS = {1: (3,), 2: (3,), 3: (4,), 4: ()}
NOBODY = frozenset()
SHAPES = (PAIR, DIAMOND, TWO_SPOUTS)
DATA = "data"


class Topology:
    """Tasks, a FIFO an edge for data and markers, and one a task for what it is told of the others' lives."""

    def __init__(self, feeds):
        self.feeds = feeds
        self.upstream = {t: frozenset(u for u, fed in feeds.items() if t in fed) for t in feeds}
        self.lives = dict.fromkeys(feeds, 1)
        self.edges = {(u, t): deque() for u, fed in feeds.items() for t in fed}
        self.told = {t: deque() for t in feeds}
        self.tasks = {t: self.born(t) for t in feeds}
        self.declared = False

    @property
    def spouts(self):
        return [t for t in self.feeds if not self.upstream[t]]

    def born(self, task):
        """Rounds of two lives differ, or a marker seen from the former could pass for one of the new."""
        life = self.lives[task]
        return Markers(self.upstream[task], frozenset(self.feeds[task]), lives=dict(self.lives), round=life << 32)

    # --- what a task does ------------------------------------------------------------------------------------

    def emit(self, task, targets):
        self.tasks[task].resting = False
        for target in targets:
            self.edges[task, target].append((DATA, self.lives[task], 0))

    def mark(self, task, target):
        markers = self.tasks[task]
        self.edges[task, target].append(("end" if markers.closed else "rest", self.lives[task], markers.round))

    def rest(self, task):
        self.tasks[task].rest()
        for target in self.feeds[task]:
            self.mark(task, target)

    def end(self, task):
        self.tasks[task].closed = True
        for target in self.feeds[task]:
            self.mark(task, target)

    def deliver(self, edge, emits=()):
        """One message; ``emits``: to whom the task sends data because of it."""
        source, task = edge
        kind, life, number = self.edges[edge].popleft()
        markers = self.tasks[task]
        if kind == DATA:
            markers.data(source)
            self.emit(task, emits)
            return
        markers.arrived(source, life, number, end=kind == "end")
        if markers.may_end:
            self.emit(task, emits)
            self.end(task)
        elif markers.may_rest:
            self.emit(task, emits)
            self.rest(task)

    def tell(self, task):
        other, life, again = self.told[task].popleft()
        if self.tasks[task].risen(other, life, again=again):
            self.mark(task, other)

    # --- what happens to it ----------------------------------------------------------------------------------

    def announce(self, task, *, again):
        for other in self.feeds:
            if other != task:
                self.told[other].append((task, self.lives[task], again))

    def crash(self, task):
        """What was on its way to the former life is dropped; what it sent still arrives."""
        self.lives[task] += 1
        for source in self.upstream[task]:
            self.edges[source, task].clear()
        self.told[task].clear()
        self.tasks[task] = self.born(task)
        self.announce(task, again=False)
        if self.declared and not self.upstream[task]:
            self.end(task)

    def crash_manager(self, task):
        """All that passes through it is lost; the task lives on and says its markers again."""
        for edge, queue in self.edges.items():
            if task in edge:
                queue.clear()
        markers = self.tasks[task]
        self.announce(task, again=True)
        if markers.resting or markers.closed:
            for target in self.feeds[task]:
                self.mark(task, target)

    def quiet(self, told_first):
        """Delivers all there is; the two lanes in either order."""
        while any(self.edges.values()) or any(self.told.values()):
            for queues, act in ((self.told, self.tell), (self.edges, self.deliver))[:: 1 if told_first else -1]:
                for key, queue in queues.items():
                    while queue:
                        act(key)

    @property
    def at_rest(self):
        """What the master asks: everybody rests, and has seen the present rest of all upstream."""
        return all(m.resting and m.seen.digest == self.present(task) for task, m in self.tasks.items())

    def present(self, task):
        return Rounds({source: self.tasks[source].round for source in self.upstream[task]}).digest


class MarkerMachine(RuleBasedStateMachine):
    """Any order of deliveries, of either lane, with restarts."""

    @initialize(shape=st.sampled_from(SHAPES))
    def start(self, shape):
        self.topology = Topology(shape)
        self.crashes = 0

    @rule(data=st.data())
    def emit(self, data):
        topology = self.topology
        task = data.draw(st.sampled_from(topology.spouts))
        topology.emit(task, data.draw(st.lists(st.sampled_from(topology.feeds[task]), min_size=1, unique=True)))

    @rule(data=st.data())
    def finish(self, data):
        task = data.draw(st.sampled_from(self.topology.spouts))
        if not self.topology.tasks[task].resting:
            self.topology.rest(task)

    @rule(data=st.data(), emits=st.booleans())
    def deliver(self, data, emits):
        waiting = [edge for edge, queue in self.topology.edges.items() if queue]
        if waiting:
            edge = data.draw(st.sampled_from(waiting))
            self.topology.deliver(edge, self.topology.feeds[edge[1]][:1] if emits else ())

    @rule(data=st.data())
    def tell(self, data):
        waiting = [task for task, queue in self.topology.told.items() if queue]
        if waiting:
            self.topology.tell(data.draw(st.sampled_from(waiting)))

    @precondition(lambda self: self.crashes < 3)
    @rule(data=st.data(), manager=st.booleans())
    def crash(self, data, manager):
        self.crashes += 1
        task = data.draw(st.sampled_from(list(self.topology.feeds)))
        (self.topology.crash_manager if manager else self.topology.crash)(task)

    @invariant()
    def rest_means_that_nothing_is_on_its_way(self):
        if hasattr(self, "topology") and self.topology.at_rest:
            assert not any(message[0] == DATA for queue in self.topology.edges.values() for message in queue)

    @invariant()
    def nobody_ends_undeclared(self):
        if hasattr(self, "topology"):
            assert not any(m.closed or m.ended for m in self.topology.tasks.values())

    def teardown(self):
        """Whatever happened, the spouts' rest reaches everybody, and then the end does."""
        if not hasattr(self, "topology"):
            return
        topology, told_first = self.topology, self.crashes % 2 == 0
        for task in topology.spouts:
            if not topology.tasks[task].resting:
                topology.rest(task)
        topology.quiet(told_first)
        assert topology.at_rest
        topology.declared = True
        for task in topology.spouts:
            topology.end(task)
        if self.crashes:
            topology.crash(topology.spouts[0])
        topology.quiet(told_first)
        assert all(m.closed for m in topology.tasks.values())


MarkerMachine.TestCase.settings = settings(max_examples=share(200), stateful_step_count=30)
TestMarkers = MarkerMachine.TestCase


def rested(shape=PAIR):
    topology = Topology(shape)
    for task in topology.spouts:
        topology.rest(task)
    topology.quiet(told_first=True)
    assert topology.at_rest
    return topology


def test_data_behind_a_marker_cancels_it():
    """And the task's own rest with it."""
    topology = rested()
    topology.emit(1, [2])
    topology.deliver((1, 2))
    assert not topology.tasks[2].resting
    assert not topology.tasks[2].may_rest
    topology.rest(1)
    topology.deliver((1, 2))
    assert topology.at_rest


def test_a_task_rests_only_when_all_upstream_do():
    """The join of a diamond."""
    topology = Topology(DIAMOND)
    topology.rest(1)
    for edge in ((1, 2), (2, 4)):
        topology.deliver(edge)
    assert not topology.tasks[4].resting
    for edge in ((1, 3), (3, 4)):
        topology.deliver(edge)
    assert topology.at_rest


def test_a_rest_of_a_new_life_is_not_taken_for_the_former_ones():
    """The source starts again, emits and rests before the other task hears of it: its data is on its way."""
    topology = rested()
    topology.crash(1)
    topology.emit(1, [2])
    topology.rest(1)
    assert not topology.at_rest
    topology.quiet(told_first=False)
    assert topology.at_rest


@pytest.mark.parametrize(("resting", "closed"), [(True, False), (False, True), (True, True)])
def test_a_task_that_rests_or_has_ended_says_so_to_a_new_life(resting, closed):
    """Only to those it feeds, and once for each life."""
    markers = Markers(frozenset({1}), frozenset({3}), resting=resting, closed=closed)
    assert markers.risen(3, 2, again=False)
    assert not markers.risen(3, 2, again=False)
    assert markers.risen(3, 2, again=True)
    assert not markers.risen(3, 1, again=True)
    assert not markers.risen(4, 2, again=False)
    assert not Markers(frozenset({1}), frozenset({3})).risen(3, 2, again=False)


def test_a_new_life_is_told_the_marker_again():
    """Markers are state, not messages."""
    topology = rested()
    topology.crash(2)
    topology.tell(1)
    assert [m[0] for m in topology.edges[1, 2]] == ["rest"]
    assert not topology.tasks[1].risen(2, 2, again=False)
    topology.deliver((1, 2))
    assert topology.at_rest


@pytest.mark.parametrize("life", [1, 2])
def test_a_marker_of_a_former_life_says_nothing(life):
    markers = Markers(frozenset({1}), NOBODY, lives={1: 2})
    markers.arrived(1, life, 5, end=False)
    markers.arrived(1, life, 5, end=True)
    assert markers.may_rest == markers.may_end == (life == 2)


def test_a_higher_life_of_the_sender_takes_its_markers_back():
    """Both kinds: the new life says its own."""
    markers = Markers(frozenset({1}), NOBODY, lives={1: 2})
    markers.arrived(1, 2, 5, end=False)
    markers.arrived(1, 2, 5, end=True)
    markers.risen(1, 3, again=False)
    assert not markers.may_rest
    assert not markers.may_end


def test_a_marker_said_again_may_overtake_the_news_of_the_managers_new_life():
    """The two lanes have no common order: forgetting it then would wait for a third one for ever."""
    topology = rested()
    topology.crash_manager(1)
    topology.deliver((1, 2))
    topology.tell(2)
    assert topology.at_rest


def test_markers_of_strangers_say_nothing():
    """Only tasks upstream count."""
    markers = Markers(frozenset({1}), frozenset({3}))
    markers.arrived(9, 1, 1, end=False)
    assert not markers.seen.tasks
    assert not markers.may_rest
