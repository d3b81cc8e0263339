"""Simulated stream managers and masters: the real state machines, with the network where their sockets were."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import cast

import msgspec

from ardea.errors import ProtocolError
from ardea.plan.wire import packing_from_bytes
from ardea.protocol.checked import checked
from ardea.protocol.incarnations import incarnation
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import EXIT, LEAVE, Order, Plan
from ardea.state import Fenced, Unavailable
from ardea.state.records import MasterLocation
from ardea.stream_manager.registration import Registrar
from ardea.stream_manager.state import LINGER, STORED, StreamManager
from ardea.testing.audit import InvariantError
from ardea.testing.clock import Alarm
from ardea.testing.state import LEASE, STATE, UnderTerm, Watch
from ardea.testing.world import MASTER, Process, World, manager_name
from ardea.topology_master.state import Master, Store

MASTER_LINGER = 3.0
ROUND = 1e-5
"""Seconds that a round takes at least."""


class Remembered(msgspec.Struct, frozen=True):
    """What lies in a container's folder, so that its manager comes back without the master."""

    admission: int
    plan: bytes


class ToMaster:
    """A manager's connection to one life of the master."""

    def __init__(self, manager: SimulatedManager, address: str) -> None:
        self.address = address
        self.mail: deque[Message] = deque()
        self._manager = manager
        self.holder = address.removeprefix("tcp://").rpartition(":")[0]

    def send(self, frames: Message) -> bool:
        """Lost if the master has another life by then."""
        self._manager.world.post(self._manager, MASTER, self.holder, Lane.CONTROL, frames)
        return True

    def receive(self, limit: int) -> Iterator[Message]:
        """What has arrived."""
        for _ in range(min(limit, len(self.mail))):
            yield self.mail.popleft()

    def close(self) -> None:
        """Forgets what has arrived."""
        self.mail.clear()


class SimulatedManager:
    """One stream manager in one of its lives."""

    def __init__(self, world: World, container: int, life: int) -> None:
        self.world = world
        self.container = container
        self.life = life
        self.name = manager_name(container)
        self.holder = world.supervisors.holder(container)
        self.manager: StreamManager | None = None
        self._master: ToMaster | None = None
        self._mail: deque[tuple[Process, Lane, Message]] = deque()
        self._round = Alarm(world.timeline, self._run)
        self._exit_by = math.inf
        self._left: Callable[[], None] | None = None
        self._may_leave = False
        self._watch = Watch(world.store, self.name, world.network, world.timeline)
        self.registrar = Registrar(
            self._find_master,
            self._dial,
            world.definition,
            container,
            self.holder,
            life,
            (self.holder, 1, 2),
        )
        if self.holder in world.scratch:
            known = msgspec.msgpack.decode(world.scratch[self.holder], type=Remembered)
            self.registrar.admission = known.admission
            self._planned(Plan.FromString(known.plan))
        self._round.set(world.timeline.now)

    def arrived(self, sender: Process, lane: Lane, message: Message) -> None:
        """A message of an instance, a peer, or a master; of one that it has left, nothing comes."""
        if sender.name != MASTER:
            self._mail.append((sender, lane, message))
        elif self._master is not None and self._master.holder == sender.holder:
            self._master.mail.append(message)
        self._round.set(self.world.timeline.now)

    def depart(self, left: Callable[[], None]) -> None:
        """Its pod is about to be ended; ``left`` is called when it may be."""
        self._left, self._may_leave = left, False
        self.registrar.depart()
        self._round.set(self.world.timeline.now)

    def freeze(self, until: float) -> None:
        """Does nothing until then."""
        self._round.hold(until)

    def kill(self) -> None:
        """Ends at once."""
        self._round.cancel()

    def _run(self) -> None:
        """One round of the real loop."""
        now = self.world.timeline.now
        try:
            orders = self.registrar.receive(now)
        except ProtocolError as error:
            self.kill()
            self.world.ended(self, error)
            return
        for order in orders:
            if isinstance(order, Plan):
                if self.manager is None or order.epoch >= self.manager.greeting.epoch:
                    known = Remembered(self.registrar.admission, order.SerializeToString())
                    self.world.scratch[self.holder] = msgspec.msgpack.encode(known)
                    self._planned(order)
            elif order.kind == EXIT:
                self.registrar.confirm()
                self._exit(order)
            elif order.kind == LEAVE:
                self._may_leave = self._may_leave or self.container in order.containers
            elif self.manager is not None:
                self.manager.ordered(order)
        due = self.registrar.tick(now)
        if self._left is not None and (self._may_leave or self.registrar.alone):
            self.world.timeline.at(now, self._left)
            self._left = None
        if self.manager is None and self._exit_by < math.inf:
            self._end()
            return
        if self.manager is not None:
            self._receive(self.manager, now)
            due = min(due, self.manager.tick(now), self._exit_by)
            if now >= self._exit_by or (self._exit_by < math.inf and self.manager.told_everybody):
                self._end()
                return
            if self.world.audit is not None:
                self.world.audit.manager(self.name, self.manager)
        self._round.set(max(due, now + ROUND))

    def _end(self) -> None:
        self.kill()
        self.world.ended(self, None)

    def _receive(self, manager: StreamManager, now: float) -> None:
        while self._mail:
            sender, lane, message = self._mail.popleft()
            header = checked(message)
            self.world.heard(self.name, sender.name, header)
            task = self.world.tasks.get(sender.name)
            link = None
            if task is None:
                link = manager.peers.get(self.world.containers[sender.name])
            elif task.container == self.container:
                link = manager.instances.get(task.task)
            if link is not None:
                manager.received(link, lane, header, message[1:], now)

    def _transmit(self, link: Link, lane: Lane, message: Message) -> None:
        assert self.manager is not None
        local = self.manager.instances.get(link.key) is link
        target = self.manager.plan.tasks[link.key].name if local else manager_name(link.key)
        holder = self.holder if local else self.manager.addresses[link.key].host
        self.world.post(self, target, holder, lane, message)

    def _planned(self, message: Plan) -> None:
        if self.manager is None:
            me = incarnation(self.registrar.admission, self.life)
            topology = self.world.definition.topology
            self.manager = StreamManager(self.container, me, topology, self._transmit, self.registrar.report)
        self.manager.planned(message, packing_from_bytes(message.packing))
        self.registrar.planned(message.epoch, self.manager.greeting.digest)

    def _find_master(self) -> MasterLocation | None:
        """As the real process does, which looks for the final state where it finds no master."""
        sight = self._watch.look()
        if sight.master is None and sight.final and self._exit_by == math.inf:
            self._exit(Order(kind=EXIT, term=STORED))
        return sight.master

    def _exit(self, order: Order) -> None:
        """Passes the order on, and stays until everybody has it; without a plan, and so anybody, it ends."""
        self._exit_by = self.world.timeline.now + LINGER
        if self.manager is not None:
            self.manager.ordered(order)

    def _dial(self, address: str) -> ToMaster:
        self._master = ToMaster(self, address)
        return self._master


