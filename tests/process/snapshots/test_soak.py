"""Tasks, managers, masters and containers are killed again and again, or stand still: each word is counted once.

A seed decides who and when; the faults are printed.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

import ardea.scheduler.local_processes
from ardea.scheduler.local_processes import _python
from tests.process.engine.running import unix_sockets
from tests.process.snapshots.test_effectively import Counted
from tests.process.waiting import alive
from tests.sizes import size

pytestmark = [pytest.mark.thorough, pytest.mark.cluster]

SEED = 108
KILLS, FREEZES = size(10, 100), size(2, 20)
WORDS = size(10_000, 500_000)
"""Of each spout, at least."""
LONGEST_PAUSE = size(0.5, 1.0)
"""Seconds from a fault to one that does not wait for a recovery."""
BACKENDS = ("memory", "rocksdb")
LONGEST_FREEZE = 4.0
"""Seconds; after ten without a beat a supervisor would kill it."""
IMPATIENT = Path(__file__).with_name("impatient.py")
VICTIMS = {
    "task": ("words-0", "words-1", "count-0", "count-1"),
    "manager": ("container-1/stream-manager", "container-2/stream-manager"),
    "master": ("topology-master",),
    "container": ("container-1", "container-2"),
}


@dataclass(frozen=True)
class Mark:
    """What the record says: whoever was killed before is back once a snapshot counts that is beyond it."""

    timeline: int
    committed: int


class Soaked(Counted):
    """The topology under faults; ``known`` are lives and pids of those that nobody has touched since."""

    FILE = "soaked.py"

    def __init__(self, root: Path, backend: str) -> None:
        super().__init__(root, WORDS, backend=backend)
        self.dice = random.Random(SEED)
        self.known: dict[str, tuple[int, int]] = {}
        self._broke, self._ruled = Mark(0, 0), 0
        self._frozen: dict[int, float] = {}

    # --- time -------------------------------------------------------------------------------------------------

    def pass_time(self, seconds: float) -> None:
        """Lets time pass."""
        end = time.monotonic() + seconds
        self.until(lambda: self._thaw() or time.monotonic() >= end, "time has passed", seconds + 30.0)

    def recovers(self) -> None:
        """Waits until a snapshot counts that everybody has stored who was started since."""
        self.until(lambda: not self._thaw() and self._recovered(), "a snapshot counts after the last fault", 90.0)
        self.unharmed()
        self.known = self._living()

    def _recovered(self) -> bool:
        record = self.record()
        after = record.timeline > self._broke.timeline and record.committed > self._broke.committed
        return after and record.committed >> 32 > self._ruled

    def _thaw(self) -> bool:
        """Whether somebody still stands still."""
        for pid in [pid for pid, until in self._frozen.items() if time.monotonic() >= until]:
            del self._frozen[pid]
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        return bool(self._frozen)

    # --- faults -----------------------------------------------------------------------------------------------

    def strike(self, kind: str) -> str:
        """Kills or freezes one; returns who it was, and how."""
        freezes = kind == "freeze"
        of = self.dice.choice(["task", "manager", "master"]) if freezes else kind
        name = self.dice.choice(VICTIMS[of])
        pid = self.until(lambda: self._runs(name), f"{name} runs", 60.0)
        self.unharmed()
        if freezes:
            seconds = self.dice.uniform(1.0, LONGEST_FREEZE)
            self._frozen[pid] = time.monotonic() + seconds
            os.kill(pid, signal.SIGSTOP)
            return f"{name} stands still for {seconds:.1f} s"
        record = self.record()
        for gone in self._dies_with(name):
            self.known.pop(gone, None)
        if of == "master":
            self._ruled = max(self._ruled, record.committed >> 32)
        else:
            self._broke = Mark(record.timeline, record.committed)
        os.kill(pid, signal.SIGKILL)
        return name

    def _runs(self, name: str) -> int | None:
        pid = self.processes().get(name, {}).get("pid")
        return int(pid) if pid and alive(int(pid)) else None

    def _dies_with(self, name: str) -> set[str]:
        if name not in VICTIMS["container"]:
            return {name}
        number = int(name.rpartition("-")[2])
        tasks = {task.name for plan in self.packing.containers if plan.number == number for task in plan.instances}
        return {name, f"{name}/stream-manager", f"{name}/metrics-manager", *tasks}

    # --- what holds -------------------------------------------------------------------------------------------

    def unharmed(self) -> None:
        """Nobody but those that were killed has another life, or another process."""
        now = self.lives()
        assert {name: now.get(name) for name in self.known} == self.known

    def _living(self) -> dict[str, tuple[int, int]]:
        return {name: life for name, life in self.lives().items() if life[1]}

    def exact(self) -> int:
        """Each word was counted once, as the tasks say at the end; returns how many words."""
        positions, counts = self.left("words"), sum(map(Counter, self.left("count")), Counter[str]())
        assert min(positions) >= WORDS
        assert counts == self.counted(positions)
        return sum(positions)

    def counted(self, positions: list[int]) -> Counter[str]:
        """Of words that come round, without looking at each."""
        keys = self.module.KEYS
        found = Counter[str]()
        for spout, most in enumerate(positions):
            rounds, rest = divmod(most, keys)
            found.update({self._word(spout, place): rounds + (place < rest) for place in range(min(keys, most))})
        return found


def impatiently(monkeypatch: pytest.MonkeyPatch) -> None:
    """Supervisors start again at once whoever has died, and the master goes back at once."""

    def python(name: str) -> tuple[str, ...]:
        waits = name in ("ardea.supervisor", "ardea.topology_master")
        return (sys.executable, "-P", str(IMPATIENT), name) if waits else _python(name)

    monkeypatch.setattr(ardea.scheduler.local_processes, "_python", python)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("backend", BACKENDS)
def test_each_word_counts_once_whoever_is_killed_or_stands_still(tmp_path, monkeypatch, backend):
    """A fault comes when a snapshot counts after the last one, or a moment after it, in the midst of a recovery."""
    impatiently(monkeypatch)
    began = time.monotonic()
    with Soaked(tmp_path, backend) as topology:
        topology.running()
        topology.recovers()
        faults = [*[kind for kind in VICTIMS for _ in range(KILLS)], *["freeze"] * FREEZES]
        topology.dice.shuffle(faults)
        for kind in faults:
            print(f"{time.monotonic() - began:7.1f} {topology.strike(kind)}")
            if topology.dice.random() < 0.25:
                topology.recovers()
            else:
                topology.pass_time(topology.dice.uniform(0.0, LONGEST_PAUSE))
        topology.recovers()
        topology.until(lambda: topology.superfluous() == [], "what no snapshot needs is deleted")
        topology.until(lambda: min(topology.check()) >= WORDS, "as many words as asked are counted", 600.0)
        topology.unharmed()
        lives = {name: life for name, (life, _) in topology.known.items()}
        topology.raise_flag("enough")
        topology.finish(120.0)
        assert {name: topology.lives()[name][0] for name in lives} == lives, "nobody died at the end"
        words = topology.exact()
        sockets = unix_sockets(topology.folder)
    print(f"{time.monotonic() - began:7.1f} {words:,} words, {len(faults)} faults")
    assert (sockets, topology.store.names()) == (set(), [])
