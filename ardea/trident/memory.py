"""States in the memory of the tasks: fast, and gone with the process that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ardea.trident.maps import OpaqueMap
from ardea.trident.state import BackingMap, Key, StateFactory


class MemoryMap(BackingMap):
    """A dict."""

    def __init__(self) -> None:
        self.values: dict[Key, Any] = {}

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """What is there."""
        return [self.values.get(key) for key in keys]

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """Sets all of it."""
        self.values.update(zip(keys, values, strict=True))


class MemoryMapState(StateFactory):
    """Opaque values in memory.  Each life of a task begins with an empty one.

    ``values()`` are those of the partitions that were made in this process, for tests on simulated time.
    """

    def __init__(self) -> None:
        self._partitions: dict[int, MemoryMap] = {}

    def make_state(self, config: Mapping[str, Any], partition_index: int, num_partitions: int) -> OpaqueMap:  # noqa: ARG002
        """An empty partition."""
        backing = self._partitions[partition_index] = MemoryMap()
        return OpaqueMap(backing)

    def values(self) -> dict[Key, Any]:
        """Key -> present value."""
        return {key: value.current for part in self._partitions.values() for key, value in part.values.items()}
