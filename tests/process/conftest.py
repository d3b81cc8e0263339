"""For all tests with real processes."""

import signal
from pathlib import Path

HERE = Path(__file__).parent


def pytest_sessionstart() -> None:
    """Where the tests themselves are started in the background, a shell has them ignore Ctrl-C; heirs would, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items) -> None:
    """Those on the cluster come first: of two processes one has them all, and builds their image once."""
    items.sort(key=lambda item: not item.path.is_relative_to(HERE / "kubernetes"))
