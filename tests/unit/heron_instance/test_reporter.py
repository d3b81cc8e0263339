"""What a task says to the tasks that read it: one message for all, or for those that must hear it again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ardea import Topology
from ardea.heron_instance.reporter import Reporter
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.wire_pb2 import BARRIER, MARKER
from ardea.scheduler.packing import packing_for
from ardea.testing import CollectBolt, RowsSpout


class Wide(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec()
    count = CollectBolt.spec(inputs=[words], par=3)


@pytest.fixture
def said():
    return []


@pytest.fixture
def reporter(said):
    logical = Wide.plan({})
    plan = PhysicalPlan.of(logical, packing_for(logical.config).pack(logical), 4)
    (words,) = plan.component_tasks["words"]
    output = SimpleNamespace(put=lambda message: said.append(message.header))
    env = SimpleNamespace(plan=plan, task=plan.tasks[words], life=2, output=output, clock=lambda: 0.0)
    env.timeline, env.snapshots = 0, None
    made = Reporter(env, SimpleNamespace(draining=False, hold=0, ending=False))
    made.rows = SimpleNamespace(open_rows=0, waiting_rows=0, spout_state=None)
    return made


def markers(said):
    return [(list(h.targets), h.round, h.end, h.epoch) for h in said if h.kind == MARKER]


def test_a_rest_is_one_message_for_all_and_so_is_that_it_is_over(reporter, said):
    """Round 0 says so: ticks of those that read it go on."""
    reporter.rest()
    reporter.wake()
    reporter.rest()
    first = 2 << 32
    assert markers(said) == [([], first + 1, False, 4), ([], 0, False, 4), ([], first + 2, False, 4)]


def test_those_that_have_risen_are_told_again_in_one_message(reporter, said):
    readers = reporter.markers.feeds
    reporter.rest()
    one, two, _ = sorted(readers)
    reporter.learn({one: 5, two: 5, 99: 5})
    assert markers(said)[1:] == [([one, two], (2 << 32) + 1, False, 4)]


def test_markers_and_barriers_say_in_which_timeline_they_were_sent(reporter, said):
    reporter._env.timeline = 6
    reporter.rest()
    reporter.barrier(9)
    assert [(header.kind, header.timeline, header.snapshot) for header in said if header.kind in (MARKER, BARRIER)] == [
        (MARKER, 6, 0),
        (BARRIER, 6, 9),
    ]


def test_an_end_is_told_as_one(reporter, said):
    reporter.end()
    assert markers(said) == [([], 2 << 32, True, 4)]


def test_a_rollback_takes_back_what_was_given_up_since(reporter):
    timeline = SimpleNamespace(committed=3, snapshot=3, abandoned=0)
    reporter._env.snapshots = SimpleNamespace(timeline=timeline)
    reporter.put_back(3)
    for number, committed, abandoned in [(5, 3, 0), (6, 5, 0), (7, 5, 6)]:
        timeline.committed, timeline.abandoned = committed, abandoned
        reporter.given_up += 1
        reporter.taken(number)
    assert reporter._given_up_at == {3: 0, 5: 1, 7: 3}, "6 was abandoned"
    reporter.given_up += 1
    again = Reporter(reporter._env, SimpleNamespace(draining=False, hold=0, ending=False))
    again.take_over(reporter)
    again.put_back(5)
    assert again.given_up == 1
    again.put_back(5)
    assert again.given_up == 1
    risen = Reporter(reporter._env, SimpleNamespace(draining=False, hold=0, ending=False))
    risen.put_back(5)
    risen.given_up += 1
    risen.put_back(5)
    assert risen.given_up == 0, "a new process knows nothing of what was given up before it"
