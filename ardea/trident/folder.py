"""States in a folder of any file system of ``pyarrow.fs``: a directory, HDFS, S3 (``ardea[arrow]``).

URI/of-<number>                          into so many partitions the keys are divided, by whoever came first
URI/<partition>/<life>-<token>/owner     the task's life that has taken the partition over; the highest one has it
URI/<partition>/<life>-<token>/<n>       what this life's n-th write changed
URI/<partition>/<life>-<token>/<n>.full  all that there was behind it

A life reads what the one before it left, writes all of it as its own, and then one file for each batch.  What a former
life writes later is in a place where nobody looks any more, and it finds out before its next write.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Self

import msgspec
import tenacity
import xxhash

from ardea.errors import ConfigError, FailedException, StateError, UserError, without_key
from ardea.protocol.keys import encode_key
from ardea.trident.kinds import NON_TRANSACTIONAL, OPAQUE, TRANSACTIONAL, Entries, Kind, MapStateFactory, Wrap
from ardea.trident.state import BackingMap, Key

FULL = ".full"
DIVIDED = "of-"
MOST_CHANGES = 200
"""Files of changes before all is written anew."""
_DIGEST = 8
_NOTHING = (None, None)
Entry = tuple[Key, Any]
"""A key and its stored value; under the key's bytes, as equal values of different types are different keys."""


class FolderMap(BackingMap):
    """One partition, which is in memory too.

    Args:
        uri: the folder.
        partition: whose writes these are.
        wrap: makes the stored value of its fields.
    """

    def __init__(self, uri: str, partition: int, wrap: Wrap) -> None:
        self._folder = _Folder(uri, str(partition))
        self._coding = Entries(wrap)
        self._life = self._take_over()
        former = self._folder.complete(below=self._life)
        self._entries = self._folder.entries(former, self._coding) if former else {}
        self._written = 0
        self._write_all()

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """From memory."""
        return [self._entries.get(encode_key(key), _NOTHING)[1] for key in keys]

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """A look at the owner, and one file."""
        if self._folder.lives()[-1:] != [self._life]:
            raise FailedException(
                f"partition {self._folder} belongs to another process now; this attempt fails and nothing was stored"
            )
        changed = {encode_key(key): (key, value) for key, value in zip(keys, values, strict=True)}
        self._folder.write(f"{self._life}/{self._written + 1:012}", changed, self._coding)
        self._written += 1
        self._entries.update(changed)
        if self._written % MOST_CHANGES == 0:
            self._write_all()

    def keys_of(self, txid: int) -> list[Key]:
        """Looks through the partition."""
        return [key for key, value in self._entries.values() if getattr(value, "txid", None) == txid]

    def _take_over(self) -> str:
        token = secrets.token_hex(4)
        while True:
            lives = self._folder.lives()
            life = f"{int(lives[-1].partition('-')[0]) + 1 if lives else 1:012}-{token}"
            self._folder.write(f"{life}/owner", {}, self._coding)
            if self._folder.lives()[-1] == life:  # else somebody has taken a number at the same moment
                return life

    def _write_all(self) -> None:
        """What it replaces is removed behind it."""
        self._folder.write(f"{self._life}/{self._written:012}{FULL}", self._entries, self._coding)
        self._folder.remove_before(self._life, self._written)


class FolderReader(BackingMap):
    """All partitions, as their owners had left them when this was made; StateError if that could not be read."""

    def __init__(self, uri: str, wrap: Wrap) -> None:
        coding = Entries(wrap)
        self._entries = dict(chain.from_iterable(entries.items() for entries in _partitions(uri, coding)))

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """From memory."""
        return [self._entries.get(encode_key(key), _NOTHING)[1] for key in keys]

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:  # noqa: ARG002
        """Whoever only reads owns nothing."""
        raise FailedException("the partitions belong to other processes; this attempt fails and nothing was stored")


