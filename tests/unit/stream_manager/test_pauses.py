"""Back pressure between two managers whose words may be late or lost: who has to wait waits, and nobody else does."""

from __future__ import annotations

import math
from collections import deque

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ardea import Grouping, Topology
from ardea.plan.physical import PhysicalPlan
from ardea.scheduler.packing import packing_for
from ardea.stream_manager.consumers import Consumer
from ardea.stream_manager.pauses import LAPSES_AFTER, LOOK_EVERY, BackPressure
from ardea.testing import CollectBolt, RowsSpout

HIGH = 100


class Branches(Topology):
    """Two that share nothing but their managers, and one bolt that both reach."""

    left = RowsSpout.of(["n"], []).spec(par=2)
    right = RowsSpout.of(["n"], []).spec(par=2)
    slow = CollectBolt.spec(inputs=[left], par=2)
    quick = CollectBolt.spec(inputs=[right], par=2)
    both = CollectBolt.spec(inputs={left: Grouping.GLOBAL, right: Grouping.GLOBAL})


LOGICAL = Branches.plan({"topology.stmgrs": 2})
PLAN = PhysicalPlan.of(LOGICAL, packing_for(LOGICAL.config).pack(LOGICAL), 1)
BOLTS = [task.task for task in PLAN.tasks.values() if LOGICAL[task.component].kind == "bolt"]
SPOUTS = [task.task for task in PLAN.tasks.values() if LOGICAL[task.component].kind == "spout"]


class Sent:
    """An outbox: hands everything to a function."""

    def __init__(self, take):
        self.take = take

    def newest(self, _key, header, _frames=()):
        self.take(header)


class Managers(RuleBasedStateMachine):
    """Loads rise and fall; words are delivered in order, or lost with their connection."""

    @initialize()
    def begin(self):
        self.now, self.way = 0.0, {1: deque(), 2: deque()}
        self.paused = dict.fromkeys(SPOUTS, -math.inf)  # until when, as the instance counts it
        self.troubled = dict.fromkeys(BOLTS, -math.inf)  # when it was last
        self.consumers = {task: Consumer(task, high_rows=HIGH, high_bytes=1 << 30, low_bytes=1 << 30) for task in BOLTS}
        self.managers, self.unheard = {}, set()
        for mine, other in ((1, 2), (2, 1)):
            spouts = {task: f"t{task}" for task in SPOUTS if PLAN.tasks[task].container == mine}
            outboxes = {link: Sent(lambda header, task=task: self.heard(task, header)) for task, link in spouts.items()}
            outboxes["peer"] = Sent(self.way[other].append)
            self.managers[mine] = BackPressure(mine, {other: "peer"}, spouts, outboxes)

    def heard(self, task, header):
        self.paused[task] = self.now + LAPSES_AFTER if header.paused else -math.inf

    def home(self, task):
        return self.managers[PLAN.tasks[task].container]

    @rule(task=st.sampled_from(BOLTS), rows=st.sampled_from([0, HIGH // 2, HIGH // 2 + 1, HIGH, HIGH + 1, 10 * HIGH]))
    def waits(self, task, rows):
        consumer = self.consumers[task]
        consumer.traffic.held(1, 1, rows, 0)
        self.home(task).judge(PLAN, consumer, self.now)
        self.note()

    @rule(to=st.sampled_from([1, 2]), words=st.integers(1, 5))
    def arrive(self, to, words):
        """A manager whose words arrive is heard."""
        if self.way[to]:
            self.unheard.discard(3 - to)
        for _ in range(min(words, len(self.way[to]))):
            header = self.way[to].popleft()
            self.managers[to].note_pause(PLAN, header.target, 3 - to, self.now, paused=header.paused)

    @rule(to=st.sampled_from([1, 2]))
    def a_connection_breaks(self, to):
        self.way[to].clear()

    @rule(container=st.sampled_from([1, 2]))
    def is_not_heard_or_is_again(self, container):
        """By the other manager, of which it also hears nothing."""
        self.unheard ^= {container}

    @rule(seconds=st.sampled_from([0.1, 1.0, LAPSES_AFTER, 10.0]))
    def time_passes(self, seconds):
        """A second's work of both managers at its end; a word that is older than that is lost."""
        for words in self.way.values():
            words.clear()
        self.now += seconds
        self.second()

    def second(self):
        for task, consumer in self.consumers.items():
            self.home(task).judge(PLAN, consumer, self.now)
            if consumer.pausing:
                self.home(task).announce(PLAN, consumer, self.now)
        for mine, manager in self.managers.items():
            if 3 - mine in self.unheard:
                manager.silent(PLAN, 3 - mine, self.now)
            manager.apply(PLAN, self.now)
        self.note()

    def note(self):
        for task, consumer in self.consumers.items():
            if consumer.pausing or PLAN.tasks[task].container in self.unheard:
                self.troubled[task] = self.now

    def reached(self, spout):
        below = LOGICAL.downstream(PLAN.tasks[spout].component)
        return [task for task in BOLTS if PLAN.tasks[task].component in below]

    @invariant()
    def nobody_waits_without_need(self):
        """Whom a pause holds reaches somebody who just was in trouble: a word counts for three seconds, twice."""
        for spout, until in getattr(self, "paused", {}).items():
            if self.now < until:
                assert max(self.troubled[task] for task in self.reached(spout)) > self.now - 2 * LAPSES_AFTER

    @rule()
    def all_is_said(self):
        """Then exactly those wait who have to."""
        self.second()
        for to in (1, 2):
            self.arrive(to, len(self.way[to]))
        troubled = {task for task, consumer in self.consumers.items() if consumer.pausing}
        # What the other manager said before its last word was lost counts until it lapses.
        for spout, until in self.paused.items():
            away = {
                task for task in BOLTS if PLAN.tasks[task].container in self.unheard - {PLAN.tasks[spout].container}
            }
            if (troubled | away).intersection(self.reached(spout)):
                assert self.now < until

    def teardown(self):
        """Loads are gone: three seconds later, whatever was lost, nobody waits; if nothing is lost, at once."""
        if not hasattr(self, "managers"):
            return
        for consumer in self.consumers.values():
            consumer.traffic.held(1, 1, 0, 0)
        self.unheard.clear()
        self.now += LAPSES_AFTER
        self.second()
        assert all(until <= self.now for until in self.paused.values())


TestManagers = Managers.TestCase


def test_who_reaches_a_silent_container_waits_until_the_look_after_it_is_heard():
    """Spouts that reach nobody there go on; the container's own are not asked."""
    heard = {}
    mine = [task for task in SPOUTS if PLAN.tasks[task].container == 1]
    instances = {task: f"t{task}" for task in mine}
    outboxes = {
        link: Sent(lambda header, task=task: heard.update({task: header.paused})) for task, link in instances.items()
    }
    manager = BackPressure(1, {2: "peer"}, instances, outboxes)
    there = {PLAN.tasks[task].component for task in PLAN.tasks if PLAN.tasks[task].container == 2}
    reach = {task: bool(LOGICAL.downstream(PLAN.tasks[task].component) & there) for task in mine}
    manager.silent(PLAN, 2, 10.0)
    manager.apply(PLAN, 10.0)
    assert {task: heard.get(task, False) for task in mine} == reach
    manager.apply(PLAN, 10.0 + LOOK_EVERY)
    assert not any(heard.values())
