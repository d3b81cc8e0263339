"""The topology master: admits containers, makes the plan, gives orders, declares the end.

Pure: messages come in through :meth:`Master.received`, writes to the state go out through ``Store``, and time
passes in :meth:`Master.tick`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ardea.plan.logical import LogicalPlan
from ardea.plan.packing import PackingPlan
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.ids import incarnation
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
    OrderKind,
    Plan,
    Refusal,
    Registration,
    TaskReport,
)
from ardea.state.records import ExecutionState, RunState
from topology_master.ending import Ending, Phase

HEARTBEAT_EVERY = 1.0


class Store(Protocol):
    """The master's writes; each is one transaction under its term, and raises Fenced when that is over."""

    def admit(self, container: int, holder: str, host: str, port: int) -> int:
        """The admission of that holder: its own, or a higher one."""

    def execution(self, execution: ExecutionState) -> None:
        """The topology's state."""


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
        topology: str,
        digest: str,
        logical: LogicalPlan,
        packing: PackingPlan,
        packing_bytes: bytes,
        epoch: int,
        term: int,
        store: Store,
        port: Port,
        *,
        found: ExecutionState,
        now: float,
        drain_secs: float,
    ) -> None:
        self.topology = topology
        self.term = term
        self.plan = PhysicalPlan.build(logical, packing, epoch)
        self.ending = Ending(self.plan, found.end)
        self.containers: dict[int, Container] = {}
        self.active = found.state is not RunState.PAUSED
        self.state = found.state
        self.reason = found.reason
        self._digest = digest
        self._packing = packing_bytes
        self._store = store
        self._port = port
        self._orders: dict[int, Order] = {}
        self._version = 0
        self._planned = False
        self._drain_secs = drain_secs
        self._drain = found.end.drain
        self._drain_until = math.inf
        self._next_heartbeat = 0.0
        if self.state is RunState.ENDING:
            self.ending.declared()
            self._order(END)
        if self._drain is not None:
            self._drain_until = now + self._drain
            self._order(DRAIN)

    # --- messages ---------------------------------------------------------------------------------------------

    def received(self, container: int, header: Header, frames: Sequence[bytes], now: float) -> None:
        """One message of a container's manager."""
        if header.kind == HELLO:
            self._met(container, header, Hello.FromString(frames[0]))
            return
        known = self.containers.get(container)
        if known is None or not known.link.accept(Lane.CONTROL, header, sum(map(len, frames))):
            return
        known.link.last_heard = now
        if header.kind == REGISTER:
            self._register(container, known, Registration.FromString(frames[0]))
            self._consider(now)
        elif header.kind == REPORT:
            if self.ending.reported(TaskReport.FromString(frames[0])):
                self._consider(now)
        elif header.kind == HEARTBEAT:
            return

    def _met(self, number: int, header: Header, hello: Hello) -> None:
        known = self.containers.get(number)
        if known is None or known.holder != hello.holder:
            link = Link(number, f"manager {number}", self.term, self._port)
            # The former's address stays: the others have it, and are told when the newcomer's differs.
            known = Container(link, hello.holder, None if known is None else known.address)
        link = known.link
        if hello.topology != self.topology or hello.digest != self._digest or number not in self.plan.containers:
            refusal = Refusal(
                code="WRONG_TOPOLOGY",
                message=f"this is the master of {self.topology}, plan {self._digest}; "
                f"container {number} of {hello.topology}, plan {hello.digest}, does not belong to it",
                definite=True,
            )
            link.signal(Header(kind=REFUSED), [refusal.SerializeToString()])
            return
        self.containers[number] = known
        if link.meet(header.sender) is not None:
            known.registered = False
        link.signal(Header(kind=HELLO), [Hello(topology=self.topology, digest=self._digest).SerializeToString()])

    def _register(self, number: int, known: Container, registration: Registration) -> None:
        address = registration.address
        known.admission = self._store.admit(number, registration.holder, address.host, address.data_port)
        moved = self._planned and known.address is not None and known.address != address
        known.address = address
        known.registered = True
        address.incarnation = incarnation(known.admission, known.link.peer)
        self.ending.manager_met(number, address.incarnation)
        body = Admission(admission=known.admission, term=self.term).SerializeToString()
        known.link.send(Lane.CONTROL, Header(kind=ADMITTED), [body], len(body))
        if self._planned:
            for container in self.containers.values() if moved else (known,):
                self._send_plan(container)
        elif all(c in self.containers and self.containers[c].registered for c in self.plan.containers):
            self._planned = True
            for container in self.containers.values():
                self._send_plan(container)

    def _send_plan(self, container: Container) -> None:
        plan = Plan(epoch=self.plan.epoch, packing=self._packing, active=self.active, term=self.term)
        plan.addresses.extend(c.address for c in self.containers.values() if c.address is not None)
        body = plan.SerializeToString()
        container.link.send(Lane.CONTROL, Header(kind=PLAN), [body], len(body))
        for order in self._orders.values():
            self._send_order(container, order)

    # --- orders -----------------------------------------------------------------------------------------------

    def set_active(self, now: float, *, active: bool) -> None:
        """Activates or deactivates the topology."""
        if self.ending.phase is not Phase.RUNNING or active == self.active:
            return
        self._write(RunState.RUNNING if active else RunState.PAUSED)
        self.active = active
        self._orders.pop(DEACTIVATE if active else ACTIVATE, None)
        self._order(ACTIVATE if active else DEACTIVATE)
        self._consider(now)

    def drain(self, now: float, wait: float | None = None) -> None:
        """Stops the spouts, waits for what is open, then ends as KILLED; repeated with less time, it hurries."""
        wait = self._drain_secs if wait is None else wait
        if self.over or now + wait >= self._drain_until:
            return
        self._write(self.state, drain=wait)
        self._drain_until = now + wait
        if DRAIN not in self._orders:
            self._order(DRAIN)
        self._consider(now)

    def fail(self, reason: str) -> None:
        """Ends the topology as FAILED."""
        self._finish(RunState.FAILED, reason)

    def debug(self, target: str, seconds: int) -> None:
        """Has a component, or one task by its name, log a sample of what it emits, for so long."""
        self._order(DEBUG, target=target, seconds=seconds)

    def _order(self, kind: OrderKind, *, target: str = "", seconds: int = 0) -> None:
        self._version += 1
        order = self._orders[kind] = Order(
            kind=kind, term=self.term, version=self._version, target=target, seconds=seconds
        )
        for container in self.containers.values():
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
            self._finish(RunState.FAILED, ending.failure)
        elif ending.all_ended:
            succeeded, reason = ending.verdict()
            self._finish(RunState.SUCCEEDED if succeeded else RunState.FAILED, reason)
        elif self._drain is not None and (ending.quiet or now >= self._drain_until):
            left = sum(told.open for told in ending.tasks.values())
            self._finish(RunState.KILLED, f"{left:,} tuples were still open" if left else "")
        elif self._drain is None and self.active and ending.quiet:
            # Written down before the first end marker: a new master continues from it.
            self._write(RunState.ENDING)
            ending.declared()
            self._order(END)
        elif ending.unsaved:
            self._write(self.state)

    def _finish(self, state: RunState, reason: str) -> None:
        if self.ending.phase is Phase.OVER:
            return
        self._write(state, reason)
        self.ending.phase = Phase.OVER
        self._order(EXIT)

    def _write(self, state: RunState, reason: str = "", *, drain: float | None = None) -> None:
        drain = self._drain if drain is None else drain
        self._store.execution(ExecutionState(state, reason, self.ending.facts(state, drain)))
        self.state, self.reason, self._drain = state, reason, drain
        self.ending.unsaved = False

    @property
    def over(self) -> bool:
        """Whether the final state is stored."""
        return self.ending.phase is Phase.OVER

    @property
    def told_everybody(self) -> bool:
        """Whether every registered manager has confirmed the last order."""
        return all(c.link.lanes[Lane.CONTROL].unconfirmed_bytes == 0 for c in self.containers.values() if c.registered)

    # --- time -------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> float:
        """Heartbeats, and the end of a drain; returns when to be called again."""
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_EVERY
            for container in self.containers.values():
                if container.link.up:
                    container.link.heartbeat()
        if self.over:
            return self._next_heartbeat
        if now >= self._drain_until:
            self._consider(now)
        return min(self._next_heartbeat, max(now, self._drain_until))

    @property
    def missing(self) -> list[int]:
        """Containers that have not registered."""
        return [c for c in self.plan.containers if c not in self.containers or not self.containers[c].registered]

    @property
    def silent_tasks(self) -> list[str]:
        """Tasks that have not reported yet."""
        return [self.plan.tasks[t].name for t, told in self.ending.tasks.items() if not told.version]
