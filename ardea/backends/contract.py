"""What a state backend gives: bases, which hold all keys but those that changed lately (docs/state-of-components.md).

``ardea.testing.check_state_backend`` tries all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ardea.snapshots.key_groups import Keys

PARTS = 8
"""Into so many parts a time to live is divided: a value is gone that much later at most."""

Row = tuple[Any, Any]
"""A key, and its value as it is kept: a scalar, or a :class:`ardea.backends.values.Packed`."""


class ScratchError(OSError):
    """What a backend keeps on the disk cannot be read or written; all of it is made anew from the last snapshot."""


class Chunk(NamedTuple):
    """Rows of one key group, which were written by then, in seconds since 1970."""

    written: float
    group: int
    rows: list[Row]


class Base(Protocol):
    """The values of one state of one task, by key.

    Keys are those of docs/keys.md: equal ones are one, of which the first that was added is remembered.  One thread
    changes it; another one may be within :meth:`chunks` meanwhile, though not while something is added or removed.

    A base that cannot do what is asked raises :class:`ScratchError`, which says what to do.
    """

    slice: int
    """How many keys are added or removed at a time, so that it takes about a millisecond."""

    def get(self, key: Any, default: Any = None) -> Any:
        """The value as it was added, a :class:`~ardea.backends.values.Packed` as one; ``default``: there is none."""

    def add(self, rows: Iterable[Row], written: float) -> None:
        """Replaces what there is of these keys; with a time to live, what was written earlier may be added later.

        ``written`` 0: at no time, for the clock has none yet.  Such values are not gone; they count from the first
        :meth:`prune` at which it has.
        """

    def remove(self, keys: Iterable[Any]) -> None:
        """Those that are there."""

    def chunks(self) -> Iterator[Chunk]:
        """Each key once.

        Chunks of one ``written`` follow one another, in the order of their groups; of a base in parts, part by part.
        All of it is as it was when the first chunk was asked for.
        """

    def expired(self, written: float) -> bool:
        """Whether what was written by then is gone, by the clock now."""

    def prune(self) -> None:
        """Forgets what is gone, and gives a time to what has none; not while somebody reads."""

    def __contains__(self, key: object) -> bool: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...


class Backend(Protocol):
    """The bases of one component object.

    ``topology.stateful.backend`` names a class that makes them, as ``package.module:Class``.
    """

    def __init__(self, folder: Path) -> None:
        """``folder`` may be used, and nothing but it; it is not there yet, and it is removed after :meth:`close`."""

    def base(self, state: str, keys: Keys, ttl: float | None, now: Callable[[], float]) -> Base:
        """An empty one.

        Args:
            state: its name; each name is asked for once.
            keys: what the group of a key is, and its canonical bytes.
            ttl: for how many seconds values are there after they were written; None: for ever.
            now: seconds since 1970; minus infinity: there is no time yet.
        """

    def close(self) -> None:
        """No base is used any more, but for chunks that are still being read: they may end with an error."""
