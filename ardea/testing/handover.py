"""Between the two threads of a simulated instance: the executor's clock may be ahead of the gateway's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Handover:
    """What an executor has handed over, until the gateway's time gets there.

    ``limit``: output waits once so many bytes do.  A burst is what is handed over between two looks at the output.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self.burst = self.largest_burst = 0
        self._waiting: deque[tuple[float, Callable[[], None], int]] = deque()

    def post(self, at: float, action: Callable[[], None], size: int) -> None:
        """``action`` hands it to the gateway."""
        self._waiting.append((at, action, size))
        self.bytes += size

    def offer(self, until: float) -> None:
        """All that was handed over by then."""
        while self._waiting and self._waiting[0][0] <= until:
            _, action, size = self._waiting.popleft()
            self.bytes -= size
            action()

    @property
    def next(self) -> float | None:
        """When the gateway gets the next one; None: nothing waits."""
        return self._waiting[0][0] if self._waiting else None

    @property
    def full(self) -> bool:
        """Whether as much waits as may."""
        return self.bytes >= self.limit

    def looked_at(self) -> None:
        """The burst is over."""
        self.largest_burst, self.burst = max(self.largest_burst, self.burst), 0

    def clear(self) -> None:
        """Nothing of it leaves any more."""
        self._waiting.clear()
