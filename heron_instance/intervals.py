"""The rows that a two-phase sink has taken, in files of the store, until they are outside (docs/sinks.md).

An interval is what comes between two snapshots.  Its number is the first that a snapshot of it could have: it is known
before the snapshot is, so that rows may be stored while they come.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ardea.protocol.wire_pb2 import StateFile
from ardea.snapshots.manifest import state_name
from ardea.snapshots.marks import Mark
from ardea.snapshots.rows_file import SUFFIX, encode_rows, head_of
from ardea.snapshots.savepoint import NUMBER
from ardea.snapshots.state_file import Content

FILE = 16 << 20
"""Bytes of rows with which a file is full."""
MOST_UNSTORED = 64 << 20
"""Bytes of rows that may be in memory."""
AGAIN = 1.0
"""Seconds after which a file is written again that could not be."""


class Storage(Protocol):
    """The store of snapshots."""

    def write(self, file: str, content: Iterable[bytes], done: Callable[[Exception | None], None]) -> None:
        """Begins to write it; ``done`` is called with an error, or None, from any thread.

        The error is an OSError, or what reading the content has raised.
        """

    def read(self, file: str, most: int | None = None) -> bytes:
        """Waits for its first bytes, ``most`` of them (None: for all), on any thread.

        Raises FileNotFoundError, or OSError if it may be there another time.
        """

    def aside(self, function: Callable[[], object], done: Callable[[Exception | None], None]) -> None:
        """Begins to call it, on a thread where it may wait, one after the other; ``done`` as for :meth:`write`."""


@dataclass(slots=True)
class Stretch:
    """Rows of one interval, in one file.

    ``number``: the first snapshot with which they count; 0: they do already.  ``pieces`` are in memory until ``file``
    lies in the store.
    """

    mark: Mark
    number: int
    pieces: Sequence[bytes] = ()
    size: int = 0
    file: StateFile | None = None
    writing: bool = False


class Intervals:
    """Of one task in one timeline.  ``error`` is the store's, since it has last written a file."""

    def __init__(self, owner: Mark, writer: str, storage: Storage) -> None:
        """``owner``: of any number.  ``writer``: the task and its life, for the names of files."""
        self.error = ""
        self._owner, self._writer, self._storage = owner, writer, storage
        self._timeline = 0
        self._number = 1  # of the present interval
        self._rows: list[bytes] = []  # of it, that are in no stretch yet
        self._bytes = 0
        self._stretches: list[Stretch] = []  # whose rows are not outside, as far as is known; in order
        self._files = 0
        self._failed, self._again = False, -math.inf  # to write one; when it is tried again
        self._written: deque[tuple[Stretch, StateFile | Exception]] = deque()  # from another thread

    def restored(self, file: StateFile, mark: Mark) -> None:
        """A file of the snapshot that is put back: its rows may not be outside."""
        self._stretches.append(Stretch(mark, 0, file=file))

    def begin(self, timeline: int, snapshot: int) -> None:
        """The timeline begins from that snapshot, of which all is restored."""
        self._timeline, self._number = timeline, snapshot + 1

    # --- rows -------------------------------------------------------------------------------------------------

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Of the present interval.

        Raises:
            UserError: a value cannot be stored.
        """
        piece = encode_rows(rows, self._owner.component)
        self._rows.append(piece)
        self._bytes += len(piece)
        if self._bytes >= FILE:
            self._cut()

    def freeze(self, number: int) -> None:
        """That snapshot ends the interval."""
        if self._rows:
            self._cut()
        self._number = number + 1

    @property
    def owed(self) -> bool:
        """Whether there are rows that are not outside, whether they count yet or not."""
        return bool(self._rows or self._stretches)

    @property
    def unstored(self) -> int:
        """Bytes of rows in memory."""
        return self._bytes + sum(stretch.size for stretch in self._stretches)

    def files(self, number: int) -> list[StateFile] | None:
        """Of the rows that the snapshot covers, and that are not outside; None: not all of them lie in the store."""
        covered = [stretch.file for stretch in self._stretches if stretch.number <= number]
        stored = [file for file in covered if file is not None]
        return stored if len(stored) == len(covered) else None

    # --- files ------------------------------------------------------------------------------------------------

    def look(self, now: float) -> float:
        """What has been written since the last time; returns when a file is to be written again."""
        self._hear()
        if self._failed:
            self._failed, self._again = False, now + AGAIN
        left = [stretch for stretch in self._stretches if stretch.file is None and not stretch.writing]
        if left and now < self._again:
            return self._again
        for stretch in left:
            self._write(stretch)
        return math.inf

    def writing(self, number: int) -> bool:
        """Whether rows that the snapshot covers are being written."""
        self._hear()
        return any(stretch.writing for stretch in self._stretches if stretch.number <= number)

    def _hear(self) -> None:
        while self._written:
            stretch, result = self._written.popleft()
            stretch.writing = False
            if isinstance(result, Exception):
                self._failed, self.error = True, f"rows cannot be stored: {result}"
            else:
                stretch.file, stretch.pieces, stretch.size = result, (), 0
                self.error = ""

    def _cut(self) -> None:
        """What is in memory goes into a file."""
        stretch = Stretch(self._owner._replace(number=self._number), self._number, self._rows, self._bytes)
        self._rows, self._bytes = [], 0
        self._stretches.append(stretch)
        self._write(stretch)

    def _write(self, stretch: Stretch) -> None:
        self._files += 1
        name = state_name(self._timeline, stretch.number, f"{self._writer}-{self._files}{SUFFIX}")
        content = Content((head_of(stretch.mark), *stretch.pieces))
        stretch.writing = True
        self._storage.write(name, content, partial(self._heard, stretch, name, content))

    def _heard(self, stretch: Stretch, name: str, content: Content, error: Exception | None) -> None:
        """On the store's thread."""
        file = StateFile(name=name, checksum=content.checksum, bytes=content.bytes)
        self._written.append((stretch, error or file))

    # --- what counts ------------------------------------------------------------------------------------------

    def counting(self, committed: int) -> list[list[Stretch]]:
        """What may be written outside once that snapshot counts, by mark, in order."""
        found: dict[Mark, list[Stretch]] = {}
        for stretch in self._stretches:
            if stretch.number <= committed and stretch.file is not None:
                found.setdefault(stretch.mark, []).append(stretch)
        return list(found.values())

    def number_of(self, mark: Mark) -> int:
        """In this topology: what another one has left in a savepoint is of the snapshot that this one began from."""
        return mark.number if mark.topology == self._owner.topology else NUMBER

    def outside(self, stretches: Iterable[Stretch]) -> None:
        """Their rows are there to stay."""
        gone = {id(stretch) for stretch in stretches}
        self._stretches = [stretch for stretch in self._stretches if id(stretch) not in gone]


def is_rows(name: str) -> bool:
    """Whether it is the name of such a file."""
    return name.endswith(SUFFIX)
