"""A module with which the process between a forkserver and what it forks takes its time to end."""

import os
import threading

_end = os._exit


def _slowly(code):
    threading.Event().wait(0.5)
    _end(code)


os._exit = _slowly
