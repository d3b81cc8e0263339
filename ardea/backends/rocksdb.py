"""Keyed state in RocksDB, in a folder of the task: what is there is bounded by the disk, not by memory.

A key there is the number of the state, the part in which it lies (see :mod:`ardea.backends.bases`; without a time to
live all lie in one), its group and its canonical bytes, so that going through them in order is going by group.  A value
there is the length of what is kept, what is kept, and the key as a row.

The package rocksdict is an extra (``ardea[rocksdb]``), imported where a task first uses it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import math
import struct
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from ardea.backends.bases import place_of
from ardea.backends.contract import Base, Chunk, Row, ScratchError
from ardea.backends.values import Packed
from ardea.errors import EncodingError, UserError
from ardea.protocol.dict_keys import as_key
from ardea.protocol.values import RowCodec
from ardea.snapshots.key_groups import Keys

_MIB = 1 << 20
_WRITE_BUFFER = 16 * _MIB
_CACHE = 32 * _MIB
_CHUNK = 1000
_PREFIX = struct.Struct(">HQ")
_GROUP = struct.Struct(">I")
_LENGTH = struct.Struct(">I")
_CODEC = RowCodec()
_EARLIEST = 1 << 62  # places may be below 0
_SCALAR = b"s"
_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
"""Types that msgpack writes as they are."""


class RocksBackend:
    """One database, which is opened when it is first needed: by the task, after it was forked."""

    def __init__(self, folder: Path) -> None:
        """Raises UserError: rocksdict is not installed."""
        self.folder = folder
        self.library = library()
        self._states = itertools.count()
        self._opened = False

    @functools.cached_property
    def database(self) -> Any:
        """Raises ScratchError."""
        with self.guarded("opened"):
            self.folder.mkdir(parents=True, exist_ok=True)
            database = self.library.Rdict(str(self.folder), _options(self.library))
        self._opened = True
        return database

    @functools.cached_property
    def unlogged(self) -> Any:
        """How it is written: without a write-ahead log, since a task that dies begins from a snapshot."""
        options = self.library.WriteOptions()
        options.disable_wal = True
        return options

    def base(
        self,
        state: str,  # noqa: ARG002
        keys: Keys,
        ttl: float | None,
        now: Callable[[], float],
    ) -> Base:
        """See :class:`ardea.backends.contract.Backend`."""
        return RocksBase(self, next(self._states), keys, ttl, now)

    def close(self) -> None:
        """Its files are the caller's to remove."""
        if self._opened:
            self.database.close()

    @contextlib.contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        """Raises ScratchError for whatever RocksDB raises, which is no class of its own."""
        try:
            yield
        except Exception as error:
            raise ScratchError(
                f"the state backend rocksdb failed: {self.folder} could not be {what}: {error}. Its content is made"
                " anew from the last snapshot; look for room on that disk, and for errors of it"
            ) from error


class _Part:
    """Keys that were written at about one time, the last by ``written``; ``prefix``: of all of them."""

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix
        self.written, self.count = -math.inf, 0


