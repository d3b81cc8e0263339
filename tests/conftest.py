"""What every test gets: leak checks, a private folder for temporary files, hypothesis profiles, deadlines."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.machine import MACHINE, out_of_patience
from tests.sizes import ALL, SOAK, share

T = TypeVar("T")

# Whatever a test starts inherits this variable, so that a process that lost its parent is still recognised as ours.
MARK = "ARDEA_TEST_RUN"

# By these Rich and Typer decide on colours and widths.
LOOKS = (
    *("COLUMNS", "LINES", "TERMINAL_WIDTH"),
    *("FORCE_COLOR", "GITHUB_ACTIONS", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
)
TRACING = "OTEL_"

# No proxy is asked for these; pip, which a test starts, may need one for the others.
LOCAL = "localhost,127.0.0.1"

# The parent of the kernel's own threads, on Linux.
KERNEL = "2"

# Lives as long as the interpreter that first used shared memory.
HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")

# The folders of tests, in the order in which they run.
ORDER = ("unit", "simulation", "process", "fixtures")

# Examples that hypothesis makes where a test names no number of its own.
EXAMPLES = 100


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="also what only `make test-all` runs: see docs/testing.md")


def pytest_configure(config: pytest.Config) -> None:
    os.environ[MARK] = f"{os.getpid()}.{time.time_ns()}"
    os.environ[ALL] = "yes" if config.getoption("--all") else ""
    calm = [HealthCheck.too_slow]  # a busy machine is no mistake of a test
    settings.register_profile("dev", deadline=None, max_examples=share(EXAMPLES), suppress_health_check=calm)
    settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
    settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_sessionstart() -> None:
    """Tests see nothing of the environment in which they run that changes what they see.

    What they start inherits that.  Pytest itself has chosen its colours by now.
    """
    for name in [name for name in os.environ if name in LOOKS or name.startswith(TRACING)]:
        del os.environ[name]
    direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = f"{direct},{LOCAL}" if direct else LOCAL


def pytest_report_header() -> str:
    return f"machine: waits are {MACHINE.slowness:.1f} times as long as on a quick one"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Unit tests come first, then simulations: they are quick, and say more precisely what is wrong."""
    here = Path(__file__).parent
    items.sort(key=lambda item: ORDER.index(item.path.relative_to(here).parts[0]))
    left = set() if SOAK else {item for item in items if _is_only_for_soaks(item)}
    if not config.getoption("--all"):
        left |= set(_only_for_all(items))
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def _is_only_for_soaks(item: pytest.Item) -> bool:
    soak = item.get_closest_marker("soak")
    return soak is not None and bool(soak.kwargs.get("only"))


