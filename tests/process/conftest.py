"""For all tests with real processes."""

import signal


def pytest_sessionstart() -> None:
    """Where the tests themselves are started in the background, a shell has them ignore Ctrl-C; heirs would, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
