"""The stream manager as a process: sockets, the master's link, the plan on disk, one loop."""

from __future__ import annotations

import signal
import time
from collections.abc import Container
from dataclasses import dataclass
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
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import Header, Plan
from ardea.state import Sight, open_state
from ardea.stream_manager.departure import Departure
from ardea.stream_manager.gauges import Gauges
from ardea.stream_manager.shell import Shell
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
    """Gives one manager's shell its sockets and its files; :meth:`run` returns the exit code."""

    def __init__(self, definition: Definition, place: Place) -> None:
        self.definition = definition
        self.place = place
        self.settings = Settings.of(definition.shape.plan().config)
        self.holder = leash.holder()
        self.life = leash.life()
        self.exit_code: ExitCode | None = None
        self.registry = Registry(
            Identity(topology=definition.topology, container=place.container, process=STREAM_MANAGER, life=self.life)
        )
        observe_process(self.registry)
        self._lag = self.registry.histogram("ardea_process_loop_lag_seconds")
        self.gauges = Gauges(self.registry)
        ctx = self._context = context()
        self._name, self._callers = caller("m", place.container), Callers()
        self.poller = Poller()
        known = self._recall()
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
        address = place.host, self._ports[Lane.DATA], self._ports[Lane.CONTROL]
        self.shell = Shell(self, definition, place.container, self.holder, self.life, address)
        self._departure = Departure(place.folder, self.shell)
        if known is not None:
            self.shell.recall(known.admission, Plan.FromString(known.plan))

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
                self.shell.listen(now)
            self._receive(ready, now)
            due = self.shell.tick(now)
            if self.shell.over:
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
        if self.shell.manager is not None:
            self.gauges.read(self.shell.manager, now)
        self.registry.counter("ardea_process_malformed_messages_total").value = self._malformed
        self._metrics.send([self.registry.snapshot()])

    @property
    def _malformed(self) -> int:
        """Messages that were dropped: no message, or not their sender's to send."""
        bound, shell = (*self._instances.values(), *self._peers_in.values()), self.shell
        unfit = 0 if shell.manager is None else shell.manager.statistics.malformed
        return sum(each.statistics.malformed for each in bound) + shell.malformed + shell.registrar.malformed + unfit

    def _receive(self, ready: set[Bound | Dialled], now: float) -> None:
        """Control before data."""
        received = self.shell.received
        for lane in (Lane.CONTROL, Lane.DATA):
            for endpoint, peers in ((self._instances[lane], False), (self._peers_in[lane], True)):
                if endpoint in ready:
                    for source, frames in endpoint.receive(MESSAGES_A_ROUND):
                        received(peer_number(source), source, lane, frames, now, peers=peers)

    # --- what the shell asks for ------------------------------------------------------------------------------

    def look(self) -> Sight:
        """See :class:`Outside`, as for all of these."""
        return self._sight.look()

    def dial(self, address: str) -> ToMaster:
        """A connection to a master."""
        return ToMaster(self._context, self.poller, self._name, self._keys, address)

    def heard(self, link: Link, header: Header, source: bytes) -> None:
        """An instance is answered where it called from."""
        manager = self.shell.manager
        if manager is not None and manager.members.instances.get(link.key) is link:
            self._callers.hears(link.key, header.sender, source)

    def transmit(self, link: Link, lane: Lane, message: Message) -> None:
        """To an instance or another manager."""
        manager = self.shell.manager
        assert manager is not None
        if manager.members.instances.get(link.key) is link:
            self._instances[lane].send(self._callers.name(link.key, link.peer), message)
        else:
            self._peers_out[link.key, lane].send(message)

    def reach(self, plan: Plan) -> None:
        """Lets in, and dials, whoever is new."""
        if self._keys is not None:
            self._keys.learn(plan.keys)
        for address in plan.addresses:
            for lane, port in ((Lane.DATA, address.data_port), (Lane.CONTROL, address.control_port)):
                key, where = (address.container, lane), f"tcp://{address.host}:{port}"
                known = self._peers_out.get(key)
                if address.container != self.place.container and (known is None or known.address != where):
                    if known is not None:
                        known.close()
                    peer = holder(address.container)
                    self._peers_out[key] = Dialled(self._context, self._name, where, self._keys, peer)

    def leave(self, others: Container[int]) -> None:
        """Hangs up on whoever is gone."""
        for key in [key for key in self._peers_out if key[0] not in others]:
            self._peers_out.pop(key).close()

    def remember(self, admission: int, plan: Plan) -> None:
        """No instance may work by a plan that its manager could forget."""
        ports = self._ports[Lane.DATA], self._ports[Lane.CONTROL]
        known = Remembered(self.holder, admission, *ports, plan.SerializeToString())
        path = self.place.folder / "manager.plan"
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(msgspec.msgpack.encode(known))
        temporary.replace(path)
        log.info("plan received", epoch=plan.epoch, admission=admission, life=self.life)

    def _recall(self) -> Remembered | None:
        try:
            known = msgspec.msgpack.decode((self.place.folder / "manager.plan").read_bytes(), type=Remembered)
        except (OSError, ValueError):
            return None
        return known if known.holder == self.holder else None

    # --- the end ----------------------------------------------------------------------------------------------

    def _stop(self, code: ExitCode) -> None:
        self.exit_code = code
        self.poller.wake()

    def _close(self) -> None:
        for bound in (*self._instances.values(), *self._peers_in.values()):
            bound.close()
        for dialled in (*self._peers_out.values(), self._metrics):
            dialled.close()
        if self.exit_code is not ExitCode.OK:
            self.shell.registrar.leave()  # with a topology that is over the master ends too, and would be waited for
        self.shell.registrar.close()
        if self._door is not None:
            self._door.close()
        self._context.destroy(linger=1000)
