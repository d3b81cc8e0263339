"""What sinks have not written outside, though it counts: how many intervals, since when, and why.  Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from ardea.health import Trouble
from ardea.protocol.wire_pb2 import SnapshotReport
from ardea.snapshots.status import WaitingSink

LATE = 3
"""So many intervals between two snapshots, and one in a sink is a trouble that has waited for longer."""
LEAST = 10.0
"""Seconds that are no trouble, however short an interval is."""
REMEMBERED = 256
"""Commits; a sink has ten intervals that wait, and what was not remembered is a little older."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    count: int
    oldest: int
    why: str


class SinkFigures:
    """Of one master."""

    def __init__(self) -> None:
        self._sinks: set[int] = set()  # tasks that have had rows to write outside
        self._waiting: dict[int, _Waiting] = {}
        self._commits: deque[tuple[int, float]] = deque(maxlen=REMEMBERED)  # snapshots, and when they came to count

    def committed(self, number: int, now: float) -> None:
        """That snapshot counts by now, and those before it."""
        if not self._commits or self._commits[-1][0] < number:
            self._commits.append((number, now))

    def heard(self, task: int, report: SnapshotReport) -> None:
        """Any report of a task; of one without state, that of its former life holds."""
        if not report.timeline:
            return
        if report.unwritten or report.owes:
            self._sinks.add(task)
        if report.unwritten:
            self._waiting[task] = _Waiting(report.unwritten, report.oldest, report.kept)
        else:
            self._waiting.pop(task, None)

    def replanned(self, tasks: Collection[int]) -> None:
        """There are these tasks now."""
        self._sinks &= set(tasks)
        self._waiting = {task: waiting for task, waiting in self._waiting.items() if task in tasks}

    def by_component(self, components: Mapping[int, str], now: float) -> dict[str, tuple[int, float]]:
        """Intervals that wait, and the seconds of the oldest, of each component that has had rows to write outside."""
        found = {components[task]: (0, 0.0) for task in self._sinks}
        for task, waiting in self._waiting.items():
            count, age = found[components[task]]
            found[components[task]] = count + waiting.count, max(age, self._age(waiting, now))
        return found

    def status(self, name: Callable[[int], str], now: float) -> list[WaitingSink]:
        """For people, the oldest first; ``name`` is a task's."""
        sinks = [
            WaitingSink(name(task), waiting.count, round(self._age(waiting, now), 3), waiting.why)
            for task, waiting in sorted(self._waiting.items())
        ]
        return sorted(sinks, key=lambda sink: -sink.seconds)

    def troubles(self, name: Callable[[int], str], interval: float, now: float, wall: float) -> Iterator[Trouble]:
        """Of sinks whose oldest interval is too old; ``wall``: Unix seconds of ``now``."""
        for sink in self.status(name, now):
            if sink.seconds > max(LEAST, LATE * interval):
                yield Trouble(sink.task, wall - sink.seconds, f"rows that count are not outside: {sink.words}")

    def _age(self, waiting: _Waiting, now: float) -> float:
        return now - next((at for number, at in self._commits if number >= waiting.oldest), now)
