"""States in a Memcached server (``ardea[memcached]``).

The server has no transactions, but values that are only replaced if they are the ones that were read.  Each partition
has a record: its owner, the last transaction, and the keys that this one is about to write.  A write first replaces
the record, then the values, all with what was read before.  A task that takes a partition over replaces the record,
and touches every key in it: whoever was frozen in the middle of a write loses every comparison that is left.  With
another number of partitions that would be another task's keys: the number is kept, too, and stays as it is.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import msgspec

from ardea.errors import ConfigError, FailedException, StateError, UserError
from ardea.protocol.keys import encode_key
from ardea.trident.kinds import NON_TRANSACTIONAL, OPAQUE, TRANSACTIONAL, Entries, Kind, MapStateFactory, Wrap
from ardea.trident.state import BackingMap, Key

PATIENCE = 10.0
"""Seconds to wait for the server."""

_NOTHING = b""  # a key that is touched and has no value


class _Record(msgspec.Struct):
    """Who owns a partition, and what it is about to write."""

    token: str
    txid: int = -1
    ids: list[str] = []


class MemcachedMap(BackingMap):
    """One partition.  The server is first asked when a value is: a task starts without it.

    Args:
        server: like ``127.0.0.1:11211``.
        namespace: what all keys begin with.
        partition: whose writes these are.
        partitions: how many there are.
        wrap: makes the stored value of its fields.
        owns: it takes the partition over; False: it only reads.
    """

    def __init__(
        self, server: str, namespace: str, partition: int, partitions: int, wrap: Wrap, *, owns: bool = True
    ) -> None:
        self._client, self._errors = _connect(server)
        self._server, self._namespace = server, namespace
        self._partition, self._partitions = partition, partitions
        self._place = f"{namespace}:owner:{partition}"
        self._coding = Entries(wrap)
        self._owns = owns
        self._record = None if owns else _Record(secrets.token_hex(8))  # which no partition knows
        self._versions: dict[str, bytes | None] = {}  # of what was read last and not written; None: nothing there

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """One command."""
        try:
            self._own()
            self._versions.clear()
            ids = [self._id(key) for key in keys]
            found = self._read(ids)
        except self._errors as error:
            raise self._refused("read", error) from error
        return [self._coding.decode(found[id_])[1] if found.get(id_) else None for id_ in ids]

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """A command for the record and one for each value."""
        rows = {self._id(key): self._coding.encode(key, value) for key, value in zip(keys, values, strict=True)}
        txid = max((getattr(value, "txid", -1) for value in values), default=-1)
        try:
            record = self._own()
            if missing := [id_ for id_ in rows if id_ not in self._versions]:
                self._read(missing)
            former = record.ids if txid == record.txid >= 0 else []  # of the same transaction
            known = set(former)
            self._announce(_Record(record.token, txid, [*former, *(id_ for id_ in rows if id_ not in known)]))
            for id_, data in rows.items():
                version = self._versions.pop(id_)
                stored = (
                    self._client.add(id_, data, noreply=False)
                    if version is None
                    else self._client.cas(id_, data, version, noreply=False)
                )
                if not stored:
                    raise self._replaced()
        except self._errors as error:
            self._versions.clear()
            raise self._refused("written", error) from error

    def keys_of(self, txid: int) -> list[Key]:
        """What the record says."""
        try:
            record = self._own()
            found = self._read(record.ids) if record.txid == txid else {}
        except self._errors as error:
            raise self._refused("read", error) from error
        return [self._coding.decode(data)[0] for data in found.values() if data]

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def _read(self, ids: Sequence[str]) -> dict[str, bytes]:
        found = self._client.gets_many(ids) if ids else {}
        if self._owns:
            self._versions.update({id_: found[id_][1] if id_ in found else None for id_ in ids})
        return {id_: data for id_, (data, _) in found.items()}

    def _own(self) -> _Record:
        """The record of the partition, which is taken over once in a life."""
        if self._record is None:
            self._divide()
            token = secrets.token_hex(8)
            while self._record is None:
                data, version = self._client.gets(self._place)
                last = _Record("") if data is None else msgspec.json.decode(data, type=_Record)
                record = _Record(token, last.txid, last.ids)
                if self._replace(self._place, msgspec.json.encode(record), version):
                    self._record = record
            for id_ in self._record.ids:
                self._touch(id_)
        return self._record

    def divide(self) -> None:
        """Looks at the number of partitions; without the server, that is put off to the first read.

        Raises:
            UserError: it is another one.
        """
        try:
            with suppress(*self._errors):
                self._divide()
        except UserError:
            self.close()
            raise

    def _divide(self) -> None:
        """Says that there are so many partitions, unless it is said already."""
        place, wanted = f"{self._namespace}:partitions", b"%d" % self._partitions
        if not self._client.add(place, wanted, noreply=False) and (said := self._client.get(place, wanted)) != wanted:
            there = said.decode()
            raise UserError(
                f"the state {self._namespace} at {self._server} is divided into {there} partitions, and"
                f" {self._partitions} tasks are to have it; nothing was stored",
                hint=f"give its operations parallelism_hint({there}) again, or use a new namespace",
            )

    def _touch(self, id_: str) -> None:
        """Whoever has read the key must lose."""
        touched = False
        while not touched:
            data, version = self._client.gets(id_)
            touched = self._replace(id_, _NOTHING if data is None else data, version)

    def _announce(self, record: _Record) -> None:
        data, version = self._client.gets(self._place)
        if data is None or msgspec.json.decode(data, type=_Record).token != record.token:
            raise self._replaced()
        if not self._replace(self._place, msgspec.json.encode(record), version):
            raise self._replaced()
        self._record = record

    def _replace(self, id_: str, data: bytes, version: bytes | None) -> bool:
        """Stores it if nothing has changed since ``version``."""
        if version is None:
            return bool(self._client.add(id_, data, noreply=False))
        return bool(self._client.cas(id_, data, version, noreply=False))

    def _id(self, key: Key) -> str:
        return f"{self._namespace}:{hashlib.blake2b(encode_key(key), digest_size=16).hexdigest()}"

    def _replaced(self) -> FailedException:
        self._versions.clear()
        return FailedException(
            f"partition {self._partition} at {self._server} is written by another process, or was read before that;"
            " this attempt fails"
        )

    def _refused(self, what: str, error: Exception) -> StateError:
        return StateError(
            f"the state at {self._server} cannot be {what}: {error}; this attempt fails and will be repeated",
            hint="see that the server runs and can be reached from all tasks; an item holds a megabyte at most",
        )


class MemcachedState(MapStateFactory):
    """A map state in Memcached; made by one of the three class methods.

    The server keeps it in memory: it is gone when the server ends, or throws values out (start it with ``-M``).
    """

    def __init__(self, kind: Kind, server: str, namespace: str, cache: int) -> None:
        super().__init__(kind, cache, f"{server}, {namespace}")
        self._server, self._namespace = server, namespace

    @classmethod
    def opaque(cls, server: str, namespace: str, *, cache: int = 0) -> Self:
        """Exact for transactional and for opaque spouts; ``cache``: values kept in each task."""
        return cls(OPAQUE, server, namespace, cache)

    @classmethod
    def transactional(cls, server: str, namespace: str, *, cache: int = 0) -> Self:
        """Exact for transactional spouts; stores a value less."""
        return cls(TRANSACTIONAL, server, namespace, cache)

    @classmethod
    def non_transactional(cls, server: str, namespace: str, *, cache: int = 0) -> Self:
        """What comes again counts again."""
        return cls(NON_TRANSACTIONAL, server, namespace, cache)

    def open(self, partition: int, partitions: int) -> MemcachedMap:
        """One partition; UserError if the namespace is divided into another number of them."""
        opened = MemcachedMap(self._server, self._namespace, partition, partitions, self._kind.wrap)
        opened.divide()
        return opened

    def reader(self, partition: int, partitions: int) -> MemcachedMap:
        """Sees each value as it is at the time of each read, however many partitions there are."""
        return MemcachedMap(self._server, self._namespace, partition, partitions, self._kind.wrap, owns=False)

    def get(self, keys: Sequence[Key]) -> list[Any]:
        """The present values of these keys, None where there is none; takes nothing over."""
        client, _ = _connect(self._server)
        place, coding = self.reader(0, 1), Entries(self._kind.present)
        try:
            ids = [place._id(key) for key in keys]
            found = client.get_many(ids)
        finally:
            client.close()
        return [coding.decode(found[id_])[1] if found.get(id_) else None for id_ in ids]


def _connect(server: str) -> tuple[Any, tuple[type[Exception], ...]]:
    try:
        from pymemcache import Client, MemcacheError
    except ImportError as error:
        message = "a MemcachedState needs the package pymemcache"
        raise ConfigError(message, hint="pip install 'ardea[memcached]'") from error
    return Client(server, timeout=PATIENCE, connect_timeout=PATIENCE), (MemcacheError, OSError)
