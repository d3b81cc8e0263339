"""Whose rows a sink writes outside, and which.  Pure."""

from __future__ import annotations

from typing import NamedTuple


class Mark(NamedTuple):
    """Whose rows, and of which interval.

    Attributes:
        topology: the id of the submission in which they were processed.
        component: the sink's name.
        task: the index of the task that took them, from 0.
        number: of the interval; it rises with each interval of that task, with gaps.
    """

    topology: str
    component: str
    task: int
    number: int

    @property
    def owner(self) -> str:
        """All but the number, as a text: of one owner the highest number that was written says all."""
        return f"{self.topology}/{self.component}/{self.task}"
