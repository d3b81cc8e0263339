"""What the writers of one topology share on disk: a lock, a staging area and a journal.

    ROOT/.ardea/<domain>/lock        flock held by whoever writes, or looks whether a lease lives
                         0, 1, …     contents on their way into place
                         draft       a journal not yet in force
                         journal     a decided transaction that is being put into place
                         lease-<h>   flock held by the holder of a lease

A transaction is decided when ``draft`` becomes ``journal``; whoever takes the lock next finishes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import xxhash

from ardea.errors import StateError
from ardea.state.disk import FULL, Disk, explain
from ardea.state.envelope import Damaged, Node, seal, unseal
from ardea.state.paths import NODE_SUFFIX

HOUSEKEEPING = ".ardea"
_RETRY_SECONDS = 0.005
_LASTING = ("lock", "lease-")


class Busy(StateError):  # noqa: N818
    """Another process holds the lock of the domain."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How to wait for a lock: at most ``patience`` seconds by ``clock``, pausing with ``sleep``."""

    clock: Callable[[], float]
    sleep: Callable[[float], None]
    patience: float


@dataclass(frozen=True, slots=True)
class Change:
    """A file that gets these contents, or goes (None)."""

    target: Path
    contents: bytes | None


class Domain:
    """One topology's corner of the state directory."""

    def __init__(self, root: Path, name: str, disk: Disk, timing: Timing) -> None:
        self._root = root
        self._name = name
        self._disk = disk
        self._timing = timing
        self._home = root / HOUSEKEEPING / name
        self._journal = self._home / "journal"
        self._stored = False  # under the present lock: then the domain has a node

    @property
    def in_doubt(self) -> bool:
        """Whether a decided transaction is not all in place: files may be read under the lock only."""
        try:
            return self._journal.exists()
        except OSError as error:
            raise explain(error, f"read the state of {self._name}", self._root, "nothing was changed") from error

    def lease_file(self, path: str) -> Path:
        """The file whose lock means that the lease at ``path`` lives."""
        return self._home / f"lease-{xxhash.xxh3_64_hexdigest(path.encode())}"

    @contextlib.contextmanager
    def locked(self, *, wait: bool = True) -> Iterator[None]:
        """Keeps other writers out, after finishing what a dead one left.

        Raises:
            Busy: another process holds the lock: at once, or with ``wait`` when the patience has run out.
        """
        try:
            fd = self._acquire(wait)
        except OSError as error:
            raise explain(error, f"lock the state of {self._name}", self._root, "nothing was changed") from error
        self._stored = False
        try:
            self._recover()
            try:
                yield
            except StateError:
                self._retire()
                raise
            if not self._stored:
                self._retire()
        finally:
            os.close(fd)

    def commit(self, changes: Sequence[Change]) -> None:
        """Makes all of the changes or none.  The lock must be held.

        On a full disk, which has no room for a journal, removals are made one after the other: they make room.

        Raises:
            StateError: the disk refused; the message says whether anything was changed.
        """
        moves = [(None if c.contents is None else n, c.target) for n, c in enumerate(changes)]
        journalled = len(moves) > 1
        try:
            self._stage(changes, moves)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._sweep()
            if error.errno not in FULL or any(change.contents is not None for change in changes):
                raise explain(error, f"write the state of {self._name}", self._root, "nothing was changed") from error
            journalled = False
        try:
            if journalled:
                self._disk.rename(self._home / "draft", self._journal)
                self._disk.sync_directory(self._home)
                self._finish(moves)
            else:
                self._apply(moves)
        except OSError as error:
            outcome = "the change may or may not be in force: read it again before relying on it"
            raise explain(error, f"complete a write to the state of {self._name}", self._root, outcome) from error
        self._stored = any(change.contents is not None for change in changes)

    def _acquire(self, wait: bool) -> int:
        path = self._home / "lock"
        deadline = self._timing.clock() + self._timing.patience
        while True:
            self._disk.make_directory(self._home)
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:
                continue  # the domain was retired in between
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if same_file(fd, path):
                    return fd
            except BlockingIOError:
                if not wait or self._timing.clock() >= deadline:
                    os.close(fd)
                    raise self._busy(path) from None
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            self._timing.sleep(_RETRY_SECONDS)

    def _busy(self, path: Path) -> Busy:
        return Busy(
            f"another process has been holding {path} for {self._timing.patience:g} s; nothing was changed",
            hint=f"it is frozen or its disk is: find it with `fuser {path}`, let it go on or end it, and repeat",
        )

    def _stage(self, changes: Sequence[Change], moves: list[tuple[int | None, Path]]) -> None:
        for number, change in enumerate(changes):
            if change.contents is not None:
                self._disk.make_directory(change.target.parent)
                self._disk.write(self._home / str(number), change.contents)
        if len(moves) > 1:
            entries = [(number, str(target.relative_to(self._root))) for number, target in moves]
            self._disk.write(self._home / "draft", seal(Node(msgspec.json.encode(entries), version=1)))
            self._disk.sync_directory(self._home)

    def _finish(self, moves: list[tuple[int | None, Path]]) -> None:
        self._apply(moves)
        self._disk.remove(self._journal)
        # A journal that came back after a power failure would repeat its removals on newer nodes.
        self._disk.sync_directory(self._home)

    def _apply(self, moves: list[tuple[int | None, Path]]) -> None:
        for number, target in moves:
            if number is None:
                self._disk.remove(target)
            elif (staged := self._home / str(number)).exists():  # else moved before the crash
                self._disk.rename(staged, target)
        emptied = {target.parent for number, target in moves if number is None}
        for directory in sorted({target.parent for _, target in moves}):
            if directory.is_dir():
                self._disk.sync_directory(directory)
                if directory in emptied:
                    self._prune(directory)

    def _prune(self, directory: Path) -> None:
        """Removes empty folders; those of a kind (and the home, which holds the lock) stay."""
        with contextlib.suppress(OSError):
            while len(directory.relative_to(self._root).parts) > 1:
                directory.rmdir()
                directory = directory.parent

    def _recover(self) -> None:
        try:
            if self._journal.exists():
                self._finish(self._read_journal())
            self._sweep()
        except OSError as error:
            what = f"finish an interrupted write to the state of {self._name}"
            raise explain(error, what, self._root, "the next access will try again") from error

    def _read_journal(self) -> list[tuple[int | None, Path]]:
        try:
            node = unseal(self._journal.read_bytes(), str(self._journal))
            entries = msgspec.json.decode(node.data, type=list[tuple[int | None, str]])
        except (Damaged, ValueError) as error:
            raise StateError(
                f"the journal {self._journal} is damaged ({error}); {self._name} cannot be read until it is gone",
                hint=f"`rm {self._journal}` gives up the transaction in it, which may be half in place; "
                "then end the topology with `ardea kill`",
            ) from error
        return [(number, self._root / target) for number, target in entries]

    def _sweep(self) -> None:
        """Removes what a dead or refused writer staged."""
        for file in list(self._home.iterdir()):
            if not file.name.startswith(_LASTING):
                self._disk.remove(file)

    def _retire(self) -> None:
        """Removes the home of a domain without nodes, so that nothing is left of a topology that is gone."""
        with contextlib.suppress(OSError):  # the next to lock the domain may already be making the lock anew
            for kind in self._root.iterdir():
                folder = kind / self._name
                if kind.name != HOUSEKEEPING and (
                    folder.is_dir() or folder.with_name(self._name + NODE_SUFFIX).exists()
                ):
                    return
            for file in sorted(self._home.iterdir(), key=lambda f: f.name == "lock"):  # last: it covers the others
                self._disk.remove(file)
            self._home.rmdir()


def same_file(fd: int, path: Path) -> bool:
    """Whether the open file is still the one at ``path``: its lock means nothing otherwise."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(fd), there)
