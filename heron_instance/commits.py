"""Writes the intervals of a two-phase sink outside, once they count, until that has succeeded (docs/sinks.md)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from xxhash import xxh3_64_intdigest

from ardea.calls import ran
from ardea.errors import Misuse, StateError, printable
from ardea.heron_instance.intervals import MOST_UNSTORED, Intervals, Storage, Stretch
from ardea.protocol.wire_pb2 import StateFile
from ardea.sinks import Mark, TwoPhaseSink
from ardea.snapshots.rows_file import rows_of

MOST_WAITING = 10
"""Intervals; with more, the sink takes no rows."""
AGAIN = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Seconds after an error, of so many in a row."""


class Commits:
    """Of one object of a sink, in one timeline: one interval after the other, by another thread."""

    def __init__(self, sink: TwoPhaseSink, intervals: Intervals, storage: Storage) -> None:
        self.intervals = intervals
        self._sink, self._storage = sink, storage
        self._committed = 0  # the last snapshot that counts
        self._waiting: list[list[Stretch]] = []
        self._under_way: list[Stretch] | None = None  # the first of them
        self._heard: deque[Exception | None] = deque()  # from the other thread
        self._damage: StateError | None = None
        self._errors, self._again, self._error = 0, -math.inf, ""

    @property
    def idle(self) -> bool:
        """Whether all that counts is outside."""
        return not self._waiting

    @property
    def full(self) -> bool:
        """Whether no rows are to be taken at present: it gets better by itself, and needs no barrier for that."""
        return len(self._waiting) >= MOST_WAITING or self.intervals.unstored >= MOST_UNSTORED

    @property
    def waiting(self) -> int:
        """Intervals that count and are not outside."""
        return len(self._waiting)

    @property
    def oldest(self) -> int:
        """The lowest number of them, in this topology; 0: there is none."""
        return min((self.intervals.number_of(stretches[0].mark) for stretches in self._waiting), default=0)

    @property
    def why(self) -> str:
        """What has been raised since one was written; empty: nothing."""
        return self._error

    @property
    def error(self) -> str:
        """Why rows wait; empty: they do not, or nothing has gone wrong."""
        if not self._error:
            return self.intervals.error
        waiting = len(self._waiting)
        return f"{self._error}; it tries again, and {waiting} interval{'s wait' if waiting > 1 else ' waits'}"

    def advance(self, now: float, committed: int) -> float:
        """Does what is due, that snapshot being the last that counts as far as is known; returns when there is more.

        Raises:
            StateError: a file of rows that count is damaged, or gone.
            Misuse: ``commit`` has returned what would write them.
        """
        due = self.intervals.look(now)
        self._look(now)
        self._committed = max(self._committed, committed)
        self._waiting = self.intervals.counting(self._committed)
        if not self._waiting or self._under_way is not None:
            return due
        if now < self._again:
            return min(due, self._again)
        self._under_way = self._waiting[0]
        self._storage.aside(partial(self._commit, self._under_way), self._heard.append)
        return due

    def close(self) -> None:
        """The object is not needed any more."""
        self._storage.aside(self._sink.disconnect, _nobody)

    def _look(self, now: float) -> None:
        if not self._heard or self._under_way is None:
            return
        error, written = self._heard.popleft(), self._under_way
        self._under_way = None
        if self._damage is not None:
            raise self._damage
        if isinstance(error, Misuse):
            raise error
        if error is None:
            self.intervals.outside(written)
            self._errors, self._again, self._error = 0, -math.inf, ""
            return
        self._again = now + AGAIN[min(self._errors, len(AGAIN) - 1)]
        self._errors += 1
        self._error = f"cannot commit: {type(error).__name__}: {printable(error, most=500)}"

    # --- on the other thread ----------------------------------------------------------------------------------

    def _commit(self, stretches: Sequence[Stretch]) -> None:
        rows = _Rows(self, [s.file for s in stretches if s.file is not None])
        commit: Callable[[Mark, _Rows], object] = self._sink.commit
        ran(self._sink, "commit", commit(stretches[0].mark, rows))

    def rows(self, files: Sequence[StateFile]) -> Iterator[tuple[Any, ...]]:
        """Reads them."""
        for file in files:
            try:
                content = self._read(file)
                yield from rows_of(content, file.name)
            except StateError as error:
                self._damage = error
                raise

    def _read(self, file: StateFile) -> bytes:
        try:
            content = self._storage.read(file.name)
        except FileNotFoundError as error:
            raise StateError(f"{file.name} is missing in the store of snapshots") from error
        if xxh3_64_intdigest(content) != file.checksum:
            raise StateError(f"{file.name}, rows of a sink, is damaged: {len(content):,} bytes of {file.bytes:,}")
        return content


@dataclass(frozen=True, slots=True)
class _Rows:
    """Of an interval, read anew each time that somebody goes through them."""

    commits: Commits
    files: Sequence[StateFile]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self.commits.rows(self.files)


def _nobody(error: Exception | None) -> None:
    """Nobody waits for that."""
