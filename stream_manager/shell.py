"""A stream manager in one of its lives, whatever carries its messages: from the plan that it is told to the end.

Pure, but for what it asks of :class:`Outside`: ``ardea.stream_manager.process`` is one, with sockets and files, and
``ardea.testing`` another, with a simulated network.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Container, Sequence
from typing import Protocol

from ardea.plan.definition import Definition
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.incarnations import incarnation
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import ACTIVATE, DEACTIVATE, EXIT, LEAVE, Header, Order, Plan
from ardea.state.records import MasterLocation
from ardea.stream_manager.applicant import Applicant
from ardea.stream_manager.known_plan import KnownPlan
from ardea.stream_manager.manager import LINGER, STORED, StreamManager
from ardea.stream_manager.registration import Connection, Registrar

MOST_EARLY, LARGEST_EARLY = 4096, 1 << 14
"""How many callers are answered once the plan is here, and the largest message that is kept for that, in bytes."""

KEEP_EVERY = 1.0


class Seen(Protocol):
    """The last that was heard of the topology."""

    @property
    def master(self) -> MasterLocation | None:
        """Where its master acts, if there is one."""

    @property
    def final(self) -> bool:
        """Whether its final state stands."""


class Outside(Protocol):
    """What carries a manager's messages, and keeps what survives its process."""

    def look(self) -> Seen:
        """Asks nobody, and never waits."""

    def dial(self, address: str) -> Connection:
        """A connection to a master."""

    def remember(self, admission: int, plan: Plan) -> bool:
        """For the next life; ahead of any message of that plan.  False: it cannot be kept at present."""

    def reach(self, plan: Plan) -> None:
        """Ways to all managers of the plan, ahead of the first message to them."""

    def leave(self, others: Container[int]) -> None:
        """The ways to all containers but these others go."""

    def heard(self, link: Link, header: Header, source: bytes) -> None:
        """A sound message of the link has come from that source."""

    def transmit(self, link: Link, lane: Lane, message: Message) -> None:
        """To an instance or another manager; never waits."""


