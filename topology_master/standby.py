"""Waiting to be the master: one process holds the lease, the others stand by and watch it."""

from __future__ import annotations

import logging

from ardea.errors import Conflict, NotFound
from ardea.plan.names import TOPOLOGY_MASTER
from ardea.state import Check, Delete, Lease, StateManager, Unavailable, Versioned, paths, records
from ardea.state.records import MasterLocation

log = logging.getLogger(TOPOLOGY_MASTER)


class Standby:
    """Takes the master's lease as soon as nobody holds it.  While somebody does, it writes nothing.

    The lease of a former life of this process is nobody's: a supervisor starts no process before its former life is
    dead.  It is removed, instead of waited for until the session of the dead times out (decision 19).

    Attributes:
        unknown: whether there was nothing to be the master of at the last attempt: the topology has ended, or the state
            manager has lost what it held.
    """

    def __init__(self, state: StateManager, topology_id: str, location: MasterLocation) -> None:
        """``location`` is what the lease says of its holder."""
        self.unknown = False
        self._state = state
        self._topology = topology_id
        self._path = paths.master(topology_id)
        self._location = location
        self._holder: Versioned | None = None
        self._said = ""
        self._watch = state.watch(self._path, self._seen)

    def attempt(self) -> Lease | None:
        """The lease, if it was free and there is the topology; call it again every tenth of a second until it is.

        A server that does not answer is nobody's lease: neither this process nor another gets it.
        """
        self.unknown = False
        try:
            self._state.poll()
            if self._holder is not None:
                self._remove_former_lease(self._holder)
                return None
            self.unknown = not self._state.exists(paths.execution_state(self._topology))
            if self.unknown:
                self._say("the state manager does not know the topology: this master waits until it does")
                return None
            lease = self._state.lease(self._path, records.encode(self._location))
        except (Conflict, NotFound):
            # The watch tells of the holder at the next look; one that came and went in between it need not tell.
            self._say("another master is alive: this one stands by")
            return None
        except Unavailable as error:
            self._say(error.message)
            return None
        self._watch.cancel()
        return lease

    def _seen(self, node: Versioned | None) -> None:
        self._holder = node

    def _remove_former_lease(self, node: Versioned) -> None:
        """Removes what a former life left.  Version and term name it, for nobody else wrote one under the other."""
        former, mine = records.decode(node.data, MasterLocation, self._path), self._location
        dead = former.holder == mine.holder != "" and former.life < mine.life
        if not dead or not former.term:  # without a term, the next holder's node may have the same version
            self._say("another master is alive: this one stands by")
            return
        check = Check(paths.term(self._topology), former.term)
        self._state.transaction([Delete(self._path, node.version)], checks=[check])
        log.info("the lease of this process' former life is removed", extra={"life": former.life})

    def _say(self, what: str) -> None:
        if what != self._said:
            self._said = what
            log.info(what, extra={"path": self._path})
