"""Simulated stream managers and masters: the real state machines, with the network where their sockets were."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

import msgspec

from ardea.plan.wire import packing_from_bytes
from ardea.protocol.ids import incarnation
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import EXIT, Header, Order, Plan
from ardea.state.records import MasterLocation
from ardea.testing.clock import Alarm
from ardea.testing.world import MASTER, World, manager_name
from stream_manager.registration import Registrar
from stream_manager.state import LINGER, STORED, StreamManager
from topology_master.state import Master

MASTER_LINGER = 3.0
ROUND = 1e-5
"""Seconds that a round takes at least."""


class Remembered(msgspec.Struct, frozen=True):
    """What lies in a container's folder, so that its manager comes back without the master."""

    admission: int
    plan: bytes


class ToMaster:
    """A manager's connection to one life of the master."""

    def __init__(self, world: World, name: str, address: str) -> None:
        self.address = address
        self.mail: deque[Message] = deque()
        self._world = world
        self._name = name
        self._life = int(address.rpartition(":")[2])

    def send(self, frames: Message) -> bool:
        """Lost if the master has another life by then."""
        self._world.post(self._name, MASTER, Lane.CONTROL, frames, self._life)
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
        self.manager: StreamManager | None = None
        self._master: ToMaster | None = None
        self._mail: deque[tuple[str, Lane, Message]] = deque()
        self._round = Alarm(world.timeline, self._run)
        self._exit_by = math.inf
        self.registrar = Registrar(
            self._find_master,
            self._dial,
            world.definition,
            container,
            f"supervisor of container {container}",
            life,
            (self.name, 1, 2),
        )
        if self.name in world.scratch:
            known = msgspec.msgpack.decode(world.scratch[self.name], type=Remembered)
            self.registrar.admission = known.admission
            self._planned(Plan.FromString(known.plan))
        self._round.set(world.timeline.now)

    def arrived(self, source: str, lane: Lane, message: Message) -> None:
        """A message of an instance, a peer, or the master."""
        if source == MASTER:
            if self._master is not None:
                self._master.mail.append(message)
        else:
            self._mail.append((source, lane, message))
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
        for order in self.registrar.receive(now):
            if isinstance(order, Plan):
                if self.manager is None or order.epoch >= self.manager.greeting.epoch:
                    known = Remembered(self.registrar.admission, order.SerializeToString())
                    self.world.scratch[self.name] = msgspec.msgpack.encode(known)
                    self._planned(order)
            elif self.manager is not None:
                self.manager.ordered(order)
                if order.kind == EXIT:
                    self.registrar.confirm()
                    self._exit_by = now + LINGER
        due = self.registrar.tick(now)
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
            source, lane, (head, *frames) = self._mail.popleft()
            header = Header.FromString(head)
            self.world.heard(self.name, source, header)
            task = self.world.tasks.get(source)
            link = None
            if task is None:
                link = manager.peers.get(self.world.containers[source])
            elif task.container == self.container:
                link = manager.instances.get(task.task)
            if link is not None:
                manager.received(link, lane, header, frames, now)

    def _transmit(self, link: Link, lane: Lane, message: Message) -> None:
        assert self.manager is not None
        local = self.manager.instances.get(link.key) is link
        target = self.manager.plan.tasks[link.key].name if local else manager_name(link.key)
        self.world.post(self.name, target, lane, message)

    def _planned(self, message: Plan) -> None:
        if self.manager is None:
            me = incarnation(self.registrar.admission, self.life)
            topology = self.world.definition.topology
            self.manager = StreamManager(self.container, me, topology, self._transmit, self.registrar.report)
        self.manager.planned(message, packing_from_bytes(message.packing))
        self.registrar.planned(message.epoch, self.manager.greeting.digest)

    def _find_master(self) -> MasterLocation | None:
        """As the real process does, which looks for the final state where it finds no master."""
        world = self.world
        if world.master_at is None and world.store.state.final and self._exit_by == math.inf:
            self._exit_by = world.timeline.now + LINGER
            if self.manager is not None:
                self.manager.ordered(Order(kind=EXIT, term=STORED))
        return world.master_at

    def _dial(self, address: str) -> ToMaster:
        self._master = ToMaster(self.world, self.name, address)
        return self._master


class SimulatedMaster:
    """The topology master in one of its lives, each a term of its own."""

    def __init__(self, world: World, life: int) -> None:
        self.world = world
        self.life = life
        self.name = MASTER
        self.over_since: float | None = None
        self.master = Master(
            world.store.definition,
            world.store.former,
            life,
            world.store,
            self._transmit,
            found=world.store.held,
            now=world.timeline.now,
        )
        self._mail: deque[tuple[int, Message]] = deque()
        self._round = Alarm(world.timeline, self._run)
        self._round.set(world.timeline.now)
        world.master_at = MasterLocation(host=MASTER, port=life, term=life, pid=life)

    def arrived(self, source: str, lane: Lane, message: Message) -> None:  # noqa: ARG002
        """A message of a manager."""
        self._mail.append((self.world.containers[source], message))
        self._round.set(self.world.timeline.now)

    def freeze(self, until: float) -> None:
        """Does nothing until then; its lease stays."""
        self._round.hold(until)

    def kill(self) -> None:
        """Ends at once, and with it its lease."""
        self._round.cancel()
        self.world.master_at = None

    def _run(self) -> None:
        """One round of the real loop."""
        now = self.world.timeline.now
        while self._mail:
            number, (head, *frames) = self._mail.popleft()
            header = Header.FromString(head)
            self.world.heard(MASTER, manager_name(number), header)
            self.master.received(number, header, frames, now)
        due = self.master.tick(now)
        if self.master.over:
            self.over_since = now if self.over_since is None else self.over_since
            if self.master.told_everybody or now - self.over_since > MASTER_LINGER:
                self.kill()
                self.world.ended(self, None)
                return
            due = min(due, now + 0.05)
        self._round.set(max(due, now + ROUND))

    def _transmit(self, link: Link, lane: Lane, message: Message) -> None:
        self.world.post(MASTER, manager_name(link.key), lane, message)
