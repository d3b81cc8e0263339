"""Which files of a store nobody will ever need again (docs/snapshots.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ardea.snapshots.manifest import Manifest

_NAME = re.compile(r"(?:t(?P<timeline>\d+)/)?(?P<term>\d+)\.(?P<counter>\d+)(?:/|\.manifest)")

_TASK = re.compile(r"\d+(?=-)")


def superfluous(names: Iterable[str], committed: Manifest) -> list[str]:
    """Those of ``names`` that are, once that snapshot has been committed; what it does not know is left alone.

    A file of the timeline that runs may be named by a later manifest only if this one names it, or if its snapshot
    comes after this one; of an older timeline only this one names any.
    """
    needed = committed.names
    return [name for name in names if name not in needed and _is_over(name, committed)]


def _is_over(name: str, committed: Manifest) -> bool:
    if (found := _NAME.match(name)) is None:
        return False
    number = _number(found)
    if found["timeline"] is None:
        return number < committed.number
    timeline = int(found["timeline"])
    return timeline < committed.timeline or (timeline == committed.timeline and number <= committed.number)


def _number(found: re.Match[str]) -> int:
    return int(found["term"]) << 32 | int(found["counter"])


@dataclass(frozen=True, slots=True)
class Abandoned:
    """What a master knows of snapshots that it has begun and that will never count, while none does.

    Attributes:
        since: what its predecessors may have begun: the last timeline, and the last snapshot in it.
        timeline: that runs.
        stored: the newest snapshot that each task has stored in it.
        named: files that a list names which the master has begun to write since the last commit, that one's list
            included; and those that the tasks have reported with these snapshots.
    """

    since: tuple[int, int]
    timeline: int
    stored: Mapping[int, int]
    named: frozenset[str]

    def superfluous(self, names: Iterable[str]) -> list[str]:
        """Those of ``names`` that nobody will ever need again; lists stay, and whatever predecessors have begun.

        What a task stores follows what it has stored last: it will name no other file of an earlier snapshot again.
        A former timeline's tasks are not heard any more.  And only files that a list names are ever read.
        """
        return [name for name in names if name not in self.named and self._is_over(name)]

    def _is_over(self, name: str) -> bool:
        if (found := _NAME.match(name)) is None or found["timeline"] is None:
            return False
        task, timeline, number = _TASK.match(name, found.end()), int(found["timeline"]), _number(found)
        if task is None or (timeline, number) <= self.since or timeline > self.timeline:
            return False
        return timeline < self.timeline or number < self.stored.get(int(task[0]), 0)
