"""For all tests with real processes: which run first, and which one after another in one worker."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

HERE = Path(__file__).parent
GROUPS = ("kubernetes", "java", "zookeeper")
"""Each has a worker of its own.  What takes longest begins first."""


def pytest_sessionstart() -> None:
    """Where the tests themselves are started in the background, a shell has them ignore Ctrl-C; heirs would, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests that share a cluster, a server or a topology run in one worker; so do those that start Java, in turn."""
    if group := _group(item):
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_turn)


def _group(item: pytest.Item) -> str:
    if item.path.is_relative_to(HERE / "kubernetes"):
        return "kubernetes"
    if item.get_closest_marker("heavy"):
        return "java"
    if "server" in item.fixturenames:
        return "zookeeper"
    shared = any(d.scope == "module" for ds in item._fixtureinfo.name2fixturedefs.values() for d in ds)
    return str(item.path) if shared else ""


def _turn(item: pytest.Item) -> int:
    group = item.get_closest_marker("xdist_group")
    return GROUPS.index(group.args[0]) if group is not None and group.args[0] in GROUPS else len(GROUPS)
