"""A topology that was found running, and the way to its master."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from ardea.cli.listing import row, state_of
from ardea.errors import ClusterError, Unreachable
from ardea.scheduler.control import MasterClient
from ardea.scheduler.home import Home
from ardea.state import StateManager
from ardea.state.topologies import TopologyStatus


@dataclass(frozen=True, slots=True)
class Running:
    """What a verb for a running topology works with."""

    state: StateManager
    topology: TopologyStatus
    client: MasterClient


def same_version(topology: TopologyStatus, verb: str) -> None:
    """For verbs that start processes, or change what they are.

    Raises:
        ClusterError: another version has submitted the topology; it goes on as it is.
        StateError: it cannot be read who has.
    """
    if topology.problem is not None:
        raise topology.problem
    if topology.record is not None and (why := topology.record.differs):
        raise ClusterError(
            f"{why}: `ardea {verb}` cannot go on with it; nothing was changed",
            hint=f"use the version that submitted it, or `ardea kill {topology.name}` and submit it again",
        )


@contextlib.contextmanager
def running(name: str, home: Home) -> Iterator[Running]:
    """The running topology of that name or id.

    Raises:
        NotFound: there is none.
        Unreachable: it does not run.
    """
    with home.open_state() as manager:
        topology = home.topology(manager, name)
        if not topology.running:
            state = state_of(row(topology))
            dead = state == "DEAD"
            raise Unreachable(
                f"{topology.id} does not run; it is {state}{': nobody keeps its processes any more' if dead else ''}",
                hint=f"`ardea kill {name}` removes what is left" if dead else "`ardea list` shows which topologies run",
            )
        with MasterClient(manager, topology.id, home.folder(topology.id)) as client:
            yield Running(manager, topology, client)
