"""Stream managers of one plan, and the messages between them; their tasks say only what a test makes them say."""

from __future__ import annotations

from collections import deque

from ardea import Grouping, Topology
from ardea.plan.physical import PhysicalPlan
from ardea.plan.shape import shape_of, shape_to_bytes
from ardea.plan.wire import packing_to_bytes, packing_to_message
from ardea.protocol.incarnations import incarnation
from ardea.protocol.lane import Lane
from ardea.protocol.wire_pb2 import CREDITS, HELLO, MSGPACK, ROWS, UNTRACKED, Address, Credit, Header, Hello, Plan
from ardea.scheduler.packing import packing_for
from ardea.stream_manager.known_plan import KnownPlan
from ardea.stream_manager.manager import StreamManager
from ardea.stream_manager.members import SOON
from ardea.testing import CollectBolt, RowsSpout
from ardea.versions import PROTOCOL


def topology(containers, bolts=3):
    """In each container a spout and some bolts that read it by a field."""
    rows = RowsSpout.of(["n"], []).spec(par=containers, name="rows")
    keep = CollectBolt.spec(inputs={rows: Grouping.fields("n")}, par=bolts * containers, name="keep")
    return type("Many", (Topology,), {"rows": rows, "keep": keep})


class Mesh:
    """``said``: what has left since it was cleared, as (sender, manager or task that it is for, header, frames)."""

    def __init__(self, containers, bolts=3):
        logical = topology(containers, bolts).plan({"topology.stmgrs": containers})
        packing = packing_for(logical.config).pack(logical)
        numbers = range(1, containers + 1)
        self.now, self.mail, self.said = 0.0, deque(), []
        self.loses = lambda _kind: False
        self.sequences = {}  # task -> lane -> what it has sent
        self.managers = {n: self.manager(n, 1) for n in numbers}
        plan = Plan(epoch=1, build=1, shape=shape_to_bytes(shape_of(logical)))
        plan.packing = packing_to_message(packing_to_bytes(packing))
        plan.addresses.extend(Address(container=n, host="h", incarnation=incarnation(1, 1)) for n in numbers)
        self.sent, self.plan = plan, PhysicalPlan.of(logical, packing, 1)
        for manager in self.managers.values():
            manager.planned(KnownPlan.of(plan))
        for _ in range(2):
            self.second()
        assert all(link.up for manager in self.managers.values() for link in manager.members.peers.values())

    def manager(self, number, life):
        return StreamManager(number, incarnation(1, life), "many-1", self.port(number), lambda _: None)

    def reborn(self, number):
        """A manager is killed; its second life has the plan, and its hellos are on their way."""
        self.managers[number] = self.manager(number, 2)
        self.managers[number].planned(KnownPlan.of(self.sent))

    def port(self, sender):
        def transmit(link, lane, message):
            header, *frames = message
            parsed = Header.FromString(header)
            peer = self.managers[sender].members.peers.get(link.key) is link
            self.said.append((sender, f"manager {link.key}" if peer else f"task {link.key}", parsed, frames))
            if peer and not self.loses(parsed.kind):
                self.mail.append((sender, link.key, lane, message))

        return transmit

    def heard(self, kind, receiver):
        """What has been said of that kind to a manager or task."""
        return [(header, frames) for _, to, header, frames in self.said if header.kind == kind and to == receiver]

    # --- time -------------------------------------------------------------------------------------------------

    def second(self):
        self.now += 1.0
        for manager in self.managers.values():
            manager.tick(self.now)
        self.deliver()

    def deliver(self):
        while self.mail:
            self.pass_on(*self.mail.popleft())

    def pass_on(self, sender, target, lane, message):
        header, *frames = message
        manager = self.managers[target]
        manager.received(manager.members.peers[sender], lane, Header.FromString(header), frames, self.now)
        manager.flush(self.now)

    # --- tasks ------------------------------------------------------------------------------------------------

    def tasks(self, container, component):
        return [task.task for task in self.plan.tasks_in(container) if task.component == component]

    def from_task(self, task, header, frames=(), lane=Lane.CONTROL):
        """A message of a local task, which is not flushed yet."""
        manager = self.managers[self.plan.tasks[task].container]
        link = manager.members.instances[task]
        header.sender, header.receiver = header.sender or self.sequences[task]["life"], manager.members.me
        if header.kind != HELLO:
            self.sequences[task][lane] += 1
            header.sequence = self.sequences[task][lane]
        manager.received(link, lane, header, list(frames), self.now)

    def begins(self, *tasks, life=1):
        """Tasks say hello; managers hear it in one round."""
        for task in tasks:
            self.sequences[task] = {"life": life, Lane.CONTROL: 0, Lane.DATA: 0}
            hello = Hello(protocol=PROTOCOL, topology="many-1", task=task, epoch=1, build=1)
            self.from_task(task, Header(kind=HELLO, sender=life), [hello.SerializeToString()])
        self.flush()

    def emits(self, source, target, rows, size=8):
        header = Header(kind=ROWS, source=source, target=target, rows=rows, codec=MSGPACK, ids=UNTRACKED, epoch=1)
        self.from_task(source, header, [bytes(size)], Lane.DATA)

    def consumes(self, task, container, rows, **measures):
        """The task says that it has taken so many rows of that manager's, in all."""
        life = self.managers[container].members.me
        known = {"window_rows": 16, "window_bytes": 4096, "high_rows": 16, "pace": 16, **measures}
        credit = Credit(
            task=task, task_life=1, container=container, container_life=life, rows=rows, bytes=rows, **known
        )
        self.from_task(task, Header(kind=CREDITS, credits=[credit]))

    def soon(self):
        """So late that tasks have heard of incarnations."""
        self.now += SOON
        self.flush()

    def flush(self):
        for manager in self.managers.values():
            manager.flush(self.now)
        self.deliver()
