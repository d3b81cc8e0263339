"""Where transactions are remembered across the lives of processes: small values under a stream's name.

/trident/<topology>/<stream>/coordinator/<0 or 1>    the first transaction that is not known to be committed, and
                                                     how many coordinators there were; the higher one counts
/trident/<topology>/<stream>/meta/<txid>             the spout coordinator's metadata
/trident/<topology>/<stream>/positions/<txid>/<n>    where emitter n was behind that transaction
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Any

import msgspec

from ardea.context import TopologyContext
from ardea.errors import Conflict, NotFound, StateError
from ardea.state import Unavailable, open_state, paths
from ardea.state.manager import StateManager

ROOT = "/trident"
logger = logging.getLogger(__name__)


class TransactionStore(ABC):
    """A tree of small values, msgpack or JSON alike; every call is durable when it returns."""

    @abstractmethod
    def get(self, path: str) -> Any:
        """The value; None if there is none, or if what there is cannot be read."""

    @abstractmethod
    def put(self, path: str, value: Any) -> None:
        """Sets the value."""

    @abstractmethod
    def swap(self, path: str, expected: Any, value: Any) -> bool:
        """Sets the value if the present one is ``expected`` (None: there is none); whether it did."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Forgets the value, if there is one."""

    @abstractmethod
    def children(self, path: str) -> tuple[str, ...]:
        """The sorted names below."""

    def close(self) -> None:  # noqa: B027 -- memory has nothing to close
        """The task ends."""


class MemoryStore(TransactionStore):
    """Lives as long as the built topology: for simulated time, where all tasks share one process."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.writes = 0

    def get(self, path: str) -> Any:
        """The value."""
        return None if (data := self.values.get(path)) is None else msgspec.json.decode(data)

    def put(self, path: str, value: Any) -> None:
        """Sets it."""
        self.values[path] = msgspec.json.encode(value)
        self.writes += 1

    def swap(self, path: str, expected: Any, value: Any) -> bool:
        """Compares and sets."""
        if self.get(path) != expected:
            return False
        self.put(path, value)
        return True

    def delete(self, path: str) -> None:
        """Forgets it."""
        self.values.pop(path, None)

    def children(self, path: str) -> tuple[str, ...]:
        """The names."""
        head = f"{path}/"
        return tuple(sorted({p[len(head) :].partition("/")[0] for p in self.values if p.startswith(head)}))


class StateManagerStore(TransactionStore):
    """In the topology's state manager, whose nodes have versions and checksums."""

    def __init__(self, state: StateManager) -> None:
        self._state = state

    def get(self, path: str) -> Any:
        """The value; a damaged one is none, with a warning, because it must not keep a topology from starting."""
        return self._read(path)[0]

    def put(self, path: str, value: Any) -> None:
        """Writes over what is there."""
        self._write(path, value, self._read(path)[1])

    def swap(self, path: str, expected: Any, value: Any) -> bool:
        """A versioned write."""
        present, version = self._read(path)
        if present != expected:
            return False
        try:
            self._write(path, value, version)
        except (Conflict, NotFound):
            return False
        return True

    def delete(self, path: str) -> None:
        """Removes the node."""
        try:
            self._state.delete(path)
        except NotFound:
            return

    def children(self, path: str) -> tuple[str, ...]:
        """The nodes below."""
        return self._state.children(path)

    def close(self) -> None:
        """Closes the connection."""
        self._state.close()

    def _read(self, path: str) -> tuple[Any, int | None]:
        """(value, version); a damaged node is removed."""
        try:
            found = self._state.get(path)
            return msgspec.json.decode(found.data), found.version
        except NotFound:
            return None, None
        except Unavailable:
            raise
        except (StateError, msgspec.DecodeError) as error:
            logger.warning("%s cannot be read and counts as missing: %s", path, error)
            self.delete(path)
            return None, None

    def _write(self, path: str, value: Any, version: int | None) -> None:
        data = msgspec.json.encode(value)
        if version is None:
            self._state.create(path, data)
        else:
            self._state.set(path, data, version)


class StreamStore:
    """The part of a store that belongs to one stream of one topology."""

    def __init__(self, store: TransactionStore, topology: str, stream: str) -> None:
        self._store = store
        self._root = f"{ROOT}/{topology}/{stream}"

    def get(self, path: str) -> Any:
        """The value under a path like ``meta/7``; None if there is none."""
        return self._store.get(f"{self._root}/{path}")

    def put(self, path: str, value: Any) -> None:
        """Sets it, durably."""
        self._store.put(f"{self._root}/{path}", value)

    def swap(self, path: str, expected: Any, value: Any) -> bool:
        """Sets it if the present value is ``expected`` (None: there is none); whether it did."""
        return self._store.swap(f"{self._root}/{path}", expected, value)

    def transactions(self, folder: str) -> list[int]:
        """The transactions that a folder knows, ascending."""
        return sorted(int(name) for name in self._store.children(f"{self._root}/{folder}"))

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a folder."""
        return self._store.children(f"{self._root}/{folder}")

    def delete(self, path: str) -> None:
        """Forgets it."""
        self._store.delete(f"{self._root}/{path}")

    def close(self) -> None:
        """The task ends."""
        self._store.close()


def open_store(context: TopologyContext, memory: MemoryStore, stream: str) -> StreamStore:
    """The store of a stream: in the topology's state manager, or in ``memory`` where there is none."""
    if not context.state_address:
        return StreamStore(memory, context.topology_id, stream)
    store = StateManagerStore(open_state(context.state_address, context.state_credential))
    return StreamStore(store, paths.name_of(context.topology_id), stream)