class SimulatedMaster:
    """The topology master in one of its lives, each a term of its own."""

    def __init__(self, world: World, life: int) -> None:
        self.world = world
        self.life = life
        self.name = MASTER
        self.holder = f"life {life} under {world.supervisors.holder(0)}"  # each has a port of its own
        self.over_since: float | None = None
        self._round = Alarm(world.timeline, self._run)
        self._store = UnderTerm(world.store, life, MASTER, world.network, self._wait)
        self._answered = world.timeline.now  # when the state manager did so last
        self._waits = 0.0  # seconds, for answers of the state manager
        self._unsent: list[tuple[Link, Message]] = []  # what it says when they are there
        self.master = Master(
            world.store.definition,
            world.store.former,
            life,
            cast("Store", self._store),
            self._transmit,
            found=world.store.held,
            now=world.timeline.now,
        )
        self._mail: deque[tuple[SimulatedManager, Message]] = deque()
        self._connected: dict[int, str] = {}
        self._round.set(world.timeline.now)
        world.store.master = MasterLocation(host=self.holder, port=life, term=life, pid=life)

    def arrived(self, sender: Process, lane: Lane, message: Message) -> None:  # noqa: ARG002
        """A message of a manager; of those that have one number, the last to say something gets the answers."""
        assert isinstance(sender, SimulatedManager)
        self._connected[sender.container] = sender.holder
        self._mail.append((sender, message))
        self._round.set(self.world.timeline.now)

    def freeze(self, until: float) -> None:
        """Does nothing until then; its lease stays."""
        self._round.hold(until)

    def kill(self) -> None:
        """Ends at once, and with it its lease."""
        self._round.cancel()
        store = self.world.store
        if store.master is not None and store.master.term == self.life:
            store.master = None

    def _run(self) -> None:
        """One round of the real loop."""
        now = self.world.timeline.now
        try:
            self._go_on()
            while self._mail:
                self._received(*self._mail.popleft(), now)
            due = self.master.tick(now)
            self._still_holds(now)
        except (Fenced, Unavailable) as error:
            self.kill()
            self.world.ended(self, error)
            return
        if self.master.over:
            self.over_since = now if self.over_since is None else self.over_since
            if self.master.told_everybody or now - self.over_since > MASTER_LINGER:
                self.kill()
                self.world.ended(self, None)
                return
            due = min(due, now + 0.05)
        self._round.set(max(due, now + ROUND))

    def _wait(self, seconds: float) -> None:
        """Inside a call of the state manager, nothing else is done."""
        self._waits += seconds
        self._round.hold(self.world.timeline.now + self._waits)
        self._round.set(self.world.timeline.now + self._waits)

    def _go_on(self) -> None:
        """The answers that it waited for are there, or they are lost, and with them what it would have said."""
        if self._waits:
            self._store.reach()
            self._waits = 0.0
        unsent, self._unsent = self._unsent, []
        for link, message in unsent:
            self._post(link, message)

    def _still_holds(self, now: float) -> None:
        """What the real one looks at in each round, too."""
        if self.world.store.term != self.life:
            raise Fenced("the lease is another's")
        if not self.world.network.is_cut(MASTER, STATE):
            self._answered = now
        elif now - self._answered > LEASE:
            raise Fenced("the lease may be another's")

    def _received(self, sender: SimulatedManager, message: Message, now: float) -> None:
        known = self.master.containers.get(sender.container)
        header = checked(message)
        self.world.heard(MASTER, sender.name, header)
        before = 0 if known is None else known.link.statistics.received
        self.master.received(sender.container, header, message[1:], now)
        if known is not None and known.holder != sender.holder and known.link.statistics.received > before:
            raise InvariantError(f"the master took for {known.holder}'s what {sender.holder} has sent: {header}")

    def _transmit(self, link: Link, _lane: Lane, message: Message) -> None:
        if self._waits:
            self._unsent.append((link, message))
        else:
            self._post(link, message)

    def _post(self, link: Link, message: Message) -> None:
        if link.key in self._connected:
            self.world.post(self, manager_name(link.key), self._connected[link.key], Lane.CONTROL, message)
