"""The manager's link to the master: found through the state manager, registered with, reported to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from ardea.errors import OtherVersion, refused
from ardea.plan.definition import Definition
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.incarnations import applicant
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
    Address,
    Admission,
    Header,
    Hello,
    Order,
    Plan,
    Refusal,
    Registration,
    TaskReport,
)
from ardea.state.records import MasterLocation
from ardea.stream_manager.acks import ControlOutbox
from ardea.stream_manager.adoption import check_plan
from ardea.versions import PROTOCOL, protocol_differs

LOOK_EVERY = 0.2
BEAT_EVERY = 1.0


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


class Registrar:
    """Keeps one link to whichever master acts; what it knows is said again to each new one.

    ``find`` says where the master is, if there is one; ``dial`` leads there.
    """

    def __init__(
        self,
        find: Callable[[], MasterLocation | None],
        dial: Callable[[str], Connection],
        definition: Definition,
        container: int,
        holder: str,
        life: int,
        address: tuple[str, int, int],
    ) -> None:
        self.admission = 0
        self.malformed = 0  # messages that were dropped
        self._find = find
        self._dial = dial
        self._definition = definition
        self._container = container
        self._holder = holder
        self._me = applicant(holder, life)
        self._host, self._data_port, self._control_port = address
        self._dialled: Connection | None = None
        self._link: Link | None = None
        self._outbox: ControlOutbox | None = None
        self._term = 0
        self._reports: dict[int, TaskReport] = {}
        self.departs = False
        self._next_look = self._next_beat = 0.0
        self._epoch, self._digest = definition.epoch, definition.shape.digest

    def planned(self, epoch: int, digest: str) -> None:
        """The plan that the manager works by: hellos say so."""
        self._epoch, self._digest = epoch, digest

    # --- to the master ----------------------------------------------------------------------------------------

    def report(self, report: TaskReport) -> None:
        """A task's newest report."""
        self._reports[report.task] = report
        if self._outbox is not None:
            self._outbox.newest(("report", report.task), Header(kind=REPORT), [report.SerializeToString()])

    def depart(self) -> None:
        """Asks for the order to leave; each new master is asked, too."""
        self.departs = True
        if self._outbox is not None:
            self._outbox.newest("leaving", Header(kind=LEAVING), [])

    @property
    def alone(self) -> bool:
        """Whether there is no master that answers."""
        return self._link is None or not self._link.up

    def tick(self, now: float) -> float:
        """Looks for the master until there is one, then beats; returns when to be called again."""
        if now >= self._next_look:
            self._next_look = now + (LOOK_EVERY if self._link is None or not self._link.up else BEAT_EVERY)
            self._look()
        link, outbox = self._link, self._outbox
        if link is None or outbox is None:
            return self._next_look
        outbox.flush(now)
        if now >= self._next_beat:
            self._next_beat = now + (BEAT_EVERY if link.up else LOOK_EVERY)
            if link.up:
                link.heartbeat()
            else:
                self._hello(link)
        return min(self._next_look, self._next_beat)

    def _look(self) -> None:
        location = self._find()
        if location is None:
            return
        address = f"tcp://{location.host}:{location.port}"
        if self._dialled is not None and self._dialled.address == address and self._term == location.term:
            return
        self.close()
        self._term = location.term
        self._dialled = self._dial(address)
        self._link = Link("master", "topology master", self._me, self._transmit)
        self._outbox = ControlOutbox(self._link, 60.0)
        self._hello(self._link)

    def _hello(self, link: Link, *, leaving: bool = False) -> None:
        hello = Hello(
            protocol=PROTOCOL,
            topology=self._definition.topology,
            digest=self._digest,
            epoch=self._epoch,
            container=self._container,
            holder=self._holder,
            admission=self.admission,
            leaving=leaving,
        )
        link.signal(Header(kind=HELLO), [hello.SerializeToString()])

    def _register(self) -> None:
        assert self._outbox is not None
        registration = Registration(
            topology=self._definition.topology,
            digest=self._digest,
            container=self._container,
            holder=self._holder,
            address=Address(
                container=self._container,
                host=self._host,
                data_port=self._data_port,
                control_port=self._control_port,
            ),
        )
        self._outbox.newest("register", Header(kind=REGISTER), [registration.SerializeToString()])
        for report in self._reports.values():
            self.report(report)
        if self.departs:
            self.depart()

    def _transmit(self, _link: Link, _lane: Lane, message: Message) -> None:
        assert self._dialled is not None
        self._dialled.send(message)

    # --- from the master --------------------------------------------------------------------------------------

    def receive(self, now: float) -> list[Plan | Order]:
        """What the master sent since the last call.

        Raises:
            Replaced: another container has this one's place.
            OtherVersion: the master, or this manager, is of another version.
            ProtocolError: it refuses this manager for another reason.
        """
        out: list[Plan | Order] = []
        link = self._link
        if link is None or self._dialled is None:
            return out
        for frames in self._dialled.receive(64):
            try:
                header = checked(frames)
                if header.receiver != self._me:
                    continue  # for who has this container now, or had it: both come under one name
                link.last_heard = now
                out += self._received(link, header, frames)
            except MalformedError:
                self.malformed += 1
        return out

    def _received(self, link: Link, header: Header, frames: Message) -> list[Plan | Order]:
        if header.kind == REFUSED:
            refusal = Refusal.FromString(frames[1])
            raise refused(refusal.code, refusal.message)
        if header.kind == HELLO:
            me, protocol = f"the stream manager of container {self._container}", Hello.FromString(frames[1]).protocol
            if why := protocol_differs(me, "the topology master", protocol):
                raise OtherVersion("OTHER_VERSION", why)
            if link.meet(header.sender) is not None:
                self._register()
        elif link.accept(Lane.CONTROL, header, sum(map(len, frames[1:]))):
            if header.kind == ADMITTED:
                self.admission = Admission.FromString(frames[1]).admission
            elif header.kind == PLAN:
                plan = Plan.FromString(frames[1])
                check_plan(plan)
                return [plan]
            elif header.kind == ORDER:
                return [Order.FromString(frames[1])]
        return []

    def confirm(self) -> None:
        """Lets the master know that its last order arrived."""
        if self._link is not None:
            self._link.heartbeat()

    def leave(self) -> None:
        """Tells the master that whoever takes this container's place need not wait."""
        if self._link is not None:
            self._hello(self._link, leaving=True)

    def close(self) -> None:
        """Leaves the master."""
        if self._dialled is not None:
            self._dialled.close()
            self._dialled = self._link = self._outbox = None
