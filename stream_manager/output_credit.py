"""The output of local tasks as it passes through: what was passed on, how fast, and the credit that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ardea.protocol.flow import Window
from ardea.protocol.wire_pb2 import CREDITS, Credit, Header
from ardea.stream_manager.members import Members


@dataclass(slots=True)
class OutputCredit:
    """Counters are cumulative within the instance's life."""

    window: Window
    rows: int = 0
    bytes: int = 0
    reported_rows: int = 0
    reported_bytes: int = 0
    held: int = 0
    held_since: float = 0.0

    def hold(self, rows: int, now: float) -> None:
        """A batch (or marker) waits for credit."""
        if not self.held:
            self.held_since = now
        self.held += max(1, rows)

    def passed(self, rows: int, size: int, now: float, *, waited: bool) -> bool:
        """A batch went on; ``waited``: it was held.  True when the task should hear of it."""
        self.rows += rows
        self.bytes += size
        busy = 0.0
        if waited:
            self.held = max(0, self.held - max(1, rows))
            busy, self.held_since = now - self.held_since, now
        changed = self.window.consumed(rows, size, busy)
        return (
            changed
            or (self.rows - self.reported_rows) * 4 >= self.window.rows
            or (self.bytes - self.reported_bytes) * 4 >= self.window.bytes
        )

    @property
    def untold(self) -> bool:
        """Whether more has gone on than the task was told of."""
        return (self.rows, self.bytes) != (self.reported_rows, self.reported_bytes)

    def credit(self, task: int, life: int) -> Credit:
        """What the task is told; remembers that it was."""
        self.reported_rows, self.reported_bytes = self.rows, self.bytes
        return Credit(
            task=task,
            task_life=life,
            rows=self.rows,
            bytes=self.bytes,
            window_rows=self.window.rows,
            window_bytes=self.window.bytes,
        )


class Outputs:
    """The output of all local tasks; at the end of a round, each hears of what has gone on."""

    def __init__(self, members: Members) -> None:
        self.output_credits: dict[int, OutputCredit] = {}
        self._members = members
        self._due: set[int] = set()

    def planned(self, task: int, limit_bytes: int, horizon: float) -> None:
        """A local task, and how much of its output may wait here: bytes, and seconds of work."""
        source = self.output_credits.setdefault(task, OutputCredit(Window(limit_bytes, horizon)))
        source.window.limit_bytes, source.window.horizon = limit_bytes, horizon

    def restart(self, task: int) -> None:
        """A new life of the task has emitted nothing yet."""
        window = self.output_credits[task].window
        self.output_credits[task] = OutputCredit(Window(window.limit_bytes, window.horizon))

    def left(self, task: int) -> None:
        """A task is of this container no longer."""
        self.output_credits.pop(task, None)
        self._due.discard(task)

    def passed(self, task: int, rows: int, size: int, now: float, *, waited: bool = False) -> None:
        """A task's batch of ``size`` bytes went on: that is what its own credit counts."""
        if self.output_credits[task].passed(rows, size, now, waited=waited):
            self._due.add(task)

    def let_go(self, header: Header, frames: Sequence[bytes], now: float) -> None:
        """A batch waits no longer; a former life's output pays nobody's credit."""
        if header.source in self.output_credits and header.source_life == self._members.lives.get(header.source):
            self.passed(header.source, header.rows, sum(map(len, frames)), now, waited=True)

    def flush(self) -> None:
        """Tells those that should hear of it."""
        for task in self._due:
            self._tell(task)
        self._due.clear()

    def beat(self) -> None:
        """Tells of the rest, however little it is."""
        self._due.update(task for task, source in self.output_credits.items() if source.untold)

    def _tell(self, task: int) -> None:
        link = self._members.instances[task]
        credit = self.output_credits[task].credit(task, link.peer)
        self._members.outboxes[link].newest("credit", Header(kind=CREDITS, credits=[credit]))
