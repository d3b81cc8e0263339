"""The store of snapshots as a task uses it: a thread of its own writes, and the executor does not wait for a disk."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from ardea.heron_instance.worker import Done, Worker
from ardea.snapshots.place import Files


class Storage:
    """Where the files of snapshots are written and read."""

    def __init__(self, opened: Callable[[], Files]) -> None:
        """``opened`` is called when the store is needed, not in a mode without snapshots."""
        self._opened = opened
        self._worker = Worker("snapshots")

    @functools.cached_property
    def _files(self) -> Files:
        return self._opened()

    def write(self, file: str, content: Iterable[bytes], done: Done) -> None:
        """See :class:`ardea.heron_instance.intervals.Storage`, as for :meth:`read`."""
        self._worker.call(lambda: self._files.write(file, content), done)

    def read(self, file: str, most: int | None = None) -> bytes:
        """From any thread."""
        return self._files.read(file, most)
