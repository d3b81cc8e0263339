"""What a master tells the managers of all containers: the plan, and the orders that still hold."""

from __future__ import annotations

from collections.abc import Sequence

from ardea.plan.physical import TaskPlan
from ardea.protocol.lane import Lane
from ardea.protocol.wire_pb2 import (
    ACTIVATE,
    DEACTIVATE,
    DEBUG,
    DRAIN,
    HOLD,
    LEAVE,
    ORDER,
    RESUME,
    SNAPSHOTS,
    Header,
    Inspect,
    Order,
    OrderKind,
    SnapshotOrder,
)
from ardea.topology_master.admissions import Admissions, Container
from ardea.topology_master.inspections import Inspections
from ardea.topology_master.plans import Plans
from ardea.topology_master.stories import TOPOLOGY, Stories


class Orders:
    """Those of one term; ``active``: whether spouts may emit."""

    def __init__(self, admissions: Admissions, stories: Stories, term: int, *, active: bool) -> None:
        self.active = active
        self._admissions = admissions
        self._stories = stories
        self._term = term
        self._orders: dict[int, Order] = {}
        self._version = 0
        self._plans = Plans(admissions, term)
        self.inspections = Inspections(self)

    def give(
        self,
        kind: OrderKind,
        *,
        target: str = "",
        seconds: int = 0,
        components: Sequence[str] = (),
        leaving: Sequence[int] = (),
        settle: bool = False,
    ) -> None:
        """To all that have registered, and to those that register later; in place of the last of its kind."""
        self._version += 1
        self._stories.tell(TOPOLOGY, " ".join(filter(None, ("ordered", OrderKind.Name(kind), target, *components))))
        order = self._orders[kind] = Order(
            kind=kind,
            term=self._term,
            version=self._version,
            target=target,
            seconds=seconds,
            components=components,
            leaving=leaving,
            settle=settle,
        )
        for container in self._admissions.registered:
            _send(container, order)

    def snapshots(self, order: SnapshotOrder) -> None:
        """Of the coordinator; in place of its last one."""
        self._version += 1
        said = self._orders[SNAPSHOTS] = Order(kind=SNAPSHOTS, term=self._term, version=self._version, snapshots=order)
        for container in self._admissions.registered:
            _send(container, said)

    def inspect(self, task: TaskPlan, inspect: Inspect) -> None:
        """To one task, in the life that it has now."""
        self._version += 1
        self._stories.tell(task.name, f"is asked for {inspect.what}")
        order = Order(kind=DEBUG, term=self._term, version=self._version, target=task.name, inspect=inspect)
        for container in self._admissions.registered:
            if container.link.key == task.container:
                _send(container, order)

    def debug(self, target: str, seconds: int) -> None:
        """Tasks that are there log a sample of what they emit.  It is not kept: a later life would log anew."""
        self.give(DEBUG, target=target, seconds=seconds)
        del self._orders[DEBUG]

    def set_active(self, *, active: bool) -> None:
        """Spouts emit from now on, or do no more."""
        self.active = active
        self._orders.pop(DEACTIVATE if active else ACTIVATE, None)
        self.give(ACTIVATE if active else DEACTIVATE)

    def drain(self) -> None:
        """Once."""
        if DRAIN not in self._orders:
            self.give(DRAIN)

    def hold(self, spouts: Sequence[str], leaving: Sequence[int], *, settle: bool) -> int:
        """Spouts of these components rest; returns what they report of the order when they obey it."""
        self._orders.pop(RESUME, None)
        self.give(HOLD, components=spouts, leaving=leaving, settle=settle)
        return self._term << 32 | self._version

    def resume(self) -> None:
        """All spouts go on."""
        self._orders.pop(HOLD, None)
        self.give(RESUME)

    def leave(self, containers: Sequence[int]) -> None:
        """Tells these containers, which have asked, that they may end; the plan may not have them any more.

        The order is not kept: a manager asks each new master anew.
        """
        self._version += 1
        self._stories.tell(TOPOLOGY, "ordered LEAVE")
        order = Order(kind=LEAVE, term=self._term, version=self._version, containers=containers)
        for number in containers:
            _send(self._admissions.containers[number], order)

    def send_plan(self, containers: Sequence[Container]) -> None:
        """The plan in force, or what has changed in it, and whatever was ordered."""
        self._plans.send(containers, active=self.active)
        self.repeat(containers)

    def repeat(self, containers: Sequence[Container]) -> None:
        """Whatever was ordered."""
        for container in containers:
            for order in self._orders.values():
                _send(container, order)


def _send(container: Container, order: Order) -> None:
    body = order.SerializeToString()
    container.link.send(Lane.CONTROL, Header(kind=ORDER), [body], len(body))
