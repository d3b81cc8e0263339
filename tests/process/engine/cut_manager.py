"""The stream manager, with one thing added: SIGUSR2 cuts all its TCP connections, and what is on its way is lost."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
from pathlib import Path

from ardea.stream_manager.__main__ import main

libc = ctypes.CDLL(None)
NOWHERE = bytes(16)  # the address family AF_UNSPEC: connecting there resets a connection


wanted = threading.Event()


def cut_when_wanted() -> None:
    """In a thread of its own: in the middle of whatever the manager is sending."""
    while wanted.wait():
        wanted.clear()
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):  # closed since
                if str(link.readlink()).startswith("socket:"):
                    cut(int(link.name))


def cut(fd: int) -> None:
    with socket.socket(fileno=os.dup(fd)) as connection:
        connection.getpeername()  # raises for one that only listens, which goes on listening
        if connection.family == socket.AF_INET:
            libc.connect(connection.fileno(), NOWHERE, len(NOWHERE))


signal.signal(signal.SIGUSR2, lambda *_: wanted.set())
threading.Thread(target=cut_when_wanted, daemon=True).start()
sys.exit(main())
