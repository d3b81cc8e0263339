"""Whether this machine can run a plan: asked before anything is started."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ardea.errors import ClusterError
from ardea.plan import PackingPlan, open_files
from ardea.supervision import kernel

PROCESS_BYTES = 60_000_000
PROCESS_THREADS = 8
CONTAINER_PROCESSES = 3  # supervisor, stream manager, metrics manager
OTHER_PROCESSES = 4  # the topology's supervisor; container 0: supervisor, master, metrics manager
LEAST_ROOM = 1 << 16
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Machine:
    """What is left of it.  None: no limit known."""

    memory: int | None
    processes: int | None
    threads: int | None
    files: int | None

    @classmethod
    def here(cls) -> Machine:
        """This one, at this moment."""
        user_limit = resource.getrlimit(resource.RLIMIT_NPROC)[0] if os.geteuid() else resource.RLIM_INFINITY
        return cls(
            memory=_least(_available_memory(), _cgroup("memory.max", "memory.current", _unused_cache())),
            processes=_least(_number(Path("/proc/sys/kernel/pid_max")), _cgroup("pids.max", "pids.current")),
            threads=_least(
                _number(Path("/proc/sys/kernel/threads-max")),
                _cgroup("pids.max", "pids.current"),
                None if user_limit == resource.RLIM_INFINITY else user_limit,
            ),
            files=kernel.open_files(),
        )


def no_room(folder: Path) -> str:
    """What to say while the disk of this folder is full; empty while it is not, and if nobody knows."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return ""
    free = disk.f_bavail if os.geteuid() else disk.f_bfree  # the administrator has the reserve, too
    if not disk.f_blocks or free * disk.f_frsize >= LEAST_ROOM:
        return ""
    return f"the disk of {folder} is full: logs lose lines, and what must be written down waits; free some space"


def check(packing: PackingPlan, machine: Machine) -> None:
    """Refuses a plan that cannot run on this machine.

    Raises:
        ClusterError: memory, processes, threads or open files do not suffice; says how many tasks would fit.
    """
    tasks, containers = len(packing.instances), len(packing.containers)
    beside = CONTAINER_PROCESSES * containers + OTHER_PROCESSES
    processes = tasks + beside
    for what, needed, there, one in _demands(processes, machine):
        if there is not None and needed > there:
            fit = max(0, there // one - beside)
            raise ClusterError(
                f"{tasks:,} tasks (containers: {containers:,}) are {processes:,} processes and need "
                f"{_amount(what, needed)}; this machine has {_amount(what, there)}: about {fit:,} tasks fit; "
                "nothing was started",
                hint="ask for fewer tasks (par=, tasks=, --set topology.max.task.parallelism=N), "
                "or use a larger machine",
            )
    largest = max((len(container.instances) for container in packing.containers), default=0)
    files = open_files.needed(largest, containers)
    if machine.files is not None and files > machine.files:
        raise ClusterError(
            f"a container of {largest:,} tasks needs about {files:,} open files, and {machine.files:,} are allowed; "
            "nothing was started",
            hint=f"raise the hard limit (as root: `ulimit -Hn {files}`), or spread the tasks over more --containers",
        )


def _demands(processes: int, machine: Machine) -> Iterator[tuple[str, int, int | None, int]]:
    """(what, needed, there, what one process takes)."""
    yield "memory", processes * PROCESS_BYTES, machine.memory, PROCESS_BYTES
    yield "processes", processes, machine.processes, 1
    yield "threads", processes * PROCESS_THREADS, machine.threads, PROCESS_THREADS


def _amount(what: str, number: int) -> str:
    return f"{number / 1e9:,.1f} GB of memory" if what == "memory" else f"{number:,} {what}"


def _least(*amounts: int | None) -> int | None:
    return min((amount for amount in amounts if amount is not None), default=None)


def _available_memory() -> int | None:
    if (kilobytes := _row(Path("/proc/meminfo"), "MemAvailable:")) is not None:
        return kilobytes * 1024
    with contextlib.suppress(ValueError, OSError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _unused_cache() -> int:
    """Bytes of files that nobody has used lately: of what the control group uses, the kernel takes them first."""
    return _row(_CGROUP / "memory.stat", "inactive_file") or 0


def _cgroup(limit: str, used: str, given_back: int = 0) -> int | None:
    most, now = _number(_CGROUP / limit), _number(_CGROUP / used)
    return None if most is None or now is None else max(0, most - max(0, now - given_back))


def _row(path: Path, name: str) -> int | None:
    """The number after that name in a file with a line for each."""
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
    return None


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # not Linux, no such control group, or "max"
        return None


def check_ports(first: int, containers: int, host: str = "127.0.0.1") -> None:
    """Refuses metrics ports that are taken: container N serves ``first`` + N; 0: each takes a free one.

    Raises:
        ClusterError: one of them cannot be bound.
    """
    for port in range(first, first + containers + 1) if first else ():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except (OSError, OverflowError) as error:
                raise ClusterError(
                    f"container {port - first} cannot serve /metrics on {host}:{port}: {_refused(error)}; "
                    "nothing was started",
                    hint=f"--metrics-port takes the first of {containers + 1} free ports, or 0 for any",
                ) from error


def _refused(error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return "ports end at 65535"
    return "another process uses it" if error.errno == errno.EADDRINUSE else str(error.strerror)
