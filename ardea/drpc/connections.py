"""What a connection may cost: how many there are, how long a request is on its way, and how long an answer waits."""

from __future__ import annotations

import asyncio
import fcntl
import sys
import termios

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 768
"""With another one, that which has kept its request back for longest is closed."""
WITHIN = 30.0
"""Seconds that a request may take until its last byte is here."""
STUCK = 15.0
"""Seconds for which nobody may take anything of an answer, once more of it waits than a socket holds.

Each so many seconds less has to wait than before.
"""


class BoundedConnection(H11Protocol):
    """uvicorn's, with a bound on their number, one deadline for each request, and one for who takes its answer."""

    _late: asyncio.TimerHandle | None = None  # while a request is awaited
    _stuck: asyncio.TimerHandle | None = None  # while an answer waits

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

    def pause_writing(self) -> None:
        """The peer takes less than there is."""
        super().pause_writing()
        self._look_again()

    def resume_writing(self) -> None:
        """It has taken enough."""
        self._go_on()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets it."""
        self._wait_no_longer()
        self._go_on()
        super().connection_lost(exc)

    def _wait_no_longer(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _look_again(self) -> None:
        self._stuck = self.loop.call_later(STUCK, self._look, self._untaken)

    @property
    def _untaken(self) -> int:
        """Bytes of the answer that the peer has not got: those in the socket, too, which takes more in large steps."""
        opened = self.transport.get_extra_info("socket")
        try:
            held = b"" if opened is None else fcntl.ioctl(opened.fileno(), termios.TIOCOUTQ, bytes(4))
        except OSError:  # not every system says it
            held = b""
        return self.transport.get_write_buffer_size() + int.from_bytes(held, sys.byteorder)

    def _look(self, before: int) -> None:
        if self._untaken < before:
            self._look_again()
        else:
            self.transport.abort()

    def _go_on(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
