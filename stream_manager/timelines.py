"""The master's orders about snapshots, passed on to local tasks once nothing of the timeline can be lost here.

What a manager has sent to a former life, and what waits for it, it drops when it meets the next one.  So no task begins
to send in a timeline before its manager has met everybody in the life that takes part in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ardea.protocol.incarnations import life_of
from ardea.protocol.wire_pb2 import ORDER, Header, Order, SnapshotOrder
from ardea.stream_manager.members import Members


class Timelines:
    """Of one manager."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._order: Order | None = None
        self._told: dict[int, tuple[int, int, int]] = {}  # task -> its life, and the order that it was told last

    def ordered(self, order: Order) -> None:
        """The newest; it stands in place of all before it."""
        self._order = order
        self.pass_on()

    def pass_on(self) -> None:
        """To the tasks that have not heard it, if everybody has been met."""
        order, members = self._order, self._members
        if order is None:
            return
        now = {task: (link.peer, order.term, order.version) for task, link in members.instances.items() if link.peer}
        untold = [task for task, told in now.items() if self._told.get(task) != told]
        if not untold or not self._met(order.snapshots):
            return
        for task in untold:
            self._told[task] = now[task]
            body = own(order, task, members.lives.get(task, 0)).SerializeToString()
            members.outboxes[members.instances[task]].newest(("order", order.kind), Header(kind=ORDER), [body])

    def _met(self, order: SnapshotOrder) -> bool:
        members = self._members
        managers = {members.container: members.me, **{number: link.peer for number, link in members.peers.items()}}
        return _agree(order.managers, managers) and _agree(order.lives, members.lives)


def _agree(ordered: Mapping[int, int], known: Mapping[int, int]) -> bool:
    return all(known.get(who) == life for who, life in ordered.items())


def own(order: Order, task: int, life: int) -> Order:
    """Of all lives in a timeline, a task hears whether its own is one; it does not know by which admission it lives."""
    said = order.snapshots
    mine = Order(kind=order.kind, term=order.term, version=order.version)
    mine.snapshots.timeline, mine.snapshots.restore = said.timeline, said.restore
    mine.snapshots.begun, mine.snapshots.committed = said.begun, said.committed
    mine.snapshots.abandoned, mine.snapshots.final = said.abandoned, said.final
    mine.snapshots.blamed.extend(said.blamed)
    if said.lives.get(task) == life:
        mine.snapshots.lives[task] = life_of(life)
    return mine
