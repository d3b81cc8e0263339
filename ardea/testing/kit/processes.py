"""The processes of one topology on this machine, by the names that the simulated cluster uses.

``master``, ``manager-1``, ``metrics-1``, ``count-0``; ``container-1`` is the supervisor and all that it keeps.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import msgspec

from ardea.plan.names import MASTER_CONTAINER, METRICS_MANAGER, STREAM_MANAGER, TOPOLOGY_MASTER, container_name
from ardea.plan.packing import PackingPlan
from ardea.stream_manager.container_setup import Remembered
from ardea.supervision.records import read_status
from ardea.testing.kit.schedule import Targets

MASTER = "master"


@dataclass(frozen=True, slots=True)
class Found:
    """A process that runs."""

    pid: int
    life: int


class Processes:
    """Reads what the supervisors below a topology's folder write down."""

    def __init__(
        self, folder: Path, elsewhere: Callable[[], Mapping[str, tuple[Found, Path]]] = lambda: MappingProxyType({})
    ) -> None:
        """``folder``: ``DIR/local/ID``; it need not be there yet.

        ``elsewhere``: containers that the topology's supervisor does not keep; supervisor and folder by name.
        """
        self._folder, self._elsewhere = folder, elsewhere

    def running(self) -> dict[str, Found]:
        """All that run now."""
        return {name: found for members in self._containers().values() for name, found in members.items()}

    def kill(self, name: str) -> Found | None:
        """SIGKILL; None: it does not run now.  Of a container, the supervisor's: its processes die with it."""
        found = self.running().get(name)
        return found if found is not None and _signal([found.pid], signal.SIGKILL) else None

    def freeze(self, name: str) -> tuple[Found, list[int]] | None:
        """SIGSTOP; of a container, to its supervisor and to all that it keeps.  Returns the pids to :meth:`thaw`."""
        containers = self._containers()
        found = next((members[name] for members in containers.values() if name in members), None)
        if found is None:
            return None
        pids = [member.pid for member in containers[name].values()] if name in containers else [found.pid]
        return (found, pids) if _signal(pids, signal.SIGSTOP) else None

    @staticmethod
    def thaw(pids: Iterable[int]) -> None:
        """SIGCONT; to whoever is gone, nothing."""
        _signal(pids, signal.SIGCONT)

    def resident(self) -> dict[str, int]:
        """Bytes that each running process has resident."""
        names = {found.pid: name for name, found in self.running().items()}
        if not names:
            return {}
        command = ["ps", "-o", "pid=,rss=", "-p", ",".join(map(str, names))]
        lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()
        return {names[int(pid)]: int(kilobytes) << 10 for pid, kilobytes in map(str.split, lines)}

    def listener(self, port: int) -> str:
        """Who listens on a port: a stream manager's is in its file, and whatever else they dial is the master."""
        for file in self._folder.glob("**/container-*/manager.plan"):
            with contextlib.suppress(OSError, ValueError):  # just replaced
                known = msgspec.msgpack.decode(file.read_bytes(), type=Remembered)
                if port in (known.data_port, known.control_port):
                    return f"manager-{file.parent.name.rpartition('-')[2]}"
        return MASTER

    def _containers(self) -> dict[str, dict[str, Found]]:
        """By container: its supervisor, first, and its processes."""
        out = {}
        here = {name: (found, self._folder / name) for name, found in _alive(read_status(self._folder)).items()}
        for container, (supervisor, folder) in {**here, **self._elsewhere()}.items():
            members = _alive(read_status(folder))
            out[container] = {
                container: supervisor,
                **{_public(name, container): found for name, found in members.items()},
            }
        return out


def targets(packing: PackingPlan) -> Targets:
    """All that faults can befall in a topology that is packed so."""
    numbers = [container.number for container in packing.containers]
    managers = [f"manager-{number}" for number in numbers]
    between = [(one, other) for n, one in enumerate(managers) for other in managers[n + 1 :]]
    return Targets(
        processes=[
            MASTER,
            *managers,
            *(f"metrics-{number}" for number in (0, *numbers)),
            *(instance.name for instance in packing.instances),
            *(container_name(number) for number in (MASTER_CONTAINER, *numbers)),
        ],
        links=[*between, *((manager, MASTER) for manager in managers)],
    )


def _alive(status: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[str, Found]:
    processes = status.get("processes", {})
    return {name: Found(p["pid"], p["life"]) for name, p in processes.items() if p.get("pid")}


def _public(name: str, container: str) -> str:
    number = re.sub(r"^container-", "", container)
    return {
        TOPOLOGY_MASTER: MASTER,
        STREAM_MANAGER: f"manager-{number}",
        METRICS_MANAGER: f"metrics-{number}",
    }.get(name, name)


def _signal(pids: Iterable[int], number: signal.Signals) -> bool:
    """Whether somebody was there to get it."""
    reached = False
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            reached = True
    return reached
