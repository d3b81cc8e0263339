"""What every state manager refuses, in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from ardea.errors import Conflict, NotFound
from ardea.state import paths
from ardea.state.manager import Check, Write

_REREAD = "read it again, and repeat the write if it still makes sense"


def domain_of(writes: Sequence[Write], checks: Sequence[Check]) -> str:
    """The domain of a transaction.

    Raises:
        ValueError: it writes a path twice, or has another number of domains than one.
    """
    written = [write.path for write in writes]
    if len(set(written)) < len(written):
        raise ValueError(f"a transaction writes each path once: {written}")
    names = {paths.domain(path) for path in (*written, *(check.path for check in checks))}
    if len(names) != 1:
        raise ValueError(f"a transaction stays within one topology, not {sorted(names)}")
    return names.pop()


def not_found(path: str) -> NotFound:
    """There is no node."""
    return NotFound(f"there is nothing at {path}", hint="`ardea list` shows which topologies there are")


def exists(path: str, version: int) -> Conflict:
    """There is a node where one was to be made."""
    return Conflict(f"{path} exists, at version {version}; nothing was changed", hint=_REREAD)


def changed(path: str, version: int, expected: int) -> Conflict:
    """The node has another version than the writer saw."""
    return Conflict(
        f"{path} is at version {version}, not {expected}: somebody else wrote it; nothing was changed", hint=_REREAD
    )


def nested(path: str, other: str) -> Conflict:
    """One path lies below the other."""
    return Conflict(f"{path} and {other} cannot both be: a node has data or children; nothing was changed")
