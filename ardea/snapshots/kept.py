"""What state of topologies lies somewhere: the snapshot that counts, and savepoints."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from ardea.errors import ArdeaError, StateError
from ardea.snapshots.manifest import decode_manifest, manifest_name
from ardea.snapshots.place import Files, place_at, within
from ardea.snapshots.savepoint import DESCRIPTION, read

LOOKS = 3
"""At a snapshot that counts, while the next ones come to count."""


class Kept(NamedTuple):
    """The snapshot of a topology that counts, or a savepoint; ``at`` in Unix seconds.

    ``number`` and ``timeline`` are those of the snapshot, ``topology`` is the id, ``folder`` empty but for a savepoint.
    """

    topology: str
    number: int
    timeline: int
    at: float
    bytes: int
    files: int
    folder: str = ""


class Listing(msgspec.Struct, frozen=True):
    """What a master has found for the caller's ``request``; ``error``: why it could not look."""

    request: str
    committed: Kept | None = None
    savepoints: list[Kept] = []
    error: str = ""


def committed_in(store: Files, topology: str, number: Callable[[], int]) -> Kept | None:
    """The snapshot that counts, whose number is asked for again while others come to count; None: 0, there is none.

    Raises:
        StateError: it is not in the store.
        OSError: that cannot be read.
    """
    for _ in range(LOOKS):
        if not (present := number()):
            return None
        name = manifest_name(present)
        with contextlib.suppress(FileNotFoundError):  # another one counts by now
            manifest = decode_manifest(store.read(name), present)
            at, files = store.written(name), len(manifest.names)
            return Kept(topology, present, manifest.timeline, at, manifest.bytes, files)
    raise StateError(f"{topology}: {name} is missing in the store of snapshots")


def savepoints_in(address: str, wanted: Callable[[str], bool]) -> list[Kept]:
    """Of topologies whose id is ``wanted``, the newest first; what is half written, or cannot be read, is left out."""
    found: list[Kept] = []
    for name in place_at(address).names():
        owner, _, rest = name.partition("/")
        if rest.endswith(f"/{DESCRIPTION}") and wanted(owner):
            folder = within(address, name.removesuffix(f"/{DESCRIPTION}"))
            with contextlib.suppress(ArdeaError, OSError):
                one = read(place_at(folder))
                size, files = one.manifest.bytes, len(one.manifest.names)
                found.append(Kept(one.topology, one.number, one.timeline, one.at, size, files, folder))
    return sorted(found, key=lambda kept: kept.at, reverse=True)
