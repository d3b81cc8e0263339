"""A supervisor follows its specification: starts what is new, ends what is gone, starts again what has changed."""

from __future__ import annotations

import signal

from hypothesis import given
from hypothesis import strategies as st

from ardea.supervision.machine import (
    REMOVED,
    Ended,
    Exited,
    Finish,
    Kill,
    Machine,
    Phase,
    Respecified,
    Start,
    Started,
    StopRequested,
    Tick,
)
from ardea.supervision.spec import Policy, ProcessSpec

TERM, KILL = signal.SIGTERM, signal.SIGKILL


def spec(name, version=""):
    return ProcessSpec(name, ("true",), version=version)


def running(*specs):
    machine = Machine(specs, Policy(), 0.0)
    for instruction in machine.handle(Tick(), 0.0):
        machine.handle(Started(instruction.name), 0.0)
    return machine


def test_a_new_name_is_started():
    machine = running(spec("a"))
    assert machine.handle(Respecified((spec("a"), spec("b"))), 1.0) == []
    assert machine.handle(Tick(), 1.0) == [Start("b")]


def test_a_name_that_is_gone_ends_for_good():
    """SIGTERM, after the grace SIGKILL; the others go on."""
    machine = running(spec("a"), spec("b"))
    assert machine.handle(Respecified((spec("a"),)), 1.0) == [Kill("b", TERM)]
    assert machine.handle(Respecified((spec("a"),)), 2.0) == []
    assert Kill("b", KILL) in machine.handle(Tick(), 11.0)
    assert machine.handle(Exited("b", -KILL), 11.1) == [Ended("b", -KILL, f"killed by SIGKILL ({REMOVED})", None)]
    assert set(machine.processes) == {"a"}


def test_another_version_is_started_again_at_once():
    """Whatever its exit code; one that waits out a back-off does not wait any longer."""
    machine = running(spec("a", "1"), spec("b", "1"))
    machine.handle(Exited("b", 75), 1.0)
    machine.handle(Tick(), 1.0)
    machine.handle(Started("b"), 1.0)
    machine.handle(Exited("b", 75), 1.1)  # half a second of back-off
    assert machine.handle(Respecified((spec("a", "2"), spec("b", "2"))), 1.2) == [Kill("a", TERM)]
    assert machine.handle(Tick(), 1.2) == [Start("b")]
    machine.handle(Exited("a", 75), 1.3)
    assert machine.handle(Tick(), 1.3) == [Start("a")]


def test_the_rest_of_a_specification_counts_from_the_next_start():
    machine = running(spec("a"))
    assert machine.handle(Respecified((ProcessSpec("a", ("false",)),)), 1.0) == []
    assert machine.processes["a"].spec.argv == ("false",)


def test_one_that_comes_back_while_it_ends():
    machine = running(spec("a"), spec("b"))
    machine.handle(Respecified((spec("a"),)), 1.0)
    machine.handle(Respecified((spec("a"), spec("b"))), 1.1)
    machine.handle(Exited("b", 75), 1.2)
    assert machine.handle(Tick(), 1.2) == [Start("b")]


def test_a_supervisor_that_stops_follows_nothing():
    machine = running(spec("a"))
    machine.handle(StopRequested(), 1.0)
    assert machine.handle(Respecified((spec("a"), spec("b"))), 1.1) == []
    assert isinstance(machine.handle(Exited("a", 75), 1.2)[-1], Finish)


NAMES = st.sampled_from("abcd")
CHANGES = st.lists(st.dictionaries(NAMES, st.sampled_from("12"), min_size=1), max_size=8)


@given(CHANGES, st.randoms(use_true_random=False))
def test_what_runs_is_what_is_specified(changes, dice):
    """Whatever follows whatever, and however late processes end: in the end exactly the newest runs, each once."""
    machine, now, alive = running(spec("a", "1")), 0.0, {"a": "1"}

    def follow(instructions):
        for instruction in instructions:
            if isinstance(instruction, Start):
                assert instruction.name not in alive
                alive[instruction.name] = machine.processes[instruction.name].spec.version
                follow(machine.handle(Started(instruction.name), now))

    wanted = {"a": "1"}
    for wanted in changes:
        now += 1.0
        follow(machine.handle(Respecified(tuple(spec(*item) for item in wanted.items())), now))
        follow(machine.handle(Tick(), now))
        for name in [n for n in alive if machine.processes[n].killed and dice.random() < 0.5]:
            del alive[name]
            follow(machine.handle(Exited(name, 75), now))
    for _ in range(3):
        now += 1.0
        for name in [n for n in alive if machine.processes[n].killed]:
            del alive[name]
            follow(machine.handle(Exited(name, 75), now))
        follow(machine.handle(Tick(), now))
    assert alive == wanted
    assert all(process.phase is Phase.RUNNING for process in machine.processes.values())
