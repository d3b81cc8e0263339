"""Real ZooKeeper servers on loopback, one or three, each of which can be killed, frozen and started again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import pytest

from ardea.state.address import Address
from tests.process.ports import free_ports
from tests.process.waiting import eventually

JARS = (
    "usr/share/java/zookeeper.jar",  # Debian, Ubuntu
    "opt/homebrew/opt/zookeeper/libexec/lib/*.jar",
    "usr/local/opt/zookeeper/libexec/lib/*.jar",
)
TLS_JARS = ("usr/share/java/netty-codec.jar",)
TICK_MS = 100
LIGHT = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
CONFIG = """\
tickTime={tick}
initLimit=50
syncLimit=20
maxSessionTimeout=60000
dataDir={folder}
clientPortAddress=127.0.0.1
clientPort={port}
admin.enableServer=false
4lw.commands.whitelist=ruok,srvr,mntr
forceSync=no
maxClientCnxns=0
"""


METRICS = """\
metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider
metricsProvider.httpHost=127.0.0.1
metricsProvider.httpPort={port}
"""
CLOSE_SESSION = -11
LOG_HEADER = 16
RECORD = struct.Struct(">qi")  # checksum, length
HEADER = struct.Struct(">qiqqi")  # session, number in it, zxid, milliseconds, type


class Transaction(NamedTuple):
    """One write as the servers logged it; ``time`` in seconds, by the clock of whoever led then."""

    time: float
    session: int
    kind: int
    body: bytes


def class_path() -> str:
    """Of the ZooKeeper that is installed here, with what Debian's leaves out that TLS needs."""
    jars = [str(jar) for pattern in (*JARS, *TLS_JARS) for jar in sorted(Path("/").glob(pattern))]
    if not any("zookeeper" in jar for jar in jars) or shutil.which("java") is None:
        pytest.fail("no ZooKeeper here: run `scripts/zookeeper.sh`")
    return os.pathsep.join(jars)


class Server:
    """One server; its data outlives its process."""

    def __init__(self, folder: Path, port: int, more: str = "", number: int = 1, jars: str = "") -> None:
        """``more``: further lines of its configuration; ``jars``: its class path, if not that of :func:`class_path`."""
        folder.mkdir(parents=True)
        self.port = port
        self.options: list[str] = []
        self._folder, self._jars = folder, jars
        (folder / "myid").write_text(f"{number}\n")
        (folder / "zoo.cfg").write_text(CONFIG.format(tick=TICK_MS, folder=folder, port=port) + more)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["java", *LIGHT, *self.options, "-cp", self._jars or class_path(), main, str(self._folder / "zoo.cfg")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """As kill -9; can be repeated."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def empty(self) -> None:
        """Its data is gone, as with a volume that is lost; while it does not run."""
        assert not self.runs
        shutil.rmtree(self._folder / "version-2")

    def backup(self, folder: Path) -> None:
        """A copy of its data, as docs/state.md has it made: while it runs."""
        shutil.copytree(self._folder / "version-2", folder)

    def restore(self, folder: Path) -> None:
        """Its data is what it was at the backup; while it does not run."""
        self.empty()
        shutil.copytree(folder, self._folder / "version-2")

    @property
    def runs(self) -> bool:
        """Whether its process is there, frozen or not."""
        return self._process is not None

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """After :meth:`freeze`; does no harm otherwise."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def says(self, word: str) -> str:
        """The answer to a four-letter word; empty while it does not serve."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(word.encode())
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
            return b"".join(parts).decode()
        return ""

    @property
    def mode(self) -> str:
        """``standalone``, ``leader``, ``follower``; empty while it does not serve."""
        return self._line("Mode")

    @property
    def zxid(self) -> int:
        """Of the last write."""
        return int(self._line("Zxid"), 16)

    def _line(self, name: str) -> str:
        lines = (line.partition(": ") for line in self.says("srvr").splitlines())
        return next((value for key, _, value in lines if key == name), "")

    def transactions(self) -> Iterator[Transaction]:
        """All in its log, in order."""
        for file in sorted(self._folder.glob("version-2/log.*"), key=lambda file: int(file.suffix[1:], 16)):
            data, at = file.read_bytes(), LOG_HEADER
            while at + RECORD.size <= len(data) and (length := RECORD.unpack_from(data, at)[1]):
                record = data[at + RECORD.size : at + RECORD.size + length]
                session, _, _, milliseconds, kind = HEADER.unpack_from(record)
                yield Transaction(milliseconds / 1000, session, kind, record[HEADER.size :])
                at += RECORD.size + length + 1  # an end mark

    def log(self) -> str:
        return (self._folder / "server.log").read_text(errors="replace")[-3000:]


class Ensemble:
    """``count`` servers; ``with`` starts them and waits until they serve, and kills them at the end.

    With ``jars``, those of a ZooKeeper that has the Prometheus provider, server N serves metrics at ``metrics[N - 1]``.
    """

    def __init__(self, folder: Path, count: int = 1, jars: str = "") -> None:
        ports = free_ports(4 * count)
        clients, quorum, election = ports[:count], ports[count : 2 * count], ports[2 * count : 3 * count]
        self.metrics = ports[3 * count :] if jars else []
        peers = "".join(
            f"server.{n}=127.0.0.1:{quorum[n - 1]}:{election[n - 1]}\n" for n in range(1, count + 1) if count > 1
        )
        provider = [METRICS.format(port=port) for port in self.metrics] or [""] * count
        self.servers = [
            Server(folder / f"zk-{n}", clients[n - 1], peers + provider[n - 1], n, jars) for n in range(1, count + 1)
        ]

    @property
    def hosts(self) -> str:
        return ",".join(f"127.0.0.1:{server.port}" for server in self.servers)

    def url(self, root: str) -> str:
        return f"zookeeper://{self.hosts}{root}"

    def address(self, root: str, credential: str = "") -> Address:
        return Address(self.hosts, root, credential)

    @property
    def leader(self) -> Server:
        """The present one, waited for."""
        return eventually(lambda: next((s for s in self.servers if s.mode == "leader"), None), 60, "there is a leader")

    def start(self) -> None:
        """Starts those that do not run and waits until all serve."""
        for server in self.servers:
            if not server.runs:
                server.start()
        self.serve()

    def serve(self) -> None:
        eventually(lambda: all(server.mode for server in self.servers), 120, self._logs)

    def _logs(self) -> str:
        return "\n".join(f"[{server.port}] {server.log()}" for server in self.servers)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.kill()
