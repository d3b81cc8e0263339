"""The manager's link to the master: found through the state manager, registered with, reported to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Protocol

from ardea.errors import OtherVersion, refused
from ardea.protocol.addresses import tcp_address
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import (
    ADMITTED,
    HELLO,
    LEAVING,
    ORDER,
    PLAN,
    REFUSED,
    REGISTER,
    REPORT,
    Admission,
    Header,
    Hello,
    Order,
    Plan,
    Refusal,
    TaskReport,
)
from ardea.state.records import MasterLocation
from ardea.stream_manager.acks import ControlOutbox
from ardea.stream_manager.applicant import Applicant
from ardea.stream_manager.known_plan import KnownPlan
from ardea.versions import protocol_differs

LOOK_EVERY = 0.2
BEAT_EVERY = 1.0
GONE_AFTER = 5.0
"""Seconds without a word of any master after which there is none: one that has just begun to act answers sooner."""
UNSENT_FOR = 60.0
"""Seconds for which acks may wait for room; to a master there are none."""
MESSAGES_A_ROUND = 64


class Connection(Protocol):
    """The way to one master."""

    @property
    def address(self) -> str:
        """Where it leads."""

    def send(self, frames: Message) -> bool:
        """Never waits; False: not now."""

    def receive(self, limit: int) -> Iterable[Message]:
        """Up to ``limit`` messages that have arrived."""

    def close(self) -> None:
        """Leaves."""


class MasterLink:
    """The link to one master, in one term of its."""

    def __init__(self, connection: Connection, term: int, me: int) -> None:
        self.link = Link("master", "topology master", me, self._transmit)
        self.outbox = ControlOutbox(self.link, UNSENT_FOR)
        self.connection = connection
        self.plan: KnownPlan | None = None
        """The last that came."""
        self._term = term

    def gave(self, plan: Plan) -> bool:
        """Whether the plan has come from this master."""
        return self.leads_to(plan.master, plan.term)

    def leads_to(self, address: str, term: int) -> bool:
        """Whether it is the one to that master."""
        return (self.connection.address, self._term) == (address, term)

    def _transmit(self, _link: Link, _lane: Lane, message: Message) -> None:
        self.connection.send(message)


class Registrar:
    """Keeps one link to whichever master acts; what it knows is said again to each new one.

    ``find`` says where the master is, if there is one; ``dial`` leads there.
    """

    def __init__(
        self,
        find: Callable[[], MasterLocation | None],
        dial: Callable[[str], Connection],
        applicant: Applicant,
    ) -> None:
        self.departs = False
        self.malformed = 0  # messages that were dropped
        self._find = find
        self._dial = dial
        self._applicant = applicant
        self._master: MasterLink | None = None
        self._reports: dict[int, TaskReport] = {}
        self._next_look = self._next_beat = 0.0
        self._heard = math.inf  # when any master was, last; or the first look for one

    # --- to the master ----------------------------------------------------------------------------------------

    def report(self, report: TaskReport) -> None:
        """A task's newest report; what it has found of itself is said once."""
        key = ("inspected" if report.HasField("inspected") else "report", report.task)
        if not report.HasField("inspected"):
            self._reports[report.task] = report
        if self._master is not None:
            self._master.outbox.newest(key, Header(kind=REPORT), [report.SerializeToString()])

    def depart(self) -> None:
        """Asks for the order to leave; each new master is asked, too."""
        self.departs = True
        if self._master is not None:
            self._master.outbox.newest("leaving", Header(kind=LEAVING), [])

    def stay(self) -> None:
        """No master is asked any more; one that was lets the spouts go on after a while."""
        self.departs = False
        if self._master is not None:
            self._master.outbox.withdraw("leaving")

    @property
    def link(self) -> Link | None:
        """To the master that was found last."""
        return None if self._master is None else self._master.link

    @property
    def alone(self) -> bool:
        """Whether there is no master that answers."""
        return self.link is None or not self.link.up

    def forsaken(self, now: float) -> bool:
        """Whether no master has answered for a while, neither the one that was found last nor one before it."""
        return self.alone and now >= self._heard + GONE_AFTER

    def tick(self, now: float, *, second: bool = False) -> float:
        """Looks for the master until there is one, then beats; returns when to be called again.

        ``second``: see :meth:`Shell.tick`.
        """
        if second or now >= self._next_look:
            self._next_look = now + (LOOK_EVERY if self.alone else BEAT_EVERY)
            self._heard = min(self._heard, now)
            self._look()
        if self._master is None:
            return self._next_look
        self._master.outbox.flush(now)
        if second or now >= self._next_beat:
            link = self._master.link
            self._next_beat = now + (BEAT_EVERY if link.up else LOOK_EVERY)
            if link.up:
                link.heartbeat()
            else:
                self._hello(self._master)
        return min(self._next_look, self._next_beat)

    def _look(self) -> None:
        location = self._find()
        if location is None:
            return
        address = tcp_address(location.host, location.port)
        if self._master is not None and self._master.leads_to(address, location.term):
            return
        self.close()
        self._master = MasterLink(self._dial(address), location.term, self._applicant.me)
        self._hello(self._master)

    def _hello(self, master: MasterLink, *, leaving: bool = False) -> None:
        hello = self._applicant.hello(master.gave, leaving=leaving)
        master.link.signal(Header(kind=HELLO), [hello.SerializeToString()])

    def _register(self, master: MasterLink) -> None:
        registration = self._applicant.registration()
        master.outbox.withdraw("leaving")  # who registers does not leave: it is said again, after that
        master.outbox.newest("register", Header(kind=REGISTER), [registration.SerializeToString()])
        for report in self._reports.values():
            self.report(report)
        if self.departs:
            self.depart()

    # --- from the master --------------------------------------------------------------------------------------

    def receive(self, now: float) -> list[KnownPlan | Order]:
        """What the master sent since the last call.

        Raises:
            Replaced: another container has this one's place.
            OtherVersion: the master, or this manager, is of another version.
            ProtocolError: it refuses this manager for another reason.
        """
        out: list[KnownPlan | Order] = []
        master = self._master
        if master is None:
            return out
        for frames in master.connection.receive(MESSAGES_A_ROUND):
            try:
                header = checked(frames)
                if header.receiver != self._applicant.me:
                    continue  # for who has this container now, or had it: both come under one name
                self._heard = master.link.last_heard = now
                out += self._received(master, header, frames)
            except MalformedError:
                self.malformed += 1
        return out

    def _received(self, master: MasterLink, header: Header, frames: Message) -> list[KnownPlan | Order]:
        link = master.link
        if header.kind == REFUSED:
            refusal = Refusal.FromString(frames[1])
            raise refused(refusal.code, refusal.message)
        if header.kind == HELLO:
            me = f"the stream manager of container {self._applicant.container}"
            if why := protocol_differs(me, "the topology master", Hello.FromString(frames[1]).protocol):
                raise OtherVersion("OTHER_VERSION", why)
            if link.meet(header.sender) is not None:
                self._register(master)
        elif link.accept(Lane.CONTROL, header, sum(map(len, frames[1:]))):
            if header.kind == ADMITTED:
                self._applicant.admission = Admission.FromString(frames[1]).admission
            elif header.kind == PLAN:
                return self._planned(master, Plan.FromString(frames[1]))
            elif header.kind == ORDER:
                return [Order.FromString(frames[1])]
        return []

    def _planned(self, master: MasterLink, message: Plan) -> list[KnownPlan | Order]:
        """Registers again for a whole plan if there is none that the difference could change."""
        message.master = master.connection.address
        if not message.base:
            master.plan = KnownPlan.of(message)
        elif master.plan is not None and master.plan.message.version == message.base:
            master.plan = master.plan.changed(message)
        else:
            self._register(master)
            return []
        return [master.plan]

    def confirm(self) -> None:
        """Lets the master know that its last order arrived."""
        if self._master is not None:
            self._master.link.heartbeat()

    def leave(self) -> None:
        """Tells the master that whoever takes this container's place need not wait."""
        if self._master is not None:
            self._hello(self._master, leaving=True)

    def close(self) -> None:
        """Leaves the master."""
        if self._master is not None:
            self._master.connection.close()
            self._master = None
