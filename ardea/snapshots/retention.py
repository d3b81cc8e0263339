"""Which files of a store nobody will ever need again (docs/snapshots.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ardea.snapshots.manifest import Manifest

_NAME = re.compile(r"(?:t(?P<timeline>\d+)/)?(?P<term>\d+)\.(?P<counter>\d+)(?:/|\.manifest)")


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
    number = int(found["term"]) << 32 | int(found["counter"])
    if found["timeline"] is None:
        return number < committed.number
    timeline = int(found["timeline"])
    return timeline < committed.timeline or (timeline == committed.timeline and number <= committed.number)
