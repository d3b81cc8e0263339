"""Which rows of ``ardea top`` are shown, and in which order: pure, moved by keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from ardea.documents.top import Row

R = TypeVar("R")
SORTS: dict[str, Callable[[Row], float]] = {
    "capacity": lambda row: row.capacity,
    "failed": lambda row: row.failed,
    "latency": lambda row: row.latency or 0.0,
    "pending": lambda row: row.pending,
    "cpu": lambda row: row.cpu,
    "memory": lambda row: row.resident_memory_bytes,
}
"""What components, and the tasks of each, can be sorted by, the largest first."""
HELP = "q quits · up, down, page up, page down scroll · s sorts · t components only · / filters"


@dataclass(slots=True)
class View:
    """``sort``: of SORTS, or empty: spouts first, then by name.  ``wanted``: a part of the names that are shown."""

    spouts: frozenset[str] = frozenset()
    sort: str = ""
    wanted: str = ""
    tasks: bool = True
    over: bool = False
    typing: bool = field(default=False)
    first: int = 0

    def typed(self, key: str, page: int) -> None:
        """``page``: lines that are shown at a time."""
        if self.typing:
            self._filter(key)
            return
        steps = {"up": -1, "down": 1, "page up": -page, "page down": page, "home": -(1 << 30), "end": 1 << 30}
        if key in steps:
            self.first = max(0, self.first + steps[key])
        elif key == "s":
            names = ["", *SORTS]
            self.sort = names[(names.index(self.sort) + 1) % len(names)]
        elif key == "t":
            self.tasks = not self.tasks
        elif key == "/":
            self.typing, self.wanted = True, ""
        elif key in ("q", "Q"):
            self.over = True

    def _filter(self, key: str) -> None:
        if key == "enter":
            self.typing = False
        elif key == "escape":
            self.typing, self.wanted = False, ""
        elif key == "erase":
            self.wanted = self.wanted[:-1]
        elif len(key) == 1 and key.isprintable():
            self.wanted += key

    def chosen(self, rows: Sequence[Row]) -> list[Row]:
        """Components and their tasks, sorted and filtered; managers and masters are left as they are."""
        own: dict[str, list[Row]] = {}
        for row in rows:
            if row.component:
                own.setdefault(row.component, []).append(row)
        by = SORTS.get(self.sort)

        def order(members: Sequence[Row]) -> tuple[float, bool, str]:
            whole = members[0]
            return (-by(whole) if by else 0.0, whole.component not in self.spouts, whole.component)

        found = []
        for whole, *tasks in sorted(own.values(), key=order):
            if by is not None:
                tasks.sort(key=by, reverse=True)
            named = [task for task in tasks if self.wanted in (task.task or "")]
            if self.wanted in whole.component or named:
                found += [whole, *((named if self.wanted not in whole.component else tasks) if self.tasks else ())]
        return found + [row for row in rows if not row.component]

    def window(self, lines: Sequence[R], height: int) -> tuple[list[R], str]:
        """The lines that are shown now, and a sentence that says where they are; ``first`` stays in bounds."""
        self.first = min(self.first, max(0, len(lines) - height))
        shown = list(lines[self.first : self.first + height])
        if len(shown) == len(lines):
            return shown, ""
        return shown, f"{self.first + 1} to {self.first + len(shown)} of {len(lines)}"

    @property
    def line(self) -> str:
        """What stands below the tables."""
        if self.typing:
            return f"/{self.wanted}"
        said = [f"sorted by {self.sort}" if self.sort else "", f"only {self.wanted}" if self.wanted else "", HELP]
        return " · ".join(filter(None, said))
