"""A savepoint: a snapshot's files in a folder of their own, which nothing deletes, and what they are of.

In it the snapshot has the number 0.1, below all that a master gives: a topology can begin from it as from its own.
``savepoint.json`` is written last; without it there is no savepoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
from xxhash import xxh3_64, xxh3_64_hexdigest

from ardea.errors import Conflict, NotFound, StateError
from ardea.plan.keyed import KeyedComponent
from ardea.snapshots.folder import PART
from ardea.snapshots.manifest import STATE_FILES, File, Manifest, Part, decode_manifest, state_name, text_of
from ardea.snapshots.pieces import WATERMARK, Heads, Kind
from ardea.snapshots.place import Files

DESCRIPTION = "savepoint.json"
FORMAT = 1
"""Of the description."""
NUMBER = 1
"""0.1, of a term that no master has."""
_PREFIX = state_name(0, NUMBER, "")
_TOO_LATE = "it took too long to copy"
KINDS = {
    Kind.ONE: "TaskState",
    Kind.PUT: "KeyedState",
    Kind.PACKED: "KeyedState",
    Kind.GONE: "KeyedState",
    Kind.ITEMS: "ListState",
}
"""What a state was whose piece is of that kind; timers are a keyed state, too."""
AT_ONCE = 8 << 20
"""Bytes of a file that are read at a time; those of two reads are held."""
STEPS = ("resting", "taking", "copying", "done", "refused")


class Savepoint(msgspec.Struct, frozen=True, kw_only=True):
    """What a savepoint is of.

    ``request`` is the caller's own id, ``topology`` the id; ``at`` in Unix seconds; ``groups`` are its key groups;
    ``number`` and ``timeline`` are those of the snapshot where it was taken, ``manifest`` names the files as they are
    called here.  ``states``: of each component the kind of each state that is in its files, in one of KINDS.
    ``keyed``: by which fields its keys are, of components that have some.
    """

    request: str
    topology: str
    ardea: str
    groups: int
    number: int
    timeline: int
    manifest: Manifest
    states: dict[str, dict[str, str]] = {}
    at: float = 0.0
    keyed: dict[str, KeyedComponent] = {}
    format: int = FORMAT

    @property
    def components(self) -> dict[str, int]:
        """How many tasks each had."""
        parts = self.manifest.parts.values()
        return {name: len(self.manifest.of(name)) for name in sorted({part.component for part in parts})}

    @property
    def bytes(self) -> int:
        """Of all files."""
        return self.manifest.bytes

    def without(self, components: Iterable[str]) -> Savepoint:
        """The same, less what these had."""
        left = set(components)
        parts = {task: part for task, part in self.manifest.parts.items() if part.component not in left}
        return msgspec.structs.replace(self, manifest=msgspec.structs.replace(self.manifest, parts=parts))


class SavepointProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a savepoint is: ``step`` is one of STEPS, ``late`` for whom it waits, ``reason`` why it was refused.

    ``number``, ``bytes`` and ``files`` are known when it is done.
    """

    id: str
    step: str
    folder: str
    late: tuple[str, ...] = ()
    reason: str = ""
    number: int = 0
    bytes: int = 0
    files: int = 0

    @property
    def running(self) -> bool:
        """Whether it is under way."""
        return self.step in STEPS[:3]


def ended_with(folder: str) -> str:
    """Why a topology is KILLED that has ended with a savepoint there."""
    return f"its savepoint is {folder}"


class _Stored(msgspec.Struct):
    """What a description must have before more is read of it."""

    manifest: msgspec.Raw
    format: int


# --- writing ----------------------------------------------------------------------------------------------------------


def save(source: Files, target: Files, savepoint: Savepoint, *, anew: bool, wanted: Callable[[], bool]) -> Savepoint:
    """Copies what the manifest of ``savepoint`` names in ``source``; returns what lies in ``target`` then.

    Args:
        source: the store.
        target: where to.
        savepoint: its manifest is the snapshot's own.
        anew: whether what the same request has left in ``target`` is replaced, as rows have flowed since.
        wanted: asked before each file, and after ``savepoint.json``; False: nobody waits for it any more.

    Raises:
        Conflict: ``target`` has a savepoint already, or other files.
        StateError: a file is damaged, or nobody waits any more; what was copied is deleted.
        OSError: a file cannot be read or written; likewise.
    """
    former = _former(target)
    if former is not None:
        if former.request != savepoint.request:
            raise Conflict("a savepoint lies there already, which is never overwritten")
        if not anew:
            return former
    # Each attempt has a snapshot of its own, and so names of its own: one that is given up deletes no other one's.
    attempt = f"{_PREFIX}{text_of(savepoint.number)}"
    names = {name: f"{attempt}-{name.replace('/', '-')}" for name in savepoint.manifest.names}
    try:
        states: dict[str, dict[str, str]] = {}
        for part, file, content in contents(source, savepoint.manifest):
            _check_wanted(wanted)
            if not file.name.endswith(STATE_FILES):
                target.write(names[file.name], content)
                continue
            heads = Heads(file.name)
            target.write(names[file.name], heads.passing(content))
            found = {state: KINDS[kind] for state, kind in heads.found.items() if state != WATERMARK}
            states.setdefault(part.component, {}).update(found)
        stored = msgspec.structs.replace(savepoint, manifest=_renamed(savepoint.manifest, names), states=states)
        _check_wanted(wanted)
        if _former(target) != former:
            raise Conflict("another savepoint was finished there meanwhile")
        target.write(DESCRIPTION, [encode(stored)])
    except BaseException:
        target.delete(names.values())
        raise
    if not wanted():
        _withdraw(target, stored)
        raise StateError(_TOO_LATE)
    return stored


