"""The stream manager as a process: sockets, the master's link, the plan on disk, one loop."""

from __future__ import annotations

import math
import signal
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import structlog

from ardea import leash
from ardea.config import Settings
from ardea.errors import ExitCode
from ardea.metrics import Identity, Registry, observe_process
from ardea.plan.definition import Definition
from ardea.plan.names import MASTER_CONTAINER, STREAM_MANAGER
from ardea.plan.wire import packing_from_bytes
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.incarnations import admission_of, incarnation
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import EXIT, LEAVE, Order, Plan
from ardea.state import Sight, open_state
from ardea.state.records import MasterLocation
from ardea.stream_manager.departure import Departure
from ardea.stream_manager.gauges import Gauges
from ardea.stream_manager.registration import Registrar
from ardea.stream_manager.state import LINGER, STORED, StreamManager
from ardea.transport import (
    LINGER_MS,
    Bound,
    Callers,
    Dialled,
    Door,
    Keyring,
    Poller,
    caller,
    context,
    holder,
    peer_number,
)

MESSAGES_A_ROUND = 256
MOST_EARLY, LARGEST_EARLY = 4096, 1 << 14
"""How many callers are answered once the plan is here, and the largest message that is kept for that, in bytes."""
log = structlog.get_logger(STREAM_MANAGER)


class Remembered(msgspec.Struct, frozen=True):
    """What lies beside the life counter, so that a restarted manager comes back without the master."""

    holder: str
    admission: int
    data_port: int
    control_port: int
    plan: bytes


@dataclass(frozen=True, slots=True)
class Place:
    """Which container, where its instances dial, where its files are."""

    container: int
    folder: Path
    control: str
    data: str
    metrics: str
    host: str
    keys: Path | None = None


class ToMaster(Dialled):
    """A connection to a master, watched while it is open."""

    def __init__(self, ctx: Any, poller: Poller, identity: bytes, keys: Keyring | None, address: str) -> None:
        super().__init__(ctx, identity, address, keys, holder(MASTER_CONTAINER))
        self._poller = poller
        poller.watch(self)

    def close(self, linger_ms: int = LINGER_MS) -> None:
        """Watches it no longer, and closes it."""
        self._poller.forget(self)
        super().close(linger_ms)


