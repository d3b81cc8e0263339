"""A manager between two plans: batches of another epoch wait, arrive, or are lost and paid back."""

from __future__ import annotations

import numpy as np
import pytest

from ardea import Topology
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of, shape_to_bytes
from ardea.plan.wire import packing_from_bytes, packing_to_bytes, packing_to_message
from ardea.protocol.ids import make_roots
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import HELLO, ONE, ROWS, Address, Header, Hello, Plan
from ardea.scheduler.next_definition import wanted
from ardea.scheduler.packing import packing_for
from ardea.stream_manager.known_plan import KnownPlan
from ardea.stream_manager.manager import StreamManager
from ardea.testing import CollectBolt, RowsSpout
from ardea.versions import PROTOCOL


class Pair(Topology):
    """Container 1 holds the spout and a task of each bolt."""

    rows = RowsSpout.of(["n"], []).spec()
    keep = CollectBolt.spec(inputs=[rows], par=2)
    scaled = CollectBolt.spec(inputs=[rows], par=2)


LOGICAL = Pair.plan({"topology.stmgrs": 2})


def definitions():
    packing = packing_for(LOGICAL.config).pack(LOGICAL)
    first = Definition(
        topology="pair-1", state="", location="p", config={}, shape=shape_of(LOGICAL), packing=packing_to_bytes(packing)
    )
    second = wanted(first, LOGICAL, parallelism={"scaled": 3}, location="p", config={}, rebuilt=False)
    return first, second


class Manager:
    """The manager of container 1, and the other ends of its links."""

    def __init__(self):
        self.sent = []
        self.manager = StreamManager(1, 1 << 32 | 1, "pair-1", self._sent, lambda report: None)
        self.first, self.second = definitions()
        self.plans(self.first)
        self.ends = {}
        places = packing_from_bytes(self.first.packing)
        self.local = {i.component: i.task for c in places.containers if c.number == 1 for i in c.instances}
        for task in self.local.values():
            self.meets(
                self.manager.members.instances[task],
                1,
                Hello(protocol=PROTOCOL, topology="pair-1", task=task, epoch=1, build=1),
            )
        peer = Hello(
            protocol=PROTOCOL, topology="pair-1", digest=self.first.shape.digest, container=2, epoch=1, build=1
        )
        self.meets(self.manager.members.peers[2], 1 << 32 | 1, peer)
        self.sent.clear()

    def _sent(self, link, lane, message):
        header, *frames = message
        self.sent.append((link.key, Header.FromString(header), frames))

    def plans(self, definition):
        message = Plan(epoch=definition.epoch, build=definition.build)
        message.packing = packing_to_message(definition.packing)
        message.shape = shape_to_bytes(definition.shape)
        message.addresses.extend(Address(container=n, host="h") for n in (1, 2))
        self.manager.planned(KnownPlan.of(message))

    def meets(self, link, life, hello):
        """The other end says hello, and knows the manager."""

        def arrived(_link, lane, message):
            header, *frames = message
            self.manager.received(link, lane, Header.FromString(header), frames, 0.0)

        end = self.ends[link] = Link(0, "other end", life, arrived)
        end.meet(self.manager.members.me)
        end.signal(Header(kind=HELLO), [hello.SerializeToString()])

    def batch(self, component, epoch):
        """From the manager of container 2, for a local task."""
        task = self.local[component]
        ids = [np.asarray(make_roots(self.local["rows"], np.array([0]), np.array([1]))), np.array([7], np.uint64)]
        header = Header(kind=ROWS, source=99, target=task, rows=1, ids=ONE, epoch=epoch, container=2)
        header.container_life, header.target_life = 1 << 32 | 1, self.manager.members.lives[task]
        frames = [b"row", *(column.tobytes() for column in ids)]
        self.ends[self.manager.members.peers[2]].send(Lane.DATA, header, frames, 19)

    def delivered(self, component):
        rows = [h for key, h, _ in self.sent if key == self.local[component] and h.kind == ROWS]
        return [header.void for header in rows]


@pytest.fixture
def manager():
    return Manager()


def test_whoever_is_behind_holds_a_batch_until_the_plan_comes(manager):
    manager.batch("keep", epoch=2)
    assert manager.delivered("keep") == []
    manager.plans(manager.second)
    assert manager.delivered("keep") == [False]


def test_whoever_is_ahead_delivers_what_has_not_changed(manager):
    manager.plans(manager.second)
    manager.batch("keep", epoch=1)
    assert manager.delivered("keep") == [False]


def test_whoever_is_ahead_loses_what_has_changed(manager):
    """The roots are lost; the task counts the batch for its credit, and nothing more."""
    rows = manager.local["rows"]
    ledger = manager.manager.verdicts.ledgers()[rows]
    root = make_roots(rows, np.array([0]), np.array([1]))
    ledger.init(root, np.array([7], np.uint64), 0.0)
    manager.plans(manager.second)
    manager.batch("scaled", epoch=1)
    assert manager.delivered("scaled") == [True]
    assert ledger.statistics().lost == 1


def test_an_earlier_plan_says_nothing(manager):
    manager.plans(manager.second)
    manager.plans(manager.first)
    assert manager.manager.members.plan.epoch == 2


def test_a_former_life_of_an_instance_is_not_answered(manager):
    """It would ask again; and the present life would get all that a newcomer is told."""
    task = manager.local["keep"]
    link = manager.manager.members.instances[task]
    manager.meets(link, 2, Hello(protocol=PROTOCOL, topology="pair-1", task=task, epoch=1, build=1))
    manager.sent.clear()
    manager.meets(link, 1, Hello(protocol=PROTOCOL, topology="pair-1", task=task, epoch=1, build=1))
    assert (manager.sent, link.peer) == ([], 2)


def test_an_instance_of_another_build_is_not_talked_to(manager):
    link = manager.manager.members.instances[manager.local["keep"]]
    before = link.peer
    manager.meets(link, 2, Hello(protocol=PROTOCOL, topology="pair-1", task=link.key, epoch=2, build=2))
    assert link.peer == before


def test_who_leaves_takes_its_channel_with_it(manager):
    """What waited there is lost, and pays the credit back."""
    back = wanted(manager.second, LOGICAL, parallelism={"scaled": 1}, location="p", config={}, rebuilt=False)
    manager.plans(manager.second)
    known = set(manager.manager.rows.channels)
    manager.plans(back)
    assert len(known) == 6
    assert set(manager.manager.rows.channels) == set(manager.manager.members.plan.tasks)
    assert set(manager.manager.members.instances) == {t.task for t in manager.manager.members.plan.tasks_in(1)}
