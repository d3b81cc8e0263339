"""What all managers send to one local task: how much of it waits, and which managers have sent lately.

Totals are kept up with each change.  Nothing here looks at every sender, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

ACTIVE_FOR = 1.0
"""Seconds after its last batch for which a manager counts as a sender, and gets its share of the window."""


class Share(NamedTuple):
    """One sender's part of a task's window, and the largest batch worth sending."""

    rows: int
    bytes: int
    pace: int

    def is_half(self, told: Share) -> bool:
        """Whether any part has fallen below a half of what was told."""
        return any(2 * now < then for now, then in zip(self, told, strict=True))


@dataclass(slots=True)
class Sender:
    """One sending manager's part; counters are cumulative within ``life``."""

    life: int = 0
    sent_rows: int = 0
    sent_bytes: int = 0
    held_rows: int = 0
    held_bytes: int = 0
    consumed_rows: int = 0
    consumed_bytes: int = 0
    told: Share | None = None  # None: nothing yet

    @property
    def waiting_rows(self) -> int:
        """Held by the sender, and sent but not consumed."""
        return self.held_rows + max(0, self.sent_rows - self.consumed_rows)

    @property
    def waiting_bytes(self) -> int:
        """Held by the sender, and sent but not consumed."""
        return self.held_bytes + max(0, self.sent_bytes - self.consumed_bytes)


@dataclass(slots=True)
class Traffic:
    """Of one task.  ``rows`` and ``bytes`` wait for it in all."""

    rows: int = 0
    bytes: int = 0
    senders: dict[int, Sender] = field(default_factory=dict)
    _recent: dict[int, float] = field(default_factory=dict)  # when it sent last, in that order
    _patient: set[int] = field(default_factory=set)  # managers of which something waits, and which have not sent lately

    def sent(self, container: int, life: int, rows: int, size: int, now: float) -> Sender:
        """A batch of that manager, which is returned, has gone to the task."""
        sender = self._sender(container, life)
        before = sender.waiting_rows, sender.waiting_bytes
        sender.sent_rows += rows
        sender.sent_bytes += size
        self._recent.pop(container, None)
        self._recent[container] = now
        self._changed(container, sender, *before)
        return sender

    def held(self, container: int, life: int, rows: int, size: int) -> None:
        """That much waits in the manager itself."""
        sender = self._sender(container, life)
        before = sender.waiting_rows, sender.waiting_bytes
        sender.held_rows, sender.held_bytes = rows, size
        self._changed(container, sender, *before)

    def consumed(self, container: int, life: int, rows: int, size: int) -> bool:
        """The task has done so much of what that life of the manager sent; False: it is not known."""
        sender = self.senders.get(container)
        if sender is None or sender.life != life:
            return False
        before = sender.waiting_rows, sender.waiting_bytes
        sender.consumed_rows = max(sender.consumed_rows, rows)
        sender.consumed_bytes = max(sender.consumed_bytes, size)
        self._changed(container, sender, *before)
        return True

    def restart(self) -> None:
        """The task has a new incarnation, in which nothing waits; what managers hold, they still hold."""
        for container, sender in self.senders.items():
            before = sender.waiting_rows, sender.waiting_bytes
            sender.sent_rows = sender.sent_bytes = sender.consumed_rows = sender.consumed_bytes = 0
            sender.told = None
            self._changed(container, sender, *before)

    def active(self, now: float) -> int:
        """How many managers have sent lately, or have something that waits."""
        while self._recent:
            container, at = next(iter(self._recent.items()))
            if now - at < ACTIVE_FOR:
                break
            del self._recent[container]
            if self.senders[container].waiting_rows:
                self._patient.add(container)
        return len(self._recent) + len(self._patient)

    def untold(self, share: Share) -> Iterator[int]:
        """Those of the active ones who were told of another share, or of none."""
        for container in (*self._recent, *self._patient):
            if self.senders[container].told != share:
                yield container

    def _sender(self, container: int, life: int) -> Sender:
        """Of a new life nothing is known."""
        known = self.senders.get(container)
        if known is not None and known.life >= life:
            return known
        if known is not None:
            self.rows -= known.waiting_rows
            self.bytes -= known.waiting_bytes
        self._recent.pop(container, None)
        self._patient.discard(container)
        made = self.senders[container] = Sender(life)
        return made

    def _changed(self, container: int, sender: Sender, rows: int, size: int) -> None:
        """``rows`` and ``size`` waited before."""
        waiting = sender.waiting_rows
        self.rows += waiting - rows
        self.bytes += sender.waiting_bytes - size
        if waiting and container not in self._recent:
            self._patient.add(container)
        else:
            self._patient.discard(container)
