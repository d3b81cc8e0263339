"""A thread that waits for others, so that the executor does not."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from ardea.errors import printable

Done = Callable[[Exception | None], None]


class Worker:
    """Calls functions one after the other; the thread begins with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[tuple[Callable[[], object], Done]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def call(self, function: Callable[[], object], done: Done) -> None:
        """Begins to; ``done`` is called with what it has raised, or None, on the thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._queue.put((function, done))

    def _work(self) -> None:
        while True:
            function, done = self._queue.get()
            try:
                function()
            except Exception as error:
                done(error)
            except BaseException as error:  # of a client's own; without the thread nobody would be called any more
                done(RuntimeError(f"{type(error).__name__}: {printable(error)}"))
            else:
                done(None)