class StreamManagerProcess:
    """Wires one manager; :meth:`run` returns the exit code."""

    def __init__(self, definition: Definition, place: Place) -> None:
        self.definition = definition
        self.place = place
        self.logical = definition.shape.plan()
        self.settings = Settings.of(self.logical.config)
        self.holder = leash.holder()
        self.life = leash.life()
        self.manager: StreamManager | None = None
        self.exit_code: ExitCode | None = None
        self._exit_by = math.inf
        self._early: dict[bytes, tuple[bool, list[bytes]]] = {}  # what each has said last, until the plan is here
        self.registry = Registry(
            Identity(topology=definition.topology, container=place.container, process=STREAM_MANAGER, life=self.life)
        )
        observe_process(self.registry)
        self._lag = self.registry.histogram("ardea_process_loop_lag_seconds")
        self.gauges = Gauges(self.registry)
        ctx = self._context = context()
        self._name, self._callers = caller("m", place.container), Callers()
        self.poller = Poller()
        self._remembered = self._recall()
        known = self._remembered
        self._instances = {Lane.CONTROL: Bound(ctx), Lane.DATA: Bound(ctx)}
        self._instances[Lane.CONTROL].bind(place.control)
        self._instances[Lane.DATA].bind(place.data)
        self._keys = Keyring.read(place.keys, definition.keys)
        self._door = Door(ctx, self._keys) if self._keys is not None else None
        if self._door is not None:
            self.poller.keep(self._door)
        self._peers_in = {Lane.CONTROL: Bound(ctx, self._door), Lane.DATA: Bound(ctx, self._door)}
        self._ports = {
            Lane.CONTROL: self._peers_in[Lane.CONTROL].bind(f"tcp://{place.host}:{known.control_port if known else 0}"),
            Lane.DATA: self._peers_in[Lane.DATA].bind(f"tcp://{place.host}:{known.data_port if known else 0}"),
        }
        self._peers_out: dict[tuple[int, Lane], Dialled] = {}
        self._metrics = Dialled(ctx, self._name, place.metrics)
        for endpoint in (*self._instances.values(), *self._peers_in.values()):
            self.poller.watch(endpoint)
        self._sight = Sight(open_state(definition.state), definition.topology)
        self.registrar = Registrar(
            self._find_master,
            partial(ToMaster, ctx, self.poller, self._name, self._keys),
            definition,
            place.container,
            self.holder,
            self.life,
            (place.host, self._ports[Lane.DATA], self._ports[Lane.CONTROL]),
        )
        self._departure = Departure(place.folder, place.container, self.registrar)
        if known is not None:
            self.registrar.admission = known.admission
            self._planned(Plan.FromString(known.plan))

    # --- the loop ---------------------------------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Until the topology ends, the process is told to stop, or another holder has its place."""
        signal.signal(signal.SIGTERM, lambda *_: self._stop(ExitCode.TEMPORARY))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        next_second = due = time.monotonic()
        while self.exit_code is None:
            pause = min(1.0, max(0.0, due - time.monotonic()))
            ready = self.poller.wait(pause, lambda: self.exit_code is not None)
            now = time.monotonic()
            if any(isinstance(endpoint, Dialled) for endpoint in ready):
                for order in self.registrar.receive(now):
                    self._from_master(order)
            self._receive(ready, now)
            due = self.registrar.tick(now)
            if self.manager is not None:
                due = min(due, self.manager.tick(now), self._exit_by)
                if now >= self._exit_by or (self._exit_by < math.inf and self.manager.told_everybody):
                    self._stop(ExitCode.OK)
            if now >= next_second:
                self._lag.observe(now - next_second)
                next_second = now + self.settings.metrics_interval
                leash.beat(in_user_code=False)
                self._tell_metrics(now)
            due = min(due, next_second, self._departure.look(now))
        if self.exit_code is ExitCode.OK:  # else the metrics manager may have gone first, and this would wait for it
            self._tell_metrics(time.monotonic())  # the last; behind it, the metrics manager looks whether it is alone
        self._close()
        return self.exit_code

    def _tell_metrics(self, now: float) -> None:
        if self.manager is not None:
            self.gauges.read(self.manager, now)
        self.registry.counter("ardea_process_malformed_messages_total").value = self._malformed
        self._metrics.send([self.registry.snapshot()])

    @property
    def _malformed(self) -> int:
        """Messages that were dropped: no message, or not their sender's to send."""
        bound = (*self._instances.values(), *self._peers_in.values())
        unfit = 0 if self.manager is None else self.manager.statistics.malformed
        return sum(each.statistics.malformed for each in bound) + self.registrar.malformed + unfit

    def _receive(self, ready: set[Bound | Dialled], now: float) -> None:
        """Control before data.  Who calls before the plan is here is answered when it is: no need to call again."""
        for lane in (Lane.CONTROL, Lane.DATA):
            for endpoint, peers in ((self._instances[lane], False), (self._peers_in[lane], True)):
                if endpoint not in ready:
                    continue
                for identity, frames in endpoint.receive(MESSAGES_A_ROUND):
                    if self.manager is not None:
                        self._received(self.manager, identity, frames, lane, now, peers=peers)
                    elif lane is Lane.CONTROL:
                        self._keep_early(identity, frames, peers=peers)

    def _keep_early(self, identity: bytes, frames: list[bytes], *, peers: bool) -> None:
        room = identity in self._early or len(self._early) < MOST_EARLY
        if room and peer_number(identity) >= 0 and len(frames) == 2 and sum(map(len, frames)) <= LARGEST_EARLY:
            self._early[identity] = peers, frames

    def _received(
        self, manager: StreamManager, identity: bytes, frames: list[bytes], lane: Lane, now: float, *, peers: bool
    ) -> None:
        link = (manager.peers if peers else manager.instances).get(peer_number(identity))
        if link is None:
            return
        try:
            header = checked(frames)
        except MalformedError:
            (self._peers_in if peers else self._instances)[lane].statistics.malformed += 1
            return
        if not peers:
            self._callers.hears(link.key, header.sender, identity)
        manager.received(link, lane, header, frames[1:], now)

    def _transmit(self, link: Link, lane: Lane, message: Message) -> None:
        manager = self.manager
        assert manager is not None
        if manager.instances.get(link.key) is link:
            self._instances[lane].send(self._callers.name(link.key, link.peer), message)
        else:
            self._peers_out[link.key, lane].send(message)

    # --- the master -------------------------------------------------------------------------------------------

    def _find_master(self) -> MasterLocation | None:
        sight = self._sight.look()
        if sight.master is None and sight.final and self._exit_by == math.inf:  # nobody is left who says so
            self._exit(Order(kind=EXIT, term=STORED))
        return sight.master

    def _exit(self, order: Order) -> None:
        """Passes the order on, and stays until everybody has it."""
        if self.manager is None:
            self._stop(ExitCode.OK)
            return
        self.manager.ordered(order)
        self._exit_by = time.monotonic() + LINGER

    def _from_master(self, message: Plan | Order) -> None:
        if isinstance(message, Plan):
            if self.manager is None or message.epoch >= self.manager.greeting.epoch:
                self._remember(message)  # first: no instance may work by a plan that its manager could forget
                self._planned(message)
        elif message.kind == EXIT:
            self.registrar.confirm()
            self._exit(message)
        elif message.kind == LEAVE:
            self._departure.ordered(message)
        elif self.manager is not None:
            self.manager.ordered(message)

    def _planned(self, message: Plan) -> None:
        """Makes the manager at the first plan; dials whoever is new, leaves whoever is gone."""
        if self.manager is None:
            me = incarnation(self.registrar.admission, self.life)
            topology = self.definition.topology
            self.manager = StreamManager(self.place.container, me, topology, self._transmit, self.registrar.report)
            log.info("plan received", epoch=message.epoch, admission=admission_of(me), life=self.life)
        if self._keys is not None:
            self._keys.learn(message.keys)
        for address in message.addresses:
            for lane, port in ((Lane.DATA, address.data_port), (Lane.CONTROL, address.control_port)):
                key, where = (address.container, lane), f"tcp://{address.host}:{port}"
                known = self._peers_out.get(key)
                if address.container != self.place.container and (known is None or known.address != where):
                    if known is not None:
                        known.close()
                    peer = holder(address.container)
                    self._peers_out[key] = Dialled(self._context, self._name, where, self._keys, peer)
        self.manager.planned(message, packing_from_bytes(message.packing))
        early, self._early = self._early, {}
        for identity, (peers, frames) in early.items():
            self._received(self.manager, identity, frames, Lane.CONTROL, time.monotonic(), peers=peers)
        self.registrar.planned(message.epoch, self.manager.greeting.digest)
        for number, lane in [key for key in self._peers_out if key[0] not in self.manager.peers]:
            self._peers_out.pop((number, lane)).close()

    # --- what survives a restart in place ---------------------------------------------------------------------

    def _recall(self) -> Remembered | None:
        try:
            known = msgspec.msgpack.decode((self.place.folder / "manager.plan").read_bytes(), type=Remembered)
        except (OSError, ValueError):
            return None
        return known if known.holder == self.holder else None

    def _remember(self, plan: Plan) -> None:
        known = Remembered(
            self.holder,
            self.registrar.admission,
            self._ports[Lane.DATA],
            self._ports[Lane.CONTROL],
            plan.SerializeToString(),
        )
        path = self.place.folder / "manager.plan"
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.msgpack.encode(known))
        temporary.replace(path)

    def _stop(self, code: ExitCode) -> None:
        self.exit_code = code
        self.poller.wake()

    def _close(self) -> None:
        for bound in (*self._instances.values(), *self._peers_in.values()):
            bound.close()
        for dialled in (*self._peers_out.values(), self._metrics):
            dialled.close()
        if self.exit_code is not ExitCode.OK:
            self.registrar.leave()  # with a topology that is over the master ends too, and would be waited for
        self.registrar.close()
        if self._door is not None:
            self._door.close()
        self._context.destroy(linger=1000)
