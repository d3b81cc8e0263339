"""A link to one peer: two lanes, the incarnations at both ends, and the repair of whatever the network loses.

Pure: messages go out through ``port``, arrive through :meth:`Link.accept`, and time passes in
:meth:`Link.heartbeat`.  Who the peer is, and what the messages mean, its owner knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ardea.protocol.incarnations import describe
from ardea.protocol.lane import Arrival, Lane, LaneState, Message
from ardea.protocol.pulse import REST_AFTER, Pulse
from ardea.protocol.story import Story
from ardea.protocol.wire_pb2 import HEARTBEAT, HELLO, REFUSED, RESEND, Header, Kind, Refusal

CONFIRM_AFTER = 256 * 1024
CONTROL_ROOM = 1024 * 1024
UNSEQUENCED = frozenset({HELLO, REFUSED, HEARTBEAT, RESEND})

Port = Callable[["Link", Lane, Message], None]


@dataclass(slots=True)
class LinkStatistics:
    """Counters only grow."""

    sent: int = 0
    received: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    duplicates: int = 0
    gaps: int = 0
    resent: int = 0
    stale: int = 0
    reconnects: int = 0  # heard again, after a silence or in a new life


class Link:
    """What one process knows about its connection to another.

    ``me`` and ``peer`` are incarnations; ``peer`` is 0 until the peer was heard.  ``key`` is whatever the owner
    routes by.  ``story`` is told at the moments at which the peer was last heard.
    """

    def __init__(self, key: Any, name: str, me: int, port: Port, patience: int = REST_AFTER) -> None:
        """``patience``: seconds for which the peer may be silent while the link rests."""
        self.key = key
        self.name = name
        self.me = me
        self.peer = 0
        self.lanes = (LaneState(), LaneState())
        self.statistics = LinkStatistics()
        self.last_heard = 0.0
        self.story = Story()
        self._port = port
        self._unconfirmed_in = 0
        self._asked = [0, 0]
        self._seen = [0, 0]
        self._repaired = [0, 0]
        self._overtook = [0, 0]  # for each lane, whose messages came ahead of its hello
        self._pulse = Pulse(patience)

    @property
    def up(self) -> bool:
        """Whether the peer is heard in its present incarnation, and knows this one; if not, it is time for a hello.

        Down again after three heartbeats without an answer: one of the two may have a new life whose hello was lost.
        """
        return self.peer != 0 and not self._pulse.silent

    @property
    def lost(self) -> bool:
        """Whether the peer was heard once, and is not any more."""
        return self.peer != 0 and self._pulse.silent

    @property
    def control_room(self) -> bool:
        """Whether the control lane may take more: at most 1 MiB is sent and unconfirmed."""
        return self.peer != 0 and self.lanes[Lane.CONTROL].unconfirmed_bytes < CONTROL_ROOM

    def send(self, lane: Lane, header: Header, frames: Sequence[bytes] = (), size: int = 0) -> None:
        """Numbers, keeps and sends a message; ``size`` is its payload in bytes."""
        state = self.lanes[lane]
        state.sent += 1
        header.sequence = state.sent
        message = [self._stamp(header), *frames]
        state.keep(message, size + len(message[0]))
        self._transmit(lane, message, size)

    def signal(self, header: Header, frames: Sequence[bytes] = (), lane: Lane = Lane.CONTROL) -> None:
        """Sends a message outside the sequence; it may be lost."""
        self._transmit(lane, [self._stamp(header), *frames], 0)

    def refuse(self, incarnation: int, refusal: Refusal) -> None:
        """Sends a refusal to the caller ``incarnation``, which is not met; this link keeps its peer."""
        met, self.peer = self.peer, incarnation
        self.signal(Header(kind=REFUSED), [refusal.SerializeToString()])
        self.story.tell(self.last_heard, f"refused {describe(incarnation)}: {refusal.code}")
        self.peer = met

    def meet(self, incarnation: int) -> list[Message] | None:
        """The peer was heard as ``incarnation``.

        None: nothing new.  Otherwise it is new or has risen, both lanes start again, and the returned data
        messages were never confirmed by the former one.  What overtook its hello is asked for again.
        """
        if incarnation < self.peer:
            return None
        self._heard(risen=0 < self.peer < incarnation)
        if incarnation == self.peer:
            return None
        self.story.tell(self.last_heard, f"met {describe(incarnation)}, after {describe(self.peer)}")
        self.peer = incarnation
        self.lanes[Lane.CONTROL].restart()
        self._asked, self._seen, self._repaired = [0, 0], [0, 0], [0, 0]
        self._unconfirmed_in = 0
        left = self.lanes[Lane.DATA].restart()
        for lane in Lane:
            if self._overtook[lane] == incarnation:
                self._ask(lane)
        return left

    def accept(self, lane: Lane, header: Header, size: int) -> bool:
        """Judges an arrived message; False: it was a duplicate, too early, stale, or only the link's business."""
        if header.sender != self.peer or (header.receiver != self.me and header.kind != HELLO):
            self.statistics.stale += 1
            if header.sender > self.peer and header.receiver == self.me and header.sequence:
                self._overtook[lane] = max(self._overtook[lane], header.sender)
            return False
        self._heard()
        self.lanes[Lane.DATA].confirm(header.confirmed_data)
        self.lanes[Lane.CONTROL].confirm(header.confirmed_control)
        if header.kind in UNSEQUENCED:
            return self._own_business(header)
        verdict = self.lanes[lane].arrive(header.sequence)
        statistics = self.statistics
        if verdict is Arrival.NEXT:
            statistics.received += 1
            statistics.received_bytes += size
            self._unconfirmed_in += size + 64
            if self._unconfirmed_in > CONFIRM_AFTER:
                self.signal(Header(kind=HEARTBEAT))
            return True
        if verdict is Arrival.DUPLICATE:
            statistics.duplicates += 1
        else:
            statistics.gaps += 1
            self._ask(lane)
        return False

    def needs_heartbeat(self) -> bool:
        """Asked once a second, if the other end asks, too; False while the link rests (:mod:`ardea.protocol.pulse`)."""
        control, data = self.lanes
        numbered = control.sent + control.received + data.sent + data.received
        waits = bool(self._unconfirmed_in or control.unconfirmed or data.unconfirmed)
        return self._pulse.needs_beat(numbered, waits=waits)

    def heartbeat(self, header: Header | None = None) -> None:
        """Once a second: says what was sent and received, so that a lost tail or counter heals."""
        header = header or Header()
        header.kind = HEARTBEAT
        header.sequence_data = self.lanes[Lane.DATA].sent
        header.sequence_control = self.lanes[Lane.CONTROL].sent
        header.asks = True
        self._pulse.beats()
        self._asked = [0, 0]
        self.signal(header)

    def describe(self) -> str:
        """For messages: who it is and in which life."""
        return f"{self.name} ({describe(self.peer)})"

    def _heard(self, *, risen: bool = False) -> None:
        if risen or self._pulse.silent:
            self.statistics.reconnects += 1
            self.story.tell(self.last_heard, "heard again")
        self._pulse.heard()

    def _own_business(self, header: Header) -> bool:
        if header.kind == RESEND:
            for lane, start in ((Lane.DATA, header.sequence_data), (Lane.CONTROL, header.sequence_control)):
                if start:
                    self._repair(lane, start)
            return False
        if header.kind == HEARTBEAT:
            if header.asks and self._pulse.asked():
                self.signal(Header(kind=HEARTBEAT))
            # Behind at two heartbeats with no progress between them: the tail is lost, not late.
            for lane, sent in ((Lane.DATA, header.sequence_data), (Lane.CONTROL, header.sequence_control)):
                if not sent:
                    continue  # it only confirms
                received = self.lanes[lane].received
                if received < sent and self._seen[lane] == received + 1:
                    self._ask(lane)
                self._seen[lane] = received + 1 if received < sent else 0
        return True

    def _repair(self, lane: Lane, start: int) -> None:
        """Sends again from ``start``; asked for the same once more, only one message.

        The first answer may still be on its way, and all of it at each heartbeat would pile up on a lane that is cut.
        """
        messages = self.lanes[lane].since(start)
        for message in messages[:1] if self._repaired[lane] == start else messages:
            self.statistics.resent += 1
            self._port(self, lane, message)
        self._repaired[lane] = start
        self.story.tell(self.last_heard, f"asked for {lane.name} from {start}, sent {len(messages)} again")

    def _ask(self, lane: Lane) -> None:
        start = self.lanes[lane].received + 1
        if self._asked[lane] == start:
            return  # asked already; the next heartbeat allows another try
        self._asked[lane] = start
        self.story.tell(self.last_heard, f"asks for {lane.name} from {start}")
        if lane is Lane.DATA:
            self.signal(Header(kind=RESEND, sequence_data=start))
        else:
            self.signal(Header(kind=RESEND, sequence_control=start))

    def _stamp(self, header: Header) -> bytes:
        header.sender = self.me
        header.receiver = self.peer
        header.confirmed_data = self.lanes[Lane.DATA].received
        header.confirmed_control = self.lanes[Lane.CONTROL].received
        self._unconfirmed_in = 0
        return header.SerializeToString()

    def _transmit(self, lane: Lane, message: Message, size: int) -> None:
        self.statistics.sent += 1
        self.statistics.sent_bytes += size
        self._port(self, lane, message)


def kind_name(kind: int) -> str:
    """``ROWS``, for messages."""
    return str(Kind.Name(kind)) if kind in Kind.values() else f"kind {kind}"
