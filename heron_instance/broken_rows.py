"""What a spout task says of rows whose trees are broken: in its log, and to the master, which knows who raised what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ardea.component import Spout
from ardea.errors import printable
from ardea.shortened import shortened

BURST, PER_SECOND = 10.0, 1.0
"""Lines in the log: at once, and in the long run."""
TOLD = 8
"""Of how many rows of a second the master hears: those whose trees come first in :func:`rank`'s order."""
TELL_EVERY = 1.0
"""Seconds between two reports for them."""
_ODD = 0x9E3779B97F4A7C15


def rank(tree: int) -> int:
    """An order of trees that favours none.

    Of many failures in a second the task that raises tells of one, and the spout of few.  Both go by this order, so
    that they tell of the same ones.
    """
    return tree * _ODD % (1 << 64) or 1 << 64  # 0 is no tree: last


class BrokenRows:
    """Of one task.  ``last``: by tree what the author calls the row, for reports."""

    def __init__(self, spout: Spout, clock: Callable[[], float]) -> None:
        self._noted: dict[int, Any] = {}  # tree -> tup_id, since the master was told
        self.last: dict[int, str] = {}
        self._spout = spout
        self._clock = clock
        self._lines, self._looked = BURST, clock()
        self._passed_over = 0
        self._version, self._told = 0, clock() - TELL_EVERY

    @property
    def version(self) -> int:
        """Another one when the master is to hear of them again."""
        if self._noted and (now := self._clock()) - self._told >= TELL_EVERY:
            self.last = {tree: self.called(tup_id) for tree, tup_id in self._noted.items()}
            self._noted, self._told = {}, now
            self._version += 1
        return self._version

    def note(self, what: str, tree: int, tup_id: Any, values: Sequence[Any], stream: str) -> None:
        """``what`` has become of it: ``failed``, ``timed out`` or ``was lost``."""
        self._noted[tree] = tup_id
        if len(self._noted) > TOLD:
            del self._noted[max(self._noted, key=rank)]
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
            self.called(tup_id), what, tree_name(tree), shortened(values), stream, before,
        )  # fmt: skip

    def called(self, tup_id: Any) -> str:
        """What the author calls a row of this id, wherever it is told of."""
        try:
            return printable(self._spout.describe_tup_id(tup_id), most=200)
        except Exception as error:  # an author's own; rows must not be given up for it
            return f"a tup_id that cannot be shown ({type(error).__name__})"


def tree_name(root: int) -> str:
    """As logs and errors call a tree."""
    return f"{root:016x}"
