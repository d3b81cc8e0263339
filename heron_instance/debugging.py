"""A debugger in a task: what waits for it, and what ``breakpoint()`` says where there is none (docs/debugging.md)."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable

from ardea.errors import ClusterError, UserError

PATIENCE = 5.0
"""Seconds in which a former life of the task lets go of the port."""


def wait_for_debugger(task: str, port: int, *, clock: Callable[[], float] = time.monotonic) -> None:
    """Listens on the port of loopback, and returns when a debugger is there.

    Raises:
        UserError: debugpy is not installed.
        ClusterError: somebody else has the port.
    """
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # it would warn of frozen modules at each start
    try:
        import debugpy  # a debugged task needs it, nobody else
    except ModuleNotFoundError as error:
        raise UserError("--attach needs debugpy, which is not installed", hint="pip install 'ardea[debug]'") from error
    deadline = clock() + PATIENCE
    while True:
        try:
            debugpy.listen(("127.0.0.1", port))
            break
        except (RuntimeError, OSError) as error:
            if clock() >= deadline:
                raise ClusterError(f"{task} cannot listen for a debugger on port {port}: {error}") from error
            threading.Event().wait(0.2)
    logging.getLogger(task).info("waits for a debugger at 127.0.0.1:%d", port)
    debugpy.wait_for_client()
    threading.current_thread().pydev_do_not_trace = True  # type: ignore[attr-defined] # the gateway works on meanwhile


def explain_breakpoints(task: str) -> None:
    """From now on ``breakpoint()`` says how to attach, once for each line, and the task goes on."""
    if "PYTHONBREAKPOINT" in os.environ:
        return  # the author's own choice
    component, _, index = task.rpartition("-")
    told: set[tuple[str, int]] = set()

    def hook(*_: object, **__: object) -> None:
        frame = sys._getframe(1)
        place = frame.f_code.co_filename, frame.f_lineno
        if place not in told:
            told.add(place)
            logging.getLogger(task).warning(
                "breakpoint() at %s:%d is passed over, for a task has no terminal: `ardea run FILE --attach %s:%s` "
                "stops there in a debugger",
                *place, component, index,
            )  # fmt: skip

    sys.breakpointhook = hook
