"""When faults happen, when they end, what is written down of them."""

from __future__ import annotations

import pytest

from ardea.errors import UserError
from ardea.testing.kit import Fault, Faults, Found, Kind, Schedule, Targets

TARGETS = Targets(["master", "count-0"], [("manager-1", "manager-2")])


class Recorder:
    """Processes, links and time; ``happened`` is what was asked of them."""

    def __init__(self, journal=None):
        self.now = 100.0
        self.declared = False
        self.running = {"master": Found(7, 1), "count-0": Found(8, 3)}
        self.happened = []
        self.faults = Faults(TARGETS, self, self, lambda: self.declared, journal=journal, clock=lambda: self.now)

    def kill(self, name):
        return self._did("kill", name)

    def freeze(self, name):
        found = self._did("freeze", name)
        return found and (found, [found.pid])

    def _did(self, verb, name):
        if name in self.running:
            self.happened.append((verb, name))
        return self.running.get(name)

    def thaw(self, pids):
        self.happened.append(("thaw", *pids))

    def cut(self, one, other):
        self.happened.append(("cut", one, other))

    def delay(self, one, other, seconds):
        self.happened.append(("delay", one, other, seconds))

    def heal(self, one, other):
        self.happened.append(("heal", one, other))

    def at(self, seconds):
        """What happens when the schedule is so old."""
        self.now = 100.0 + seconds
        self.happened.clear()
        self.faults.step()
        return self.happened


def schedule(*faults):
    return Schedule(tuple(Fault(**fault) for fault in faults))


KILL = {"kind": Kind.KILL, "target": "count-0"}
FREEZE = {"kind": Kind.FREEZE, "target": "master", "seconds": 2.0}
CUT = {"kind": Kind.CUT, "target": "manager-1", "other": "manager-2", "seconds": 1.0}


def test_each_at_its_time_and_no_longer_than_it_lasts():
    it = Recorder()
    it.faults.play(schedule({"at": 1.0, **KILL}, {"at": 2.0, **FREEZE}, {"at": 3.0, **CUT}))
    assert it.at(0.9) == []
    assert it.at(1.0) == [("kill", "count-0")]
    assert it.at(2.5) == [("freeze", "master")]
    assert it.at(3.0) == [("cut", "manager-1", "manager-2")]
    assert it.at(3.9) == []
    assert it.faults.pending
    assert sorted(it.at(4.5)) == [("heal", "manager-1", "manager-2"), ("thaw", 7)]
    assert not it.faults.pending


def test_who_does_not_run_is_hit_when_it_does(tmp_path):
    journal = tmp_path / "journal.jsonl"
    it = Recorder(journal)
    del it.running["count-0"]
    it.faults.play(schedule({"at": 1.0, **KILL}))
    assert it.at(1.0) == []
    it.running["count-0"] = Found(9, 4)
    assert it.at(5.0) == [("kill", "count-0")]
    [done] = Schedule.read(journal).faults
    assert (done.at, done.target, done.pid, done.life) == (5.0, "count-0", 9, 4)
    assert it.at(6.0) == []


def test_the_end_of_the_topology_ends_every_fault():
    it = Recorder()
    it.faults.play(schedule({"at": 1.0, **FREEZE}, {"at": 1.0, **CUT}, {"at": 2.0, **KILL}))
    it.at(1.0)
    it.declared = True
    assert sorted(it.at(2.0)) == [("heal", "manager-1", "manager-2"), ("thaw", 7)]
    assert not it.faults.pending
    with pytest.raises(UserError, match="the end of the topology is declared"):
        it.faults.kill("master")


def test_by_hand_it_happens_at_once():
    it = Recorder()
    it.faults.delay("manager-2", "manager-1", 0.5, 3.0)
    assert it.happened == [("delay", "manager-2", "manager-1", 0.5)]
    assert it.at(3.0) == [("heal", "manager-2", "manager-1")]
    it.faults.kill("master")
    assert it.happened[-1] == ("kill", "master")
    assert [fault.at for fault in it.faults.done] == [0.0, 3.0]


def test_strangers_are_refused_before_anything_happens():
    it = Recorder()
    with pytest.raises(UserError, match=r"no process count-1; there are master, count-0"):
        it.faults.play(schedule({"at": 0.0, **KILL}, {"at": 1.0, "kind": Kind.KILL, "target": "count-1"}))
    with pytest.raises(UserError, match="no link that can be cut is between master and manager-1"):
        it.faults.cut("master", "manager-1", 1.0)
    assert it.at(10.0) == []
