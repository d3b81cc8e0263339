"""The store of snapshots as a task uses it: a thread of its own writes, and the executor does not wait for a disk."""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable, Iterable

from ardea.errors import ArdeaError
from ardea.snapshots.place import Files

Written = Callable[[Exception | None], None]


class Storage:
    """The thread begins with the first file that is written."""

    def __init__(self, opened: Callable[[], Files]) -> None:
        """``opened`` is called when the store is needed, not in a mode without snapshots."""
        self._opened = opened
        self._queue: queue.SimpleQueue[tuple[str, Iterable[bytes], Written]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    @functools.cached_property
    def _files(self) -> Files:
        return self._opened()

    def write(self, file: str, content: Iterable[bytes], done: Written) -> None:
        """See :class:`ardea.heron_instance.snapshots.Storage`, as for :meth:`read`."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="snapshots", daemon=True)
            self._thread.start()
        self._queue.put((file, content, done))

    def read(self, file: str) -> bytes:
        """From the executor thread."""
        return self._files.read(file)

    def _write(self) -> None:
        while True:
            file, content, done = self._queue.get()
            try:
                self._files.write(file, content)
            except (OSError, ArdeaError) as error:
                done(error)
            else:
                done(None)
