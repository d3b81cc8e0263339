"""The state manager on files: for one machine, without any server.

The node ``/kind/id`` is the file ``ROOT/kind/id.node``.  Readers take no lock: a file is replaced as a whole, and a
transaction that is being put into place shows by its journal (:mod:`ardea.state.domain`).
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from ardea.errors import StateError
from ardea.state import paths, refusals
from ardea.state.disk import Disk, explain
from ardea.state.domain import Busy, Change, Domain, Timing, same_file
from ardea.state.envelope import Damaged, Node, damaged, seal, unseal
from ardea.state.manager import (
    Check,
    Create,
    Delete,
    Lease,
    Set,
    StateManager,
    Versioned,
    Watch,
    WatchCallback,
    Write,
)


class FileState(StateManager):
    """The state below ``root``, which the first write makes.

    Args:
        root: a directory on a local disk.
        disk: what touches the file system.
        clock: seconds, for ``patience``.
        sleep: pauses between two attempts to lock.
        patience: seconds to wait for another writer; a living one takes milliseconds.
    """

    def __init__(
        self,
        root: Path,
        *,
        disk: Disk | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        patience: float = 10.0,
    ) -> None:
        self.root: Final = root.absolute()
        self._disk = disk or Disk()
        self._timing = Timing(clock, sleep, patience)
        self._watches: list[_FileWatch] = []
        self._leases: list[_FileLease] = []

    def get(self, path: str) -> Versioned:
        """One file read."""
        node = self._read(path)
        if node is None:
            raise refusals.not_found(path)
        return Versioned(node.data, node.version)

    def exists(self, path: str) -> bool:
        """As :meth:`get`, without its data."""
        try:
            return self._read(path) is not None
        except Damaged:
            return True

    def children(self, path: str) -> tuple[str, ...]:
        """One directory listed, and each node in it read."""
        paths.split(path)
        folder = self.root / path[1:]
        try:
            names = {file.name.removesuffix(paths.NODE_SUFFIX) for file in folder.iterdir()}
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise explain(error, f"list {path}", self.root, "nothing was changed") from error
        below = {name: f"{path}/{name}" for name in names if paths.is_segment(name)}
        return tuple(sorted(name for name, child in below.items() if self.exists(child) or self.children(child)))

    def transaction(self, writes: Sequence[Write], *, checks: Sequence[Check] = ()) -> tuple[int, ...]:
        """Under the lock; one file written and renamed for each write, and a journal for more than one."""
        domain = self._domain(refusals.domain_of(writes, checks))
        written = {write.path for write in writes}
        with domain.locked():
            for check in checks:
                self._expect(check.path, check.version)
            changes: list[Change] = []
            versions: list[int] = []
            for write in writes:
                if isinstance(write, Delete):
                    changes.extend(self._removal(write, domain))
                    versions.append(0)
                else:
                    node = self._successor(write, written)
                    changes.append(Change(self._file(write.path), seal(node)))
                    versions.append(node.version)
            domain.commit(changes)
        return tuple(versions)

    def lease(self, path: str, data: bytes) -> Lease:
        """A lock on a file; children that are forked (not those that are started) share it and keep it alive."""
        domain = self._domain(paths.domain(path))
        with domain.locked():
            self._expect_nothing(path, {path})
            try:
                fd = os.open(domain.lease_file(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise explain(error, f"hold {path}", self.root, "nothing was changed") from error
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # free: every holder has a node
                domain.commit([Change(self._file(path), seal(Node(data, version=1, ephemeral=True)))])
            except BaseException:
                os.close(fd)
                raise
        lease = _FileLease(path, domain, self._file(path), fd)
        self._leases.append(lease)
        return lease

    def watch(self, path: str, callback: WatchCallback) -> Watch:
        """Costs one file read at each poll."""
        paths.domain(path)
        watch = _FileWatch(path, callback, self._watches)
        self._watches.append(watch)
        return watch

    def poll(self) -> None:
        """Reads every watched node; one that cannot be read holds up none of the others."""
        failure: StateError | None = None
        for watch in tuple(self._watches):
            try:
                node = self._read(watch.path, wait=False)
            except Busy:
                continue
            except StateError as error:
                failure = failure or error
                continue
            watch.tell(None if node is None else Versioned(node.data, node.version))
        if failure is not None:
            raise failure

    def close(self) -> None:
        """Releases every lease, whatever becomes of the others."""
        self._watches.clear()
        with contextlib.ExitStack() as stack:
            while self._leases:
                stack.callback(self._leases.pop().release)

    def _domain(self, name: str) -> Domain:
        return Domain(self.root, name, self._disk, self._timing)

    def _file(self, path: str) -> Path:
        return self.root / (path[1:] + paths.NODE_SUFFIX)

    def _read(self, path: str, *, wait: bool = True) -> Node | None:
        """The node, as any process may read it."""
        domain = self._domain(paths.domain(path))
        if not domain.in_doubt:
            node = self._load(path)
            if node is None or not node.ephemeral:
                return node
        with domain.locked(wait=wait):
            return self._current(path)

    def _current(self, path: str) -> Node | None:
        """The node, under the lock; buries a lease whose holder is gone."""
        node = self._load(path)
        if node is None or not node.ephemeral:
            return node
        domain = self._domain(paths.domain(path))
        if is_locked(domain.lease_file(path)):
            return node
        with contextlib.suppress(StateError):  # a full disk: the next reader tries again, and it is dead all the same
            domain.commit([Change(domain.lease_file(path), None), Change(self._file(path), None)])
        return None

    def _load(self, path: str) -> Node | None:
        file = self._file(path)
        try:
            contents = file.read_bytes()
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            raise damaged(str(file), "is a directory") from None
        except OSError as error:
            raise explain(error, f"read {path}", self.root, "nothing was changed") from error
        return unseal(contents, str(file))

    def _expect(self, path: str, version: int) -> Node:
        node = self._current(path)
        if node is None:
            raise refusals.not_found(path)
        if node.version != version:
            raise refusals.changed(path, node.version, version)
        return node

    def _expect_nothing(self, path: str, written: Iterable[str]) -> None:
        """Nothing at, above or below ``path``, neither stored nor about to be."""
        node = self._current(path)
        if node is not None:
            raise refusals.exists(path, node.version)
        segments = paths.split(path)
        above = ["/" + "/".join(segments[:length]) for length in range(2, len(segments))]
        related = [p for p in above if self._current(p) is not None]
        related += [p for p in written if p.startswith(path + "/")]
        if related or self._folder_in_use(path):
            raise refusals.nested(path, related[0] if related else f"{path}/…")

    def _folder_in_use(self, path: str) -> bool:
        return any((self.root / path[1:]).rglob("*" + paths.NODE_SUFFIX))

    def _successor(self, write: Create | Set, written: Iterable[str]) -> Node:
        if isinstance(write, Create):
            self._expect_nothing(write.path, written)
            return Node(write.data, write.becomes)
        node = self._expect(write.path, write.version)
        return Node(write.data, write.becomes, node.ephemeral)

    def _removal(self, write: Delete, domain: Domain) -> list[Change]:
        try:
            node = self._current(write.path)
        except Damaged:
            if write.version is not None:
                raise
            return [Change(self._file(write.path), None)]
        if node is None:
            raise refusals.not_found(write.path)
        if write.version is not None:
            self._expect(write.path, write.version)
        removal = [Change(self._file(write.path), None)]
        return [Change(domain.lease_file(write.path), None), *removal] if node.ephemeral else removal


class _FileWatch(Watch):
    def __init__(self, path: str, callback: WatchCallback, watches: list[_FileWatch]) -> None:
        self.path = path
        self._callback = callback
        self._watches = watches
        self._reported: list[Versioned | None] = []

    def tell(self, now: Versioned | None) -> None:
        """Calls back if this differs from what was told last."""
        if self in self._watches and self._reported != [now]:
            self._reported = [now]
            self._callback(now)

    def cancel(self) -> None:
        if self in self._watches:
            self._watches.remove(self)


class _FileLease(Lease):
    """Lives as long as the lock on its file, which the kernel releases with the last copy of ``fd``."""

    def __init__(self, path: str, domain: Domain, file: Path, fd: int) -> None:
        self.path = path
        self._domain = domain
        self._file = file
        self._lease_file = domain.lease_file(path)
        self._fd: int | None = fd

    @property
    def held(self) -> bool:
        return self._fd is not None and same_file(self._fd, self._lease_file)

    @property
    def expires_in(self) -> float:
        return math.inf if self.held else 0.0

    def release(self) -> None:
        if self._fd is None:
            return
        try:
            with self._domain.locked():
                if self.held:
                    self._domain.commit([Change(self._lease_file, None), Change(self._file, None)])
        finally:
            os.close(self._fd)
            self._fd = None


def is_locked(file: Path) -> bool:
    """Whether a process holds a lock on the file."""
    try:
        fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
