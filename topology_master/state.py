"""The topology master: admits containers, makes the plan, gives orders, declares the end.

Pure: messages come in through :meth:`Master.received`, writes to the state go out through ``Store``, and time
passes in :meth:`Master.tick`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ardea.config import Settings
from ardea.plan.change import UpdateRequest
from ardea.plan.definition import Definition
from ardea.plan.names import container_name
from ardea.plan.shape import shape_to_bytes
from ardea.protocol.incarnations import describe, incarnation, life_of
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link, Port
from ardea.protocol.wire_pb2 import (
    ACTIVATE,
    ADMITTED,
    DEACTIVATE,
    DEBUG,
    DRAIN,
    END,
    EXIT,
    HEARTBEAT,
    HELLO,
    HOLD,
    LEAVE,
    LEAVING,
    ORDER,
    PLAN,
    REFUSED,
    REGISTER,
    REPORT,
    RESUME,
    Address,
    Admission,
    Header,
    Hello,
    Order,
    OrderKind,
    Plan,
    Refusal,
    Registration,
    TaskReport,
    TaskState,
)
from ardea.state.records import ExecutionState, RunState, Switch
from ardea.topology_master.departures import Departures
from ardea.topology_master.ending import Ending, Phase
from ardea.topology_master.store import Store
from ardea.topology_master.stories import TOPOLOGY, UPDATE, Stories
from ardea.topology_master.updates import Updates, plan_of
from ardea.versions import PROTOCOL, protocol_differs

HEARTBEAT_EVERY = 1.0
SILENCE = 5.0
"""Seconds after which another may take the place of a container that is not heard."""


@dataclass(slots=True)
class Container:
    """One container that has said hello."""

    link: Link
    holder: str
    address: Address | None = None
    admission: int = 0
    registered: bool = False


class Master:
    """One master's life; ``found`` is what the former ones left, ``now`` seconds on the clock of :meth:`tick`."""

    def __init__(
        self,
        definition: Definition,
        former: Definition | None,
        term: int,
        store: Store,
        port: Port,
        *,
        found: ExecutionState,
        now: float,
    ) -> None:
        self.topology = definition.topology
        self.term = term
        self.definition = definition
        self.plan = plan_of(definition)
        self.ending = Ending(self.plan, found.end)
        self.containers: dict[int, Container] = {}
        self.active = found.state is not RunState.PAUSED
        self.state = found.state
        self.reason = found.reason
        self.updates = Updates(self, definition, former, found.switch, now)
        self.departures = Departures(self)
        self.stories = Stories(now)
        self._switch = found.switch
        self._store = store
        self._holders = dict(store.holders())
        self._heard = dict.fromkeys(self._holders, now)
        self._port = port
        self._orders: dict[int, Order] = {}
        self._version = 0
        self._planned = False
        self._drain = found.end.drain
        self._drain_until = math.inf
        self._next_heartbeat = 0.0
        if self.state is RunState.ENDING:
            self.ending.declared()
            self._order(END)
        if self._drain is not None:
            self._drain_until = now + self._drain
            self._order(DRAIN)
        if term > 1:
            self.updates.begun()

    # --- messages ---------------------------------------------------------------------------------------------

    def received(self, container: int, header: Header, frames: Sequence[bytes], now: float) -> None:
        """One message of a container's manager."""
        self.stories.now = now
        if header.kind == HELLO:
            self._met(container, header, Hello.FromString(frames[0]), now)
            return
        known = self.containers.get(container)
        if known is None or not known.link.accept(Lane.CONTROL, header, sum(map(len, frames))):
            return
        known.link.last_heard = now
        if known.admission:
            self._heard[container] = now
        if header.kind == REGISTER:
            registration = Registration.FromString(frames[0])
            if registration.container == container:  # each speaks for itself
                self._register(container, known, registration, now)
                self._consider(now)
        elif header.kind == REPORT:
            report = TaskReport.FromString(frames[0])
            place = self.plan.tasks.get(report.task)
            # One that has moved may still report from where it was.
            if place is not None and place.container == container and self.ending.reported(report):
                self.stories.tell(place.name, f"{describe(report.life)} reports {TaskState.Name(report.state)}")
                self._consider(now)
        elif header.kind == LEAVING:
            self._leaving(container, now)
        elif header.kind == HEARTBEAT:
            return

    def _leaving(self, container: int, now: float) -> None:
        """An update's own pods go at once; where the topology ends, they all go with it."""
        self.stories.tell(container_name(container), "wants to leave")
        if self.updates.running:
            self.leave([container])
        elif self._drain is None and self.ending.phase is Phase.RUNNING:
            self.departures.asked(container, self.plan, self.ending, now)

    def _met(self, number: int, header: Header, hello: Hello, now: float) -> None:
        if why := protocol_differs("the topology master", f"the stream manager of container {number}", hello.protocol):
            self._refuse(number, header, Refusal(code="OTHER_VERSION", message=why, definite=True))
            return
        digest = self.definition.shape.digest
        if number not in self.plan.containers and hello.topology == self.topology and hello.epoch < self.plan.epoch:
            return  # an update has removed it, and its processes are about to end
        same = hello.digest == digest or hello.epoch < self.plan.epoch  # who is behind gets the plan
        if hello.topology != self.topology or not same or number not in self.plan.containers:
            why = (
                f"this is the master of {self.topology}, plan {digest}; "
                f"container {number} of {hello.topology}, plan {hello.digest}, does not belong to it"
            )
            self._refuse(number, header, Refusal(code="WRONG_TOPOLOGY", message=why, definite=True))
            return
        if not self._has_place(number, header, hello, now):
            return
        known = self.containers.get(number)
        if known is None or known.holder != hello.holder:
            link = Link(number, f"manager {number}", self.term, self._port)
            # The former's address stays: the others have it, and are told when the newcomer's differs.
            former = None if known is None else known.address
            known = self.containers[number] = Container(link, hello.holder, former)
            self.stories.tell(container_name(number), f"says hello, held by {hello.holder}")
        link = known.link
        if link.meet(header.sender) is not None:
            known.registered = False
        answer = Hello(protocol=PROTOCOL, topology=self.topology, digest=digest)
        link.signal(Header(kind=HELLO), [answer.SerializeToString()])

    def _has_place(self, number: int, header: Header, hello: Hello, now: float) -> bool:
        """Whether the place is this container's, or free: who holds it was silent for long enough, or has left."""
        holder = self._holders.get(number, hello.holder)
        if hello.holder == holder:
            self._heard[number] = -math.inf if hello.leaving else now
            return not hello.leaving
        if hello.admission:
            why = f"container {number} stood still or was cut off, and another one was admitted in its place"
            self._refuse(number, header, Refusal(code="REPLACED", message=why, definite=True))
            return False
        return now >= self._heard[number] + SILENCE  # it says hello again

    def _refuse(self, number: int, header: Header, refusal: Refusal) -> None:
        link = Link(number, f"manager {number}", self.term, self._port)
        link.meet(header.sender)
        self.stories.tell(container_name(number), f"refused, {refusal.code}: {refusal.message}")
        link.signal(Header(kind=REFUSED), [refusal.SerializeToString()])

    def _register(self, number: int, known: Container, registration: Registration, now: float) -> None:
        address = registration.address
        if self._holders.get(number, known.holder) != known.holder:
            self.departures.replaced(number, self.plan, now)
        known.admission = self._store.admit(number, known.holder, address.host, address.data_port)
        self._holders[number], self._heard[number] = known.holder, now
        moved = self._planned and known.address != address
        known.address = address
        known.registered = True
        address.incarnation = incarnation(known.admission, life_of(known.link.peer))
        where = f"{address.host}:{address.data_port}"
        self.stories.tell(container_name(number), f"{describe(address.incarnation)} registered at {where}")
        self.ending.manager_met(number, address.incarnation)
        body = Admission(admission=known.admission, term=self.term).SerializeToString()
        known.link.send(Lane.CONTROL, Header(kind=ADMITTED), [body], len(body))
        if self._planned:
            for container in self._members if moved else (known,):
                if container.registered:  # the others get it behind their admission
                    self._send_plan(container)
        elif all(c in self.containers and self.containers[c].registered for c in self.plan.containers):
            self._planned = True
            for container in self._members:
                self._send_plan(container)

    def _send_plan(self, container: Container) -> None:
        plan = Plan(
            epoch=self.plan.epoch,
            build=self.definition.build,
            shape=shape_to_bytes(self.definition.shape),
            packing=self.definition.packing,
            active=self.active,
            term=self.term,
            keys=self.definition.keys,
        )
        plan.addresses.extend(c.address for c in self._members if c.address is not None)
        body = plan.SerializeToString()
        container.link.send(Lane.CONTROL, Header(kind=PLAN), [body], len(body))
        for order in self._orders.values():
            self._send_order(container, order)

    # --- verbs ------------------------------------------------------------------------------------------------

    def set_active(self, now: float, *, active: bool) -> None:
        """Activates or deactivates the topology."""
        self.stories.now = now
        if self.ending.phase is not Phase.RUNNING or active == self.active:
            return
        self._write(RunState.RUNNING if active else RunState.PAUSED)
        self.active = active
        self._orders.pop(DEACTIVATE if active else ACTIVATE, None)
        self._order(ACTIVATE if active else DEACTIVATE)
        self._consider(now)

    def drain(self, now: float, wait: float | None = None) -> None:
        """Stops the spouts, waits for what is open, then ends as KILLED; repeated with less time, it hurries."""
        self.stories.now = now
        wait = Settings.of(self.plan.logical.config).drain if wait is None else wait
        if self.over or now + wait >= self._drain_until:
            return
        self._write(self.state, drain=wait)
        self._drain_until = now + wait
        if self.departures.running:
            self.departures.forgotten()
            self.resume()
        if DRAIN not in self._orders:
            self._order(DRAIN)
        self._consider(now)

    def fail(self, reason: str, culprit: str = "") -> None:
        """Ends the topology as FAILED."""
        self._finish(RunState.FAILED, reason, culprit)

    def debug(self, target: str, seconds: int) -> None:
        """Has a component, or one task by its name, log a sample of what it emits, for so long."""
        self._order(DEBUG, target=target, seconds=seconds)

    # --- an update ----------------------------------------------------------------------------------------------

    def update(self, request: UpdateRequest, now: float) -> None:
        """Begins or joins an update; :attr:`updates` knows how far it is.

        Raises:
            ProtocolError: it is refused; nothing was changed.
        """
        self.stories.now = now
        ends = ""
        if self.ending.phase is not Phase.RUNNING or self._drain is not None:
            ends = f"the topology is ending: it is {self.state}" + (", and is drained" if not self.over else "")
        self.updates.requested(request, self.ending, now, ends=ends)
        self._tell_of_update()
        if self.updates.running:
            self.departures.cancelled()

    def hold(self, spouts: Sequence[str], leaving: Sequence[int], *, settle: bool) -> int:
        """See :class:`ardea.topology_master.updates.Topology`."""
        self._orders.pop(RESUME, None)
        self._order(HOLD, components=spouts, leaving=leaving, settle=settle)
        return hold_number(self.term, self._version)

    def resume(self) -> None:
        """See :class:`ardea.topology_master.updates.Topology`."""
        self._orders.pop(HOLD, None)
        self._order(RESUME)

    def leave(self, containers: Sequence[int]) -> None:
        """See :class:`ardea.topology_master.departures.Topology`."""
        self._order(LEAVE, containers=containers)
        del self._orders[LEAVE]  # it is for those who have asked, and they ask again

    def switch(self, wanted: Definition, former: Definition | None, switch: Switch) -> None:
        """See :class:`ardea.topology_master.updates.Topology`."""
        plan = plan_of(wanted)
        ending = copy.copy(self.ending)
        ending.replanned(plan)
        self._store.switch(wanted, former, self._execution(self.state, self.reason, self._drain, ending, switch))
        self.definition, self.plan, self.ending, self._switch = wanted, plan, ending, switch
        self.stories.forget(plan, map(container_name, plan.containers))
        for container in self._members:
            if container.registered:
                self._send_plan(container)

    def settled(self) -> None:
        """See :class:`ardea.topology_master.updates.Topology`."""
        self._store.settled(self._execution(self.state, self.reason, self._drain, self.ending, None))
        self._switch = None

    # --- orders -------------------------------------------------------------------------------------------------

    def _order(
        self,
        kind: OrderKind,
        *,
        target: str = "",
        seconds: int = 0,
        components: Sequence[str] = (),
        leaving: Sequence[int] = (),
        settle: bool = False,
        containers: Sequence[int] = (),
    ) -> None:
        self._version += 1
        self.stories.tell(TOPOLOGY, " ".join(filter(None, ("ordered", OrderKind.Name(kind), target, *components))))
        order = self._orders[kind] = Order(
            kind=kind,
            term=self.term,
            version=self._version,
            target=target,
            seconds=seconds,
            components=components,
            leaving=leaving,
            settle=settle,
            containers=containers,
        )
        for container in self._members:
            if container.registered:
                self._send_order(container, order)

    @staticmethod
    def _send_order(container: Container, order: Order) -> None:
        body = order.SerializeToString()
        container.link.send(Lane.CONTROL, Header(kind=ORDER), [body], len(body))

    # --- the end ----------------------------------------------------------------------------------------------

    def _consider(self, now: float) -> None:
        ending = self.ending
        if ending.phase is Phase.OVER:
            return
        if ending.failure:
            self._finish(RunState.FAILED, ending.failure, ending.culprit)
        elif ending.all_ended:
            succeeded, reason, culprit = ending.verdict()
            self._finish(RunState.SUCCEEDED if succeeded else RunState.FAILED, reason, culprit)
        elif self._drain is not None and (ending.quiet or now >= self._drain_until or not self._begun):
            left = sum(told.open for told in ending.tasks.values())
            self._finish(
                RunState.KILLED, f"{left:,} tuple{'s were' if left > 1 else ' was'} still open" if left else ""
            )
        elif self._drain is None and self.active and not self._waits and ending.quiet:
            # Written down before the first end marker: a new master continues from it.
            self._write(RunState.ENDING)
            self.updates.ended("the topology has ended")
            ending.declared()
            self._order(END)
        else:
            if ending.unsaved:
                self._write(self.state)
            self.updates.look(ending, now)
            self._tell_of_update()
            self.departures.look(ending, self.plan, now)

    def _tell_of_update(self) -> None:
        if (progress := self.updates.progress()) is not None:
            waits = f", waiting for {', '.join(progress.late[:3])}" if progress.late else ""
            self.stories.tell(
                UPDATE, f"{progress.id}: {progress.step}{waits}{progress.reason and f': {progress.reason}'}"
            )

    def _finish(self, state: RunState, reason: str, culprit: str = "") -> None:
        if self.ending.phase is Phase.OVER:
            return
        self._write(state, reason, culprit)
        self.ending.phase = Phase.OVER
        self._order(EXIT)

    def _write(self, state: RunState, reason: str = "", culprit: str = "", *, drain: float | None = None) -> None:
        drain = self._drain if drain is None else drain
        self._store.execution(self._execution(state, reason, drain, self.ending, self._switch, culprit))
        self.state, self.reason, self._drain = state, reason, drain
        self.ending.unsaved = False

    @staticmethod
    def _execution(
        state: RunState, reason: str, drain: float | None, ending: Ending, switch: Switch | None, culprit: str = ""
    ) -> ExecutionState:
        return ExecutionState(state, reason, ending.facts(state, drain), None if state.final else switch, culprit)

    @property
    def _waits(self) -> bool:
        """Whether somebody's new life is to come, which would have to hear of the end."""
        return self.updates.switching or self.departures.running

    @property
    def _begun(self) -> bool:
        """Whether there may be tuples: a spout has reported, or a former master may have heard of one."""
        return self.term > 1 or self.ending.begun

    @property
    def over(self) -> bool:
        """Whether the final state is stored."""
        return self.ending.phase is Phase.OVER

    @property
    def told_everybody(self) -> bool:
        """Whether every registered manager has confirmed the last order."""
        return all(c.link.lanes[Lane.CONTROL].unconfirmed_bytes == 0 for c in self._members if c.registered)

    # --- time -------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> float:
        """Heartbeats, the end of a drain, the steps of an update; returns when to be called again."""
        self.stories.now = now
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_EVERY
            for container in self.containers.values():
                if container.link.up:
                    container.link.heartbeat()
        if self.over:
            return self._next_heartbeat
        if now >= min(self._drain_until, self.updates.due, self.departures.due):
            self._consider(now)
        due = min(self._drain_until, self.updates.due, self.departures.due)
        return min(self._next_heartbeat, max(now, due))

    @property
    def _members(self) -> list[Container]:
        """Those of the present plan; one that an update has removed may come back if the update is put back."""
        return [container for number, container in self.containers.items() if number in self.plan.containers]

    @property
    def missing(self) -> list[int]:
        """Containers that have not registered."""
        return [c for c in self.plan.containers if c not in self.containers or not self.containers[c].registered]

    @property
    def silent_tasks(self) -> list[str]:
        """Tasks that have not reported yet; nobody waits for those of a topology that was never active."""
        if not self.active and not any(told.version for told in self.ending.tasks.values()):
            return []
        return [self.plan.tasks[t].name for t, told in self.ending.tasks.items() if not told.version]


def hold_number(term: int, version: int) -> int:
    """What a spout reports of the order to hold that it obeys."""
    return term << 32 | version
