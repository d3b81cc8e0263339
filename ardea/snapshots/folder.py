"""A store of snapshots in a folder: each file is written once, beside its place, and renamed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self


class Folder:
    """All names are relative to ``path``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def beside(cls, state: str, topology: str) -> Self:
        """The topology's, beside what a local state manager keeps at that address."""
        return cls(Path(state.removeprefix("file://")).expanduser() / "snapshots" / topology)

    def write(self, name: str, content: bytes) -> None:
        """Durable when it returns.

        Raises:
            OSError: it was not written.
        """
        place = self._path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = place.with_name(f"{place.name}.{os.getpid()}.part")
        try:
            with beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.rename(place)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        _sync(place.parent)

    def attempt(self, name: str, content: bytes) -> str:
        """Writes it; returns why it could not be written, empty: it was."""
        try:
            self.write(name, content)
        except OSError as error:
            return f"{name} cannot be stored: {error}"
        return ""

    def read(self, name: str) -> bytes:
        """All of it.

        Raises:
            FileNotFoundError: there is none.
            OSError: it cannot be read.
        """
        return (self._path / name).read_bytes()


def _sync(folder: Path) -> None:
    """The rename lasts."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
