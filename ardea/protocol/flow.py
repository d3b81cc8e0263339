"""Credit: how much may be on its way to a consumer, and how a consumer measures what it can take.

Both counters of a channel are cumulative, so that a lost message heals with the next.  Nothing here knows
sockets; ``now`` is in seconds of the caller's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

START_ROWS = 16
START_BYTES = 4096
SMOOTHING = 0.3

T = TypeVar("T")


@dataclass(slots=True)
class Window:
    """What one consumer can take, measured by itself.

    Starts at 16 rows or 4 KiB, doubles each time a window's worth was consumed, and stays below the byte
    setting and below ``horizon`` seconds of measured consumption.  Consumption is measured over the time in which
    there was something to consume: idle time says nothing about speed.
    """

    limit_bytes: int
    horizon: float
    rows: int = START_ROWS
    bytes: int = START_BYTES
    aside_rows: int = 0  # consumed for the window, and waiting for the watermark: a snapshot's barrier has not come yet
    aside_bytes: int = 0
    rate: float = 0.0  # rows a second, 0 until measured
    size: float = 0.0  # bytes a row
    _rows_since: int = 0
    _bytes_since: int = 0
    _busy: float = 0.0

    def consumed(self, rows: int, size: int, busy: float) -> bool:
        """``rows`` of ``size`` bytes took ``busy`` seconds.  True if the window changed."""
        self._rows_since += rows
        self._bytes_since += size
        self._busy += busy
        if self._rows_since < self.rows and self._bytes_since < self.bytes and self._busy < self.horizon / 10:
            return False
        if not self._rows_since:
            return False
        rate = self._rows_since / max(self._busy, 1e-6)
        # A falling rate takes effect at once, a rising one smoothed and by doubling.
        self.rate = rate if not self.rate or rate < self.rate else self.rate + SMOOTHING * (rate - self.rate)
        per_row = self._bytes_since / self._rows_since
        self.size = per_row if not self.size else self.size + SMOOTHING * (per_row - self.size)
        self._rows_since = self._bytes_since = 0
        self._busy = 0.0
        before = (self.rows, self.bytes)
        self.rows = max(1, min(self.rows * 2, int(min(self.rate * self.horizon, 1e9))))
        self.bytes = max(1, min(self.bytes * 2, self.limit_bytes))
        return before != (self.rows, self.bytes)

    @property
    def pace(self) -> int:
        """The largest batch, in rows, worth sending: a second of work, and no more than half the window."""
        if not self.rate:
            return START_ROWS
        return max(1, min(int(min(self.rate, 1e9)), max(self.rows // 2, 1)))

    @property
    def watermark(self) -> tuple[int, int]:
        """(rows, bytes) above which a consumer has too much waiting for it."""
        rows = int(min(self.rate * self.horizon, 1e9)) if self.rate else START_ROWS
        return max(rows, START_ROWS), self.limit_bytes


@dataclass(slots=True)
class Channel(Generic[T]):
    """The sending side: what was sent and consumed, and what waits for credit, in order.

    A batch is sent while less than the window is on its way, whatever its size: none is ever too large to move.
    Nothing moves before the channel is ``open``: the consumer's incarnation is known.
    """

    open: bool = False
    pace: int = START_ROWS
    window_rows: int = START_ROWS
    window_bytes: int = START_BYTES
    sent_rows: int = 0
    sent_bytes: int = 0
    consumed_rows: int = 0
    consumed_bytes: int = 0
    held_rows: int = 0
    held_bytes: int = 0
    held: deque[tuple[T, int, int]] = field(default_factory=deque)

    def offer(self, item: T, rows: int, size: int) -> bool:
        """True: sent, the caller passes it on.  False: held behind what already waits."""
        if not self.held and self.open and self._admits():
            self._count(rows, size)
            return True
        self.held.append((item, rows, size))
        self.held_rows += rows
        self.held_bytes += size
        return False

    def credit(self, rows: int, size: int, window_rows: int, window_bytes: int) -> None:
        """The consumer's word; an older one changes nothing but the window."""
        self.consumed_rows = max(self.consumed_rows, rows)
        self.consumed_bytes = max(self.consumed_bytes, size)
        self.window_rows, self.window_bytes = window_rows, window_bytes

    def release(self) -> list[T]:
        """What may be sent now, in order."""
        out: list[T] = []
        held = self.held
        while held and self.open and self._admits():
            item, rows, size = held.popleft()
            self.held_rows -= rows
            self.held_bytes -= size
            self._count(rows, size)
            out.append(item)
        return out

    def sift(self, keep: Callable[[T], bool]) -> list[T]:
        """Takes out what is held and must not be sent any more, in order."""
        out: list[T] = []
        kept: deque[tuple[T, int, int]] = deque()
        for item, rows, size in self.held:
            if keep(item):
                kept.append((item, rows, size))
            else:
                out.append(item)
                self.held_rows -= rows
                self.held_bytes -= size
        self.held = kept
        return out

    def restart(self) -> None:
        """A new incarnation at the other end: nothing is on its way; what is held stays held."""
        self.sent_rows = self.sent_bytes = self.consumed_rows = self.consumed_bytes = 0
        self.window_rows, self.window_bytes = START_ROWS, START_BYTES

    @property
    def inflight_rows(self) -> int:
        """Sent and not consumed."""
        return self.sent_rows - self.consumed_rows

    @property
    def inflight_bytes(self) -> int:
        """Sent and not consumed."""
        return self.sent_bytes - self.consumed_bytes

    @property
    def room_bytes(self) -> int:
        """What is left of the window."""
        return max(0, self.window_bytes - (self.sent_bytes - self.consumed_bytes))

    def _admits(self) -> bool:
        """Room for the beginning of a batch is enough: the window is passed by one batch at most.

        Asking for room for all of it could wait for ever: a consumer reports each quarter of its window, and what it
        took since its last report still counts as on its way.
        """
        return (
            self.sent_bytes - self.consumed_bytes < self.window_bytes
            and self.sent_rows - self.consumed_rows < self.window_rows
        )

    def _count(self, rows: int, size: int) -> None:
        self.sent_rows += rows
        self.sent_bytes += size


def divide(total: int, among: int) -> int:
    """One active sender's share of a window; at least 1."""
    return max(1, total // max(1, among))
