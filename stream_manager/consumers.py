"""A local task as its manager sees it: who sends to it, how much waits, and what window each sender gets."""

from __future__ import annotations

from dataclasses import dataclass, field

from ardea.protocol.flow import START_BYTES, START_ROWS, divide
from ardea.protocol.wire_pb2 import Credit

ACTIVE_FOR = 1.0


@dataclass(slots=True)
class Sender:
    """One sending manager's traffic to the task; counters are cumulative within ``life``."""

    life: int = 0
    last_seen: float = -1e9
    sent_rows: int = 0
    sent_bytes: int = 0
    held_rows: int = 0
    held_bytes: int = 0
    consumed_rows: int = 0
    consumed_bytes: int = 0

    @property
    def waiting_rows(self) -> int:
        """Held by the sender, and sent but not consumed."""
        return self.held_rows + max(0, self.sent_rows - self.consumed_rows)

    @property
    def waiting_bytes(self) -> int:
        """Held by the sender, and sent but not consumed."""
        return self.held_bytes + max(0, self.sent_bytes - self.consumed_bytes)


@dataclass(slots=True)
class Consumer:
    """A local task.  ``window_*`` and ``high_rows`` are the instance's own measurements."""

    task: int
    life: int = 0
    window_rows: int = START_ROWS
    window_bytes: int = START_BYTES
    high_rows: int = START_ROWS
    high_bytes: int = 0
    low_bytes: int = 0
    pace: int = START_ROWS
    senders: dict[int, Sender] = field(default_factory=dict)
    pausing: bool = False
    paused_since: float = 0.0
    paused_seconds: float = 0.0
    pauses: int = 0

    def sender(self, container: int, life: int) -> Sender:
        """The sender's counters; those of a former life are forgotten."""
        known = self.senders.get(container)
        if known is None or known.life < life:
            known = self.senders[container] = Sender(life)
        return known

    def restart(self, life: int) -> None:
        """A new incarnation of the task: nothing waits in it, nothing is known of its speed."""
        self.life = life
        self.window_rows, self.window_bytes = START_ROWS, START_BYTES
        self.high_rows = self.pace = START_ROWS
        for sender in self.senders.values():
            sender.sent_rows = sender.sent_bytes = sender.consumed_rows = sender.consumed_bytes = 0

    def measured(self, credit: Credit) -> None:
        """Takes over what the instance says of itself."""
        self.window_rows, self.window_bytes = credit.window_rows, credit.window_bytes
        self.high_rows, self.pace = credit.high_rows, credit.pace

    def grant(self, container: int, now: float) -> Credit | None:
        """The credit to send to one sending manager; None if it never sent anything."""
        sender = self.senders.get(container)
        if sender is None:
            return None
        active = sum(now - s.last_seen < ACTIVE_FOR or s.waiting_rows > 0 for s in self.senders.values())
        return Credit(
            task=self.task,
            task_life=self.life,
            container=container,
            container_life=sender.life,
            rows=sender.consumed_rows,
            bytes=sender.consumed_bytes,
            window_rows=divide(self.window_rows, active),
            window_bytes=divide(self.window_bytes, active),
            pace=self.pace,
        )

    def judge(self, now: float) -> bool:
        """Whether spouts that reach the task must pause: above the high watermark, until below the low one."""
        rows = sum(s.waiting_rows for s in self.senders.values())
        size = sum(s.waiting_bytes for s in self.senders.values())
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
