"""The sockets of one stream manager: instances and other managers call in, it calls other managers and the master."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from ardea.errors import ClusterError
from ardea.plan.names import MASTER_CONTAINER
from ardea.protocol.addresses import tcp_address
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import Plan
from ardea.stream_manager.container_setup import ContainerSetup
from ardea.transport import (
    FEW,
    LINGER_MS,
    MANY_SOCKETS,
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
MOST_TO_MASTER = 1024
"""Messages that wait for a master that is away: hellos, five a second.  What has a number comes again."""
MOST_TO_MANAGER = 1 << 13
"""The same for another manager: a hello a second, and the megabyte that may be unconfirmed."""


class ToMaster(Dialled):
    """A connection to a master, watched while it is open."""

    def __init__(self, ctx: Any, poller: Poller, identity: bytes, keys: Keyring | None, address: str) -> None:
        super().__init__(ctx, identity, address, keys, holder(MASTER_CONTAINER), MOST_TO_MASTER)
        self._poller = poller
        poller.watch(self)

    def close(self, linger_ms: int = LINGER_MS) -> None:
        """Watches it no longer, and closes it."""
        self._poller.forget(self)
        super().close(linger_ms)


class Sockets:
    """Opened when they are made; ``poller`` watches all at which something comes in."""

    def __init__(self, setup: ContainerSetup, public: Mapping[str, str], ports: Mapping[Lane, int]) -> None:
        """``public``: the keys of all containers.  ``ports``: for other managers, as a former life had them."""
        self.poller = Poller()
        self.callers = Callers()
        self._container = setup.container
        self._context = ctx = context(MANY_SOCKETS)
        self._name = caller("m", setup.container)
        self._instances = {Lane.CONTROL: Bound(ctx), Lane.DATA: Bound(ctx)}
        self._instances[Lane.CONTROL].bind(setup.control)
        self._instances[Lane.DATA].bind(setup.data)
        self._keys = Keyring.read(setup.keys, public)
        self._door = Door(ctx, self._keys) if self._keys is not None else None
        if self._door is not None:
            self.poller.keep(self._door)
        self._peers_in = {Lane.CONTROL: Bound(ctx, self._door), Lane.DATA: Bound(ctx, self._door)}
        self.ports = {lane: _listen(bound, setup.host, ports.get(lane, 0)) for lane, bound in self._peers_in.items()}
        self._peers_out: dict[tuple[int, Lane], Dialled] = {}
        for endpoint in self._bound:
            self.poller.watch(endpoint)

    @property
    def _bound(self) -> tuple[Bound, ...]:
        return *self._instances.values(), *self._peers_in.values()

    @property
    def taken(self) -> int:
        """Messages that have come in, of instances and of other managers."""
        return sum(bound.statistics.received for bound in self._bound)

    @property
    def malformed(self) -> int:
        """What came in there and was no message."""
        return sum(bound.statistics.malformed for bound in self._bound)

    # --- in ---------------------------------------------------------------------------------------------------

    def receive(self, ready: set[Bound | Dialled], now: float, take: Callable[..., None]) -> None:
        """Hands what waits at those that are ready to ``take``, see :meth:`Shell.received`: control before data."""
        for lane in (Lane.CONTROL, Lane.DATA):
            for endpoint, peers in ((self._instances[lane], False), (self._peers_in[lane], True)):
                if endpoint in ready:
                    for source, frames in endpoint.receive(MESSAGES_A_ROUND):
                        take(peer_number(source), source, lane, frames, now, peers=peers)

    # --- out --------------------------------------------------------------------------------------------------

    def dial_metrics(self, address: str) -> Dialled:
        """To the metrics manager of this container."""
        return Dialled(self._context, self._name, address, most=FEW)

    def dial_master(self, address: str) -> ToMaster:
        """To a master."""
        return ToMaster(self._context, self.poller, self._name, self._keys, address)

    def reach(self, plan: Plan) -> None:
        """Lets in, and dials, the managers that are new."""
        if self._keys is not None:
            self._keys.learn(plan.keys)
        for address in plan.addresses:
            for lane, port in ((Lane.DATA, address.data_port), (Lane.CONTROL, address.control_port)):
                key, where = (address.container, lane), tcp_address(address.host, port)
                known = self._peers_out.get(key)
                if address.container != self._container and (known is None or known.address != where):
                    if known is not None:
                        known.close()
                    peer, most = holder(address.container), MOST_TO_MANAGER if lane is Lane.CONTROL else 0
                    self._peers_out[key] = Dialled(self._context, self._name, where, self._keys, peer, most)

    def leave(self, others: Container[int]) -> None:
        """Hangs up on the managers of all containers but these."""
        for key in [key for key in self._peers_out if key[0] not in others]:
            self._peers_out.pop(key).close()

    def to_instance(self, link: Link, lane: Lane, message: Message) -> None:
        """Where it called from."""
        self._instances[lane].send(self.callers.name(link.key, link.peer), message)

    def to_manager(self, link: Link, lane: Lane, message: Message) -> None:
        """One that has been reached."""
        self._peers_out[link.key, lane].send(message)

    # --- the end ----------------------------------------------------------------------------------------------

    def close(self) -> None:
        """What waits in those to managers and instances is sent for up to a second."""
        for bound in self._bound:
            bound.close()
        for dialled in self._peers_out.values():
            dialled.close()

    def destroy(self) -> None:
        """The last, when nobody who dialled has a socket any more."""
        if self._door is not None:
            self._door.close()
        self._context.destroy(linger=LINGER_MS)


def _listen(bound: Bound, host: str, port: int) -> int:
    """Another process may have taken the port since the last life ended; of a free one the master tells the others."""
    try:
        return bound.bind(tcp_address(host, port))
    except ClusterError:
        if not port:
            raise
        return bound.bind(tcp_address(host, 0))
