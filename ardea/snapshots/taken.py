"""What a spout has given to snapshots that do not count yet."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Taken(Generic[K, V]):
    """Its positions, by the number of the snapshot.

    A snapshot begins once the one before it is over, so that none before that one counts any more.
    """

    def __init__(self) -> None:
        self._taken: dict[int, dict[K, V]] = {}

    def take(self, number: int, positions: dict[K, V]) -> None:
        """A snapshot has these."""
        self._taken = {**dict([*self._taken.items()][-1:]), number: positions}

    def counts(self, number: int) -> dict[K, V]:
        """What that snapshot has, which counts; those before it never will."""
        taken = self._taken.pop(number, {})
        self._taken = {later: positions for later, positions in self._taken.items() if later > number}
        return taken

    def __len__(self) -> int:
        """Of how many it is not known whether they count: two at most."""
        return len(self._taken)
