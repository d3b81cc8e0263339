"""The savepoints that lie in one place."""

from __future__ import annotations

import contextlib

from ardea.errors import ArdeaError
from ardea.scheduler.schedulers import Kept
from ardea.snapshots.place import place_at, within
from ardea.snapshots.savepoint import DESCRIPTION, read
from ardea.state import paths


def savepoints_in(address: str, topology: str) -> list[Kept]:
    """Of topologies of that name or id, the newest first; what is half written, or cannot be read, is left out."""
    found: list[Kept] = []
    for name in place_at(address).names():
        owner, _, rest = name.partition("/")
        if topology in (owner, paths.name_of(owner)) and rest.endswith(f"/{DESCRIPTION}"):
            folder = within(address, name.removesuffix(f"/{DESCRIPTION}"))
            with contextlib.suppress(ArdeaError, OSError):
                one = read(place_at(folder))
                size, files = one.manifest.bytes, len(one.manifest.names)
                found.append(Kept(one.topology, one.number, one.timeline, one.at, size, files, folder))
    return sorted(found, key=lambda kept: kept.at, reverse=True)
