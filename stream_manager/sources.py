"""A local task's output as it passes through: what was passed on, how fast, and the credit that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

from ardea.protocol.flow import Window
from ardea.protocol.wire_pb2 import Credit


@dataclass(slots=True)
class Source:
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
