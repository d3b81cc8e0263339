"""The signals that a supervisor obeys, as bytes of a file that its loop waits for."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator

STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
RESTART = signal.SIGUSR2
_OTHERS = (signal.SIGCHLD, RESTART)


class Signals:
    """Caught while :meth:`caught` is entered; SIGCHLD only wakes the loop."""

    def __init__(self) -> None:
        self._waker, self._wake = socket.socketpair()
        for end in (self._waker, self._wake):
            end.setblocking(False)

    def fileno(self) -> int:
        """Readable when signals have come."""
        return self._waker.fileno()

    def take(self) -> set[int]:
        """The numbers of those that have come."""
        return {*self._waker.recv(4096)}

    def stop(self) -> None:
        """As if SIGTERM had come; from any thread."""
        self._wake.send(bytes([signal.SIGTERM]))

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """In the main thread; one that is ignored stays so, as SIGHUP under nohup."""
        former_fd = signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        wanted = [number for number in STOPS if signal.getsignal(number) is not signal.SIG_IGN]
        former = {number: signal.signal(number, lambda *_: None) for number in (*wanted, *_OTHERS)}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(former_fd)

    def close(self) -> None:
        """No signals come any more."""
        self._waker.close()
        self._wake.close()
