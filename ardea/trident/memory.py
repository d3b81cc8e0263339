"""States in the memory of the tasks: fast, and gone with the process that holds them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from ardea.errors import StateError
from ardea.trident.maps import OpaqueMap
from ardea.trident.state import BackingMap, Key, StateFactory


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


class _Lossy(OpaqueMap):
    """Says once that it has lost what a former life of its task held."""

    def __init__(self, backing: BackingMap, partition: int) -> None:
        super().__init__(backing)
        self._partition, self._new = partition, True

    def begin_commit(self, txid: int) -> None:
        """The first one of a life should be the first of all."""
        new, self._new = self._new, False
        if new and txid > 1:
            raise StateError(
                f"the state in memory was lost: partition {self._partition} begins empty at transaction {txid}, which"
                " comes again; what was counted before is gone",
                hint="use a state that outlives its task, or another stream name to begin anew",
            )
        super().begin_commit(txid)


class MemoryMapState(StateFactory):
    """Opaque values in memory.  Each life of a task begins with an empty partition, and says so.

    ``values()`` are those of the partitions that were made in this process, for tests on simulated time.
    """

    kind = "opaque"

    def __init__(self) -> None:
        self._partitions: dict[int, MemoryMap] = {}

    def make_state(self, config: Mapping[str, Any], partition_index: int, num_partitions: int) -> OpaqueMap:  # noqa: ARG002
        """An empty partition."""
        backing = self._partitions[partition_index] = self._empty()
        return _Lossy(backing, partition_index)

    def values(self) -> dict[Key, Any]:
        """Key -> present value."""
        return {key: value.current for part in self._partitions.values() for key, value in part.values.items()}

    def _empty(self) -> MemoryMap:
        return MemoryMap()


class LRUMemoryMapState(MemoryMapState):
    """The same, with the ``capacity`` values of each partition that were used last; what it forgets begins anew."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self._capacity = capacity

    def _empty(self) -> MemoryMap:
        return LRUMemoryMap(self._capacity)
