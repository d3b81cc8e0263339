"""The state manager on ZooKeeper: for several machines, and for a standby master.

The node ``/kind/id`` is the znode ``ROOT/kind/id``, in the same envelope as a file; its version is the znode's plus
one.  Reads ask the leader first whether they are up to date, so what was written before them is seen by them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from kazoo.exceptions import KazooException, NoAuthError, NoNodeError

from ardea.errors import Conflict, NotFound, StateError
from ardea.state import paths, refusals
from ardea.state.address import Address
from ardea.state.envelope import Node, seal
from ardea.state.manager import (
    Check,
    Create,
    Delete,
    Lease,
    Set,
    StateManager,
    Unavailable,
    Versioned,
    Watch,
    WatchCallback,
    Write,
)
from ardea.state.receipts import FOLDER, Operation, Raced, Transactions
from ardea.state.session import Session
from ardea.state.znodes import Found, ZooKeeperWatch

_ROUNDS = 100


class ZooKeeperState(StateManager):
    """The state below the address' root, which the first write makes.

    Args:
        address: where the servers are.
        timeout: seconds of silence after which the servers give this process' leases up, within their own limits.
        patience: seconds that a call waits for an answer.  Once nobody has answered for so long, calls fail at
            once until somebody does.
        clock: seconds, never going back.
    """

    def __init__(
        self,
        address: Address,
        *,
        timeout: float = 8.0,
        patience: float = 7.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session = Session(address, timeout, patience, clock)
        self._transactions = Transactions(self.session)
        self._watches: list[ZooKeeperWatch] = []
        self._root_made: tuple[int, int] | None = None

    def get(self, path: str) -> Versioned:
        """One round trip."""
        node = self.look([path], "read")[path].node
        if node is None:
            raise refusals.not_found(path)
        return Versioned(node.data, node.version)

    def exists(self, path: str) -> bool:
        """As :meth:`get`, without its data."""
        return self.look([path], "read")[path].there

    def children(self, path: str) -> tuple[str, ...]:
        """Two round trips, and two more for each folder in it."""
        paths.split(path)
        names = [name for name in self._list([path])[path] if paths.is_segment(name)]
        found = self.look([f"{path}/{name}" for name in names], "list") if names else {}
        return tuple(sorted(n for n in names if found[p := f"{path}/{n}"].there or self.children(p)))

    def transaction(self, writes: Sequence[Write], *, checks: Sequence[Check] = ()) -> tuple[int, ...]:
        """One read of all that it touches, and one ZooKeeper transaction."""
        refusals.domain_of(writes, checks)
        self._commit(writes, checks)
        return tuple(0 if isinstance(write, Delete) else write.becomes for write in writes)

    def lease(self, path: str, data: bytes) -> Lease:
        """An ephemeral znode: it outlives a process that was killed by the session timeout."""
        paths.domain(path)
        zxid, generation = self._commit([Create(path, data)], ephemeral=True)
        return _ZooKeeperLease(self, path, zxid, generation)

    def watch(self, path: str, callback: WatchCallback) -> Watch:
        """Costs nothing while nothing changes."""
        paths.domain(path)
        watch = ZooKeeperWatch(self.session, path, callback, self._watches)
        self._watches.append(watch)
        return watch

    def poll(self) -> None:
        """Tells what has arrived; keeps the leases' proof of life fresh.  Says nothing while nobody answers."""
        if not self._watches and not self.session.started:
            return
        client = self.session.client()
        self.session.probe()
        failure: StateError | None = None
        # Answers come in the order of the questions: looking from the end keeps callbacks in that order, too.
        answered = {watch for watch in reversed(self._watches) if watch.answered}
        connected = self.session.connected  # for all alike
        for watch in tuple(self._watches):
            try:
                watch.proceed(client, answered=watch in answered, connected=connected)
            except StateError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    @property
    def silence(self) -> float:
        """See :class:`StateManager`."""
        return self.session.silence

    def lost(self) -> bool:
        """By the znode of the root, which nobody makes again while there is something in it."""
        root = self.session.address.root
        _, found = self.session.call(
            lambda client: [client.sync_async(root), client.exists_async(root)], f"read {root}"
        )
        if isinstance(found, Exception):
            raise self.session.refusal(found, f"read {root}")
        former, self._root_made = self._root_made, None if found is None else (found.czxid, found.ctime)
        return former is not None and former != self._root_made

    def discard(self) -> None:
        """Removes the root and what is in it; somebody who writes meanwhile may leave some of it."""
        with contextlib.suppress(KazooException):
            self.session.client().delete(self.session.address.root, recursive=True)

    def close(self) -> None:
        """Ends the session, and the leases with it."""
        self._watches.clear()
        self.session.close()

    # --- reading ----------------------------------------------------------------------------------------------

    def look(self, wanted: Iterable[str], verb: str) -> dict[str, Found]:
        """What lies at each path now."""
        unique = list(dict.fromkeys(wanted))
        for path in unique:
            paths.domain(path)
        root, what = self.session.address.root, f"{verb} {unique[0]}"
        _, *answers = self.session.call(
            lambda client: [client.sync_async(root), *(client.get_async(self.session.znode(path)) for path in unique)],
            what,
        )
        return {path: Found.of(self.session, path, answer) for path, answer in zip(unique, answers, strict=True)}

    def _list(self, folders: Sequence[str]) -> dict[str, list[str]]:
        """All names of znodes in each folder, ours or not."""
        root, what = self.session.address.root, f"list {folders[0]}"
        _, *answers = self.session.call(
            lambda client: [
                client.sync_async(root),
                *(client.get_children_async(self.session.znode(f)) for f in folders),
            ],
            what,
        )
        names = {}
        for folder, answer in zip(folders, answers, strict=True):
            if isinstance(answer, Exception) and not isinstance(answer, NoNodeError):
                raise self.session.refusal(answer, what)
            names[folder] = [] if isinstance(answer, NoNodeError) else answer
        return names

    # --- writing ----------------------------------------------------------------------------------------------

    def _commit(
        self, writes: Sequence[Write], checks: Sequence[Check] = (), *, ephemeral: bool = False
    ) -> tuple[int, int]:
        """Its zxid and the session's generation; built anew from what is there whenever somebody else was faster."""
        what = f"write {(*writes, *checks)[0].path}"
        for _ in range(_ROUNDS):
            operations = self._operations(writes, checks, ephemeral)
            try:
                return self._transactions.commit(operations, what)
            except Raced as raced:
                reason = raced.__cause__
            if isinstance(reason, NoAuthError):
                self._operations(writes, checks, ephemeral)  # if a node has come to lie above, says so
                raise self.session.refusal(reason, what)
            if isinstance(reason, NoNodeError):
                for kind in {paths.split(write.path)[0] for write in writes if isinstance(write, Create)}:
                    self._transactions.make_folders(kind, what)
        raise Conflict(
            f"cannot {what}: somebody else wrote there at each of {_ROUNDS} attempts; nothing was changed",
            hint="repeat it",
        )

    def _operations(self, writes: Sequence[Write], checks: Sequence[Check], ephemeral: bool) -> list[Operation]:
        """What ZooKeeper is to do, provided that what was found is still there."""
        created = [write.path for write in writes if isinstance(write, Create)]
        above = {folder for path in created for folder in _folders(path)}
        found = self.look([*(w.path for w in writes), *(c.path for c in checks), *above], "write")
        operations: list[Operation] = []
        for check in checks:
            stat = found[check.path].expect(check.version)
            operations.append(("check", {"path": self.session.znode(check.path), "version": stat.version}))
        written = {write.path for write in writes}
        for path in created:
            _expect_nothing(path, found, written)
        for folder in sorted(above, key=len):
            if found[folder].stat is None:
                arguments = {"path": self.session.znode(folder), "value": FOLDER, "acl": self._transactions.folder_acl}
                operations.append(("create", arguments))
        for write in writes:
            operations += self._steps(write, found[write.path], ephemeral)
        operations += [("delete", {"path": self.session.znode(folder)}) for folder in self._emptied(writes)]
        return operations

    def _steps(self, write: Write, found: Found, ephemeral: bool) -> list[Operation]:
        path = self.session.znode(write.path)
        if isinstance(write, Create):
            value, acl = seal(Node(write.data, write.becomes, ephemeral)), self._transactions.node_acl
            create = {"path": path, "value": value, "acl": acl, "ephemeral": ephemeral}
            return [("create", create), *_raising(path, value, write.becomes - 1)]
        if isinstance(write, Set):
            stat = found.expect(write.version)
            value = seal(Node(write.data, write.becomes, bool(stat.ephemeralOwner)))
            first = {"path": path, "value": value, "version": stat.version}
            return [("set_data", first), *_raising(path, value, write.rise - 1)]
        if write.version is not None:
            return [("delete", {"path": path, "version": found.expect(write.version).version})]
        if not found.there:
            raise refusals.not_found(write.path)
        return [("delete", {"path": path})]

    def _emptied(self, writes: Sequence[Write]) -> list[str]:
        """The folders in which these writes leave nothing, the deepest first."""
        deleted = {write.path for write in writes if isinstance(write, Delete)}
        folders = sorted({folder for path in deleted for folder in _folders(path)}, key=len, reverse=True)
        if not folders:
            return []
        names, gone = self._list(folders), []
        for folder in folders:
            left = {f"{folder}/{name}" for name in names[folder]} - deleted
            if not left and not any(w.path.startswith(f"{folder}/") for w in writes if isinstance(w, Create)):
                gone.append(folder)
                deleted.add(folder)
        return gone


