"""A local task as its manager sees it: who sends to it, how much waits, and what window each sender gets."""

from __future__ import annotations

from dataclasses import dataclass, field

from ardea.protocol.flow import START_BYTES, START_ROWS, divide
from ardea.protocol.wire_pb2 import Credit
from ardea.stream_manager.traffic import Share, Traffic

NOTHING = Share(0, 0, 0)


@dataclass(slots=True)
class Consumer:
    """A local task.  ``window_*`` and ``high_rows`` are the instance's own measurements.

    ``aside_*``: it has consumed them for the window only, and they wait for a snapshot's barrier.
    """

    task: int
    life: int = 0
    window_rows: int = START_ROWS
    window_bytes: int = START_BYTES
    high_rows: int = START_ROWS
    high_bytes: int = 0
    low_bytes: int = 0
    pace: int = START_ROWS
    aside_rows: int = 0
    aside_bytes: int = 0
    traffic: Traffic = field(default_factory=Traffic)
    most_told: Share = NOTHING  # to any sender, part by part
    pausing: bool = False
    paused_since: float = 0.0
    paused_seconds: float = 0.0
    pauses: int = 0

    def restart(self, life: int) -> None:
        """A new incarnation of the task: nothing waits in it, nothing is known of its speed."""
        self.life = life
        self.window_rows, self.window_bytes = START_ROWS, START_BYTES
        self.high_rows = self.pace = START_ROWS
        self.aside_rows = self.aside_bytes = 0
        self.most_told = NOTHING
        self.traffic.restart()

    @property
    def is_known(self) -> bool:
        """Whether its window is another than the one with which senders begin."""
        return (self.window_rows, self.window_bytes) != (START_ROWS, START_BYTES)

    def measured(self, credit: Credit) -> bool:
        """Takes over what the instance says of itself; True: senders get another share."""
        before = self.window_rows, self.window_bytes, self.pace
        self.window_rows, self.window_bytes = credit.window_rows, credit.window_bytes
        self.high_rows, self.pace = credit.high_rows, credit.pace
        self.aside_rows, self.aside_bytes = credit.aside_rows, credit.aside_bytes
        return before != (self.window_rows, self.window_bytes, self.pace)

    def share(self, now: float) -> Share:
        """Of each active sender."""
        active = self.traffic.active(now)
        return Share(divide(self.window_rows, active), divide(self.window_bytes, active), self.pace)

    def untold(self, now: float) -> list[int]:
        """Sending managers that must hear of their share.

        One that has not sent lately hears of it when it is less than half of what was told: it must not begin with so
        much.  When it begins, it hears of more.
        """
        share = self.share(now)
        if not share.is_half(self.most_told):
            return list(self.traffic.untold(share))
        self.most_told = NOTHING
        return list(self.traffic.senders)

    def grant(self, container: int, now: float) -> Credit | None:
        """The credit to tell one sending manager, which counts as told; None if it never sent anything."""
        sender = self.traffic.senders.get(container)
        if sender is None:
            return None
        share = sender.told = self.share(now)
        self.most_told = Share(*map(max, self.most_told, share))
        return Credit(
            task=self.task,
            task_life=self.life,
            container=container,
            container_life=sender.life,
            rows=sender.consumed_rows,
            bytes=sender.consumed_bytes,
            window_rows=share.rows,
            window_bytes=share.bytes,
            pace=share.pace,
        )

    def judge(self, now: float) -> bool:
        """Whether spouts that reach the task must pause: above the high watermark, until below the low one."""
        rows, size = self.traffic.rows + self.aside_rows, self.traffic.bytes + self.aside_bytes
        if self.pausing:
            if rows <= self.high_rows // 2 and size <= self.low_bytes:
                self.pausing = False
                self.paused_seconds += now - self.paused_since
        elif rows > self.high_rows or size > self.high_bytes:
            self.pausing = True
            self.paused_since = now
            self.pauses += 1
        return self.pausing

    def seconds_paused(self, now: float) -> float:
        """How long the task has held its spouts back in all."""
        return self.paused_seconds + (now - self.paused_since if self.pausing else 0.0)
