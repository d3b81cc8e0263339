"""The state manager: a small tree of versioned nodes that every process of a topology may read and write.

Files and ZooKeeper fit under it alike.  A node has data or children, never both; folders come and go with what
lies in them.  A created node has version 1 and each write adds one; a node created again starts at 1 again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from ardea.errors import ExitCode, NotFound, StateError

POLL_SECONDS = 0.2
"""How often the owner of a state manager calls :meth:`StateManager.poll`."""


class Unavailable(StateError):  # noqa: N818
    """The servers that keep the state do not answer."""

    exit_code = ExitCode.UNREACHABLE


class TooLarge(StateError):  # noqa: N818
    """More than the servers take in one transaction; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Versioned:
    """What a node holds, and the version of that."""

    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Check:
    """The node at ``path`` has exactly this version."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Create:
    """There is nothing at ``path``; make a node, of version 1, or a higher one if it was lost."""

    path: str
    data: bytes
    version: int = 1

    @property
    def becomes(self) -> int:
        """The node's version afterwards."""
        return self.version


@dataclass(frozen=True, slots=True)
class Set:
    """The node at ``path`` has this version; replace its data.  The version rises by ``rise``."""

    path: str
    data: bytes
    version: int
    rise: int = 1

    @property
    def becomes(self) -> int:
        """The node's version afterwards."""
        return self.version + self.rise


@dataclass(frozen=True, slots=True)
class Delete:
    """There is a node at ``path``, of this version if one is given; remove it."""

    path: str
    version: int | None = None


Write = Create | Set | Delete
WatchCallback = Callable[[Versioned | None], None]


class Watch(ABC):
    """One subscription to one path."""

    @abstractmethod
    def cancel(self) -> None:
        """Ends the subscription; its callback is not called any more.  Can be repeated."""


class Lease(ABC):
    """A node that lives as long as the process that holds it: readers see it, and then they do not.

    Its data changes as any node's does: ``state.set(lease.path, data, version)``, from version 1.
    """

    path: str

    @property
    @abstractmethod
    def held(self) -> bool:
        """Whether the node is still there and still ours."""

    @property
    @abstractmethod
    def expires_in(self) -> float:
        """Seconds for which nobody else can hold it, whatever happens; ``inf`` on files, 0 when it may be lost.

        On ZooKeeper two thirds of the session timeout since the holder sent what was last answered: whoever acts by
        right of a lease stops at 0, also when cut off or frozen meanwhile.  Needs regular calls of
        :meth:`StateManager.poll`; never waits.
        """

    @abstractmethod
    def release(self) -> None:
        """Removes the node.  Can be repeated; leaves alone what another process holds by now."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class StateManager(ABC):
    """One connection to the state.  Synchronous; a call takes milliseconds, or waits for another writer.

    Reads and writes may come from any thread; :meth:`watch`, :meth:`poll` and :meth:`close` belong to one.
    Every call raises ``ValueError`` for a malformed path and :class:`~ardea.errors.StateError` when the storage
    is at fault.
    """

    @abstractmethod
    def get(self, path: str) -> Versioned:
        """What the node holds.

        Raises:
            NotFound: there is no node; a folder is none, nor is a lease that nobody holds.
        """

    def exists(self, path: str) -> bool:
        """Whether there is a node at ``path``, be it a damaged one: that can be deleted."""
        try:
            self.get(path)
        except NotFound:
            return False
        return True

    @abstractmethod
    def children(self, path: str) -> tuple[str, ...]:
        """The sorted names under ``path`` that are nodes or lead to nodes; none if there is nothing."""

    @abstractmethod
    def transaction(self, writes: Sequence[Write], *, checks: Sequence[Check] = ()) -> tuple[int, ...]:
        """All of the writes or none, provided that every check holds, whoever dies in between.

        All paths belong to one domain (:func:`ardea.state.paths.domain`), each is written once.  Whoever sees one
        write sees the others.

        Returns:
            The new version of each written node; 0 for a deleted one.

        Raises:
            NotFound: a node to check, set or delete is not there.  Nothing was changed.
            Conflict: a version differs, or a node to create exists.  Nothing was changed.
        """

    def create(self, path: str, data: bytes) -> int:
        """Makes a node and the folders above it; returns 1.  Conflict if it exists."""
        return self.transaction([Create(path, data)])[0]

    def set(self, path: str, data: bytes, version: int) -> int:
        """Replaces the data of a node that has this version; returns the new version.  Conflict, NotFound."""
        return self.transaction([Set(path, data, version)])[0]

    def delete(self, path: str, version: int | None = None) -> None:
        """Removes a node, if it has this version.  Conflict, NotFound."""
        self.transaction([Delete(path, version)])

    @abstractmethod
    def lease(self, path: str, data: bytes) -> Lease:
        """Makes a node that vanishes with this process.

        Raises:
            Conflict: the node exists, and its holder lives.
        """

    @abstractmethod
    def watch(self, path: str, callback: WatchCallback) -> Watch:
        """Calls back from :meth:`poll`: first with what is there now, then with what each change left.

        Level-triggered: changes between two polls are told as one; ``None`` means that there is no node.
        """

    @abstractmethod
    def poll(self) -> None:
        """Tells the watches what changed, on the caller's thread.  Never waits for another writer."""

    @property
    def silence(self) -> float:
        """Seconds since the servers that keep the state have last answered; 0 on files.

        Needs regular calls of :meth:`poll`; may be asked from any thread, and never waits.
        """
        return 0.0

    def lost(self) -> bool:
        """Whether the servers have lost all that there was since this was asked last; never on files.

        The first call finds out what there is.
        """
        return False

    def discard(self) -> None:  # noqa: B027 -- most have nothing to remove
        """Removes the folders that servers keep at a root which is one topology's own, after its last node has gone."""

    @abstractmethod
    def close(self) -> None:
        """Ends the watches and releases the leases.  Can be repeated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
