"""The list of a snapshot's files."""

from __future__ import annotations

import re

import msgspec
from xxhash import xxh3_64_hexdigest

from ardea.errors import StateError

FORMAT = 3
"""Of manifests and of the files that they name."""
CHECKED = 3
"""From this format on a manifest in a file has a checksum of its own."""
FORMATS = range(1, FORMAT + 1)
"""Those that can be read."""
_STATE = re.compile(r"t\d+/(\d+)\.(\d+)/")


STATE_FILES = (".base", ".delta")
"""What the names of those end with that hold a task's state; others may hold what a sink has not written yet."""


class File(msgspec.Struct, frozen=True):
    """One in the store; ``checksum`` is xxh3 of its ``bytes`` bytes."""

    name: str
    checksum: int
    bytes: int


class Part(msgspec.Struct, frozen=True):
    """The state of one task: of which component, its index, and its files, a base and the deltas since, in order.

    ``bound``: something of it is of that index, and no other task can have it.
    """

    component: str
    index: int
    files: tuple[File, ...]
    bound: bool = False


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Of the snapshot ``number`` in that ``timeline``; ``parts`` by task.

    ``final``: the topology ends with it, and its state has all that was done at the end.  Versions that do not write it
    share no topology with this one, and no savepoint is final: so it needs no format of its own.
    """

    number: int
    timeline: int
    parts: dict[int, Part]
    format: int = FORMAT
    final: bool = False

    @property
    def names(self) -> frozenset[str]:
        """Of all files that the snapshot needs."""
        return frozenset(file.name for part in self.parts.values() for file in part.files)

    @property
    def bytes(self) -> int:
        """Of all these files."""
        return sum(file.bytes for part in self.parts.values() for file in part.files)

    def of(self, component: str) -> tuple[Part, ...]:
        """The parts of that component, by index."""
        return tuple(sorted((p for p in self.parts.values() if p.component == component), key=lambda part: part.index))


def manifest_name(number: int) -> str:
    """Of the file in the store."""
    return f"{text_of(number)}.manifest"


def state_name(timeline: int, number: int, name: str) -> str:
    """Of a file that a task writes for that snapshot."""
    return f"t{timeline}/{text_of(number)}/{name}"


def text_of(number: int) -> str:
    """As people and files have it: ``1.5``, the term of a master and the count of it."""
    return f"{number >> 32}.{number & 0xFFFFFFFF}"


def number_in(file: str) -> int:
    """The snapshot for which a task wrote that file of its state; 0: it is none."""
    found = _STATE.match(file)
    return int(found[1]) << 32 | int(found[2]) if found is not None else 0


def encode_manifest(manifest: Manifest) -> bytes:
    """JSON in a line, and its checksum in another."""
    line = msgspec.json.encode(manifest)
    return b"%s\n%s\n" % (line, xxh3_64_hexdigest(line).encode())


def decode_manifest(content: bytes, number: int, *, bare: bool = False) -> Manifest:
    """The inverse; ``bare``: without the checksum, in a file that has one itself.

    Raises:
        StateError: these bytes are no manifest of that snapshot.
    """
    name = manifest_name(number)
    line, _, checksum = content.partition(b"\n")
    try:
        manifest = msgspec.json.decode(line, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StateError(f"the snapshot's {name} cannot be read: {error}") from error
    if manifest.format not in FORMATS:
        what = f"the snapshot's {name} is of format {manifest.format}"
        raise StateError(f"{what}, and this Ardea reads formats up to {FORMAT}")
    if not bare and (checksum or manifest.format >= CHECKED) and checksum.strip() != xxh3_64_hexdigest(line).encode():
        raise StateError(f"the snapshot's {name} is cut or damaged: the checksum is another one")
    if manifest.number != number:
        raise StateError(f"the snapshot's {name} is of another one, {manifest_name(manifest.number)}")
    return manifest
