"""For all tests with real processes."""

import signal
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TOGETHER = {"cli", "kafka", "spark", "supervisor", "trident"}
"""Folders whose tests may run two at a time; those that measure time say ``alone``."""


def pytest_sessionstart() -> None:
    """Where the tests themselves are started in the background, a shell has them ignore Ctrl-C; heirs would, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items) -> None:
    """``make test`` runs the tests of TOGETHER first."""
    for item in items:
        if not item.path.is_relative_to(HERE):
            continue
        folder = item.path.relative_to(HERE).parts[0]
        if folder in TOGETHER and item.get_closest_marker("alone") is None:
            item.add_marker("together")