def _withdraw(target: Files, savepoint: Savepoint) -> None:
    """Nobody is told of it; another one, which was finished there since, stays."""
    if read(target) == savepoint:
        target.delete([DESCRIPTION])
    target.delete(savepoint.manifest.names)


def _former(target: Files) -> Savepoint | None:
    """What lies there; Conflict: other files."""
    there = target.names()
    if DESCRIPTION in there:
        return read(target)
    if not all(name.startswith(_PREFIX) or _is_begun(name) for name in there):
        raise Conflict("other files lie there, and a savepoint has a folder of its own")
    return None


def _is_begun(name: str) -> bool:
    """Of a description that a master has begun to write, and has not finished."""
    return name.startswith(DESCRIPTION) and name.endswith(PART)


def _check_wanted(wanted: Callable[[], bool]) -> None:
    if not wanted():
        raise StateError(_TOO_LATE)


def _renamed(manifest: Manifest, names: dict[str, str]) -> Manifest:
    parts = {
        task: msgspec.structs.replace(
            part, files=tuple(msgspec.structs.replace(file, name=names[file.name]) for file in part.files)
        )
        for task, part in manifest.parts.items()
    }
    return msgspec.structs.replace(manifest, number=NUMBER, timeline=0, parts=parts)


def encode(savepoint: Savepoint) -> bytes:
    """JSON in a line, and its checksum in another."""
    line = msgspec.json.encode(savepoint)
    return b"%s\n%s\n" % (line, xxh3_64_hexdigest(line).encode())


# --- reading ----------------------------------------------------------------------------------------------------------


def read(files: Files) -> Savepoint:
    """What lies there.

    Raises:
        NotFound: no savepoint.
        StateError: it is cut, damaged, or of another format.
        OSError: it cannot be read.
    """
    try:
        content = files.read(DESCRIPTION)
    except FileNotFoundError:
        begun = any(name.startswith(_PREFIX) for name in files.names())
        why = "it was begun, and never finished" if begun else f"it has no {DESCRIPTION}"
        raise NotFound(f"no savepoint lies there: {why}") from None
    except NotADirectoryError:
        raise NotFound("no savepoint lies there: it is a file") from None
    line, _, rest = content.partition(b"\n")
    if rest.strip() != xxh3_64_hexdigest(line).encode():
        raise StateError(f"its {DESCRIPTION} is cut or damaged: the checksum is another one")
    try:
        stored = msgspec.json.decode(line, type=_Stored)
        if stored.format != FORMAT:
            raise StateError(f"its {DESCRIPTION} is of format {stored.format}, and this Ardea reads format {FORMAT}")
        decode_manifest(bytes(stored.manifest), NUMBER, bare=True)
        return msgspec.json.decode(line, type=Savepoint)
    except msgspec.DecodeError as error:
        raise StateError(f"its {DESCRIPTION} cannot be read: {error}") from error


def contents(files: Files, manifest: Manifest) -> Iterator[tuple[Part, File, Iterator[bytes]]]:
    """Each file of it, whose it is, and its content: a process with little memory copies large files.

    Reading the content raises:
        StateError: the file is missing or damaged; its last bytes come only once size and checksum are found right.
        OSError: it cannot be read.
    """
    for _, part in sorted(manifest.parts.items()):
        for file in part.files:
            yield part, file, _content(files, file)


def _content(files: Files, file: File) -> Iterator[bytes]:
    digest, size, former = xxh3_64(), 0, b""
    try:
        for part in files.parts(file.name, AT_ONCE):
            digest.update(part)
            size += len(part)
            yield former
            former = part
    except FileNotFoundError:
        raise StateError(f"its file {file.name} is missing") from None
    if size != file.bytes or digest.intdigest() != file.checksum:
        raise StateError(
            f"its file {file.name} is damaged: it holds {size:,} bytes with another checksum than was written, "
            f"of {file.bytes:,} bytes"
        )
    yield former
