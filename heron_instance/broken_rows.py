"""What a spout task says of rows whose trees are broken: in its log, and to the master, which knows who raised what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ardea.component import Spout
from ardea.errors import printable
from ardea.heron_instance.shortened import shortened

BURST, PER_SECOND = 10.0, 1.0
"""Lines in the log: at once, and in the long run."""
TOLD = 8
"""Of how many rows the master hears, the last ones."""
TELL_EVERY = 1.0
"""Seconds between two reports for them."""


class BrokenRows:
    """Of one task."""

    def __init__(self, spout: Spout, clock: Callable[[], float]) -> None:
        self._last: dict[int, Any] = {}  # tree -> tup_id
        self._spout = spout
        self._clock = clock
        self._lines, self._looked = BURST, clock()
        self._passed_over = 0
        self._new, self._version, self._told = False, 0, clock() - TELL_EVERY

    @property
    def version(self) -> int:
        """Another one when the master is to hear of them again."""
        if self._new and (now := self._clock()) - self._told >= TELL_EVERY:
            self._new, self._told = False, now
            self._version += 1
        return self._version

    @property
    def last(self) -> dict[int, str]:
        """Of the last ones, by tree, what the author calls each."""
        return {tree: self._called(tup_id) for tree, tup_id in self._last.items()}

    def note(self, what: str, tree: int, tup_id: Any, values: Sequence[Any], stream: str) -> None:
        """``what`` has become of it: ``failed``, ``timed out`` or ``was lost``."""
        self._new = True
        self._last.pop(tree, None)
        self._last[tree] = tup_id
        if len(self._last) > TOLD:
            del self._last[next(iter(self._last))]
        now = self._clock()
        self._lines, self._looked = min(BURST, self._lines + (now - self._looked) * PER_SECOND), now
        if self._lines < 1:
            self._passed_over += 1
            return
        self._lines -= 1
        before = f"; so were {self._passed_over:,} rows before" if self._passed_over else ""
        self._passed_over = 0
        self._spout.logger.info(
            "%s %s (tree %s): %s of stream %s%s",
            self._called(tup_id), what, tree_name(tree), shortened(values), stream, before,
        )  # fmt: skip

    def _called(self, tup_id: Any) -> str:
        try:
            return printable(self._spout.describe_tup_id(tup_id), most=200)
        except Exception as error:  # an author's own; rows must not be given up for it
            return f"a tup_id that cannot be shown ({type(error).__name__})"


def tree_name(root: int) -> str:
    """As logs and errors call a tree."""
    return f"{root:016x}"
