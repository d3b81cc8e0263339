"""Rest and end markers: when a task rests, when it ends, and whom to tell (docs/end-of-topology.md).

A marker is state, not a message: it is sent again to a task whose incarnation rose, and forgotten when that of its
sender rose.  Rounds count a task's rests, so that the master can tell a report about this rest from one about an
earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ardea.protocol.rounds import Rounds


@dataclass(slots=True)
class Markers:
    """One task's view.  ``upstream`` and ``feeds`` are task ids."""

    upstream: frozenset[int]
    feeds: frozenset[int]
    lives: dict[int, int] = field(default_factory=dict)
    seen: Rounds = field(default_factory=Rounds)
    ended: set[int] = field(default_factory=set)
    resting: bool = False
    round: int = 0
    closed: bool = False
    final: int = 0
    """The snapshot that belongs to the end, as markers upstream say; 0: none does."""

    def replanned(self, upstream: frozenset[int], feeds: frozenset[int]) -> frozenset[int]:
        """Other tasks upstream and downstream; returns those that must be told this task's marker."""
        fresh = feeds - self.feeds if self.resting or self.closed else frozenset[int]()
        self.upstream, self.feeds = upstream, feeds
        for task in self.seen.tasks - upstream:
            self.seen.forget(task)
        self.ended &= upstream
        known = upstream | feeds
        self.lives = {task: life for task, life in self.lives.items() if task in known}
        return fresh

    def arrived(self, source: int, life: int, round_: int, *, end: bool, final: int = 0) -> None:
        """A marker of ``source``; one of a former incarnation says nothing."""
        if source not in self.upstream or life < self.lives.get(source, 0):
            return
        self.lives[source] = life
        if end:
            self.ended.add(source)
            self.final = max(self.final, final)
        else:
            self.seen[source] = round_

    def data(self, source: int) -> None:
        """Data behind a marker cancels it, and this task's own rest."""
        self.seen.forget(source)
        self.resting = False

    def fresh(self, lives: Mapping[int, int], *, again: bool = False) -> list[int]:
        """Which of these are incarnations that have not been heard of; ``again``: or whose manager has a new life."""
        known = self.lives
        return [task for task, life in lives.items() if life > known.get(task, 0) - again]

    def risen(self, task: int, life: int, *, again: bool) -> bool:
        """A task's incarnation; True if it must be told this task's marker again."""
        known = self.lives.get(task, 0)
        if life < known or (life == known and not again):
            return False
        self.lives[task] = life
        # The same life (its manager has a new one) needs no new marker: what it sent before its marker has arrived,
        # and its repeated marker may have overtaken this message on the other lane.
        if life > known and task in self.upstream:
            self.ended.discard(task)
            if self.seen.forget(task):
                self.resting = False
        return (self.resting or self.closed) and task in self.feeds

    @property
    def may_rest(self) -> bool:
        """Whether all tasks upstream rest and this one does not yet."""
        return not self.resting and not self.closed and self.upstream <= self.seen.tasks

    @property
    def may_end(self) -> bool:
        """Whether all tasks upstream have ended and this one has not."""
        return not self.closed and self.upstream <= self.ended

    def rest(self) -> None:
        """This task rests, behind all it emitted."""
        self.resting = True
        self.round += 1
