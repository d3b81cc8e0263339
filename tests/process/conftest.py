"""For all tests with real processes: which run first, which in one worker, and how many heavy ones at a time."""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parent
_NOTHING = threading.Event()
TOKENS = (HERE / "conftest.py", HERE / "waiting.py")
"""One for each ``heavy`` test that may run at a time: files that are there anyway, so that locks leave nothing."""


def pytest_sessionstart() -> None:
    """Where the tests themselves are started in the background, a shell has them ignore Ctrl-C; heirs would, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first; tests that share a cluster, a server or a topology run in one worker."""
    for item in items:
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=_turn)


def _group(item: pytest.Item) -> str:
    if item.path.is_relative_to(HERE / "kubernetes"):
        return "kubernetes"
    if "server" in item.fixturenames:
        return "zookeeper"
    shared = any(d.scope == "module" for ds in item._fixtureinfo.name2fixturedefs.values() for d in ds)
    return str(item.path) if shared else ""


def _turn(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    if group is not None and group.args[0] in ("kubernetes", "zookeeper"):
        return 0 if group.args[0] == "kubernetes" else 1
    return 2 if item.get_closest_marker("heavy") else 3


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Waits here, where the test's time has not begun."""
    if item.get_closest_marker("heavy") is None or "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    with _token():
        return (yield)


@contextmanager
def _token() -> Iterator[None]:
    """The kernel takes it back from a worker that dies."""
    for file in itertools.cycle(TOKENS):
        with file.open() as token:
            try:
                fcntl.flock(token, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _NOTHING.wait(0.05)
                continue
            yield
            return
