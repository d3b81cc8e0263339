"""The few things that a state directory asks of a file system, each safe on the disk when it returns."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ardea.errors import StateError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_ELSEWHERE = "name another directory with --state DIR"


class Disk:
    """Each method is one step that happens or fails; tests replace it to crash or run full at a given step."""

    def make_directory(self, path: Path) -> None:
        """Makes the directory and those above it, for this user only."""
        if path.is_dir():
            return
        self.make_directory(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        self.sync_directory(path.parent)

    def write(self, path: Path, contents: bytes) -> None:
        """Writes a file whole; whoever needs that atomic renames it afterwards."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            rest = memoryview(contents)
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Replaces ``target`` at once."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Removes a file, if it is there; or an empty folder that somebody has put in its place."""
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)

    def sync_directory(self, path: Path) -> None:
        """Makes the names in a directory durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def explain(error: OSError, what: str, where: Path, outcome: str) -> StateError:
    """An operating system's error as one that says where it happened, what came of it and what to do."""
    reason = os.strerror(error.errno) if error.errno is not None else str(error)
    if error.errno in FULL:
        hint = f"free some space (or raise the quota or file size limit), or {_ELSEWHERE}"
    elif error.errno in _FORBIDDEN:
        hint = f"make the directory writable for this user, or {_ELSEWHERE}"
    elif error.errno in (errno.ENOTDIR, errno.EEXIST):
        hint = f"a file lies where a directory should be: move it away, or {_ELSEWHERE}"
    elif error.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
        hint = f"the file system there has no file locks; {_ELSEWHERE}, on a local disk"
    else:
        hint = f"see the system's log about that disk, or {_ELSEWHERE}"
    return StateError(f"cannot {what} in {where}: {reason}; {outcome}", hint=hint)
