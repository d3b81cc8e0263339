"""The list of a snapshot's files."""

from __future__ import annotations

import msgspec

from ardea.errors import StateError

FORMAT = 2
"""Of manifests and of the files that they name."""
FORMATS = range(1, FORMAT + 1)
"""Those that can be read."""


class File(msgspec.Struct, frozen=True):
    """One in the store; ``checksum`` is xxh3 of its ``bytes`` bytes."""

    name: str
    checksum: int
    bytes: int


class Part(msgspec.Struct, frozen=True):
    """The state of one task: of which component, its index, and its files, a base and the deltas since, in order."""

    component: str
    index: int
    files: tuple[File, ...]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Of the snapshot ``number`` in that ``timeline``; ``parts`` by task."""

    number: int
    timeline: int
    parts: dict[int, Part]
    format: int = FORMAT

    @property
    def names(self) -> frozenset[str]:
        """Of all files that the snapshot needs."""
        return frozenset(file.name for part in self.parts.values() for file in part.files)

    def of(self, component: str) -> tuple[Part, ...]:
        """The parts of that component, by index."""
        return tuple(sorted((p for p in self.parts.values() if p.component == component), key=lambda part: part.index))


def manifest_name(number: int) -> str:
    """Of the file in the store."""
    return f"{_text(number)}.manifest"


def state_name(timeline: int, number: int, name: str) -> str:
    """Of a file that a task writes for that snapshot."""
    return f"t{timeline}/{_text(number)}/{name}"


def _text(number: int) -> str:
    return f"{number >> 32}.{number & 0xFFFFFFFF}"


def encode_manifest(manifest: Manifest) -> bytes:
    """As JSON."""
    return msgspec.json.encode(manifest)


def decode_manifest(content: bytes, number: int) -> Manifest:
    """The inverse.

    Raises:
        StateError: these bytes are no manifest of that snapshot.
    """
    name = manifest_name(number)
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StateError(f"the snapshot's {name} cannot be read: {error}") from error
    if manifest.format not in FORMATS:
        what = f"the snapshot's {name} is of format {manifest.format}"
        raise StateError(f"{what}, and this Ardea reads formats up to {FORMAT}")
    if manifest.number != number:
        raise StateError(f"the snapshot's {name} is of another one, {manifest_name(manifest.number)}")
    return manifest
