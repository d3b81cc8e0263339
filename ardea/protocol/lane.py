"""One lane of a link: nothing lost, doubled or reordered between two living processes.

The sender keeps what the peer has not confirmed; the receiver takes only the next sequence number, drops
duplicates, and asks for what is missing.  The numbers belong to a pair of incarnations: when either rises, both
start again at 1 (docs/protocol.md, Links).
"""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field

Message = list[bytes]
"""A multipart message: a serialised Header, then payload frames."""


class Lane(enum.IntEnum):
    """Control is never withheld; data moves on credit."""

    CONTROL = 0
    DATA = 1


class Arrival(enum.Enum):
    """What the receiver makes of a sequence number."""

    NEXT = "next"
    DUPLICATE = "duplicate"
    GAP = "gap"


@dataclass(slots=True)
class LaneState:
    """Both directions of one lane towards one peer."""

    sent: int = 0
    received: int = 0
    unconfirmed_bytes: int = 0
    unconfirmed: deque[tuple[int, Message, int]] = field(default_factory=deque)

    def keep(self, message: Message, size: int) -> None:
        """Remembers the message just numbered ``sent``."""
        self.unconfirmed.append((self.sent, message, size))
        self.unconfirmed_bytes += size

    def confirm(self, sequence: int) -> None:
        """The peer has received everything up to ``sequence``."""
        kept = self.unconfirmed
        while kept and kept[0][0] <= sequence:
            self.unconfirmed_bytes -= kept.popleft()[2]

    def arrive(self, sequence: int) -> Arrival:
        """Judges an arrived number; NEXT also counts it as received."""
        if sequence == self.received + 1:
            self.received = sequence
            return Arrival.NEXT
        return Arrival.DUPLICATE if sequence <= self.received else Arrival.GAP

    def since(self, start: int) -> list[Message]:
        """What was sent from ``start`` on and is still kept, in order."""
        return [message for sequence, message, _ in self.unconfirmed if sequence >= start]

    def restart(self) -> list[Message]:
        """Starts again at 1 towards a new incarnation; returns what the former one never confirmed."""
        left = [message for _, message, _ in self.unconfirmed]
        self.sent = self.received = self.unconfirmed_bytes = 0
        self.unconfirmed.clear()
        return left
