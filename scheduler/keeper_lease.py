"""The right to keep a topology's processes on this machine: a lease, taken again if its session expires."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable

from ardea.errors import Conflict, StateError
from ardea.state import Lease, StateManager, Versioned, paths, records
from ardea.state.records import SchedulerLocation

FORGOTTEN = "the state does not know it any more: somebody removed it"
log = logging.getLogger("ardea.scheduler")


class KeeperLease:
    """Who holds it keeps the topology.  It ends when the state has forgotten the topology, or names another keeper.

    Attributes:
        ended: why it has ended; empty while it lasts.
    """

    def __init__(self, state: StateManager, topology_id: str) -> None:
        """Takes it.  Conflict: somebody else keeps a topology of this id."""
        self.ended = ""
        self._state = state
        self._root = paths.topology(topology_id)
        self._path = paths.scheduler(topology_id)
        location = SchedulerLocation(scheduler="local", host=socket.gethostname(), pid=os.getpid())
        self._data = records.encode(location)
        self._lease: Lease = state.lease(self._path, self._data)
        self._lost = self._rootless = self._state_lost = False
        self._put_back: Callable[[], None] = _nothing

    def begin(self, put_back: Callable[[], None]) -> None:
        """The state knows the topology from now on: its watches tell when that changes.

        ``put_back`` makes the topology known again, to servers that have lost all that they held.
        """
        self._put_back = put_back
        self._state.lost()
        self._state.watch(self._root, self._root_changed)
        self._state.watch(self._path, self._keeper_changed)

    def renew(self) -> None:
        """After each poll of the state.  Takes a lost lease again; while no server answers, the next time."""
        if self._rootless and not self.ended:
            self._look_for_root()
        if not self._lost or self.ended:
            return
        try:
            self._lease = self._state.lease(self._path, self._data)
        except Conflict:
            return  # it is there: whose it is, the watch tells
        except StateError as error:
            log.warning("the lease of %s is lost, and cannot be taken again yet: %s", self._path, error.message)
            return
        log.warning("the session with the state had expired; the lease of %s is taken again", self._path)

    def release(self) -> None:
        """Lets others have it."""
        self._lease.release()

    def _root_changed(self, node: Versioned | None) -> None:
        self._rootless = node is None

    def _look_for_root(self) -> None:
        """Somebody has removed it, or the servers have lost it."""
        try:
            self._state_lost = self._state_lost or self._state.lost()
            if not self._state_lost:
                self.ended = FORGOTTEN
                return
            self._put_back()
            self._rootless = self._state_lost = False
            log.error("the state manager had lost what it held; it knows %s again", self._root)
        except Conflict as error:
            self.ended = error.message
        except StateError as error:
            log.warning("what the state has lost cannot be put back yet: %s", error.message)

    def _keeper_changed(self, node: Versioned | None) -> None:
        self._lost = node is None
        if node is not None and node.data != self._data:
            self.ended = "the state names another keeper of its processes"


def _nothing() -> None:
    """Before the state knows it."""
