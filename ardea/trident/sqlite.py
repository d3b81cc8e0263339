"""States in an SQLite file that outlive every process.

Each partition has an owner, the last task that opened it; a write checks it in its own transaction.  So a process
that was frozen, replaced and wakes up late writes nothing.  With another number of partitions all former owners are
replaced at once, as keys have changed their partitions.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from ardea.errors import FailedException, StateError
from ardea.protocol.dict_keys import as_key
from ardea.protocol.keys import encode_key
from ardea.protocol.values import RowCodec
from ardea.trident.kinds import NON_TRANSACTIONAL, OPAQUE, TRANSACTIONAL, Kind, MapStateFactory, Wrap
from ardea.trident.state import BackingMap, Key

PATIENCE = 30.0
"""Seconds to wait for another partition's transaction."""

_AT_ONCE = 500
_DIVISION = 1 << 32
"""Partition n of m has the number m * _DIVISION + n in the file."""
_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS entries (
        id BLOB PRIMARY KEY, key BLOB NOT NULL, value BLOB NOT NULL, txid INTEGER, partition INTEGER NOT NULL
    ) WITHOUT ROWID""",
    "CREATE TABLE IF NOT EXISTS owners (partition INTEGER PRIMARY KEY, token TEXT NOT NULL)",
)


class SqliteMap(BackingMap):
    """One partition's part of the file.

    Args:
        path: the file; made if it is missing.
        partition: whose writes these are.
        partitions: how many there are.
        wrap: makes the stored value of its fields.
        owns: it takes the partition over; False: it only reads.
    """

    def __init__(self, path: Path, partition: int, partitions: int, wrap: Wrap, *, owns: bool = True) -> None:
        self._path, self._partition, self._partitions, self._wrap = path, partition, partitions, wrap
        self._place = partitions * _DIVISION + partition
        self._token = secrets.token_hex(8)
        self._codec = RowCodec()
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            with self._writing():
                for statement in _SCHEMA:
                    self._connection.execute(statement)
                if owns:
                    self._connection.execute("DELETE FROM owners WHERE partition / ? != ?", (_DIVISION, partitions))
                    self._connection.execute("REPLACE INTO owners VALUES (?, ?)", (self._place, self._token))
        except sqlite3.Error as error:
            raise self._refused("opened", error) from error

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """Reads some hundred keys a statement."""
        ids = [encode_key(key) for key in keys]
        found: dict[bytes, Any] = {}
        try:
            for start in range(0, len(ids), _AT_ONCE):
                part = ids[start : start + _AT_ONCE]
                query = f"SELECT id, value FROM entries WHERE id IN ({','.join('?' * len(part))})"  # noqa: S608
                found.update((id_, self._load(value)) for id_, value in self._connection.execute(query, part))
        except sqlite3.Error as error:
            raise self._refused("read", error) from error
        return [found.get(id_) for id_ in ids]

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """One transaction, which begins with the look at the owner."""
        encode = self._codec.encode
        rows = [
            (encode_key(key), encode([key]), encode([tuple(value)]), getattr(value, "txid", None), self._place)
            for key, value in zip(keys, values, strict=True)
        ]
        try:
            with self._writing():
                self._check()
                self._connection.executemany("REPLACE INTO entries VALUES (?, ?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise self._refused("written", error) from error

    def keys_of(self, txid: int) -> list[Key]:
        """Looks through the whole file, once in a life of the task; others may write meanwhile."""
        ours = "SELECT key FROM entries WHERE txid = ? AND partition = ?"
        others = "SELECT id, value FROM entries WHERE txid = ? AND partition / ? != ?"
        undo = "UPDATE entries SET value = ? WHERE id = ? AND txid = ? AND partition / ? != ?"  # unless written anew
        division = (txid, _DIVISION, self._partitions)
        try:
            left = self._connection.execute(others, division).fetchall()
            if left:
                undone = [(self._codec.encode([tuple(self._load(v).undone())]), id_, *division) for id_, v in left]
                with self._writing():
                    self._check()
                    self._connection.executemany(undo, undone)
            found = self._connection.execute(ours, (txid, self._place)).fetchall()
        except sqlite3.Error as error:
            raise self._refused("read", error) from error
        return [_key_of(self._codec, key) for (key,) in found]

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def _check(self) -> None:
        owner = self._connection.execute("SELECT token FROM owners WHERE partition = ?", (self._place,))
        if owner.fetchone() != (self._token,):
            raise FailedException(
                f"partition {self._partition} of {self._path} belongs to another process now; this attempt fails and"
                " nothing of it was stored"
            )

    def _load(self, value: bytes) -> Any:
        return self._wrap(self._codec.decode(value)[0])

    def _writing(self) -> _Transaction:
        return _Transaction(self._connection)

    def _refused(self, what: str, error: sqlite3.Error) -> StateError:
        return StateError(
            f"the state {self._path} cannot be {what}: {error}; this attempt fails and will be repeated",
            hint="see that the disk has room and that the file belongs to you",
        )


class _Transaction:
    """All or nothing, and alone."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection.execute("COMMIT" if kind is None else "ROLLBACK")


class SqliteState(MapStateFactory):
    """A map state in an SQLite file; made by one of the three class methods.

    The file may lie on a volume that all tasks see; equal keys have one entry, however many partitions there are.
    """

    def __init__(self, kind: Kind, path: str | Path, cache: int) -> None:
        super().__init__(kind, cache, str(path))
        self._path = Path(path)

    @classmethod
    def opaque(cls, path: str | Path, *, cache: int = 0) -> Self:
        """Exact for transactional and for opaque spouts; ``cache``: values kept in each task."""
        return cls(OPAQUE, path, cache)

    @classmethod
    def transactional(cls, path: str | Path, *, cache: int = 0) -> Self:
        """Exact for transactional spouts; stores a value less."""
        return cls(TRANSACTIONAL, path, cache)

    @classmethod
    def non_transactional(cls, path: str | Path, *, cache: int = 0) -> Self:
        """What comes again counts again."""
        return cls(NON_TRANSACTIONAL, path, cache)

    def open(self, partition: int, partitions: int) -> SqliteMap:
        """Opens the file and takes the partition over."""
        return SqliteMap(self._path, partition, partitions, self._kind.wrap)

    def reader(self, partition: int, partitions: int) -> SqliteMap:
        """Opens the file; sees what its owners have written at the time of each read."""
        return SqliteMap(self._path, partition, partitions, self._kind.wrap, owns=False)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """(key, present value) of all partitions, read without disturbing the writers; nothing if there is no file."""
        if not self._path.exists():
            return
        codec = RowCodec()
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=PATIENCE)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'entries'").fetchone():
                return
            for key, value in connection.execute("SELECT key, value FROM entries"):
                yield _key_of(codec, key), self._kind.present(codec.decode(value)[0])


def _key_of(codec: RowCodec, data: bytes) -> Key:
    return tuple(map(as_key, codec.decode(data)[0]))
