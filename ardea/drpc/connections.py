"""What a connection to the endpoint may cost: how many there are, and how long a request is on its way."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 768
"""With another one, that which has kept its request back for longest is closed."""
WITHIN = 30.0
"""Seconds that a request may take until its last byte is here."""


class BoundedConnection(H11Protocol):
    """uvicorn's, with a bound on their number and one deadline for each request."""

    _late: asyncio.TimerHandle | None = None  # while a request is awaited

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Takes it."""
        super().connection_made(transport)
        self._late = self.loop.call_later(WITHIN, transport.abort)
        if len(self.connections) > CONNECTIONS:
            waiting = [(c._late.when(), c) for c in self.connections if isinstance(c, BoundedConnection) and c._late]
            _, oldest = min(waiting, key=lambda each: each[0])  # this one at least waits
            self.connections.discard(oldest)  # at once: more may come before the loop has closed it
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Takes what has come."""
        super().data_received(data)
        awaited = self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing()
        if awaited and self._late is None:
            self._late = self.loop.call_later(WITHIN, self.transport.abort)
        elif not awaited:
            self._wait_no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets it."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def _wait_no_longer(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
