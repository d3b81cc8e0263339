"""The sockets of an instance's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ardea.metrics import frames_of
from ardea.protocol.lane import Lane, Message
from ardea.transport import FEW, Dialled, Poller, caller, context

MESSAGES_A_ROUND = 64


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the container's other processes listen."""

    control: str
    data: str
    metrics: str


class Wires:
    """A lane of control and one of data to the stream manager, and one way to the metrics manager."""

    def __init__(self, task: int, addresses: Addresses) -> None:
        self._context = context()
        identity = caller("t", task)
        self._lanes = {
            Lane.CONTROL: Dialled(self._context, identity, addresses.control),
            Lane.DATA: Dialled(self._context, identity, addresses.data),
        }
        self._metrics = Dialled(self._context, identity, addresses.metrics, most=FEW)
        self._poller = Poller()
        for dialled in self._lanes.values():
            self._poller.watch(dialled)
        self.wake = self._poller.wake

    def wait(self, pause: float, has_work: Callable[[], bool]) -> set[Lane]:
        """Sleeps until a message comes, or there is work, or the pause is over; returns on which lanes one has come."""
        ready = self._poller.wait(pause, has_work)
        return {lane for lane, dialled in self._lanes.items() if dialled in ready}

    def receive(self, ready: set[Lane]) -> Iterator[tuple[Lane, Message]]:
        """What has come, control first."""
        for lane, dialled in self._lanes.items():
            for message in dialled.receive(MESSAGES_A_ROUND) if lane in ready else ():
                yield lane, message

    def send(self, lane: Lane, message: Message) -> None:
        """To the stream manager."""
        self._lanes[lane].send(message)

    def send_metrics(self, snapshot: bytes, *, last: bool) -> None:
        """To the metrics manager."""
        self._metrics.send(frames_of(snapshot, last=last))

    @property
    def malformed(self) -> int:
        """Messages that were dropped."""
        return sum(dialled.statistics.malformed for dialled in self._lanes.values())

    def close(self) -> None:
        """What was sent has a second to leave."""
        for dialled in (*self._lanes.values(), self._metrics):
            dialled.close()
        self._context.destroy(linger=1000)
