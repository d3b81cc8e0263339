"""The log files of a topology on this machine: which there are, and their lines as they come."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
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


class Tail:
    """One log file, across its rotations."""

    def __init__(self, path: Path, *, marks: bool = True) -> None:
        """``marks``: whether the supervisor's own lines count, which say when each life began and ended."""
        self.path, self._marks = path, marks
        self._fd: int | None = None
        self._rest = b""

    def history(self) -> Iterator[str]:
        """The lines of the files that were rotated away, the oldest first."""
        older = self.path.parent.glob(f"{self.path.name}.*")
        for path in sorted(older, key=lambda p: int(p.suffix[1:]), reverse=True):
            yield from self._chosen(path.read_bytes().split(b"\n")[:-1])

    def last(self, most: int) -> list[str]:
        """The last lines that are there, of all files; those added later are given by :meth:`lines`."""
        found: list[bytes] = []
        if (fd := self._opened()) is not None:
            end = os.lseek(fd, 0, os.SEEK_END)
            found, self._rest = _last_lines(fd, end, most)
        older = sorted(self.path.parent.glob(f"{self.path.name}.*"), key=lambda path: int(path.suffix[1:]))
        for path in older:
            if len(found) >= most:
                break
            with path.open("rb") as file:
                found = _last_lines(file.fileno(), path.stat().st_size, most - len(found))[0] + found
        return list(self._chosen(found))

    def skip(self) -> None:
        """What is there already is not asked for."""
        for _ in self.lines():
            break  # it is open now
        if self._fd is not None:
            os.lseek(self._fd, 0, os.SEEK_END)
            self._rest = b""

    def lines(self, most: float = math.inf) -> Iterator[str]:
        """The complete lines that were added since the last call; behind ``most`` bytes or so the rest can wait."""
        while True:
            if (fd := self._opened()) is None:
                return
            while most > 0 and (chunk := os.read(fd, _CHUNK)):
                most -= len(chunk)
                *whole, self._rest = (self._rest + chunk).split(b"\n")
                yield from self._chosen(whole)
            if most <= 0 or not self._rotated(fd):
                return
            self.close()

    def _opened(self) -> int | None:
        """The file; None: it is not there yet."""
        if self._fd is None:
            with contextlib.suppress(FileNotFoundError):
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        return self._fd

    def close(self) -> None:
        """Closes the file.  Can be repeated."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _rotated(self, fd: int) -> bool:
        try:
            return not os.path.samestat(os.fstat(fd), self.path.stat())
        except FileNotFoundError:
            return False

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


def _past(file: Tail, tail: int | None) -> Iterable[str]:
    """What is there already, or its last lines."""
    if tail == 0:
        file.skip()
        return ()
    return itertools.chain(file.history(), file.lines()) if tail is None else file.last(tail)


def _lately(file: Tail, tail: int | None, since: float | None) -> Iterator[str]:
    """From the first record on that is not older than ``since`` (Unix seconds); None: all.

    What is printed has no time.  Where a file was written since, and no record, that is what follows the last one.
    """
    printed: deque[str] = deque(maxlen=MOST_PRINTED)
    for line in _past(file, tail):
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
    if since is not None and _modified(file.path) >= since:
        yield from printed


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return math.inf  # it is rotated at this moment


class LocalLogs(Logs):
    """Those below a topology's folder."""

    def __init__(self, folder: Path, *, pause: Callable[[float], None] = time.sleep) -> None:
        """``folder`` is the topology's."""
        self._folder, self._pause = folder, pause

    def names(self, selection: str | None = None) -> list[str]:
        """See :class:`ardea.scheduler.schedulers.Logs`."""
        return [log.label for log in self._there(selection, running=is_held(self._folder))]

    def lines(
        self, selection: str | None = None, *, follow: bool = False, tail: int | None = None, since: float | None = None
    ) -> Iterator[LogLine | None]:
        """See :class:`ardea.scheduler.schedulers.Logs`."""
        earliest = None if since is None else time.time() - since
        with contextlib.ExitStack() as open_:
            tails: dict[str, Tail] = {}
            while True:
                held = is_held(self._folder)  # before the last look, so that nothing is missed
                for log in self._there(selection, running=held):
                    if log.label not in tails:
                        tails[log.label] = file = Tail(log.path)
                        open_.callback(file.close)
                        yield from (LogLine(log.label, line) for line in _lately(file, tail, earliest))
                for label, file in tails.items():
                    yield from (LogLine(label, line) for line in file.lines())
                if not (follow and held):
                    return
                tail = earliest = None  # of a log that is begun now all is new
                yield None
                self._pause(LOOK_EVERY)

    def newest(self, label: str, most: int) -> bytes:
        """See :class:`ardea.scheduler.schedulers.Logs`."""
        (log,) = (log for log in log_files(self._folder) if log.label == label)
        older = sorted(log.path.parent.glob(f"{log.path.name}.*"), key=lambda path: int(path.suffix[1:]))
        found = b""
        for path in (log.path, *older):
            if len(found) < most:
                with path.open("rb") as file:
                    size = file.seek(0, os.SEEK_END)
                    file.seek(max(0, size - (most - len(found))))
                    found = file.read(most - len(found)) + found
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
