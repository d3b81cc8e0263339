"""What must hold after every event of a simulated cluster; whoever breaks it stops the run, with the story so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ardea.heron_instance.gateway import Gateway
from ardea.heron_instance.inlet import InputBatch
from ardea.heron_instance.outlet import OutMessage
from ardea.protocol.flow import Channel
from ardea.protocol.ids import column
from ardea.protocol.lane import Lane
from ardea.protocol.link import CONTROL_ROOM, Link
from ardea.protocol.wire_pb2 import ROWS, VERDICTS, Header
from ardea.stream_manager.state import StreamManager
from ardea.tuples import Tuple

COUNTED = 100
"""A longer queue is not counted after every event."""


class InvariantError(AssertionError):
    """The engine did what it must not do.  Run the same seed again: it happens again."""


@dataclass(slots=True)
class Audit:
    """The true state of every tuple tree, seen from outside, and the bounds of every queue."""

    _missing: dict[int, set[int]] = field(default_factory=dict)  # root -> edges of rows that nobody has processed
    _largest: int = 0

    # --- trees ------------------------------------------------------------------------------------------------

    def opened(self, roots: Sequence[int]) -> None:
        """A spout begins trees."""
        for root in roots:
            self._missing[root] = set()

    def sent(self, message: OutMessage) -> None:
        """An executor lets rows go."""
        self._largest = max(self._largest, message.size)
        if message.header.kind == ROWS and message.header.ids:
            roots, edges = column(message.frames[-2]).tolist(), column(message.frames[-1]).tolist()
            for root, edge in zip(roots, edges, strict=True):
                if root in self._missing:
                    self._missing[root].add(edge)

    def processed(self, tup: Tuple) -> None:
        """A bolt's ``process`` is called."""
        batch, index = tup._batch, tup._index
        if not isinstance(batch, InputBatch) or not batch.tracked:
            return
        start, count = index, 1
        if batch.starts is not None and batch.counts is not None:
            start, count = int(batch.starts[index]), int(batch.counts[index])
        for place in range(start, start + count):
            missing = self._missing.get(int(batch.roots[place]))
            if missing is not None:
                missing.discard(int(batch.edges[place]))

    def judged(self, who: str, root: int, tup_id: Any, *, acked: bool) -> None:
        """A spout hears the verdict on a tree of its own: the only one, and no false completion."""
        missing = self._missing.pop(root, None)
        if missing is None:
            raise InvariantError(f"{who} got a second verdict on the tree of {tup_id!r} (root {root:#x})")
        if acked and missing:
            raise InvariantError(
                f"{who} heard that the tree of {tup_id!r} (root {root:#x}) is complete, yet {len(missing)} of its rows"
                " were never processed"
            )

    # --- queues -----------------------------------------------------------------------------------------------

    def gateway(self, who: str, gateway: Gateway) -> None:
        """After a round of an instance's gateway."""
        self._channel(who, "out", gateway.channel)
        self._link(who, gateway.link)

    def instance(self, who: str, held: int, limit: int, burst: int) -> None:
        """After a turn of an executor: output never outgrows its limit by more than one burst of emits."""
        if held > limit + burst:
            raise InvariantError(f"{who} holds {held:,} bytes; the limit is {limit:,}, and the largest burst {burst:,}")

    def inbox(self, who: str, size: int, capacity: int, senders: int) -> None:
        """After a message for an executor: credit bounds what waits, one batch a sender apart."""
        if size > capacity + senders * self._largest:
            raise InvariantError(
                f"{size:,} bytes wait in the input queue of {who}; {senders} senders share {capacity:,}, and the"
                f" largest batch has {self._largest:,}"
            )

    def manager(self, who: str, manager: StreamManager) -> None:
        """After a round of a stream manager."""
        held = 0
        for task, channel in manager.channels.items():
            self._channel(who, task, channel)
            held += channel.held_bytes
        room = sum(source.window.limit_bytes + 2 * self._largest for source in manager.sources.values())
        if held > room:
            raise InvariantError(f"{who} holds {held:,} bytes of its instances' output; their credit is {room:,}")
        for link in (*manager.instances.values(), *manager.peers.values()):
            self._link(who, link)

    @staticmethod
    def _channel(who: str, to: int | str, channel: Channel[Any]) -> None:
        if channel.consumed_rows > channel.sent_rows or channel.consumed_bytes > channel.sent_bytes:
            raise InvariantError(f"{who}, channel {to}: more was consumed than sent: {channel}")
        if len(channel.held) > COUNTED:
            return
        rows = size = 0
        for held in channel.held:
            rows, size = rows + held[1], size + held[2]
        if (rows, size) != (channel.held_rows, channel.held_bytes):
            raise InvariantError(
                f"{who}, channel {to}, holds {rows} rows of {size} bytes and counts otherwise: {channel}"
            )

    @staticmethod
    def _link(who: str, link: Link) -> None:
        lane = link.lanes[Lane.CONTROL]
        if lane.unconfirmed_bytes <= CONTROL_ROOM:
            return
        # Verdicts do not wait for room: there is at most one a slot.
        sizes = [size for _, message, size in lane.unconfirmed if Header.FromString(message[0]).kind != VERDICTS]
        if sum(sizes) > CONTROL_ROOM + max(sizes, default=0):
            raise InvariantError(f"{who} has {sum(sizes):,} unconfirmed control bytes to {link.describe()}")
