"""Waiting to be the master: one process holds the lease, the others stand by and watch it."""

from __future__ import annotations

import structlog

from ardea.errors import Conflict
from ardea.state import Lease, StateManager, Unavailable, Versioned

log = structlog.get_logger("topology-master")


class Standby:
    """Takes the lease at ``path`` as soon as nobody holds it.  Writes nothing while somebody does."""

    def __init__(self, state: StateManager, path: str, location: bytes) -> None:
        """``location`` is what the lease says of its holder."""
        self._state = state
        self._path = path
        self._location = location
        self._vacant = True
        self._told = False
        self._watch = state.watch(path, self._seen)

    def attempt(self) -> Lease | None:
        """The lease, if it was free; call it again every tenth of a second until it is.

        A server that does not answer is nobody's lease: neither this process nor another gets it.
        """
        try:
            self._state.poll()
            if not self._vacant:
                return None
            lease = self._state.lease(self._path, self._location)
        except Conflict:
            # The watch tells of the holder at the next look; one that came and went in between it need not tell.
            self._say("another master is alive: this one stands by")
            return None
        except Unavailable as error:
            self._say(error.message)
            return None
        self._watch.cancel()
        return lease

    def _seen(self, node: Versioned | None) -> None:
        self._vacant = node is None

    def _say(self, what: str) -> None:
        if not self._told:
            self._told = True
            log.info(what, path=self._path)
