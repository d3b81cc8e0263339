"""The sockets of one topology master: one for managers and callers, one to the metrics manager of its container."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ardea.metrics import frames_of
from ardea.protocol.addresses import tcp_address
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import Answer, Header, Refusal
from ardea.transport import FEW, LINGER_MS, Bound, Callers, Dialled, Door, Keyring, Poller, caller, context

MESSAGES_A_ROUND = 256


class Sockets:
    """Open from the start: a process that stands by knows its port."""

    def __init__(self, host: str, metrics: str, public: Mapping[str, str], keys: Path | None) -> None:
        """``public``: the keys of all containers; ``keys``: the folder with the secret one of this."""
        self.poller = Poller()
        self.malformed = 0  # messages that were one, and could not be read
        self._context = context()
        self._keys = Keyring.read(keys, public)
        self._door = Door(self._context, self._keys, callers=True) if self._keys is not None else None
        if self._door is not None:
            self.poller.keep(self._door)
        self._bound = Bound(self._context, self._door)
        self._callers = Callers()
        self.host, self.port = host, self._bound.bind(tcp_address(host, 0))
        self.poller.watch(self._bound)
        self._metrics = Dialled(self._context, caller("m", 0), metrics, most=FEW)

    @property
    def dropped(self) -> int:
        """Messages that came in and were none, or could not be read."""
        return self._bound.statistics.malformed + self.malformed

    def receive(self) -> Iterator[tuple[bytes, list[bytes]]]:
        """What waits, as (identity, frames)."""
        return self._bound.receive(MESSAGES_A_ROUND)

    def learn(self, public: Mapping[str, str]) -> None:
        """An update may have brought containers."""
        if self._keys is not None:
            self._keys.learn(public)

    def hears(self, number: int, incarnation: int, identity: bytes) -> None:
        """A manager has called: it is answered there."""
        self._callers.hears(number, incarnation, identity)

    def transmit(self, link: Link, _lane: Lane, message: Message) -> None:
        """To a manager."""
        self._bound.send(self._callers.name(link.key, link.peer), message)

    def answer(self, identity: bytes, header: Header, body: Answer | Refusal) -> None:
        """To whoever has just called."""
        self._bound.send(identity, [header.SerializeToString(), body.SerializeToString()])

    def tell_metrics(self, snapshot: bytes, *, last: bool = False) -> None:
        """To the metrics manager."""
        self._metrics.send(frames_of(snapshot, last=last))

    def close(self) -> None:
        """What waits is sent for up to a second."""
        self._bound.close()
        if self._door is not None:
            self._door.close()
        self._metrics.close()
        self._context.destroy(linger=LINGER_MS)
