"""A whole container on a machine of its own stands still, is replaced, and goes on: supervisor, managers and tasks."""

from __future__ import annotations

import pytest

from ardea.errors import ExitCode
from ardea.supervision.records import read_exits, read_status
from tests.process.faults.counted import Counted
from tests.process.waiting import alive
from tests.sizes import size

pytestmark = [pytest.mark.thorough, pytest.mark.cluster, pytest.mark.alone]

FOR_EVER = 3600.0


def pids(machine):
    """Of all that it keeps, and its supervisor's."""
    return [machine.pid, *(p["pid"] for p in read_status(machine.folder)["processes"].values() if p["pid"])]


@pytest.mark.soak
@pytest.mark.parametrize("container", size([2], [1, 2]))
def test_a_container_that_was_replaced_is_refused_when_it_goes_on_and_ends(tmp_path, container):
    """It stands still with as many trees open as there may be; whoever is in its place is never disturbed."""
    name = f"container-{container}"
    with Counted(tmp_path, machines=True) as run:
        topology, machines = run.topology, run.topology.machines
        run.full()
        frozen, members = machines.present[container], pids(machines.present[container])
        run.faults.freeze(name, FOR_EVER)
        topology.until(lambda: machines.present[container] is not frozen, "another machine has its place", 20.0)
        run.works()
        assert [pid for pid in members if not alive(pid)] == []
        before = topology.processes.running()
        assert before[name].pid == machines.present[container].pid

        run.full()
        topology.processes.thaw(members)
        code = topology.until(lambda: frozen.code, "the former one ends", 40.0)
        manager = read_exits(frozen.folder, "stream-manager")[-1]
        assert (code, manager.code, "REPLACED" in manager.reason) == (ExitCode.REPLACED, ExitCode.REPLACED, True)
        assert [pid for pid in members if alive(pid)] == []
        run.works()
        assert topology.processes.running() == before
        outcome = run.finish()
    assert [machine.code for machine in machines.present.values()] == [ExitCode.OK] * 2
    assert outcome.components["numbers"].lost > 0
    assert outcome.components["numbers"].given_up == 0
