"""A PostgreSQL server of its own, which can be killed and started again."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.process.patience import PatientTopology
from tests.process.ports import free_ports
from tests.process.waiting import eventually


def binary(name: str) -> str:
    """Debian has no server on the PATH."""
    found = shutil.which(name) or max(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), default="")
    if not found:
        pytest.fail(f"there is no {name}: scripts/stores.sh installs PostgreSQL")
    return found


class Database:
    """Listens on 127.0.0.1, trusts everybody, and keeps what it has in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, [self.port] = folder, free_ports(1)
        self._as = []
        if os.getuid() == 0:  # which PostgreSQL refuses
            shutil.chown(folder, "postgres")
            self._as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        command = [binary("initdb"), "-D", folder, "--auth=trust", "--username=ardea", "--no-sync", "--encoding=UTF8"]
        subprocess.run([*self._as, *command], check=True, stdout=subprocess.DEVNULL)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def config(self) -> dict[str, object]:
        """For a sink."""
        known = {"host": "127.0.0.1", "port": self.port, "user": "ardea", "dbname": "postgres"}
        return {f"postgres.{name}": value for name, value in known.items()}

    def start(self) -> None:
        eventually(self._answers, 30, "the database answers")

    def kill(self) -> None:
        """As a crash does; its children end when they see it, and until then no other one begins."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """It takes connections, and says nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
        for_who_has_gone = ["pgrep", "-P", str(self._process.pid), "-f", " -D "]  # the others have names of their own
        eventually(lambda: subprocess.run(for_who_has_gone, check=False).returncode == 1, 20, "nobody is let in late")

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # fast: it ends its children
            self._process.wait(30)

    def ask(self, statement: str) -> list[tuple]:
        with psycopg.connect(
            host="127.0.0.1", port=self.port, user="ardea", dbname="postgres", autocommit=True
        ) as known:
            cursor = known.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            command = [binary("postgres"), "-D", self.folder, "-p", str(self.port), "-h", "127.0.0.1", "-k", ""]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self._process = subprocess.Popen([*self._as, *command], **quiet)
        with contextlib.suppress(psycopg.OperationalError):
            return self.ask("SELECT 1") == [(1,)]
        return False


@contextlib.contextmanager
def served() -> Iterator[Database]:
    # Not below the folder of the tests, into which only root may look.
    with tempfile.TemporaryDirectory(prefix="ardea-postgres-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        place = Path(folder) / "data"
        place.mkdir(mode=0o700)
        database = Database(place)
        try:
            yield database
        finally:
            database.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[Database]:
    with served() as database:
        yield database


@pytest.fixture
def database(server: Database) -> Database:
    server.ask("DROP TABLE IF EXISTS numbers; DROP TABLE IF EXISTS ardea_marks")
    return server


@pytest.fixture
def mortal() -> Iterator[Database]:
    """One that nobody else uses."""
    with served() as database:
        yield database


@pytest.fixture
def running(tmp_path: Path) -> Callable[[str, Database], PatientTopology]:
    """Makes a topology of a file with this content, which writes there."""

    def made(content: str, database: Database) -> PatientTopology:
        file = tmp_path / "made.py"
        file.write_text(content)
        return PatientTopology(f"{file}:Made", tmp_path / "a", containers=1, config=database.config)

    return made
