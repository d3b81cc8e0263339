"""Random faults at a running topology: what was read is written, and nobody is left or has grown."""

from __future__ import annotations

import itertools

import pytest

from ardea.testing.kit import Kind, Schedule
from tests.process.faults.counted import QUIET, Counted
from tests.process.waiting import alive
from tests.sizes import size

pytestmark = [pytest.mark.cluster]

SEED = 30
FAULTS = size(20, 200, whole=40)
SECONDS = size(2.0, 4.0) * FAULTS
GROWTH = 1.5


@pytest.mark.soak
@pytest.mark.timeout(2400)
def test_whatever_happens_what_was_read_is_written(tmp_path):
    """Kills, freezes, cuts and delays by a seed, with as many trees open as there may be."""
    with Counted(tmp_path, machines=True) as run:
        processes, targets = run.topology.processes, run.topology.targets
        run.full()
        before = processes.resident()
        drawn = (Schedule.seeded(seed, targets, faults=FAULTS, seconds=SECONDS) for seed in itertools.count(SEED))
        run.faults.play(next(schedule for schedule in drawn if {fault.kind for fault in schedule.faults} == set(Kind)))
        run.topology.disturbed(SECONDS + 2 * QUIET)
        again = Schedule.read(run.journal)
        assert len(run.faults.done) == len(again.faults) == FAULTS
        run.works()
        after = processes.resident()
        grown = {name: (before[name], size_) for name, size_ in after.items() if size_ > GROWTH * before[name]}
        pids = [found.pid for found in processes.running().values()]
        print(run.journal.read_text())
        print({name: f"{before[name] >> 20} -> {after[name] >> 20} MiB" for name in after})
        outcome = run.finish()
    print(outcome)
    assert not grown
    assert [pid for pid in pids if alive(pid)] == []