class _Folder:
    """The files of a partition."""

    def __init__(self, uri: str, partition: str) -> None:
        self._root = without_key(uri)  # until its path is known
        with self._asked("reach its file system"):
            self._system, root = _file_system(uri)
        self._root = f"{root}/{partition}".rstrip("/")

    def __str__(self) -> str:
        return self._root

    def lives(self) -> list[str]:
        """Ascending."""
        return self._names(self._root)

    def complete(self, below: str = "~") -> str | None:
        """The last life that has written all."""
        for life in reversed(self.lives()):
            if life < below and any(name.endswith(FULL) for name in self._names(f"{self._root}/{life}")):
                return life
        return None

    def entries(self, life: str, coding: Entries) -> dict[bytes, Entry]:
        """What that life has left.  A file that was not written to its end was not acknowledged."""
        names = self._names(f"{self._root}/{life}")
        found: dict[bytes, Entry] = {}
        first = max((name for name in names if name.endswith(FULL)), default="")
        if not first:
            raise StateError(f"{self._root}/{life} was replaced while it was read", hint="read it again")
        for name in names[names.index(first) :]:
            if not name[0].isdigit():
                continue
            with self._asked(f"read {name}"), self._system.open_input_stream(f"{self._root}/{life}/{name}") as stream:
                data = stream.read()
            if data[:_DIGEST] == xxhash.xxh3_64_digest(data[_DIGEST:]):
                entries = map(coding.decode, msgspec.msgpack.decode(data[_DIGEST:]))
                found.update((encode_key(key), (key, value)) for key, value in entries)
            elif name == first:
                raise StateError(f"{self._root}/{life}/{name} is damaged", hint="restore it, or use a new folder")
        return found

    def write(self, name: str, entries: dict[bytes, Entry], coding: Entries) -> None:
        """A file."""
        data = msgspec.msgpack.encode([coding.encode(key, value) for key, value in entries.values()])
        path = f"{self._root}/{name}"
        with self._asked(f"write {name}"):
            self._system.create_dir(path.rpartition("/")[0], recursive=True)
            with self._system.open_output_stream(f"{path}~") as stream:
                stream.write(xxhash.xxh3_64_digest(data) + data)
            self._system.move(f"{path}~", path)

    def divide(self, number: int) -> None:
        """Says that there are so many partitions, unless it is said already.

        Raises:
            UserError: there are more or fewer, so that keys would be looked for where they are not.
        """
        wanted = f"{DIVIDED}{number}"
        said = [name for name in self._names(self._root) if name.startswith(DIVIDED)]
        if not said:
            with self._asked(f"write {wanted}"):
                self._system.create_dir(self._root, recursive=True)
                self._system.open_output_stream(f"{self._root}/{wanted}").close()
        elif said != [wanted]:
            there = said[0].removeprefix(DIVIDED)
            raise UserError(
                f"the state {self._root} is divided into {there} partitions, and {number} tasks are to have it; nothing"
                " was changed",
                hint=f"give its operations parallelism_hint({there}) again, or use a new folder",
            )

    def remove_before(self, life: str, number: int) -> None:
        """Former lives, and what this one wrote before it wrote all."""
        with self._asked("remove former files"):
            for former in self.lives():
                if former < life:
                    self._system.delete_dir(f"{self._root}/{former}")
            for name in self._names(f"{self._root}/{life}"):
                if name[0].isdigit() and name < f"{number:012}{FULL}":
                    self._system.delete_file(f"{self._root}/{life}/{name}")

    def _names(self, folder: str) -> list[str]:
        from pyarrow.fs import FileSelector

        with self._asked("list"):
            found = self._system.get_file_info(FileSelector(folder, allow_not_found=True))
        return sorted(file.base_name for file in found if not file.base_name.endswith("~"))

    @contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StateError(
                without_key(f"the state {self._root}: cannot {what}: {error}; this attempt fails and will be repeated"),
                hint="see that the file system can be reached from all tasks and has room",
            ) from error


class FolderState(MapStateFactory):
    """A map state in a folder; made by one of the three class methods.

    Each task has its partition in memory; a batch is a file.  Outlives every process; the machine's end, as far as the
    file system does (a local directory may lose what was written last).
    """

    def __init__(self, kind: Kind, uri: str) -> None:
        super().__init__(kind, cache=0, place=str(uri).rstrip("/"))
        self._uri = uri

    @classmethod
    def opaque(cls, uri: str) -> Self:
        """Exact for transactional and for opaque spouts; ``uri``: as ``s3://bucket/counts``, or an absolute path."""
        return cls(OPAQUE, uri)

    @classmethod
    def transactional(cls, uri: str) -> Self:
        """Exact for transactional spouts; stores a value less."""
        return cls(TRANSACTIONAL, uri)

    @classmethod
    def non_transactional(cls, uri: str) -> Self:
        """What comes again counts again."""
        return cls(NON_TRANSACTIONAL, uri)

    def open(self, partition: int, partitions: int) -> FolderMap:
        """Takes the partition over and reads it; there are as many as from the beginning."""
        _Folder(self._uri, "").divide(partitions)
        return FolderMap(self._uri, partition, self._kind.wrap)

    def reader(self, partition: int, partitions: int) -> FolderReader:  # noqa: ARG002 -- it has them all
        """Reads all of it, once."""
        return FolderReader(self._uri, self._kind.wrap)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """(key, present value) of all partitions; StateError if a task replaces what is being read."""
        for entries in _partitions(self._uri, Entries(self._kind.present)):
            yield from entries.values()


def _partitions(uri: str, coding: Entries) -> Iterator[dict[bytes, Entry]]:
    for partition in filter(str.isdigit, _Folder(uri, "").lives()):
        yield _entries_of(_Folder(uri, partition), coding)


@tenacity.retry(
    retry=tenacity.retry_if_exception_type(StateError),
    stop=tenacity.stop_after_attempt(5),
    wait=tenacity.wait_fixed(0.05),
    reraise=True,
)
def _entries_of(folder: _Folder, coding: Entries) -> dict[bytes, Entry]:
    """Its owner may replace it meanwhile."""
    life = folder.complete()
    return folder.entries(life, coding) if life else {}


def _file_system(uri: str) -> tuple[Any, str]:
    try:
        from pyarrow import fs
    except ImportError as error:
        raise ConfigError("a FolderState needs pyarrow", hint="pip install 'ardea[arrow]'") from error
    try:
        system, path = fs.FileSystem.from_uri(uri)
    except ValueError as error:
        what = without_key(f"{uri!r} is no folder for a state: {error}")
        raise ConfigError(what, hint="an absolute path, or a URI") from error
    return system, path.rstrip("/")
