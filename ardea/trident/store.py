"""Where transactions are remembered across the lives of processes: small values under a stream's name.

/trident/<topology>/<stream>/coordinator/<0 or 1>    the first transaction that is not known to be committed, and
                                                     how many coordinators there were; the highest one of a group
                                                     of streams counts, of which all but the first one have it as
                                                     it was when the last coordinator began
/trident/<topology>/<stream>/meta/<txid>             the spout coordinator's metadata
/trident/<topology>/<stream>/positions/<txid>/<n>    where emitter n was behind that transaction
/trident/<topology>/<stream>/owners/<part>           how often a task has taken over that part: the spout coordinator's
                                                     or emitter n's, whose writes are the last owner's alone
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from ardea.context import TopologyContext
from ardea.errors import Conflict, FailedException, NotFound, StateError
from ardea.state import open_state, paths
from ardea.state.envelope import Damaged
from ardea.state.manager import Check, Create, Delete, Set, StateManager, Write

ROOT = "/trident"
OWNERS = "owners"
logger = logging.getLogger(__name__)


class Owner(NamedTuple):
    """Who may write: the last one to have taken over ``path``, which has this version then."""

    path: str
    version: int


class TransactionStore(ABC):
    """A tree of small values, msgpack or JSON alike; every call is durable when it returns.

    A write that names its owner happens only while it is the owner, else it raises FailedException.
    """

    @abstractmethod
    def take_over(self, path: str) -> Owner:
        """Nobody who took this path over before can write any more."""

    @abstractmethod
    def get(self, path: str) -> Any:
        """The value; None if there is none, or if what there is cannot be read."""

    @abstractmethod
    def put(self, path: str, value: Any, owner: Owner | None = None) -> None:
        """Sets the value."""

    @abstractmethod
    def swap(self, path: str, expected: Any, value: Any) -> bool:
        """Sets the value if the present one is ``expected`` (None: there is none); whether it did."""

    @abstractmethod
    def delete(self, path: str, owner: Owner | None = None) -> None:
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

    def take_over(self, path: str) -> Owner:
        """Counts up."""
        version = (self.get(path) or 0) + 1
        self.put(path, version)
        return Owner(path, version)

    def put(self, path: str, value: Any, owner: Owner | None = None) -> None:
        """Sets it."""
        self._check(owner)
        self.values[path] = msgspec.json.encode(value)
        self.writes += 1

    def swap(self, path: str, expected: Any, value: Any) -> bool:
        """Compares and sets."""
        if self.get(path) != expected:
            return False
        self.put(path, value)
        return True

    def delete(self, path: str, owner: Owner | None = None) -> None:
        """Forgets it."""
        self._check(owner)
        self.writes += self.values.pop(path, None) is not None

    def children(self, path: str) -> tuple[str, ...]:
        """The names."""
        head = f"{path}/"
        return tuple(sorted({p[len(head) :].partition("/")[0] for p in self.values if p.startswith(head)}))

    def _check(self, owner: Owner | None) -> None:
        if owner is not None and self.get(owner.path) != owner.version:
            raise _taken_over(owner)


class StateManagerStore(TransactionStore):
    """In the topology's state manager, whose nodes have versions and checksums.

    Every call raises StateError while that cannot be reached, or as long as its disk is full.
    """

    def __init__(self, state: StateManager) -> None:
        self._state = state
        self._last: dict[str, tuple[Any, int]] = {}  # what this task wrote last, and its version: not read again

    def get(self, path: str) -> Any:
        """The value; a damaged one is none, with a warning, because it must not keep a topology from starting."""
        return self._read(path)[0]

    def take_over(self, path: str) -> Owner:
        """The node's version counts."""
        while True:
            version = self._read(path)[1]
            try:
                return Owner(path, self._write(path, None, version))
            except (Conflict, NotFound):
                continue  # somebody else takes it over at this moment: the later one has it

    def put(self, path: str, value: Any, owner: Owner | None = None) -> None:
        """Writes over what is there."""
        try:
            self._write(path, value, self._present(path)[1], owner)
        except (Conflict, NotFound) as error:
            if owner is None:
                raise
            raise _taken_over(owner) from error

    def swap(self, path: str, expected: Any, value: Any) -> bool:
        """A versioned write."""
        present, version = self._present(path)
        if present != expected:
            return False
        try:
            self._write(path, value, version)
        except (Conflict, NotFound):
            return False
        return True

    def delete(self, path: str, owner: Owner | None = None) -> None:
        """Removes the node."""
        self._last.pop(path, None)
        if self._state.exists(path):
            try:
                self._state.transaction([Delete(path)], checks=_checks(owner))
            except (Conflict, NotFound) as error:
                if owner is not None:
                    raise _taken_over(owner) from error

    def children(self, path: str) -> tuple[str, ...]:
        """The nodes below."""
        return self._state.children(path)

    def close(self) -> None:
        """Closes the connection."""
        self._state.close()

    def _present(self, path: str) -> tuple[Any, int | None]:
        return self._last.pop(path, None) or self._read(path)

    def _read(self, path: str) -> tuple[Any, int | None]:
        """(value, version); a damaged node is removed."""
        try:
            found = self._state.get(path)
            return msgspec.json.decode(found.data), found.version
        except NotFound:
            return None, None
        except (Damaged, ValueError):  # no other error: what cannot be read now may be there
            logger.warning("%s cannot be read and counts as missing: it was damaged, and is removed", path)
            self.delete(path)
            return None, None

    def _write(self, path: str, value: Any, version: int | None, owner: Owner | None = None) -> int:
        data = msgspec.json.encode(value)
        write: Write = Create(path, data) if version is None else Set(path, data, version)
        written = self._state.transaction([write], checks=_checks(owner))[0]
        self._last[path] = value, written
        return written


