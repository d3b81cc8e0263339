"""A supervisor follows its specification: starts what is new, ends what is gone, starts again what has changed."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.supervision.spec import Policy, ProcessSpec
from ardea.supervision.supervisor_state import (
    REMOVED,
    Ended,
    Exited,
    Finish,
    Kill,
    LeaderEnded,
    Phase,
    Respecified,
    RestartRequested,
    Start,
    Started,
    StopRequested,
    SupervisorState,
    Tick,
)

TERM, KILL = signal.SIGTERM, signal.SIGKILL


def spec(name, version=""):
    return ProcessSpec(name, ("true",), version=version)


def running(*specs):
    state = SupervisorState(specs, Policy(), 0.0)
    for instruction in state.handle(Tick(), 0.0):
        state.handle(Started(instruction.name), 0.0)
    return state


def test_a_new_name_is_started():
    state = running(spec("a"))
    assert state.handle(Respecified((spec("a"), spec("b"))), 1.0) == []
    assert state.handle(Tick(), 1.0) == [Start("b")]


def test_a_name_that_is_gone_ends_for_good():
    """SIGTERM, after the grace SIGKILL; the others go on."""
    state = running(spec("a"), spec("b"))
    assert state.handle(Respecified((spec("a"),)), 1.0) == [Kill("b", TERM)]
    assert state.handle(Respecified((spec("a"),)), 2.0) == []
    assert Kill("b", KILL) in state.handle(Tick(), 11.0)
    assert state.handle(Exited("b", -KILL), 11.1) == [Ended("b", -KILL, f"killed by SIGKILL ({REMOVED})", None)]
    assert set(state.processes) == {"a"}


def test_another_version_is_started_again_at_once():
    """Whatever its exit code; one that waits out a back-off does not wait any longer."""
    state = running(spec("a", "1"), spec("b", "1"))
    state.handle(Exited("b", 75), 1.0)
    state.handle(Tick(), 1.0)
    state.handle(Started("b"), 1.0)
    state.handle(Exited("b", 75), 1.1)  # half a second of back-off
    assert state.handle(Respecified((spec("a", "2"), spec("b", "2"))), 1.2) == [Kill("a", TERM)]
    assert state.handle(Tick(), 1.2) == [Start("b")]
    state.handle(Exited("a", 75), 1.3)
    assert state.handle(Tick(), 1.3) == [Start("a")]


def test_the_rest_of_a_specification_counts_from_the_next_start():
    state = running(spec("a"))
    assert state.handle(Respecified((ProcessSpec("a", ("false",)),)), 1.0) == []
    assert state.processes["a"].spec.argv == ("false",)


def test_one_that_comes_back_while_it_ends():
    state = running(spec("a"), spec("b"))
    state.handle(Respecified((spec("a"),)), 1.0)
    state.handle(Respecified((spec("a"), spec("b"))), 1.1)
    state.handle(Exited("b", 75), 1.2)
    assert state.handle(Tick(), 1.2) == [Start("b")]


def test_a_supervisor_that_stops_follows_nothing():
    state = running(spec("a"))
    state.handle(StopRequested(), 1.0)
    assert state.handle(Respecified((spec("a"), spec("b"))), 1.1) == []
    assert isinstance(state.handle(Exited("a", 75), 1.2)[-1], Finish)


ENDS = [RestartRequested(), Respecified((spec("a", "2"),)), Respecified(())]


@pytest.mark.parametrize("event", ENDS)
def test_who_does_not_end_is_killed_although_all_stop_meanwhile(event):
    """Ten seconds after its SIGTERM, and once."""
    state = running(spec("a", "1"))
    assert state.handle(event, 1.0) == [Kill("a", TERM)]
    assert state.handle(StopRequested(), 2.0) == []
    assert state.wakeup() == 11.0
    assert state.handle(Tick(), 10.9) == []
    assert state.handle(Tick(), 11.0) == [Kill("a", KILL)]
    assert state.handle(Tick(), 13.0) == []
    assert isinstance(state.handle(Exited("a", -KILL), 13.1)[-1], Finish)


def test_nothing_is_started_again_once_the_leader_has_ended():
    state = running(spec("a", "1"), spec("b", "1"))
    assert state.handle(Respecified((spec("a", "2"), spec("b", "1"))), 1.0) == [Kill("a", TERM)]
    state.handle(LeaderEnded(True), 1.1)
    assert state.handle(RestartRequested(), 1.2) == []  # who works may finish
    (ended,) = state.handle(Exited("a", 75), 1.3)
    assert ended.again is None
    assert state.handle(Tick(), 1.4) == []


NAMES = st.sampled_from("abcd")
CHANGES = st.lists(st.dictionaries(NAMES, st.sampled_from("12"), min_size=1), max_size=8)


@given(CHANGES, st.randoms(use_true_random=False))
def test_what_runs_is_what_is_specified(changes, dice):
    """Whatever follows whatever, and however late processes end: in the end exactly the newest runs, each once."""
    state, now, alive = running(spec("a", "1")), 0.0, {"a": "1"}

    def follow(instructions):
        for instruction in instructions:
            if isinstance(instruction, Start):
                assert instruction.name not in alive
                alive[instruction.name] = state.processes[instruction.name].spec.version
                follow(state.handle(Started(instruction.name), now))

    wanted = {"a": "1"}
    for wanted in changes:
        now += 1.0
        follow(state.handle(Respecified(tuple(spec(*item) for item in wanted.items())), now))
        follow(state.handle(Tick(), now))
        for name in [n for n in alive if state.processes[n].killed and dice.random() < 0.5]:
            del alive[name]
            follow(state.handle(Exited(name, 75), now))
    for _ in range(3):
        now += 1.0
        for name in [n for n in alive if state.processes[n].killed]:
            del alive[name]
            follow(state.handle(Exited(name, 75), now))
        follow(state.handle(Tick(), now))
    assert alive == wanted
    assert all(process.phase is Phase.RUNNING for process in state.processes.values())
