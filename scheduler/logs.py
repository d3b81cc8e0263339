"""The log files of a topology on this machine: which there are, and their lines as they come."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ardea.errors import NotFound
from ardea.logs import SUPERVISOR, written_at
from ardea.plan.names import CONTAINERS, METRICS_MANAGER, STREAM_MANAGER
from ardea.scheduler.home import is_held
from ardea.scheduler.local_evidence import secrets
from ardea.scheduler.schedulers import LogLine, Logs

_OWN = r"(life \d+ (started|ended)|in one call of user code for |\d+ bytes of output lost).*"
_MARK = re.compile(rf'--- {_OWN} ---|{{"time": .*"logger": "{SUPERVISOR}", "message": "{_OWN}"}}')
_CHUNK = 1 << 16
LOOK_EVERY = 0.2
MOST_PRINTED = 10_000
"""Lines that a process has printed after its last record, of which nobody knows when."""


@dataclass(frozen=True, slots=True)
class LogName:
    """One process: ``label`` is what a person calls it."""

    label: str
    path: Path


def log_files(folder: Path, selection: str | None = None) -> list[LogName]:
    """The logs of a topology's folder, in the order of their labels.

    A task that an update has moved has one in each container where it was; the one that was written last is the last.

    Args:
        folder: the topology's.
        selection: ``COMPONENT``, ``COMPONENT:INDEX``, or a process such as ``stream-manager``; None: all.

    Raises:
        NotFound: nothing of that name has a log.
    """
    found = [LogName(path.stem, path) for path in folder.glob("logs/*.log")]
    for path in folder.glob(f"{CONTAINERS}/logs/*.log"):
        shared = path.stem in (STREAM_MANAGER, METRICS_MANAGER)
        found.append(LogName(f"{path.parents[1].name}/{path.stem}" if shared else path.stem, path))
    found.sort(key=lambda log: _modified(log.path))
    found.sort(key=lambda log: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", log.label)])
    if selection is None:
        return found
    component, _, index = selection.partition(":")
    wanted = re.compile(re.escape(component) + (f"-{re.escape(index)}" if index else r"(-\d+)?"))
    chosen = [log for log in found if wanted.fullmatch(log.path.stem)]
    if not chosen:
        names = sorted({re.sub(r"-\d+$", "", log.path.stem) for log in found})
        raise NotFound(
            f"{folder.name} has no log of {selection}; it has {', '.join(names) or 'none'}",
            hint="COMPONENT, COMPONENT:INDEX (from 0), or one of the processes named",
        )
    return chosen


def _numbered(path: Path) -> dict[Path, int]:
    """The files of a log with their inodes, the newest first."""
    older = sorted(path.parent.glob(f"{path.name}.*"), key=lambda each: int(each.suffix[1:]))
    found = {}
    for each in (path, *older):
        with contextlib.suppress(FileNotFoundError):
            found[each] = each.stat().st_ino
    return found


def _opened(path: Path) -> list[int]:
    """All files of a log at one moment between two rotations, the oldest first; the caller closes them."""
    while True:
        with contextlib.ExitStack() as undo:
            there, files = _numbered(path), []
            for each in there:
                with contextlib.suppress(FileNotFoundError):
                    files.append(os.open(each, os.O_RDONLY | os.O_CLOEXEC))
                    undo.callback(os.close, files[-1])
            if list(map(_inode, files)) == list(there.values()) and there == _numbered(path):
                undo.pop_all()
                return files[::-1]


def _inode(file: int) -> int:
    return os.fstat(file).st_ino


class Tail:
    """One log across its rotations, from its oldest file on."""

    def __init__(self, path: Path, *, marks: bool = True) -> None:
        """``marks``: whether the supervisor's own lines count, which say when each life began and ended."""
        self.path, self._marks = path, marks
        self._files: list[int] = []  # the one that is read, and those after it
        self._rest = b""

    def last(self, most: int) -> list[str]:
        """Instead of all that is there its last lines; those added later are given by :meth:`lines`."""
        found: list[bytes] = []
        self._files = _opened(self.path)
        for file in reversed(self._files):
            lines, rest = _last_lines(file, os.lseek(file, 0, os.SEEK_END), most - len(found))
            if file == self._files[-1]:
                self._rest = rest
            found = lines + found
        while len(self._files) > 1:
            self._leave()
        return list(self._chosen(found))

    def lines(self, most: float = math.inf) -> Iterator[str]:
        """The complete lines that were added since the last call; after ``most`` bytes or so the rest can wait."""
        self._files = self._files or _opened(self.path)
        while self._files:
            while most > 0 and (chunk := os.read(self._files[0], _CHUNK)):
                most -= len(chunk)
                *whole, self._rest = (self._rest + chunk).split(b"\n")
                yield from self._chosen(whole)
            if most <= 0:
                return
            if len(self._files) > 1:
                self._leave()
            elif newer := self._newer():
                self._files += newer  # first what this one has got until it was rotated
            else:
                return

    def close(self) -> None:
        """Closes its files.  Can be repeated."""
        while self._files:
            self._leave()

    def _leave(self) -> None:
        os.close(self._files.pop(0))

    def _newer(self) -> list[int]:
        """The files after the last one that is open; all, if that one was removed."""
        held = _inode(self._files[-1])
        try:
            if self.path.stat().st_ino == held:
                return []
        except FileNotFoundError:
            return []  # it is rotated at this moment
        files = _opened(self.path)
        inodes = list(map(_inode, files))
        first = inodes.index(held) + 1 if held in inodes else 0
        for file in files[:first]:
            os.close(file)
        return files[first:]

    def _chosen(self, lines: list[bytes]) -> Iterator[str]:
        for line in lines:
            text = line.decode(errors="replace")
            if self._marks or not _MARK.fullmatch(text):
                yield text


