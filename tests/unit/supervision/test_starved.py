"""A process that starts on a machine whose cores others have."""

from __future__ import annotations

import signal

import pytest

from ardea.supervision.spec import Policy, ProcessSpec
from ardea.supervision.supervisor_state import Kill, Look, Observed, Started, SupervisorState, Tick


@pytest.mark.parametrize(("cpu", "last"), [(0.05, 300), (2.0, 30)], ids=["starved", "at work"])
def test_a_start_that_gets_no_core_is_not_killed_before_it_has_used_its_time(cpu, last):
    state, found = SupervisorState([ProcessSpec("a", ("x",))], Policy(), 0.0), {}
    state.handle(Tick(), 0.0)
    state.handle(Started("a"), 0.0)
    for now in range(1, 400):
        state.handle(Observed("a", Look(0, cpu * now, stopped=False, ready=True)), now)
        if instructions := state.handle(Tick(), now):
            found.setdefault(now, instructions)
    assert found == {last: [Kill("a", signal.SIGKILL)]}
