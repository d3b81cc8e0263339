"""A store of snapshots in a folder: each file is written once, beside its place, and renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

PART = ".part"


class Folder:
    """All names are relative to ``path``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    @classmethod
    def beside(cls, state: str, topology: str) -> Self:
        """The topology's, beside what a local state manager keeps at that address."""
        return cls(path_of(state) / "snapshots" / topology)

    @classmethod
    def at(cls, place: str) -> Self:
        """A folder that a person names."""
        return cls(path_of(place).absolute())

    @classmethod
    def under(cls, folder: str, topology: str) -> Self:
        """The topology's, in that folder of many; the path may be written as ``file://``."""
        return cls(path_of(folder).absolute() / topology)

    def write(self, name: str, content: Iterable[bytes]) -> None:
        """Durable when it returns.

        Raises:
            OSError: it was not written; as for whatever reading the content raises.
        """
        place = self._path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        # Another process may write the same file, with the same pid in another pod.
        beside = place.with_name(f"{place.name}.{secrets.token_hex(4)}{PART}")
        try:
            with beside.open("wb") as file:
                file.writelines(content)
                file.flush()
                os.fsync(file.fileno())
            beside.rename(place)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        for folder in place.relative_to(self._path).parents:  # another process may have made them, and may be dead
            _sync(self._path / folder)

    def names(self) -> list[str]:
        """Of all files, and of what was begun and is not finished.

        Raises:
            OSError: it cannot be listed.
        """
        return [
            str((Path(folder) / name).relative_to(self._path))
            for folder, _, files in os.walk(self._path, onerror=_unless_gone)
            for name in files
        ]

    def delete(self, names: Iterable[str], *, over: bool = False) -> None:  # noqa: ARG002
        """See :meth:`ardea.snapshots.place.Files.delete`: a folder into which something has come cannot be deleted."""
        for name in names:
            place = self._path / name
            place.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # there is something in it
                for folder in place.relative_to(self._path).parents[:-1]:
                    (self._path / folder).rmdir()

    def read(self, name: str, most: int | None = None) -> bytes:
        """Its first bytes, ``most`` of them; None: all of it.

        Raises:
            FileNotFoundError: there is none.
            OSError: it cannot be read.
        """
        with (self._path / name).open("rb") as file:
            return file.read(most)

    def parts(self, name: str, most: int) -> Iterator[bytes]:
        """See :meth:`ardea.snapshots.place.Files.parts`."""
        with (self._path / name).open("rb") as file:
            while part := file.read(most):
                yield part

    def written(self, name: str) -> float:
        """See :meth:`ardea.snapshots.place.Files.written`."""
        return (self._path / name).stat().st_mtime

    def remove(self) -> None:
        """See :meth:`ardea.snapshots.place.Files.remove`."""
        shutil.rmtree(self._path, onerror=_unless_removed)


def path_of(address: str) -> Path:
    """The address of a folder may be written as ``file://``."""
    return Path(address.removeprefix("file://")).expanduser()


def _sync(folder: Path) -> None:
    """What was made in it, or renamed, lasts."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unless_gone(error: OSError) -> None:
    """Somebody may delete what another one lists."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _unless_removed(_call: object, _path: str, error: tuple[type[BaseException], BaseException, object]) -> None:
    """Two may remove the same."""
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]
