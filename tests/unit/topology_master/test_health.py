"""What the master makes of what supervisors, managers and tasks have said."""

from __future__ import annotations

import pytest

from ardea import Topology
from ardea.health import HealthState, ProcessRow
from ardea.metrics import Summary
from ardea.plan.physical import PhysicalPlan
from ardea.scheduler.packing import packing_for
from ardea.testing import CollectBolt, RowsSpout
from ardea.topology_master.health import SILENT, HealthWatch, Seen


class Words(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec(par=2)
    count = CollectBolt.spec(inputs=[words], par=2)


@pytest.fixture(scope="module")
def plan():
    logical = Words.plan({"topology.stmgrs": 2})
    return PhysicalPlan.build(logical, packing_for(logical.config).pack(logical), 1)


class Watched:
    """A watch at a time; Unix seconds are a thousand more."""

    def __init__(self, plan):
        self.plan, self.watch, self.now = plan, HealthWatch(), 0.0

    def hears(self, container, *rows, admission=1, holder="x"):
        self.watch.heard(Summary(container, admission, [], holder, list(rows)), self.now)

    def looks(self, *, missing=(), silent=(), updating=False, came_up=True):
        seen, rows = Seen(self.plan, missing, silent, updating, came_up), self.watch.rows(self.plan, self.now)
        return self.watch.look(seen, rows, self.now, self.now + 1000.0)

    def says(self, **seen):
        return [(each.who, each.since) for each in self.looks(**seen).troubles]


@pytest.fixture
def watched(plan):
    made = Watched(plan)
    made.hears(1)
    made.hears(2)
    return made


def row(container, name, state="running", loop=""):
    return ProcessRow(container, name, state, None, 1, 0, None, "", loop, 3 if loop else 0, 900.0 if loop else None)


def test_a_topology_is_well_when_all_are_there(watched):
    assert watched.looks().state == HealthState.HEALTHY
    assert watched.looks(came_up=False).state == HealthState.STARTING


def test_who_dies_again_and_again_is_named_since_its_first_death(watched):
    watched.hears(1, row(1, "words-0", "waiting", "died 3 times in 2 s: boom"), row(1, "stream-manager"))
    health = watched.looks(silent=["words-0"])
    assert health.state == HealthState.CRASHING
    assert [(each.who, each.since, each.why) for each in health.troubles] == [
        ("words-0", 900.0, "died 3 times in 2 s: boom")
    ]


def test_since_when_someone_is_missing_is_remembered_until_it_is_back(watched):
    assert watched.says(missing=[2]) == [("container-2", 1000.0)]
    watched.now = 7.0
    assert watched.says(missing=[2]) == [("container-2", 1000.0)]
    assert watched.says() == []
    watched.now = 9.0
    assert watched.says(missing=[2]) == [("container-2", 1009.0)]


def test_a_task_is_told_unless_its_container_is(watched, plan):
    homes = {place.name: place.container for place in plan.tasks.values()}
    away = next(name for name, container in homes.items() if container == 2)
    here = next(name for name, container in homes.items() if container == 1)
    assert watched.says(missing=[2], silent=[away, here]) == [("container-2", 1000.0), (here, 1000.0)]


def test_an_update_makes_nobody_missing_but_who_crashes_is_told(watched):
    assert watched.looks(missing=[2], silent=["words-0"], updating=True).state == HealthState.HEALTHY
    watched.hears(1, row(1, "words-0", "waiting", "died 3 times in 2 s: boom"))
    assert watched.looks(updating=True).state == HealthState.CRASHING


def test_a_container_that_is_not_heard_is_told_and_what_it_said_counts_no_more(watched):
    watched.hears(1, row(1, "words-0", "stuck"))
    watched.looks()
    watched.now = SILENT
    watched.hears(2)
    assert watched.says() == [("words-0", 1000.0)]
    watched.now = SILENT + 1
    assert watched.says() == [("container-1/metrics-manager", 1000.0 + SILENT + 1)]
    watched.hears(1)
    assert watched.says() == []


def test_a_container_that_has_just_registered_has_time_to_speak(plan):
    watched = Watched(plan)
    watched.now = 100.0
    assert watched.says(missing=[2]) == [("container-2", 1100.0)]
    watched.now = 100.0 + SILENT
    assert watched.says() == []
    watched.now += 1
    assert watched.says() == [("container-1/metrics-manager", 1100.0 + SILENT + 1)]


def test_the_word_of_a_pod_that_was_replaced_does_not_count(watched):
    watched.hears(1, row(1, "words-0"), admission=2)
    watched.hears(1, row(1, "words-0", "waiting", "died 3 times in 2 s: boom"), admission=1)
    assert watched.looks().state == HealthState.HEALTHY


def test_each_masters_pod_speaks_for_itself_and_one_that_is_gone_is_forgotten(watched):
    watched.hears(0, row(0, "topology-master"), holder="a")
    watched.hears(0, row(0, "topology-master", "waiting", "died 9 times in 60 s: no server"), holder="b")
    assert [each.who for each in watched.looks().troubles] == ["container-0/topology-master"]
    watched.now = SILENT + 1
    for number in (1, 2):
        watched.hears(number)
    assert watched.looks().state == HealthState.HEALTHY


def test_a_container_that_is_not_in_the_plan_says_nothing(watched):
    watched.hears(7, row(7, "words-9", "stuck"))
    assert watched.looks().state == HealthState.HEALTHY
