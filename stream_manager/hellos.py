"""What a stream manager says when it meets somebody: who it is, the plan, what the master ordered."""

from __future__ import annotations

from collections.abc import Mapping

from ardea.plan.shape import Shape
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import (
    ACTIVATE,
    DEACTIVATE,
    DEBUG,
    HELLO,
    HOLD,
    ORDER,
    PLAN,
    REFUSED,
    RESUME,
    SNAPSHOTS,
    Header,
    Hello,
    Order,
    Plan,
    Refusal,
)
from ardea.stream_manager.acks import ControlOutbox
from ardea.versions import PROTOCOL, protocol_differs

OPPOSITES: Mapping[int, int] = {ACTIVATE: DEACTIVATE, DEACTIVATE: ACTIVATE, HOLD: RESUME, RESUME: HOLD}


def pass_on(outbox: ControlOutbox, order: Order) -> None:
    """To a task.  One that contradicts it and has not left yet never does: it could arrive behind this one."""
    key = ("inspect", order.inspect.id) if order.HasField("inspect") else ("order", order.kind)
    outbox.withdraw(("order", OPPOSITES.get(order.kind)))
    outbox.newest(key, Header(kind=ORDER), [order.SerializeToString()])


class Hellos:
    """Knows the topology, the newest plan message, and the orders that still hold."""

    def __init__(self, topology: str, container: int) -> None:
        self.topology = topology
        self.digest = ""
        self.plan: Plan | None = None
        self.orders: dict[int, Order] = {}
        self._digests: dict[str, str] = {}
        self._container = container
        self._term = 0

    def adopt(self, plan: Plan, shape: Shape) -> None:
        """What every hello says from now on."""
        self.plan, self.digest, self._digests = plan, shape.digest, shape.digests

    @property
    def epoch(self) -> int:
        """Of the present plan; 0 before the first."""
        return 0 if self.plan is None else self.plan.epoch

    @property
    def build(self) -> int:
        """The epoch that brought the present code and configuration; 0 before the first plan."""
        return 0 if self.plan is None else self.plan.build

    def ordered(self, order: Order) -> bool:
        """Keeps an order for whoever comes later; False: it is of a master whose term is over.

        Those about snapshots are kept by :class:`ardea.stream_manager.timelines.Timelines`, and what a task is to log,
        or to find of itself, is for the life that is there now.
        """
        if order.term < self._term:
            return False
        self._term = order.term
        if order.kind in (SNAPSHOTS, DEBUG):
            return True
        self.orders.pop(OPPOSITES.get(order.kind, order.kind), None)
        self.orders[order.kind] = order
        if self.plan is not None and order.kind in (ACTIVATE, DEACTIVATE):
            self.plan.active = order.kind == ACTIVATE
        return True

    def to_manager(self, link: Link, tasks: Mapping[int, int]) -> None:
        """``tasks``: the local tasks' incarnations."""
        hello = self._hello()
        hello.container = self._container
        hello.tasks.update(tasks)
        link.signal(Header(kind=HELLO), [hello.SerializeToString()])

    def to_instance(self, link: Link) -> None:
        """With what the instance needs to see whether its own topology is this one."""
        hello = self._hello()
        hello.digests.update(self._digests)
        link.signal(Header(kind=HELLO), [hello.SerializeToString()])

    def inform(self, outbox: ControlOutbox, lives: Mapping[int, int]) -> None:
        """An instance hears the orders that hold, and the plan; ``lives``: all incarnations known."""
        if self.plan is None:
            return
        plan = Plan()
        plan.CopyFrom(self.plan)
        for name in ("shape", "addresses", "keys", "tasks"):
            plan.ClearField(name)
        plan.tasks.update(lives)
        # Orders first: a spout that is told the plan begins to emit, and after the end it must not.
        for order in self.orders.values():
            pass_on(outbox, order)
        outbox.newest("plan", Header(kind=PLAN), [plan.SerializeToString()])

    def refuses_version(self, link: Link, caller: int, hello: Hello) -> bool:
        """Whether an instance or a manager, in the life ``caller``, speaks another protocol; then it is told."""
        why = protocol_differs(f"the stream manager of container {self._container}", link.name, hello.protocol)
        if why:
            link.refuse(caller, Refusal(code="OTHER_VERSION", message=why, definite=True))
        return bool(why)

    def refuses(self, link: Link, hello: Hello) -> bool:
        """Whether the peer belongs to another topology, or another version of it; then it is told."""
        ours = hello.topology == self.topology
        if ours and (hello.digest == self.digest or hello.epoch != self.epoch):  # one of the two is behind
            return False
        refusal = Refusal(
            code="WRONG_TOPOLOGY",
            message=f"this manager is of {self.topology}, plan {self.digest}; not of {hello.topology}, {hello.digest}",
            definite=True,
        )
        link.signal(Header(kind=REFUSED), [refusal.SerializeToString()])
        return True

    def _hello(self) -> Hello:
        return Hello(protocol=PROTOCOL, topology=self.topology, digest=self.digest, epoch=self.epoch, build=self.build)
