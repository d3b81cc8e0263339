"""How many trees a spout task may have open: what its topology acks in a quarter of the message timeout.

By the time that back pressure comes from a slow bolt, a spout of a million rows a second has emitted all it may.  So it
begins with a few rows, as TCP does, and goes on as they come back.
"""

from __future__ import annotations

import math

from ardea.protocol.flow import START_ROWS

STEP = 0.25
SILENCE_SHARE = 2 / START_ROWS


class CongestionWindow:
    """Open trees that are admitted: as many as were acked lately, and a *probe* more.

    What was acked fades with a time constant of a quarter of the timeout: no tree has to wait much longer than that,
    and as long as trees are acked sooner, the window doubles each time all of it was.

    The probe is for bolts that ack nothing until they hold many rows, or some time is over: while the window is full
    and nothing is acked it doubles, four times a second.  Congestion takes that back.  Where trees take long, silence
    has to be longer at first: a slow bolt acks at least ``START_ROWS`` one by one while a tree waits for it.

    Args:
        timeout: of a tree, in seconds.
        now: as all times here, in seconds of the caller's clock.
    """

    def __init__(self, timeout: float, now: float) -> None:
        self._horizon = timeout / 4
        self._acked = 0.0
        self._acked_at = now
        self._probe = START_ROWS
        self._silence = STEP
        self._grows_at = now + STEP

    def rows(self, now: float) -> int:
        """How many may be open."""
        return self._probe + int(self._lately(now))

    def acked(self, rows: int, now: float, latency: float = 0.0) -> None:
        """So many trees, which took so many seconds; rows that have none took no time."""
        self._acked, self._acked_at = self._lately(now) + rows, now
        self._silence = max(STEP, latency * SILENCE_SHARE)
        self._grows_at = now + self._silence

    def full(self, now: float) -> float:
        """There is more to send than is admitted; returns when it may be more by itself."""
        if now >= self._grows_at:
            self._probe *= 2
            self._grows_at = now + STEP
        return self._grows_at

    def congested(self, now: float) -> None:
        """A pause begins, goes on or ends."""
        self._probe = START_ROWS
        self._grows_at = now + self._silence

    def _lately(self, now: float) -> float:
        return self._acked * math.exp((self._acked_at - now) / self._horizon)
