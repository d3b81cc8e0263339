"""States in the memory of the tasks: fast, and gone with the process that holds them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from ardea.errors import StateError
from ardea.trident.maps import NonTransactionalMap, OpaqueMap, OpaqueValue, TransactionalMap, TransactionalValue
from ardea.trident.state import BackingMap, Key, MapState, StateFactory


class MemoryMap(BackingMap):
    """A dict."""

    def __init__(self) -> None:
        self.values: dict[Key, Any] = {}

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """What is there."""
        return list(map(self.values.get, keys))

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """Sets all of it."""
        self.values.update(zip(keys, values, strict=True))


class LRUMemoryMap(MemoryMap):
    """Forgets the values that were used longest ago, beyond ``capacity``."""

    def __init__(self, capacity: int) -> None:
        self.values: OrderedDict[Key, Any] = OrderedDict()
        self._capacity = capacity

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """What is there; it was used now."""
        for key in keys:
            if key in self.values:
                self.values.move_to_end(key)
        return super().multi_get(keys)

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """Sets all of it, and forgets."""
        for key, value in zip(keys, values, strict=True):
            self.values[key] = value
            self.values.move_to_end(key)
        while len(self.values) > self._capacity:
            self.values.popitem(last=False)


class _Lossy(MapState):
    """Says once that it has lost what a former life of its task held."""

    partition = 0
    _new = True

    def begin_commit(self, txid: int) -> None:
        """The first one of a life should be the first of all."""
        new, self._new = self._new, False
        if new and txid > 1:
            raise StateError(
                f"the state in memory was lost: partition {self.partition} begins empty at transaction {txid}, which"
                " comes again; what was counted before is gone",
                hint="use a state that outlives its task, or another stream name to begin from the start",
            )
        super().begin_commit(txid)


class _Opaque(_Lossy, OpaqueMap):
    pass


class _Transactional(_Lossy, TransactionalMap):
    pass


class _NonTransactional(_Lossy, NonTransactionalMap):
    pass


class MemoryMapState(StateFactory):
    """Values in memory, opaque unless told otherwise.  Each life of a task begins with an empty partition, and says so.

    ``values()`` are those of the partitions that were made in this process, for tests on simulated time.
    """

    kind = "opaque"

    def __init__(self) -> None:
        self._partitions: dict[int, MemoryMap] = {}
        self._state: Callable[[BackingMap], _Lossy] = _Opaque

    @classmethod
    def opaque(cls, *capacity: int) -> Self:
        """For every repeatable source."""
        return cls(*capacity)

    @classmethod
    def transactional(cls, *capacity: int) -> Self:
        """For sources whose transactions always have the same tuples."""
        return cls(*capacity)._of("transactional", _Transactional)

    @classmethod
    def non_transactional(cls, *capacity: int) -> Self:
        """A transaction that comes again counts again."""
        return cls(*capacity)._of("non-transactional", _NonTransactional)

    def make_state(self, config: Mapping[str, Any], partition_index: int, num_partitions: int) -> MapState:  # noqa: ARG002
        """An empty partition."""
        self._partitions[partition_index] = backing = self._empty()
        state = self._state(backing)
        state.partition = partition_index
        return state

    def values(self) -> dict[Key, Any]:
        """Key -> present value."""
        return {key: _present(stored) for part in self._partitions.values() for key, stored in part.values.items()}

    def _of(self, kind: str, state: Callable[[BackingMap], _Lossy]) -> Self:
        self.kind, self._state = kind, state
        return self

    def _empty(self) -> MemoryMap:
        return MemoryMap()


class LRUMemoryMapState(MemoryMapState):
    """The same, with the ``capacity`` values of each partition that were used last; what it forgets begins anew."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity

    def _empty(self) -> MemoryMap:
        return LRUMemoryMap(self._capacity)


def _present(stored: Any) -> Any:
    if isinstance(stored, OpaqueValue):
        return stored.current
    return stored.value if isinstance(stored, TransactionalValue) else stored
