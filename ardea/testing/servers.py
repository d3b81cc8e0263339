"""Simulated stream managers and masters: the real state machines, with the network where their sockets were."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Container, Iterator
from typing import cast

import msgspec

from ardea.errors import ProtocolError, UserError
from ardea.protocol.checked import checked
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import HELLO, Header, Plan
from ardea.state import Fenced, Unavailable
from ardea.state.records import MasterLocation
from ardea.stream_manager.shell import Shell
from ardea.testing.audit import InvariantError
from ardea.testing.clock import Alarm
from ardea.testing.memory_store import LEASE, STATE, Known, UnderTerm, Watch
from ardea.testing.world import MASTER, Process, World, manager_name
from ardea.topology_master.forgotten import ForgottenError, Memory
from ardea.topology_master.master import Master
from ardea.topology_master.store import Store

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
    """One stream manager in one of its lives: the real shell, and what is outside of it (see :class:`Outside`)."""

    def __init__(self, world: World, container: int, life: int) -> None:
        self.world = world
        self.container = container
        self.life = life
        self.name = manager_name(container)
        self.holder = world.supervisors.holder(container)
        self._master: ToMaster | None = None
        self._mail: deque[tuple[Process, Lane, Message]] = deque()
        self._round = Alarm(world.timeline, self._run)
        self._left: Callable[[], None] | None = None
        self._watch = Watch(world.store, self.name, world.network, world.timeline)
        self.shell = Shell(self, world.definition, container, self.holder, life, (self.holder, 1, 2))
        if (kept := world.supervisors.folders.get(self.holder)) is not None:
            known = msgspec.msgpack.decode(kept, type=Remembered)
            self.shell.recall(known.admission, Plan.FromString(known.plan))
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
        self._left = left
        self.shell.depart()
        self._round.set(self.world.timeline.now)

    def freeze(self, until: float) -> None:
        """Does nothing until then."""
        self._round.hold(until)

    def kill(self) -> None:
        """Ends at once."""
        self._round.cancel()

    def _run(self) -> None:
        """One round of the real loop."""
        now, shell = self.world.timeline.now, self.shell
        try:
            shell.listen(now)
            while self._mail:
                self._received(*self._mail.popleft(), now)
        except ProtocolError as error:
            self._end(error)
            return
        due = shell.tick(now)
        if self._left is not None and shell.may_leave:
            self.world.timeline.at(now, self._left)
            self._left = None
        if shell.over:
            self._end(None)
            return
        if self.world.audit is not None and shell.manager is not None:
            self.world.audit.manager(self.name, shell.manager)
        self._round.set(max(due, now + ROUND))

    def _received(self, sender: Process, lane: Lane, message: Message, now: float) -> None:
        if self.world.audit is not None and Header.FromString(message[0]).kind == HELLO:
            self.world.audit.hello_came(self._itself, sender.name)
        task, name = self.world.names.tasks.get(sender.name), sender.name.encode()
        if task is None:
            self.shell.received(self.world.names.containers[sender.name], name, lane, message, now, peers=True)
        elif task.container == self.container:
            self.shell.received(task.task, name, lane, message, now, peers=False)

    def _end(self, error: ProtocolError | None) -> None:
        self.kill()
        self.world.ended(self, error)

    @property
    def _itself(self) -> str:
        return f"{self.name}, life {self.life} under {self.holder}"

    # --- what the shell asks for ------------------------------------------------------------------------------

    def look(self) -> Known:
        """See :class:`Outside`, as for all of these."""
        return self._watch.look()

    def dial(self, address: str) -> ToMaster:
        """A connection to a master."""
        self._master = ToMaster(self, address)
        return self._master

    def heard(self, link: Link, header: Header, source: bytes) -> None:  # noqa: ARG002
        """For the story, and the audit."""
        name = source.decode()
        self.world.heard(self.name, name, header)
        if self.world.audit is not None and header.kind == HELLO:
            self.world.audit.hello_heard(self._itself, name)

    def transmit(self, link: Link, lane: Lane, message: Message) -> None:
        """To an instance or another manager."""
        assert self.shell.manager is not None
        members = self.shell.manager.members
        local = members.instances.get(link.key) is link
        target = members.plan.tasks[link.key].name if local else manager_name(link.key)
        holder = self.holder if local else members.addresses[link.key].host
        self.world.post(self, target, holder, lane, message)

    def reach(self, plan: Plan) -> None:
        """Whoever has a place can be reached."""

    def leave(self, others: Container[int]) -> None:
        """Nothing is open to anybody."""

    def remember(self, admission: int, plan: Plan) -> bool:
        """In the container's folder."""
        self.world.supervisors.folders[self.holder] = msgspec.msgpack.encode(
            Remembered(admission, plan.SerializeToString())
        )
        return True


class SimulatedMaster:
    """The topology master in one of its lives, each a term of its own."""

    def __init__(self, world: World, life: int) -> None:
        self.world = world
        self.life = life
        self.name = MASTER
        self.holder = f"life {life} under {world.supervisors.holder(0)}"  # each has a port of its own
        self.over_since: float | None = None
        self._round = Alarm(world.timeline, self._run)
        self._answered = world.timeline.now  # when the state manager did so last
        self._waits = 0.0  # seconds, for answers of the state manager
        self._unsent: list[tuple[Link, Message]] = []  # what it says when they are there
        self._mail: deque[tuple[SimulatedManager, Message]] = deque()
        self._connected: dict[int, str] = {}
        self._store = UnderTerm(world.store, 0, MASTER, world.network, self._wait)
        self.term = self._store.term
        self.master = Master(
            world.store.definition,
            world.store.former,
            self.term,
            cast("Store", self._store),
            self._transmit,
            found=world.store.held,
            now=world.timeline.now,
        )
        self._round.set(world.timeline.now)
        world.store.master = MasterLocation(host=self.holder, port=life, term=self.term, pid=life)

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
        if store.master is not None and store.master.host == self.holder:
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
        except ForgottenError as forgotten:
            self._give_way(forgotten.memory)
            self._end(forgotten)
            return
        except (Fenced, Unavailable) as error:
            self._end(error)
            return
        if self.master.over:
            self.over_since = now if self.over_since is None else self.over_since
            if self.master.admissions.everybody_knows or now - self.over_since > MASTER_LINGER:
                self._end(None)
                return
            due = min(due, now + 0.05)
        self._round.set(max(due, now + ROUND))

    def _end(self, error: BaseException | None) -> None:
        self.kill()
        self.world.ended(self, error)

    def _give_way(self, memory: Memory) -> None:
        """As the real one does."""
        with contextlib.suppress(Unavailable):
            self._store.reach()
            store = UnderTerm(self.world.store, memory.above, MASTER, self.world.network, self._wait)
            corrected = memory.correct(self.world.store.held, self.world.store.definition)
            store.forget_timeline()
            if corrected != self.world.store.held:
                store.execution(corrected)

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
        if self.world.store.term != self.term:
            raise Fenced("the lease is another's")
        if not self.world.network.is_cut(MASTER, STATE):
            self._answered = now
        elif now - self._answered > LEASE:
            raise Fenced("the lease may be another's")

    def _received(self, sender: SimulatedManager, message: Message, now: float) -> None:
        known = self.master.admissions.containers.get(sender.container)
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


def acting_master(world: World) -> SimulatedMaster:
    """UserError if none runs."""
    process = world.processes.get(MASTER)
    if not isinstance(process, SimulatedMaster):
        running = ", ".join(world.processes) or "nothing"
        raise UserError(f"there is no master at {world.timeline.now:.6f} s; running: {running}")
    return process
