"""Redis and Memcached servers of the tests' own, at free ports, in a folder."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

from tests.process.waiting import eventually


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Server:
    """A process that listens."""

    def __init__(self, command: list[str], port: int) -> None:
        self._command, self.port = command, port
        self.start()

    def start(self) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(self._command, **quiet)
        eventually(self._listens, what=f"{self._command[0]} listens")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def redis_server(folder: Path) -> Server:
    """What it has acknowledged outlives it."""
    port = free_port()
    options = {"port": port, "bind": "127.0.0.1", "dir": folder, "appendonly": "yes", "appendfsync": "always"}
    flags = [str(part) for name, value in (options | {"save": ""}).items() for part in (f"--{name}", value)]
    return Server(["redis-server", *flags], port)


def memcached() -> Server:
    port = free_port()
    return Server(["memcached", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-M", "-u", "nobody"], port)
