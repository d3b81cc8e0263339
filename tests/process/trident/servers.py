"""Redis and Memcached servers of the tests' own, at free ports, in a folder."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path

from tests.process.ports import free_ports
from tests.process.waiting import eventually


class Server:
    """A process that answers the line ``asked`` with ``ready``: Redis listens before it has read what it wrote."""

    def __init__(self, command: list[str], port: int, asked: bytes, ready: bytes) -> None:
        self._command, self.port = command, port
        self._asked, self._ready = asked, ready
        self.start()

    def start(self) -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(self._command, **quiet)
        eventually(self._answers, what=f"{self._command[0]} answers")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as probe:
                probe.sendall(self._asked + b"\r\n")
                return probe.recv(64).startswith(self._ready)
        except OSError:
            return False


def redis_server(folder: Path) -> Server:
    """What it has acknowledged outlives it."""
    [port] = free_ports(1)
    options = {"port": port, "bind": "127.0.0.1", "dir": folder, "appendonly": "yes", "appendfsync": "always"}
    flags = [str(part) for name, value in (options | {"save": ""}).items() for part in (f"--{name}", value)]
    return Server(["redis-server", *flags], port, b"PING", b"+PONG")


def memcached() -> Server:
    [port] = free_ports(1)
    command = ["memcached", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-M", "-u", "nobody"]
    return Server(command, port, b"version", b"VERSION")
