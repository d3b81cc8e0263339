"""What lies at a path in ZooKeeper, once and from then on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from kazoo.exceptions import NoNodeError

from ardea.errors import StateError
from ardea.state import refusals
from ardea.state.envelope import Node, unseal
from ardea.state.manager import Versioned, Watch, WatchCallback
from ardea.state.receipts import FOLDER
from ardea.state.session import LOST, Session


@dataclass(frozen=True, slots=True)
class Found:
    """What lay at a path: a node, a folder, or nothing."""

    path: str
    where: str
    contents: bytes | None
    stat: Any

    @classmethod
    def of(cls, session: Session, path: str, answer: Any) -> Self:
        """What the answer to a read of the path says; StateError if it is a refusal."""
        if isinstance(answer, NoNodeError):
            return cls(path, "", None, None)
        if isinstance(answer, Exception):
            raise session.refusal(answer, f"read {path}")
        contents, stat = answer
        return cls(path, f"{session.znode(path)} in ZooKeeper at {session.address.hosts}", contents, stat)

    @property
    def there(self) -> bool:
        """Whether it is a node, be it a damaged one."""
        return self.contents is not None and self.contents != FOLDER

    @property
    def node(self) -> Node | None:
        """The node, if it is one; its version is ZooKeeper's, whatever the envelope says."""
        if self.contents is None or self.contents == FOLDER:
            return None
        return Node(unseal(self.contents, self.where).data, self.stat.version + 1, bool(self.stat.ephemeralOwner))

    def expect(self, version: int) -> Any:
        """Its stat, if it is a node of that version."""
        node = self.node
        if node is None:
            raise refusals.not_found(self.path)
        if node.version != version:
            raise refusals.changed(self.path, node.version, version)
        return self.stat


class ZooKeeperWatch(Watch):
    """Reads its node when ZooKeeper says that it changed, and after each lost connection."""

    def __init__(self, session: Session, path: str, callback: WatchCallback, watches: list[ZooKeeperWatch]) -> None:
        self._session = session
        self._path = path
        self._callback = callback
        self._watches = watches
        self._reported: list[Versioned | None] = []
        self._stale = True
        self._asked: tuple[Any, Any] | None = None
        self._failure: StateError | None = None

    @property
    def answered(self) -> bool:
        """Whether what was asked last has been answered."""
        return self._asked is not None and all(answer.ready() for answer in self._asked)

    def proceed(self, client: Any, *, answered: bool, connected: bool) -> None:
        """Takes the answer that has come, tells it, and asks again if need be; waits for nothing."""
        if answered and self._asked is not None:
            (_, read), self._asked = self._asked, None
            self._take(read)
        if self._stale and self._asked is None and connected and self in self._watches:
            self._stale = False
            path = self._session.znode(self._path)
            # The first leaves the watch, also where nothing is; the second is answered after it.
            self._asked = client.exists_async(path, watch=self._fired), client.get_async(path)
        if self._failure is not None:
            raise self._failure

    def _take(self, read: Any) -> None:
        error = read.exception
        if isinstance(error, LOST):
            self._stale = True
            return
        try:
            node = Found.of(self._session, self._path, error or read.value).node
        except StateError as failure:
            self._failure = failure
            return
        self._failure = None
        now = None if node is None else Versioned(node.data, node.version)
        if self in self._watches and self._reported != [now]:
            self._reported = [now]
            self._callback(now)

    def _fired(self, _event: Any) -> None:
        self._stale = True

    def cancel(self) -> None:
        """What ZooKeeper still says of the path is passed over."""
        if self in self._watches:
            self._watches.remove(self)
