"""Restarts the processes of containers in place, while their topology goes on.

The container's supervisor ends each in good order and starts it again with the next life; what they held is replayed.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ardea.errors import NotFound, TimedOut, Unreachable
from ardea.plan.names import container_name
from ardea.protocol.incarnations import life_of
from ardea.scheduler.control import MasterClient, Status, waiting_for
from ardea.scheduler.processes import containers as containers_of
from ardea.supervision.records import read_status

ASK_PATIENCE = 1.0
LOOK_EVERY = 0.1


class Restart:
    """One restart; the same again restarts again."""

    def __init__(self, client: MasterClient, folder: Path, *, clock: Callable[[], float]) -> None:
        """``folder`` is the topology's."""
        self._client, self._folder, self._clock = client, folder, clock

    def restart(self, containers: Sequence[int], patience: float) -> None:
        """Returns when every process of these containers is back, and the topology complete.

        Raises:
            NotFound: there is no such container.
            TimedOut: they are not back after ``patience`` seconds; they are still being started.
        """
        known = containers_of(self._folder)
        for number in containers:
            if number not in known:
                raise NotFound(
                    f"{self._folder.name} has no container {number}; it has {', '.join(map(str, known))}",
                    hint="container 0 is the master's",
                )
        deadline = self._clock() + patience
        former = {number: self._lives(number) for number in containers}
        for number in containers:
            self._order(number)
        while missing := self._missing(former):
            if self._clock() >= deadline:
                raise TimedOut(
                    f"{self._folder.name} is not complete {patience:g} s after the restart: it waits for {missing}; "
                    "its supervisors go on starting them",
                    hint=f"`ardea describe {self._folder.name}` shows how far they are",
                )
            self._client.wait(LOOK_EVERY)

    def _order(self, number: int) -> None:
        """A supervisor that has just died is being started in any case, and its pid may be another's."""
        pid = read_status(self._container(number)).get("pid")
        supervisor = _processes(self._folder).get(container_name(number), {})
        if pid is not None and (supervisor.get("state"), supervisor.get("pid")) == ("running", pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR2)

    def _missing(self, former: dict[int, dict[str, int]]) -> str:
        """For whom it waits; empty when all are back, but for those that an update has removed meanwhile."""
        risen: dict[str, int] = {}
        for number in sorted(former.keys() & set(containers_of(self._folder))):
            lives, now = former[number], _processes(self._container(number))
            there = [n for n in lives if n in now]
            late = [n for n in there if now[n]["state"] != "running" or now[n]["life"] <= lives[n]]
            if late:
                return f"{', '.join(late[:4])} of container {number}"
            risen.update((name, process["life"]) for name, process in now.items())
        status = self._ask()
        if status is None:
            return "the topology master"
        late = [name for name, task in status.tasks.items() if life_of(task.life) < risen.get(name, 0)]
        return waiting_for(status).removeprefix("waiting for ") or ", ".join(late[:4])

    def _ask(self) -> Status | None:
        with contextlib.suppress(Unreachable):
            return self._client.ask("status", patience=ASK_PATIENCE)
        return None

    def _lives(self, number: int) -> dict[str, int]:
        return {name: process["life"] for name, process in _processes(self._container(number)).items()}

    def _container(self, number: int) -> Path:
        return self._folder / container_name(number)


def _processes(folder: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = read_status(folder).get("processes", {})
    return found