def _checks(owner: Owner | None) -> list[Check]:
    return [] if owner is None else [Check(*owner)]


def _taken_over(owner: Owner) -> FailedException:
    return FailedException(f"another process has taken {owner.path} over; this attempt fails and nothing was stored")


class StreamStore:
    """The part of a store that belongs to one stream of one topology.

    ``part``: what of it this task takes over: only the last one to have done so can put and delete.  None: nothing.
    """

    def __init__(self, store: TransactionStore, topology: str, stream: str, part: str | None = None) -> None:
        self._store = store
        self._root = f"{ROOT}/{topology}/{stream}"
        self._owner = None if part is None else store.take_over(f"{self._root}/{OWNERS}/{part}")

    def get(self, path: str) -> Any:
        """The value under a path like ``meta/7``; None if there is none."""
        return self._store.get(f"{self._root}/{path}")

    def put(self, path: str, value: Any) -> None:
        """Sets it, durably.

        Raises:
            FailedException: another process has taken over what this task writes.
        """
        self._store.put(f"{self._root}/{path}", value, self._owner)

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
        """Forgets it; raises as ``put``."""
        self._store.delete(f"{self._root}/{path}", self._owner)

    def close(self) -> None:
        """The task ends."""
        self._store.close()


def open_store(context: TopologyContext, memory: MemoryStore, stream: str, part: str | None = None) -> StreamStore:
    """The store of a stream: in the topology's state manager, or in ``memory`` where there is none."""
    if not context.state_address:
        return StreamStore(memory, context.topology_id, stream, part)
    store = StateManagerStore(open_state(context.state_address, context.state_credential))
    return StreamStore(store, paths.name_of(context.topology_id), stream, part)


@contextmanager
def temporary() -> Iterator[None]:
    """A state that cannot be read as a task begins is no error of the author's: its supervisor starts it again."""
    try:
        yield
    except StateError as error:
        raise RuntimeError(f"{error.message}; this task starts again") from error
