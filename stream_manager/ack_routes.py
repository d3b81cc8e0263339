"""Where acks, failures and losses go: to the ledger of a local spout, or to the manager of the spout's container."""

from __future__ import annotations

from collections.abc import Sequence

from ardea.protocol.ids import U64, by_task, column, distinct
from ardea.protocol.wire_pb2 import ROWS, Header
from ardea.stream_manager.members import Members
from ardea.stream_manager.settings import ManagerStatistics
from ardea.stream_manager.verdicts import FAILED, LOST, Verdicts


class AckRoutes:
    """Those of one manager; they follow its plan."""

    def __init__(self, members: Members, verdicts: Verdicts, statistics: ManagerStatistics) -> None:
        self._members = members
        self._verdicts = verdicts
        self._statistics = statistics

    def acks(self, spout: int, frames: Sequence[bytes], now: float) -> None:
        """The frames of an ACKS message."""
        members = self._members
        if spout in members.instances:
            self._verdicts.acks(spout, frames, now)
        elif spout in members.plan.tasks:
            peer = members.peers.get(members.plan.tasks[spout].container)
            if peer is not None:
                members.outboxes[peer].acks(spout, frames, now)

    def failed(self, roots: U64, now: float) -> None:
        """Trees that a task died on."""
        self._report(FAILED, roots, now)

    def dropped(self, header: Header, frames: Sequence[bytes], now: float) -> None:
        """A batch that cannot go on: its trees are lost."""
        self._statistics.dropped_stale += header.rows
        if header.ids:
            self._report(LOST, column(frames[-2]), now)

    def undelivered(self, messages: Sequence[Sequence[bytes]], now: float) -> None:
        """Data that was never confirmed, and never will be."""
        for message in messages:
            header = Header.FromString(message[0])
            if header.kind == ROWS:
                self.dropped(header, message[1:], now)

    def _report(self, verdict: int, roots: U64, now: float) -> None:
        roots = distinct(roots)
        for spout, part in by_task(roots):
            columns = [b""] * 5
            columns[2 if verdict == FAILED else 3] = roots[part].tobytes()
            self.acks(spout, columns, now)
