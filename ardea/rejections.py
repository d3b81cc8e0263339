"""Rows that a broker or database refuses for what they are: named, tried again, set aside (docs/sinks.md).  Pure."""

from __future__ import annotations

from ardea.errors import ArdeaError, printable
from ardea.shortened import shortened
from ardea.sinks import Mark, Row

CHOICES = ("fail", "dead-letter")
RETRIES = 3
"""Attempts of an interval that a row may end before it is set aside."""


class RejectedError(ArdeaError):
    """A row is refused, and comes again with its interval.  ``why``: the server's words."""

    def __init__(self, row: Row, where: str, why: object) -> None:
        self.why = printable(why)
        hint = 'Correct what refuses it, or give rejected="dead-letter" (docs/sinks.md, rejected rows).'
        super().__init__(f"{where} refuses the row {shortened(row)}: {self.why}", hint=hint)


class Rejections:
    """Of one sink: how many attempts of the interval under way have ended with a refused row.

    ``found``: which rows those are, by their place, as far as a sink has to remember it.
    """

    def __init__(self, dead_letters: str | None) -> None:
        self.dead_letters = dead_letters
        self._mark: Mark | None = None
        self._times = 0
        self.found: dict[int, RejectedError] = {}

    def count(self, mark: Mark | None) -> None:
        """An attempt has ended so."""
        if mark != self._mark:
            self._mark, self._times, self.found = mark, 0, {}
        self._times += 1

    def careful(self, mark: Mark | None) -> bool:
        """Whether to find out which row it is."""
        return mark is not None and mark == self._mark

    def gives_up(self, mark: Mark | None) -> bool:
        """Whether the rows that are refused now are set aside."""
        return self.dead_letters is not None and self.careful(mark) and self._times >= RETRIES


def problems(rejected: str, dead_letters: str | None) -> list[str]:
    """What is wrong with these arguments of a sink."""
    if rejected not in CHOICES:
        return [f"rejected= takes {' or '.join(map(repr, CHOICES))}, not {rejected!r}"]
    named = isinstance(dead_letters, str) and bool(dead_letters)
    if rejected == "dead-letter" and not named:
        return ["rejected='dead-letter' needs dead_letters=, the name of where such rows go"]
    if rejected == "fail" and dead_letters is not None:
        return ["dead_letters= is of use with rejected='dead-letter' only"]
    return []
