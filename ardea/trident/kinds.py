"""The three kinds of map state, for backends whose values are rows of plain fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ardea.protocol.dict_keys import as_key
from ardea.protocol.values import RowCodec
from ardea.trident.maps import (
    CachedMap,
    NonTransactionalMap,
    OpaqueMap,
    OpaqueValue,
    TransactionalMap,
    TransactionalValue,
)
from ardea.trident.state import BackingMap, Key, MapState, StateFactory

Wrap = Callable[[Sequence[Any]], Any]


class Kind(NamedTuple):
    """``wrap`` makes the stored value of its fields, ``state`` the state over a backing map."""

    name: str
    wrap: Wrap
    state: Callable[[BackingMap], MapState]

    def present(self, fields: Sequence[Any]) -> Any:
        """The present value, of the stored fields."""
        stored = self.wrap(fields)
        return stored.current if isinstance(stored, OpaqueValue) else stored[-1]


class _Plain(NonTransactionalMap):
    """Values are rows of one field."""

    def __init__(self, backing: BackingMap) -> None:
        super().__init__(_Single(backing))


class _Single(BackingMap):
    def __init__(self, backing: BackingMap) -> None:
        self._backing = backing
        self.close = backing.close  # type: ignore[method-assign]

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        return [None if stored is None else stored[0] for stored in self._backing.multi_get(keys)]

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        self._backing.multi_put(keys, [(value,) for value in values])


OPAQUE = Kind("opaque", lambda fields: OpaqueValue(*fields), OpaqueMap)
TRANSACTIONAL = Kind("transactional", lambda fields: TransactionalValue(*fields), TransactionalMap)
NON_TRANSACTIONAL = Kind("non-transactional", tuple, _Plain)


class Entries:
    """Keys and stored values as bytes."""

    def __init__(self, wrap: Wrap) -> None:
        self._wrap, self._codec = wrap, RowCodec()

    def encode(self, key: Key, value: Any) -> bytes:
        """One entry."""
        return self._codec.encode([(key, tuple(value))])

    def decode(self, data: bytes) -> tuple[Key, Any]:
        """(key, stored value)."""
        ((key, fields),) = self._codec.decode(data, 2)
        return tuple(map(as_key, key)), self._wrap(fields)


class MapStateFactory(StateFactory):
    """A factory of one kind, perhaps with a cache of the values used last in front of each partition."""

    def __init__(self, kind: Kind, cache: int, place: str) -> None:
        self._kind, self._cache = kind, cache
        self.kind, self.place = kind.name, place

    def open(self, partition: int, partitions: int) -> BackingMap:
        """The backing map of a partition, of so many."""
        raise NotImplementedError

    def reader(self, partition: int, partitions: int) -> BackingMap:
        """One that is only read, and owns nothing."""
        return self.open(partition, partitions)

    def make_state(self, config: Mapping[str, Any], partition_index: int, num_partitions: int) -> MapState:  # noqa: ARG002
        """The state of a partition."""
        backing = self.open(partition_index, num_partitions)
        return self._kind.state(CachedMap(backing, self._cache) if self._cache else backing)

    def make_reader(self, config: Mapping[str, Any], partition_index: int, num_partitions: int) -> MapState:  # noqa: ARG002
        """Without a cache: who writes meanwhile does not tell."""
        return self._kind.state(self.reader(partition_index, num_partitions))