def _last_lines(fd: int, end: int, most: int) -> tuple[list[bytes], bytes]:
    """Of a file up to ``end``: its last whole lines, and what stands after them."""
    data = b""
    while end > 0 and data.count(b"\n") <= most:
        start = max(0, end - _CHUNK)
        data, end = os.pread(fd, end - start, start) + data, start
    *lines, rest = data.split(b"\n")
    return lines[max(0, len(lines) - most) :], rest


def _past(files: Sequence[Tail], tail: int | None, since: float | None) -> Iterator[str]:
    """What the logs of one process have already, or the last lines of all together; see :func:`_lately`."""
    last: list[Iterable[str]] = []
    for file in reversed(files):
        if tail is None:
            last.append(file.lines())
        else:
            last.append(lines := file.last(tail))
            tail -= len(lines)
    for file, past in zip(files, reversed(last), strict=True):
        yield from _lately(past, file.path, since)


def _lately(past: Iterable[str], path: Path, since: float | None) -> Iterator[str]:
    """From the first record on that is not older than ``since`` (Unix seconds); None: all.

    What is printed has no time.  Where a file was written since, and no record, that is what follows the last one.
    """
    printed: deque[str] = deque(maxlen=MOST_PRINTED)
    for line in past:
        if since is not None:
            at = written_at(line)
            if at is None:
                printed.append(line)
                continue
            printed.clear()
            if at < since:
                continue
            since = None
        yield line
    if since is not None and _modified(path) >= since:
        yield from printed


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return math.inf  # it is rotated at this moment


def _last_bytes(path: Path, most: int) -> bytes:
    found = b""
    with contextlib.ExitStack() as open_:
        files = _opened(path)
        for file in files:
            open_.callback(os.close, file)
        for file in reversed(files):
            size = os.fstat(file).st_size
            begin = max(0, size - (most - len(found)))
            found = os.pread(file, size - begin, begin) + found
    return found


class LocalLogs(Logs):
    """Those below a topology's folder."""

    def __init__(self, folder: Path, *, pause: Callable[[float], None] = time.sleep) -> None:
        """``folder`` is the topology's."""
        self._folder, self._pause = folder, pause

    def names(self, selection: str | None = None) -> list[str]:
        """See :class:`ardea.scheduler.schedulers.Logs`."""
        return list(dict.fromkeys(log.label for log in self._there(selection, running=is_held(self._folder))))

    def lines(
        self, selection: str | None = None, *, follow: bool = False, tail: int | None = None, since: float | None = None
    ) -> Iterator[LogLine | None]:
        """See :class:`ardea.scheduler.schedulers.Logs`."""
        earliest = None if since is None else time.time() - since
        with contextlib.ExitStack() as open_:
            tails: dict[LogName, Tail] = {}
            while True:
                held = is_held(self._folder)  # before the last look, so that nothing is missed
                new = [log for log in self._there(selection, running=held) if log not in tails]
                for label, of_label in itertools.groupby(new, key=lambda log: log.label):
                    files = {log: Tail(log.path) for log in of_label}
                    tails.update(files)
                    for file in files.values():
                        open_.callback(file.close)
                    yield from (LogLine(label, line) for line in _past([*files.values()], tail, earliest))
                for log, file in tails.items():
                    yield from (LogLine(log.label, line) for line in file.lines())
                if not (follow and held):
                    return
                tail = earliest = None  # of a log that is begun now all is new
                yield None
                self._pause(LOOK_EVERY)

    def newest(self, label: str, most: int) -> bytes:
        """See :class:`ardea.scheduler.schedulers.Logs`."""
        found = b""
        for log in reversed(log_files(self._folder)):
            if log.label == label:
                found = _last_bytes(log.path, most - len(found)) + found
        return found

    def secrets(self) -> Iterator[str]:
        """See :class:`ardea.scheduler.schedulers.Logs`."""
        return secrets(self._folder)

    def _there(self, selection: str | None, *, running: bool) -> list[LogName]:
        try:
            return log_files(self._folder, selection)
        except NotFound:
            if running and not any(self._folder.glob(f"{CONTAINERS}/logs/*.log")):
                return []  # it is only just starting
            raise