class Shell:
    """Takes what has come, one call after the other; ``over``: nothing is left to do."""

    def __init__(
        self,
        outside: Outside,
        definition: Definition,
        container: int,
        holder: str,
        life: int,
        address: tuple[str, int, int],
    ) -> None:
        """``address``: the host, and the ports for data and control, at which other managers reach this one."""
        self.manager: StreamManager | None = None
        self.malformed = 0
        self.over = False
        self._applicant = Applicant(definition, container, holder, life, address)
        self.registrar = Registrar(self._find_master, outside.dial, self._applicant)
        self._outside = outside
        self._topology, self._container, self._life = definition.topology, container, life
        self._early: dict[bytes, tuple[int, bool, Sequence[bytes]]] = {}  # what each said last, until the plan is here
        self._orders: dict[int, Order] = {}  # kind -> the last; those that came last stand last; until the plan is here
        self._unkept: KnownPlan | None = None
        self._now = self._keep_at = 0.0
        self._exit_by = math.inf
        self._may_leave = False

    def recall(self, admission: int, plan: Plan) -> None:
        """Goes on where a former life was, if it can read what that has left: it may have been of another version."""
        self._applicant.admission = admission
        with contextlib.suppress(MalformedError):
            self._planned(KnownPlan.of(plan))

    # --- messages ---------------------------------------------------------------------------------------------

    def listen(self, now: float) -> None:
        """Does what the master says.

        Raises:
            ProtocolError: it refuses this manager; see :meth:`Registrar.receive`.
        """
        self._now = now
        for message in self.registrar.receive(now):
            if isinstance(message, KnownPlan):
                if self.manager is None or message.plan.epoch >= self.manager.hellos.epoch:
                    self._keep(message)
            elif message.kind == EXIT:
                self.registrar.confirm()
                self._exit(message)
            elif message.kind == LEAVE:
                self._may_leave |= self.registrar.departs and self._container in message.containers
            elif self.manager is not None:
                self._ordered(self.manager, message)
            else:  # the first plan waits for room on the disk
                self._orders.pop(message.kind, None)
                self._orders[message.kind] = message

    def _ordered(self, manager: StreamManager, order: Order) -> None:
        """Whether the topology is active is known to the next life, too: it may begin before there is a master.

        A plan that waits for room to be kept is older than the order, which holds for it as well.
        """
        plan = manager.hellos.plan
        before = plan is not None and plan.active
        manager.ordered(order)
        if plan is None or order.kind not in (ACTIVATE, DEACTIVATE):
            return
        if self._unkept is not None:
            self._unkept.message.active = plan.active
        if plan.active != before:
            kept = self._outside.remember(self._applicant.admission, plan)
            if not kept and self._unkept is None:
                self._unkept, self._keep_at = KnownPlan.of(plan), self._now + KEEP_EVERY

    def received(
        self, number: int, source: bytes, lane: Lane, frames: Sequence[bytes], now: float, *, peers: bool
    ) -> None:
        """A message of the instance of that task, or of the manager of that container.

        Who calls before the plan is here is answered when it is: no need to call again.
        """
        self._now = now
        if self.manager is None:
            if lane is Lane.CONTROL:
                self._keep_early(number, source, frames, peers=peers)
        else:
            self._received(self.manager, number, source, lane, frames, peers=peers)

    def _keep_early(self, number: int, source: bytes, frames: Sequence[bytes], *, peers: bool) -> None:
        room = source in self._early or len(self._early) < MOST_EARLY
        if room and number >= 0 and len(frames) == 2 and sum(map(len, frames)) <= LARGEST_EARLY:
            self._early[source] = number, peers, frames

    def _received(
        self, manager: StreamManager, number: int, source: bytes, lane: Lane, frames: Sequence[bytes], *, peers: bool
    ) -> None:
        members = manager.members
        link = (members.peers if peers else members.instances).get(number)
        if link is None:
            return
        try:
            header = checked(frames)
        except MalformedError:
            self.malformed += 1
            return
        self._outside.heard(link, header, source)
        manager.received(link, lane, header, frames[1:], self._now)

    def _keep(self, known: KnownPlan) -> None:
        """Works by a plan that can be kept, or whose epoch is kept; what is not is tried again each second."""
        kept = self._outside.remember(self._applicant.admission, known.message)
        self._unkept, self._keep_at = None if kept else known, self._now + KEEP_EVERY
        if kept or (self.manager is not None and self.manager.hellos.epoch == known.plan.epoch):
            self._planned(known)

    def _planned(self, known: KnownPlan) -> None:
        """Makes the manager at the first plan."""
        if self.manager is None:
            me = incarnation(self._applicant.admission, self._life)
            transmit, report = self._outside.transmit, self.registrar.report
            self.manager = StreamManager(self._container, me, self._topology, transmit, report)
        manager = self.manager
        self._outside.reach(known.message)
        manager.planned(known)
        orders, self._orders = self._orders, {}
        for order in orders.values():
            self._ordered(manager, order)
        early, self._early = self._early, {}
        for source, (number, peers, frames) in early.items():
            self._received(manager, number, source, Lane.CONTROL, frames, peers=peers)
        self._applicant.planned(manager.hellos)
        self._outside.leave(manager.members.peers)

    # --- time -------------------------------------------------------------------------------------------------

    def tick(self, now: float, *, second: bool = False) -> float:
        """Does what is due; returns when to be called again.

        ``second``: the caller's own has come; what is to be done each second is done with it, so that the process wakes
        once.
        """
        self._now = now
        if self._unkept is not None and now >= self._keep_at:
            self._keep(self._unkept)
        due = self.registrar.tick(now, second=second)
        if (manager := self.manager) is not None:
            due = min(due, manager.tick(now, second=second), self._exit_by)
            self.over |= now >= self._exit_by or (self._exit_by < math.inf and manager.everybody_knows)
        return due

    def _find_master(self) -> MasterLocation | None:
        seen = self._outside.look()
        if seen.master is None and seen.final and self._exit_by == math.inf:  # nobody is left who says so
            self._exit(Order(kind=EXIT, term=STORED))
        return seen.master

    def _exit(self, order: Order) -> None:
        """Passes the order on, and stays until everybody has it; without a plan, and so anybody, it ends."""
        if self.manager is None:
            self.over = True
            return
        self.manager.ordered(order)
        self._exit_by = self._now + LINGER

    # --- a container that is about to be ended ----------------------------------------------------------------

    @property
    def departs(self) -> bool:
        """Whether it has been asked to."""
        return self.registrar.departs

    def depart(self) -> None:
        """Asks the master, and each that follows it, for the order to leave."""
        self.registrar.depart()

    def stay(self) -> None:
        """Takes that back: the container is not ended."""
        self.registrar.stay()
        self._may_leave = False

    @property
    def may_leave(self) -> bool:
        """Nothing is on its way to this container; where no master answers, there is nobody to wait for."""
        return self._may_leave or (self.registrar.departs and self.registrar.forsaken(self._now))
