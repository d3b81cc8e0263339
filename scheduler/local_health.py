"""The health of topologies on this machine: their masters are asked, all at once."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence

from ardea.errors import ArdeaError
from ardea.health import Health, HealthState, ProcessRow, Trouble
from ardea.health.processes import trouble
from ardea.plan.names import TOPOLOGY_MASTER
from ardea.scheduler.control import MasterClient, Status
from ardea.scheduler.home import Home
from ardea.state import StateManager
from ardea.state.topologies import TopologyStatus

ANSWER_WITHIN = 2.0
_LOOK_EVERY = 0.02


def with_health(
    state: StateManager,
    home: Home,
    topologies: Sequence[TopologyStatus],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> list[TopologyStatus]:
    """The same, each with its health; ``clock`` in steady seconds."""
    deadline = clock() + ANSWER_WITHIN
    with contextlib.ExitStack() as close:
        asked = {
            topology.id: Asked(close.enter_context(MasterClient(state, topology.id, home.folder(topology.id))))
            for topology in topologies
            if topology.running
        }
        while (left := [each for each in asked.values() if each.waits]) and clock() < deadline:
            for each in left:
                each.look()
            left[0].client.wait(_LOOK_EVERY)
    return [
        dataclasses.replace(
            topology, health=health_of(topology, *(asked[topology.id].answer if topology.running else (None, "")))
        )
        for topology in topologies
    ]


class Asked:
    """One master that has been asked for its status, and what came of it."""

    def __init__(self, client: MasterClient) -> None:
        self.client = client
        self._sent = False
        self._status: Status | None = None
        self._silence = ""

    @property
    def waits(self) -> bool:
        """Whether neither an answer nor the reason of its absence is known."""
        return self._status is None and not self._silence

    @property
    def answer(self) -> tuple[Status | None, str]:
        """What the master says, or why it says nothing."""
        silence = f"its master has not answered within {ANSWER_WITHIN:g} s" if self.waits else self._silence
        return self._status, silence

    def look(self) -> None:
        """Asks, if a master is known, and takes the answer, if one has come."""
        try:
            self._sent = self._sent or self.client.send("status", brief="yes")
            self._status = self.client.receive()
        except ArdeaError as error:
            self._silence = error.message


def health_of(
    topology: TopologyStatus, status: Status | None, silence: str, rows: Iterable[ProcessRow] = ()
) -> Health | None:
    """The health of a topology whose master says ``status``, or is silent for this reason.

    ``rows``: what the supervisors have written down; it is looked at where there is no master to ask.
    """
    if status is not None:
        return status.health
    if topology.execution is None or topology.execution.state.final:
        return None
    found = [each for row in rows if (each := trouble(row)) is not None]
    if not topology.running:
        gone = Trouble(topology.id, None, "nobody keeps its processes any more: its `ardea run` or daemon was killed")
        return Health(HealthState.ORPHANED, [gone])
    return Health(HealthState.UNREACHABLE, [Trouble(TOPOLOGY_MASTER, None, silence), *found])
