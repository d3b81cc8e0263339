"""For all tests with real processes: which run first, and which one after another in one worker."""

from __future__ import annotations

import signal

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

HERE = "tests/process/"
GROUPS = {
    "kubernetes": ("scheduler/kubernetes/",),
    "java": (
        "spark/",
        "state/test_faults.py",
        "state/test_outage.py",
        "trident/test_under_fire.py",
        "helm/test_zookeeper_alerts.py",
    ),
    "zookeeper": ("state/",),
}
"""Each runs in one worker, in this order; other files are handed out as workers are free.  They share a cluster and its
image, the cores that Java takes, and a server."""


def pytest_sessionstart() -> None:
    """Where the tests themselves are started in the background, a shell has them ignore Ctrl-C; heirs would, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: [*GROUPS, ""].index(_group(item.nodeid)))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    config.option.loadscopereorder = False  # the files with the most tests are not those that take longest
    return Groups(config, log)


class Groups(LoadScopeScheduling):
    """Hands out a group, or a file, at a time."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid) or nodeid.partition("::")[0]


def _group(nodeid: str) -> str:
    path = nodeid.removeprefix(HERE)
    return next((group for group, begins in GROUPS.items() if path.startswith(begins)), "")