class RocksBase:
    """The part of the database that is one state's."""

    slice = 100

    def __init__(
        self, backend: RocksBackend, number: int, keys: Keys, ttl: float | None, now: Callable[[], float]
    ) -> None:
        self._backend, self._number = backend, number
        self._keys, self._ttl, self._now = keys, ttl, now
        self._parts: dict[int, _Part] = {}

    # --- reading ----------------------------------------------------------------------------------------------

    def get(self, key: Any, default: Any = None) -> Any:
        """See :class:`ardea.backends.contract.Base`, as for all of these."""
        record = self._record(key)
        return default if record is None else _kept(record)

    def __contains__(self, key: object) -> bool:
        return self._record(key) is not None

    def _record(self, key: Any) -> bytes | None:
        try:
            group, encoded = self._keys.placed(key)
        except EncodingError:
            return None  # it can be nobody's
        end = _GROUP.pack(group) + encoded
        with self._backend.guarded("read"):
            for part in self._present():
                record: bytes | None = self._backend.database.get(part.prefix + end)
                if record is not None:
                    return record
        return None

    def _present(self) -> list[_Part]:
        if self._ttl is None:
            return list(self._parts.values())
        return [part for _, part in sorted(self._parts.items(), reverse=True) if not self.expired(part.written)]

    def __iter__(self) -> Iterator[Any]:
        for _, _, record in self._all():
            yield _key(record)

    def __len__(self) -> int:
        return sum(part.count for part in self._present())

    def chunks(self) -> Iterator[Chunk]:
        """Of a thousand keys at most."""
        for (part, group), found in itertools.groupby(self._all(), lambda each: each[:2]):
            while rows := [(_key(record), _kept(record)) for _, _, record in itertools.islice(found, _CHUNK)]:
                yield Chunk(part.written, group, rows)

    def _all(self) -> Iterator[tuple[_Part, int, bytes]]:
        """Part, group and record of each key, as all was at the first one."""
        parts = [(part, part.count) for part in self._present() if part.count]
        if not parts:
            return
        with self._backend.guarded("read"):
            snapshot = self._backend.database.snapshot()
            for part, count in parts:
                size, found = len(part.prefix), 0
                for place, record in snapshot.items(from_key=part.prefix):
                    if not place.startswith(part.prefix):
                        break
                    found += 1
                    yield part, _GROUP.unpack_from(place, size)[0], record
                if found != count:  # the library's iterator ends at a block that cannot be read, without an error
                    raise OSError(f"{found:,} of {count:,} keys were found")

    def expired(self, written: float) -> bool:
        """By the clock, now."""
        return self._ttl is not None and written != 0.0 and written + self._ttl <= self._now()

    # --- writing ----------------------------------------------------------------------------------------------

    def add(self, rows: Iterable[Row], written: float) -> None:
        """In one batch; who counts keys must know which are there already."""
        part = self._part(written)
        placed = {self._end(key): (key, kept) for key, kept in rows}
        former = dict.fromkeys(placed, b"")
        with self._backend.guarded("written"):
            batch = self._batch()
            for end, record in self._take(placed, batch, keep=part):
                former[end] = record
            for end, (key, kept) in placed.items():
                batch.put(part.prefix + end, _record_of(key, kept, former[end]))
            self._backend.database.write(batch, self._backend.unlogged)
        part.count += len(placed)

    def remove(self, keys: Iterable[Any]) -> None:
        """In one batch."""
        with self._backend.guarded("written"):
            batch = self._batch()
            for _ in self._take({self._end(key): None for key in keys}, batch):
                pass
            self._backend.database.write(batch, self._backend.unlogged)

    def prune(self) -> None:
        """Whole parts; what was written at no time has one from now on, if there is any."""
        part = self._parts.get(0)
        if self._ttl is not None and part is not None and part.written == 0.0 and (now := self._now()) > -math.inf:
            part.written = now
        for place, part in list(self._parts.items()):
            if self.expired(part.written):
                with self._backend.guarded("written"):
                    following = (int.from_bytes(part.prefix, "big") + 1).to_bytes(len(part.prefix), "big")
                    self._backend.database.delete_range(part.prefix, following, self._backend.unlogged)
                del self._parts[place]

    def _take(self, ends: Collection[bytes], batch: Any, keep: _Part | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Those of these keys that are there are not counted any more, and deleted but in the part ``keep``."""
        for part in self._parts.values():
            if not part.count:
                continue
            records = self._backend.database.get([part.prefix + end for end in ends])
            for end, record in zip(ends, records, strict=True):
                if record is not None:
                    part.count -= 1
                    if part is not keep:
                        batch.delete(part.prefix + end)
                    yield end, record

    def _part(self, written: float) -> _Part:
        place = 0 if self._ttl is None else place_of(written, self._ttl)
        part = self._parts.get(place)
        if part is None:
            part = self._parts[place] = _Part(_PREFIX.pack(self._number, place + _EARLIEST))
        part.written = max(part.written, 0.0 if self._ttl is None else written)
        return part

    def _end(self, key: Any) -> bytes:
        group, encoded = self._keys.placed(key)
        return _GROUP.pack(group) + encoded

    def _batch(self) -> Any:
        return self._backend.library.WriteBatch(raw_mode=True)


def library() -> Any:
    """The package rocksdict.

    Raises:
        UserError: it is not installed.
    """
    try:
        return importlib.import_module("rocksdict")
    except ModuleNotFoundError as error:
        raise UserError(
            "topology.stateful.backend = 'rocksdb' needs rocksdict, which is not installed",
            hint="pip install 'ardea[rocksdb]', and add the extra to the image",
        ) from error


def _options(rocksdict: Any) -> Any:
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_error_if_exists(True)
    options.set_write_buffer_size(_WRITE_BUFFER)
    options.set_keep_log_file_num(1)
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_bloom_filter(10, False)
    blocks.set_block_cache(rocksdict.Cache(_CACHE))
    # In parts, or that of a million keys would not fit into its share of the cache, and would be read at each look.
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_index_type(rocksdict.BlockBasedIndexType.two_level_index_search())
    blocks.set_partition_filters(True)
    blocks.set_pin_top_level_index_and_filter(True)
    options.set_block_based_table_factory(blocks)
    return options


def _record_of(key: Any, kept: Any, former: bytes) -> bytes:
    """``former``: that of an equal key, whose form is remembered; empty: there is none."""
    content = bytes(kept) if type(kept) is Packed else _SCALAR + _encoded(kept)
    row = former[_LENGTH.size + _LENGTH.unpack_from(former)[0] :] if former else _encoded(key)
    return _LENGTH.pack(len(content)) + content + row


def _encoded(value: Any) -> bytes:
    return _CODEC.encode([(value,)], plain=type(value) in _PLAIN)


def _kept(record: bytes) -> Any:
    end = _LENGTH.size + _LENGTH.unpack_from(record)[0]
    if record[_LENGTH.size : _LENGTH.size + 1] == _SCALAR:
        return _CODEC.decode(record[_LENGTH.size + 1 : end])[0][0]
    return Packed(record[_LENGTH.size : end])


def _key(record: bytes) -> Any:
    return as_key(_CODEC.decode(record[_LENGTH.size + _LENGTH.unpack_from(record)[0] :])[0][0])
