"""An archive that a stranger may unpack: one folder, plain files, names that lead nowhere else."""

from __future__ import annotations

import io
import re
import tarfile
import time
from collections.abc import Callable
from typing import BinaryIO, Self

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 100


def safe(name: str) -> str:
    """A path below a folder, of a name that may be anything: ``container-1/stream-manager``.

    No part of it is empty, hidden or ``..``.
    """
    parts = (_ODD.sub("-", part).strip(".-")[:_LONGEST] for part in name.split("/"))
    return "/".join(part for part in parts if part) or "unnamed"


class Archive:
    """A tar file, compressed with gzip, that is written once from front to back."""

    def __init__(self, out: BinaryIO, folder: str, clock: Callable[[], float] = time.time) -> None:
        """``folder``: that all files lie in.  ``clock``: Unix seconds."""
        self.files: dict[str, int] = {}
        self._taken: set[str] = set()
        self._folders: set[str] = set()
        self._folder, self._made = safe(folder).replace("/", "-"), clock()
        self._tar = tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    def add(self, name: str, data: bytes) -> str:
        """One file; returns the name that it has in the archive: of two that would be equal the second has a number."""
        chosen = self._free(safe(name))
        entry = tarfile.TarInfo(f"{self._folder}/{chosen}")
        entry.size, entry.mtime, entry.mode = len(data), int(self._made), 0o600
        self._tar.addfile(entry, io.BytesIO(data))
        self.files[chosen] = len(data)
        self._taken.add(chosen.lower())
        self._folders.update(_above(chosen))
        return chosen

    def _free(self, wanted: str) -> str:
        """Neither a file nor a folder that is there; disks may not tell small letters from large ones."""
        if self._taken.intersection(_above(wanted)):
            wanted = wanted.replace("/", "-")
        folder, slash, name = wanted.rpartition("/")
        stem, dot, kind = name.rpartition(".")
        number, chosen = 1, wanted
        while chosen.lower() in self._taken | self._folders:
            number += 1
            chosen = f"{folder}{slash}" + (f"{stem}-{number}{dot}{kind}" if stem else f"{name}-{number}")
        return chosen

    def close(self) -> None:
        """Nothing can be added any more; what it was written to stays open."""
        self._tar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _above(path: str) -> list[str]:
    parts = path.lower().split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]
