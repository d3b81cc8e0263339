"""What the author's code raises, by type and stack, for the master (docs/protocol.md, exceptions)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import dropwhile
from types import TracebackType

from ardea.errors import printable
from ardea.heron_instance.broken_rows import TELL_EVERY
from ardea.loader import is_ours
from ardea.protocol.wire_pb2 import RaisedGroup

MOST = 16
"""Groups of one task; the one that grew longest ago makes room."""
MESSAGE, STACK, ROW = 200, 3000, 500
"""Characters that are told."""
WHOLE, WHOLE_AGAIN = 5.0, 60.0
"""Seconds for which reports have all of a group, and after which they have it again if it grows."""


@dataclass(slots=True)
class _Group:
    count: int = 0
    type: str = ""
    message: str = ""
    stack: str = ""
    row: str = ""
    whole_since: float = -math.inf


class ExceptionGroups:
    """Of one task in one life."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._groups: dict[int, _Group] = {}  # by digest, the one that grew longest ago first
        self._changed = False
        self._version, self._told = 0, -math.inf

    def note(self, error: BaseException, text: str, row: str = "") -> None:
        """One was raised.

        Args:
            error: with its traceback.
            text: its stack, as a log has it, printable.
            row: the tuple that it is about; empty: none.
        """
        digest, now = digest_of(error), self._clock()
        group = self._groups.pop(digest, None) or _Group()
        self._groups[digest] = group
        if len(self._groups) > MOST:
            del self._groups[next(iter(self._groups))]
        group.count += 1
        group.type, group.message = printable(type(error).__name__, most=MESSAGE), printable(error, most=MESSAGE)
        group.stack, group.row = _middle_out(text, STACK), printable(row, most=ROW)
        if now - group.whole_since >= WHOLE_AGAIN:
            group.whole_since = now
        self._changed = True

    def version(self, *, last: bool) -> int:
        """Another one when the master is to hear of them again; ``last``: there may be no later report."""
        if self._changed and (last or self._clock() - self._told >= TELL_EVERY):
            self._changed, self._told = False, self._clock()
            self._version += 1
        return self._version

    def told(self) -> Iterator[RaisedGroup]:
        """For a report at this moment."""
        now = self._clock()
        for digest, group in self._groups.items():
            told = RaisedGroup(digest=digest, count=group.count)
            if now - group.whole_since < WHOLE:
                told.type, told.message, told.stack, told.row = group.type, group.message, group.stack, group.row
            yield told


def digest_of(error: BaseException) -> int:
    """Of its type, and of files, lines and functions from where its traceback leaves Ardea; alike in every process."""
    frames = []
    frame: TracebackType | None = error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        frames.append((code.co_filename, frame.tb_lineno, code.co_name))
        frame = frame.tb_next
    theirs = [*dropwhile(lambda each: is_ours(each[0]), frames)] or frames
    said = repr((type(error).__qualname__, theirs)).encode(errors="replace")
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "little")


def _middle_out(text: str, most: int) -> str:
    """Where it began, and where it ended."""
    if len(text) <= most:
        return text
    head = most // 3
    return f"{text[:head]}\n[...]\n{text[head - most :]}"
