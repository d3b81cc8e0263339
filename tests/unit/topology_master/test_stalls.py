"""Who holds which spouts back, since when, and when that is a trouble."""

from __future__ import annotations

import math

import pytest

from ardea import Grouping, Topology
from ardea.cli.stall_lines import SHOWN, facts, line
from ardea.metrics.samples import FIELDS
from ardea.plan.physical import PhysicalPlan
from ardea.scheduler.packing import packing_for
from ardea.testing import CollectBolt, RowsSpout
from ardea.topology_master.stalls import STANDS_STILL, Stalls


class Two(Topology):
    """Numbers do not come to count."""

    words = RowsSpout.of(["word"], [["a"]]).spec()
    numbers = RowsSpout.of(["n"], [[1]]).spec()
    count = CollectBolt.spec(inputs={words: Grouping.SHUFFLE}, par=2)
    both = CollectBolt.spec(inputs={words: Grouping.SHUFFLE, numbers: Grouping.SHUFFLE})


class Looking:
    def __init__(self):
        logical = Two.plan()
        self.plan = PhysicalPlan.build(logical, packing_for(logical.config).pack(logical), 1)
        self.stalls, self.at = Stalls(), 1000.0

    def looks(self, executed=10.0, capacity=1.0, queued=2048.0, **shares):
        row = [0.0] * len(FIELDS)
        for field, value in (("executed", executed), ("capacity", capacity), ("queued_bytes", queued)):
            row[FIELDS.index(field)] = value
        shares = {task.replace("_", "-"): share for task, share in shares.items()}
        self.stalls.look(shares, {place.name: row for place in self.plan.tasks.values()}, self.plan, self.at)
        self.at += 5.0
        return self.stalls.present


@pytest.fixture
def looking():
    made = Looking()
    made.looks()
    return made


def test_the_first_look_names_nobody():
    assert Looking().looks(count_0=0.5) == []


def test_who_holds_back_whom_and_since_when(looking):
    looking.looks(count_1=0.4)
    late, both = looking.looks(count_1=0.85, both_0=0.2)
    assert (late.task, late.component, late.spouts, late.since, late.share) == (
        "count-1",
        "count",
        ["words"],
        1000.0,
        0.85,
    )
    assert (late.capacity, late.queued_bytes, late.idle_since) == (1.0, 2048, None)
    assert (both.task, both.spouts, both.since) == ("both-0", ["numbers", "words"], 1005.0)
    assert looking.looks(count_1=0.001) == []
    (again,) = looking.looks(count_1=0.4)
    assert again.since == 1015.0


def test_what_is_not_known_is_left_out(looking):
    (stall,) = looking.looks(capacity=math.nan, queued=math.nan, count_0=0.5)
    assert (stall.capacity, stall.queued_bytes) == (None, None)
    assert line(stall, 1012.0) == "count-0 pauses words for 50 % of the time, since 12 s"


def test_a_task_that_is_gone_is_forgotten(looking):
    looking.looks(count_1=0.4)
    logical = looking.plan.logical.scaled({"count": (1, 1)})
    looking.plan = PhysicalPlan.build(logical, packing_for(logical.config).pack(logical), 2)
    assert looking.looks(count_1=0.4) == []


def test_a_task_that_processes_nothing_while_spouts_wait_is_a_trouble_after_a_minute(looking):
    for _ in range(int(STANDS_STILL / 5.0)):
        looking.looks(executed=0.0, count_0=1.0)
        assert bool([*looking.stalls.troubles()]) == (looking.at - 1005.0 >= STANDS_STILL)
    (trouble,) = looking.stalls.troubles()
    assert (trouble.who, trouble.since, trouble.crashing) == ("count-0", 1000.0, False)
    assert trouble.why == "it has processed nothing, and holds words back all the time"
    looking.looks(executed=0.2, count_0=1.0)
    assert [*looking.stalls.troubles()] == []


@pytest.mark.parametrize("share", [0.5, 0.89])
def test_spouts_that_may_go_on_now_and_then_are_none(looking, share):
    for _ in range(30):
        looking.looks(executed=0.0, count_0=share)
    assert [*looking.stalls.troubles()] == []


def test_people_are_told_who_it_is(looking):
    stalls = looking.looks(count_1=0.4, count_0=0.85)
    rest = "of the time, since 10 s; it works 100 % of the time; 2.05 KB of input wait for it"
    assert [*facts(stalls, 1010.0)] == [
        ("Holds back", f"count-0 pauses words for 85 % {rest}"),
        ("Holds back", f"count-1 pauses words for 40 % {rest}"),
        ("Others do, too", ""),
    ]
    assert [*facts(stalls * 3, 1010.0)][SHOWN:] == [("Others do, too", "2 more")]
