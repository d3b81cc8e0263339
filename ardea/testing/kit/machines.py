"""Containers as on machines of their own: the kit keeps them as a cluster keeps pods, not the topology's supervisor.

One whose supervisor is silent for ten seconds, or gone, is replaced by another: an empty folder, sockets of its own.
The former is not touched: what stood still goes on when it is continued, and has to find out for itself.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from ardea.errors import ExitCode
from ardea.plan.definition import Definition
from ardea.plan.names import MASTER_CONTAINER, container_name
from ardea.scheduler.local_processes import LocalProcesses
from ardea.state.files import is_locked
from ardea.supervision import records, spec
from ardea.supervision.child import Child
from ardea.supervision.spec import ProcessSpec
from ardea.testing.kit.processes import Found
from ardea.transport import ipc_address

SILENCE = 10.0
"""Seconds without a beat after which a container is replaced, as one that the topology's supervisor keeps."""
ENDS_WITHIN = 15.0
LOOK_EVERY = 0.02


class Machine:
    """One container's supervisor, with all that it keeps.

    Attributes:
        container: which one's.
        folder: logs, lives, exits.
        code: what its supervisor ended with; None: it runs.
        heard: when it last beat.
    """

    def __init__(self, container: int, folder: Path, source: Path, environment: Mapping[str, str], now: float) -> None:
        """Starts it in ``folder`` by the specification ``source``, which it follows."""
        self.container, self.folder, self.heard = container, folder, now
        self.code: int | None = None
        self._source, self._known = source, ""
        (folder / "logs").mkdir(parents=True)
        self._log = (folder / "logs" / "supervisor.log").open("ab")
        self.follow()
        command = (sys.executable, "-P", "-m", "ardea.supervisor", "--folder", str(folder), "--spec", str(self._spec))
        nobodys = os.open(os.devnull, os.O_RDWR)  # the lock that counts is the one of its folder, which it takes
        try:
            self._child = Child.spawn(command, environment, nobodys)
        finally:
            os.close(nobodys)

    @property
    def pid(self) -> int:
        """Its supervisor's."""
        return self._child.pid

    def follow(self) -> None:
        """What is to run there, if that has changed."""
        if (text := self._source.read_text()) != self._known:
            self._known = text
            processes, policy = spec.load(self._source)
            moved = [dataclasses.replace(process, argv=self._moved(process)) for process in processes]
            records.replace(self._spec, spec.dump(moved, policy))

    def look(self, now: float) -> None:
        """Takes what it says, and its end."""
        if self.code is not None:
            return
        if self._child.beats():
            self.heard = now
        while output := self._child.output():
            self._log.write(output)
        if (code := self._child.process.poll()) is not None:
            self._note_end(code)

    def stop(self, number: signal.Signals) -> None:
        """SIGTERM or SIGKILL, to whoever still runs."""
        if self.code is None:
            self._child.signal(number)

    def close(self) -> None:
        """Kills it, and waits until all that it kept is gone."""
        if self.code is None:
            self._child.kill_group()
            self._note_end(self._child.process.wait())
        deadline = time.monotonic() + ENDS_WITHIN
        while is_locked(self.folder / "lock") and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY)

    def _note_end(self, code: int) -> None:
        self.code = code
        self._log.write(self._child.last_output())
        self._log.close()
        self._child.close()

    @property
    def _spec(self) -> Path:
        return self.folder / "spec.json"

    def _moved(self, process: ProcessSpec) -> tuple[str, ...]:
        """Its command, with this machine's folder and sockets for those that the scheduler has given it."""
        argv = list(process.argv)
        for place, (flag, value) in enumerate(pairwise(process.argv), 1):
            if flag == "--folder":
                argv[place] = str(self.folder)
            elif value.startswith("ipc://"):
                name = value.rpartition("/")[2].removeprefix("@ardea-")
                argv[place] = ipc_address(self.folder, f"{name}-{self.folder.parent.name}")
        return tuple(argv)


class Machines:
    """All of a topology's.  :meth:`step` has to be called a few times a second.

    Attributes:
        wanted: the containers that there are to be.
        present: by container, who has its place.
        former: who was replaced, or whom an update has removed.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """``folder``: the topology's; touches nothing."""
        self.present: dict[int, Machine] = {}
        self.former: list[Machine] = []
        self._folder, self._clock = folder, clock
        self.wanted: set[int] = set()
        self._environment: Mapping[str, str] = {}
        self._numbers = itertools.count(1)

    def scheduler(self, definition: Definition, folder: Path) -> LocalProcesses:
        """One whose topology's supervisor keeps the master's container alone."""
        return _MasterOnly(definition, folder, self.wanted)

    def begin(self, environment: Mapping[str, str]) -> None:
        """From now on there are machines; their processes have this environment."""
        self._environment = environment
        self.step()

    @property
    def over(self) -> bool:
        """Whether none of those that have a place runs."""
        return all(machine.code is not None for machine in self.present.values())

    def running(self) -> dict[str, tuple[Found, Path]]:
        """By container's name: its supervisor, which lives as often as the container was replaced, and its folder."""
        return {
            container_name(number): (Found(machine.pid, self._life(number)), machine.folder)
            for number, machine in self.present.items()
            if machine.code is None
        }

    def step(self) -> None:
        """Starts who is missing, and replaces who is gone or silent."""
        now = self._clock()
        for machine in (*self.present.values(), *self.former):
            machine.look(now)
        for number in self.present.keys() - self.wanted:
            self.present[number].stop(signal.SIGTERM)
            self.former.append(self.present.pop(number))
        for number in self.wanted:
            known = self.present.get(number)
            if known is not None and self._keeps_its_place(known, now):
                known.follow()
                continue
            if known is not None:
                self.former.append(known)
            self.present[number] = self._start(number, now)

    def close(self) -> None:
        """Leaves nobody behind."""
        for machine in (*self.present.values(), *self.former):
            machine.close()

    def _keeps_its_place(self, machine: Machine, now: float) -> bool:
        if machine.code is None:
            return now < machine.heard + SILENCE
        return machine.code in (ExitCode.OK, ExitCode.PERMANENT)

    def _start(self, number: int, now: float) -> Machine:
        place = self._folder / "machines" / str(next(self._numbers)) / container_name(number)
        source = self._folder / container_name(number) / "spec.json"
        return Machine(number, place, source, self._environment, now)

    def _life(self, number: int) -> int:
        return 1 + sum(machine.container == number for machine in self.former)


class _MasterOnly(LocalProcesses):
    """Writes all specifications down, and says which containers are to be kept elsewhere."""

    def __init__(self, definition: Definition, folder: Path, wanted: set[int]) -> None:
        super().__init__(definition, folder)
        self._wanted = wanted

    def _kept(self, containers: Mapping[int, ProcessSpec]) -> Sequence[ProcessSpec]:
        self._wanted.clear()
        self._wanted.update(containers.keys() - {MASTER_CONTAINER})
        return [containers[MASTER_CONTAINER]]