class _ZooKeeperLease(Lease):
    """Lives as long as the session in which it was made; the znode is ours if it has our transaction's zxid."""

    def __init__(self, state: ZooKeeperState, path: str, zxid: int, generation: int) -> None:
        self.path = path
        self._state = state
        self._zxid = zxid
        self._generation: int | None = generation

    @property
    def held(self) -> bool:
        """Asks ZooKeeper; while that does not answer, whether it is certain."""
        if self._generation != self._state.session.generation:
            return False
        try:
            return self._version() is not None
        except Unavailable:
            return self.expires_in > 0

    @property
    def expires_in(self) -> float:
        return 0.0 if self._generation is None else self._state.session.expires_in(self._generation)

    def release(self) -> None:
        while self._generation == self._state.session.generation and (version := self._version()) is not None:
            try:
                self._state.delete(self.path, version)
            except (Conflict, NotFound):
                continue  # its data changed meanwhile, or it is gone
        self._generation = None

    def _version(self) -> int | None:
        """That of our node; None if there is none any more."""
        found = self._state.look([self.path], "read")[self.path]
        return found.stat.version + 1 if found.stat is not None and found.stat.czxid == self._zxid else None


def _raising(path: str, value: bytes, times: int) -> list[Operation]:
    """Raises the version, which is ZooKeeper's own count of writes."""
    values = [b""] * (times - 1) + [value] * min(times, 1)
    return [("set_data", {"path": path, "value": each}) for each in values]


def _folders(path: str) -> list[str]:
    """The folders above a path that come and go with it."""
    segments = paths.split(path)
    return ["/" + "/".join(segments[:length]) for length in range(2, len(segments))]


def _expect_nothing(path: str, found: Mapping[str, Found], written: Iterable[str]) -> None:
    """Nothing at, above or below ``path``, neither stored nor about to be."""
    node = found[path].node
    if node is not None:
        raise refusals.exists(path, node.version)
    related = [folder for folder in _folders(path) if found[folder].there]
    related += [other for other in written if other.startswith(f"{path}/")]
    if related or found[path].stat is not None:
        raise refusals.nested(path, related[0] if related else f"{path}/…")
