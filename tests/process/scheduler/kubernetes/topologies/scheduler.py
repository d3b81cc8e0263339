"""An author's own module that is called as a folder of Ardea."""

from __future__ import annotations

import threading

_NEVER = threading.Event()


def await_next():
    """Ten times a second."""
    _NEVER.wait(0.1)
