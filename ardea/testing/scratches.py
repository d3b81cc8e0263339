"""Where the tasks of a simulated cluster have their state backends."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ardea.backends.chosen import Opened, Scratch, backend_class


class Scratches:
    """Of the backend of that name: a folder for each life of a task."""

    def __init__(self, backend: str) -> None:
        self._made = backend_class(backend)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if backend != "memory":
            self._folder = tempfile.TemporaryDirectory(prefix="ardea-state-", ignore_cleanup_errors=True)

    def of(self, life: str) -> Opened | None:
        """Opens the backend of that life; None: all is in memory."""
        return None if self._folder is None else Scratch(self._made, Path(self._folder.name) / life).open

    def close(self) -> None:
        """Nothing is left of them."""
        if self._folder is not None:
            self._folder.cleanup()
