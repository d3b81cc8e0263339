"""CPU and memory of a tree of processes, and of the rest of the machine, read from Linux's /proc."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import BenchmarkError

MODULES = {
    "ardea.forkserver": "forkserver",
    "ardea.supervisor": "supervisor",
    "ardea.topology_master": "topology-master",
    "ardea.stream_manager": "stream-manager",
    "ardea.metrics_manager": "metrics-manager",
}


@dataclass(frozen=True, slots=True)
class Usage:
    """One process: what it is, user and system seconds since it began, resident bytes."""

    kind: str
    cpu: float
    resident: int


@dataclass(frozen=True, slots=True)
class Stat:
    """What is read of ``/proc/PID/stat``; ``ticks`` are of user and system time."""

    parent: int
    ticks: int


def read_stat(text: str) -> Stat:
    """The name, in parentheses, may hold spaces and parentheses."""
    fields = text.rpartition(")")[2].split()
    return Stat(parent=int(fields[1]), ticks=int(fields[11]) + int(fields[12]))


def busy_ticks(text: str) -> int:
    """Ticks in which the machine's cores worked, from the first line of ``/proc/stat``.

    Guests' time is in user and nice already; idle, waiting for a disk and stolen time are not work.
    """
    user, nice, system, _idle, _iowait, irq, softirq = map(int, text.split("\n", 1)[0].split()[1:8])
    return user + nice + system + irq + softirq


def descendants(root: int, parents: Mapping[int, int]) -> set[int]:
    """All that descend from ``root``, without itself; ``parents``: pid -> parent's pid."""
    found: set[int] = set()
    news = {root}
    while news:
        news = {pid for pid, parent in parents.items() if parent in news} - found
        found |= news
    return found


def kind_of(argv: Sequence[str], components: Mapping[int, str]) -> str:
    """``supervisor``, ``stream-manager`` ...; of an instance, its component (``components``: by task)."""
    if "-m" not in argv:
        return "other"
    module = argv[argv.index("-m") + 1]
    if module == "ardea.heron_instance":
        return components[int(argv[argv.index("--task") + 1])]
    return MODULES.get(module, "other")


class ProcessTree:
    """All that this process has started, and what those have."""

    def __init__(self, components: Mapping[int, str], proc: Path = Path("/proc"), root: int | None = None) -> None:
        """``components``: the component of each task; ``root``: another process than this one."""
        if not (proc / "stat").exists():
            raise BenchmarkError(f"CPU and memory are read from {proc}, which this system does not have; use Linux")
        self._root = os.getpid() if root is None else root
        self._components = components
        self._proc = proc
        self._tick = 1.0 / os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")

    def usage(self) -> dict[int, Usage]:
        """By pid; a process that ends meanwhile is left out."""
        stats = {}
        for entry in self._proc.iterdir():
            if entry.name.isdigit():
                try:
                    stats[int(entry.name)] = read_stat((entry / "stat").read_text())
                except (FileNotFoundError, ProcessLookupError):
                    continue
        found = {}
        for pid in descendants(self._root, {pid: stat.parent for pid, stat in stats.items()}):
            folder = self._proc / str(pid)
            try:
                argv = (folder / "cmdline").read_text().split("\0")
                pages = int((folder / "statm").read_text().split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            found[pid] = Usage(kind_of(argv, self._components), stats[pid].ticks * self._tick, pages * self._page)
        return found

    def machine_cpu(self) -> float:
        """Seconds that the machine's cores have worked, for whomever."""
        return busy_ticks((self._proc / "stat").read_text()) * self._tick
