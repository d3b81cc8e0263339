"""What waits for room on a control lane: acks and losses folded per root, and the newest of everything else.

The control lane is never withheld, so it is bounded here: at most 1 MiB is sent and unconfirmed (then byte for
byte the same on a resend), and what is not yet sent is folded, at most one entry for each open root.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ardea.protocol.ids import NO_IDS, SLOTS, U64, column, distinct, fold
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import ACKS, Header

COMPACT_AFTER = 64
ENTRIES_A_MESSAGE = 4096
MOST_ENTRIES = 4 * SLOTS
"""Of one spout: no more can be of trees that are open, with one entry a root in each column."""


@dataclass(slots=True)
class PendingAcks:
    """Unsent entries of one spout task, of which one has left ``since`` then, or been the first."""

    since: float
    roots: list[U64] = field(default_factory=list)
    xors: list[U64] = field(default_factory=list)
    failed: list[U64] = field(default_factory=list)
    lost: list[U64] = field(default_factory=list)
    prolonged: list[U64] = field(default_factory=list)

    def add(self, columns: Sequence[U64]) -> None:
        """(roots, xors, failed, lost, prolonged) of one message."""
        mine = (self.roots, self.xors, self.failed, self.lost, self.prolonged)
        for column_list, values in zip(mine, columns, strict=True):
            if len(values):
                column_list.append(values)
        settled = len(self.failed) + len(self.lost) + len(self.prolonged)
        if len(self.roots) > COMPACT_AFTER or settled > COMPACT_AFTER:
            self._keep(self.folded())

    def take(self) -> tuple[U64, ...]:
        """The columns of the next message, of at most 4096 entries each, so that no message outgrows the room.

        What has failed or is lost goes first: a root that is acked as well must not be complete before that is known.
        """
        columns = self.folded()
        _, _, failed, lost, _ = columns
        acked = ENTRIES_A_MESSAGE if max(len(failed), len(lost)) <= ENTRIES_A_MESSAGE else 0
        cuts = acked, acked, *[ENTRIES_A_MESSAGE] * 3
        self._keep(tuple(column[cut:] for column, cut in zip(columns, cuts, strict=True)))
        return tuple(column[:cut] for column, cut in zip(columns, cuts, strict=True))

    def __len__(self) -> int:
        """Entries; not folded yet, a root may have several."""
        return sum(map(len, (*self.roots, *self.failed, *self.lost, *self.prolonged)))

    def _keep(self, columns: tuple[U64, ...]) -> None:
        self.roots, self.xors, self.failed, self.lost, self.prolonged = ([c] if len(c) else [] for c in columns)

    def folded(self) -> tuple[U64, ...]:
        """One entry a root in each column."""
        named = (self.failed, self.lost, self.prolonged)
        return *fold(_join(self.roots), _join(self.xors)), *(distinct(np.sort(_join(roots))) for roots in named)


class ControlOutbox:
    """Everything that waits for one link's control lane."""

    def __init__(self, link: Link, timeout: float, unsent: dict[ControlOutbox, None] | None = None) -> None:
        """``timeout``: acks of a spout are dropped and counted if none has left for longer; their trees time out.

        ``unsent``: where this outbox registers as soon as something waits in it.
        """
        self._link = link
        self.timeout = timeout
        self._unsent = {} if unsent is None else unsent
        self._acks: dict[int, PendingAcks] = {}
        self._newest: dict[object, tuple[Header, Sequence[bytes]]] = {}
        self.dropped = 0

    def acks(self, spout: int, frames: Sequence[bytes], now: float) -> None:
        """Frames of an ACKS message for ``spout``; sent untouched if nothing waits before them."""
        if self._link.control_room and spout not in self._acks:
            self._link.send(Lane.CONTROL, Header(kind=ACKS, target=spout), frames, sum(map(len, frames)))
        else:
            self._keep(spout, frames, now)

    def _keep(self, spout: int, frames: Sequence[bytes], now: float) -> None:
        self._unsent[self] = None
        pending = self._acks.setdefault(spout, PendingAcks(now))
        pending.add([column(frame) for frame in frames])

    def newest(self, key: object, header: Header, frames: Sequence[bytes] = ()) -> None:
        """A message of which only the newest under ``key`` matters."""
        if self.free:
            self._link.send(Lane.CONTROL, header, frames, sum(map(len, frames)))
        else:
            self._unsent[self] = None
            self._newest[key] = (header, frames)

    def withdraw(self, key: object) -> None:
        """What waits under ``key`` is void: something that contradicts it comes."""
        self._newest.pop(key, None)

    def flush(self, now: float) -> None:
        """Sends what has room, oldest kind first."""
        while self._newest and self._link.control_room:
            key = next(iter(self._newest))
            header, frames = self._newest.pop(key)
            self._link.send(Lane.CONTROL, header, frames, sum(map(len, frames)))
        for spout, pending in list(self._acks.items()):
            if now - pending.since > self.timeout or len(pending) > MOST_ENTRIES:
                roots, _, failed, lost, _ = pending.folded()
                self.dropped += len(roots) + len(failed) + len(lost)
                del self._acks[spout]
                continue
            while pending and self._link.control_room:
                frames, pending.since = [c.tobytes() for c in pending.take()], now
                self._link.send(Lane.CONTROL, Header(kind=ACKS, target=spout), frames, sum(map(len, frames)))
            if not pending:
                del self._acks[spout]

    def met(self, unconfirmed: Iterable[Message], now: float) -> None:
        """The peer is met: newest things are sent anew by their owner, acks once more.

        ``unconfirmed``: what was sent to its former life.  Rows may have come by another manager that met the new life
        first: then these acks are for trees of that.  Those of former trees come late there, and count for nothing.
        """
        self._newest.clear()
        for message in unconfirmed:
            header = Header.FromString(message[0])
            if header.kind == ACKS:
                self._keep(header.target, message[1:], now)

    @property
    def free(self) -> bool:
        """Whether a message would be sent at once."""
        return self._link.control_room and not self.waiting

    @property
    def waiting(self) -> bool:
        """Whether anything is unsent."""
        return bool(self._acks or self._newest)


def _join(columns: list[U64]) -> U64:
    return np.concatenate(columns) if columns else NO_IDS