def _only_for_all(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Those marked ``thorough``, and of each test marked ``sampled(n)`` all cases but the first of every n."""
    cases: Counter[str] = Counter()
    for item in items:
        if item.get_closest_marker("thorough") is not None:
            yield item
        elif (sampled := item.get_closest_marker("sampled")) is not None:
            test = item.nodeid.partition("[")[0]
            if cases[test] % sampled.args[0]:
                yield item
            cases[test] += 1


class Deadline:
    """Waits for a condition: ``deadline(lambda: log.exists(), "the log appears")``."""

    def __call__(self, condition: Callable[[], T], what: str, *, seconds: float = 60.0) -> T:
        """Returns the first true value of ``condition``; after ``seconds`` fails, naming ``what`` and the last one.

        A condition that takes long, as a command does, is asked half of the time: what it waits for needs the cores.
        """
        pause = threading.Event()
        asked = began = time.monotonic()
        while not (value := condition()):
            now = time.monotonic()
            if out_of_patience(began, seconds):
                pytest.fail(f"waited {seconds:g} s for this: {what}; the last value was {value!r}")
            pause.wait(min(max(0.01, now - asked), 1.0))
            asked = time.monotonic()
        return value


@dataclass(frozen=True)
class Leaks:
    """What a test has left behind.  ``temporary`` is the folder that ``tempfile`` uses in this run."""

    temporary: Path
    _strangers: set[int] = field(default_factory=set)

    def processes(self) -> dict[int, str]:
        """Command lines by pid: children of this process, dead ones too, and all that descend from this run."""
        found = _linux_processes(self._strangers) if sys.platform == "linux" else _other_processes()
        return {pid: line for pid, line in found.items() if not any(helper in line for helper in HELPERS)}

    def files(self, *folders: Path) -> list[Path]:
        """Everything of Ardea's among the temporary files, and sockets there or anywhere below ``folders``."""
        of_ardea = self.temporary.glob("ardea-*")
        sockets = (path for folder in (self.temporary, *folders) for path in _tree(folder) if _is_socket(path))
        return sorted({*of_ardea, *sockets})


def _tree(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names)


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _linux_processes(strangers: set[int]) -> dict[int, str]:
    """``strangers`` keeps who was seen not to be ours, and so never will be: each test would read of hundreds again."""
    mine, mark = str(os.getpid()), f"{MARK}={os.environ[MARK]}".encode()
    there = {int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdecimal()} - {os.getpid()}
    strangers &= there
    found = {}
    for pid in there - strangers:
        folder = Path("/proc", str(pid))
        try:
            # The name of the command, in parentheses, may hold anything; state and parent follow the last one.
            parent = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
            if parent == mine or (parent != KERNEL and mark in (folder / "environ").read_bytes().split(b"\0")):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found[pid] = line or "(dead, but nobody waited for it)"
            else:
                strangers.add(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue  # gone meanwhile
        except PermissionError:
            strangers.add(pid)  # another user's, or the kernel's
    return found


def _other_processes() -> dict[int, str]:
    mark = f"{MARK}={os.environ[MARK]}"
    with subprocess.Popen(["ps", "-A", "-E", "-o", "pid=,ppid=,command="], stdout=subprocess.PIPE, text=True) as ps:
        lines = [line.split(None, 2) for line in ps.communicate()[0].splitlines()]
    mine = str(os.getpid())
    return {
        int(pid): command
        for pid, parent, command in (line for line in lines if len(line) == 3)
        if int(pid) not in (os.getpid(), ps.pid) and (parent == mine or mark in command)
    }


@pytest.fixture(scope="session")
def leaks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leaks]:
    """Gives the run a temporary folder of its own, so that nobody else's files there are mistaken for ours."""
    tmp_path_factory.getbasetemp()  # stays where it was: pytest keeps it for whoever looks into a failure
    former = os.environ.get("TMPDIR")
    # Short: the path of an ipc socket may have 103 bytes on macOS, 107 on Linux.
    temporary = Path(tempfile.mkdtemp(prefix="ardea-t-", dir="/tmp"))
    os.environ["TMPDIR"], tempfile.tempdir = str(temporary), None
    yield Leaks(temporary)
    if former is None:
        del os.environ["TMPDIR"]
    else:
        os.environ["TMPDIR"] = former
    tempfile.tempdir = None
    shutil.rmtree(temporary, ignore_errors=True)


@pytest.fixture(autouse=True)
def leaves_nothing_behind(request: pytest.FixtureRequest, leaks: Leaks) -> Iterator[None]:
    """Fails the test that leaves a process, an ipc socket or a temporary file of Ardea's, and removes it."""
    folders = [request.getfixturevalue("tmp_path")] if "tmp_path" in request.fixturenames else []
    processes_before, files_before = leaks.processes().keys(), set(leaks.files(*folders))
    yield
    processes = {pid: line for pid, line in leaks.processes().items() if pid not in processes_before}
    files = [path for path in leaks.files(*folders) if path not in files_before]
    for pid in processes:
        _end(pid)
    for path in files:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if processes or files:
        pytest.fail(f"the test left behind: processes {processes}, files {[str(path) for path in files]}")


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass  # gone by itself, or not a child of this process


@pytest.fixture(scope="session")
def deadline() -> Deadline:
    """``deadline(condition, what, seconds=60)`` returns the condition's first true value or fails the test."""
    return Deadline()


@pytest.fixture(scope="session")
def ipv6() -> str:
    """An address of this machine."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    return "::1"


@pytest.fixture(scope="session")
def prometheus_binary() -> Path:
    """A real Prometheus server: the one of ``make .venv/.system`` or the machine's."""
    here = Path(sys.executable).parent
    if (found := shutil.which("prometheus", path=f"{here}{os.pathsep}{os.environ['PATH']}")) is None:
        pytest.fail("no prometheus in .venv/bin or on the PATH: run `make .venv/.system`")
    return Path(found)
