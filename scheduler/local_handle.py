"""One topology of a state directory, for all verbs."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

from ardea.code import Code
from ardea.errors import NotFound, StateError, Unreachable
from ardea.plan.definition import Definition
from ardea.plan.names import container_name
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler.control import ControlPort, MasterClient
from ardea.scheduler.home import Home
from ardea.scheduler.local_evidence import evidence
from ardea.scheduler.local_health import health_of
from ardea.scheduler.local_update import LocalUpdate
from ardea.scheduler.next_definition import Change
from ardea.scheduler.processes import containers, metrics_ports, processes
from ardea.scheduler.restart import Restart
from ardea.scheduler.schedulers import Description, Evidence, Handle
from ardea.snapshots.kept import Kept, committed_in
from ardea.state import paths, records
from ardea.state.records import SchedulerLocation, TimelineRecord
from ardea.state.topologies import TopologyStatus
from ardea.state.topologies import status as status_of
from ardea.supervision.records import read_status


class LocalHandle(Handle):
    """Its folder, and what the state manager knows of it."""

    def __init__(self, home: Home, topology: str) -> None:
        """NotFound: ``home`` has no such topology."""
        self._home, self._state = home, home.open_state()
        try:
            self.topology = home.topology(self._state, topology)
        except BaseException:
            self._state.close()
            raise
        self._folder = home.folder(self.topology.id)

    def look(self) -> TopologyStatus:
        """See :class:`Handle`."""
        return status_of(self._state, self.id)

    def describe(self) -> Description:
        """See :class:`Handle`."""
        status, silence = self.master_says()
        rows = processes(self._folder, time.time())
        return Description(
            topology=self.topology,
            status=status,
            silence=silence,
            kept_by=self._keeper(),
            processes=rows,
            health=health_of(self.topology, status, silence, rows),
            metrics_ports=metrics_ports(self._folder) if self.topology.running else None,
            folder=self._folder,
        )

    def definition(self) -> Definition:
        """See :class:`Handle`."""
        return Definition.read(self._folder / "definition")

    def code(self) -> Code | None:
        """See :class:`Handle`."""
        return Code.read(self._folder, self.definition().code)

    def committed(self) -> Kept | None:
        """See :class:`Handle`."""
        path = paths.timeline(self.id)

        def number() -> int:
            try:
                return records.decode(self._state.get(path).data, TimelineRecord, path).committed
            except NotFound:
                return 0

        return committed_in(self._home.snapshots(self.id), self.id, number)

    @contextlib.contextmanager
    def control(self) -> Iterator[ControlPort]:
        """See :class:`Handle`."""
        self.require_running()
        with MasterClient(self._state, self.id, self._folder) as client:
            yield client

    def dump(self, task: str) -> None:
        """See :class:`Handle`: SIGUSR1 makes the process do so."""
        packing = packing_from_bytes(self.definition().packing)
        number = next(packing.container_of(i.task) for i in packing.instances if i.name == task)
        process = read_status(self._folder / container_name(number)).get("processes", {}).get(task, {})
        if (pid := process.get("pid")) is None:
            raise Unreachable(f"{task} does not run now", hint="`ardea describe` says why")
        os.kill(pid, signal.SIGUSR1)

    def evidence(self) -> Iterator[Evidence]:
        """See :class:`Handle`."""
        return evidence(self._folder, running=self.topology.running)

    def restart(self, container: int | None, patience: float) -> list[int]:
        """See :class:`Handle`."""
        self.require_running()
        self.require_version("restart")
        with MasterClient(self._state, self.id, self._folder) as client:
            chosen = containers(self._folder) if container is None else [container]
            Restart(client, self._folder, clock=time.monotonic).restart(chosen, patience)
        return chosen

    def update(self, change: Change, target: str | None) -> LocalUpdate:
        """See :class:`Handle`."""
        self.require_running()
        self.require_version("update")
        return LocalUpdate(self._state, self.id, self._folder, change, target)

    def close(self) -> None:
        """See :class:`Handle`."""
        self._state.close()

    def _keeper(self) -> SchedulerLocation | None:
        path = paths.scheduler(self.id)
        with contextlib.suppress(NotFound, StateError):
            return records.decode(self._state.get(path).data, SchedulerLocation, path)
        return None
