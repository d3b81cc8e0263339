"""A bolt with more at hand: its rows leave by the batch, acks wait a little for those of the next batches."""

from __future__ import annotations

import numpy as np
import pytest

from ardea import Bolt, Topology
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.flushing import AFTER
from ardea.heron_instance.instruments import Instruments
from ardea.heron_instance.queues import BoundedQueue
from ardea.metrics import Identity, Registry
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.flow import Window
from ardea.protocol.ids import column, make_roots
from ardea.protocol.values import RowCodec
from ardea.protocol.wire_pb2 import ACKS, ONE, ROWS, Header
from ardea.scheduler.packing import packing_for
from ardea.testing import CollectBolt, RowsSpout

BATCH = 8


class Doubles(Bolt):
    outputs = ("n",)

    def process(self, tup):
        self.emit((tup[0] * 2,))


class Line(Topology):
    numbers = RowsSpout.of(["n"], []).spec()
    doubled = Doubles.spec(inputs=[numbers])
    kept = CollectBolt.spec(inputs=[doubled])


class Output:
    """Keeps what leaves."""

    held, held_bytes = False, 0

    def __init__(self):
        self.messages = []

    def put(self, message):
        self.messages.append(message)

    def wait_room(self, below, timeout):
        return True

    def consumed(self, header, size):
        pass

    def left(self):
        """(rows, acked roots) of each message since the last call."""
        messages, self.messages = self.messages, []
        acks = [m for m in messages if m.header.kind == ACKS]
        return [m.header.rows for m in messages if m.header.kind == ROWS], [len(column(m.frames[0])) for m in acks]


class Bench:
    """The executor of ``doubled``, and a clock that stands still."""

    def __init__(self):
        logical = Line.plan({"topology.executor.batch.rows": BATCH})
        plan = PhysicalPlan.of(logical, packing_for(logical.config).pack(logical), 1)
        self.now = 1.0
        self.output = Output()
        self.spout, task = plan.component_tasks["numbers"][0], plan.tasks[plan.component_tasks["doubled"][0]]
        self.codec = RowCodec()
        env = Environment(
            plan=plan,
            task=task,
            life=1,
            component=Doubles(),
            settings=Settings.of(logical.config),
            config=logical.config,
            context=TopologyContext(plan, task.task, logical.config),
            inbox=BoundedQueue("data_in", 100, 1 << 20),
            output=self.output,
            window=Window(1 << 20, 5.0),
            instruments=Instruments(Registry(Identity("t", 1, task.name, "doubled", task.task, 1))),
            clock=lambda: self.now,
            rng=np.random.default_rng(1),
        )
        self.executor = Executor(env)
        self.executor.set_active(active=True)
        self.inbox = env.inbox
        self.first = 0

    def arrives(self, count):
        """A batch of tracked rows waits."""
        numbers = np.arange(self.first, self.first + count)
        self.first += count
        rows = self.codec.encode([(number,) for number in numbers.tolist()])
        roots = make_roots(self.spout, numbers, numbers)
        header = Header(kind=ROWS, source=self.spout, rows=count, ids=ONE)
        self.inbox.put((header, [rows, roots.tobytes(), (roots | np.uint64(1)).tobytes()]))

    def turn(self):
        """One batch, as the loop does it; what left."""
        if (item := self.inbox.take()) is not None:
            self.executor.handle(item)
        self.executor.advance(self.now)
        return self.output.left()


@pytest.fixture
def bench():
    bench = Bench()
    bench.arrives(1)
    assert bench.turn() == ([1], [1])  # nothing else was at hand
    return bench


def test_rows_leave_by_the_batch_and_acks_with_the_last_at_hand(bench):
    for _ in range(3):
        bench.arrives(BATCH)
    assert bench.turn() == ([BATCH], [])
    assert bench.turn() == ([BATCH], [])
    assert bench.turn() == ([BATCH], [3 * BATCH])


def test_acks_do_not_wait_longer_than_that(bench):
    for _ in range(3):
        bench.arrives(BATCH)
    assert bench.turn() == ([BATCH], [])
    bench.now += AFTER
    assert bench.turn() == ([BATCH], [2 * BATCH])


def test_acks_that_waited_count_what_was_anchored(bench):
    bench.arrives(BATCH)
    bench.arrives(BATCH)
    for _ in range(2):
        bench.executor.handle(bench.inbox.take())
        bench.executor.advance(bench.now)
    sent = [m for m in bench.output.messages if m.header.kind == ROWS]
    (acks,) = [m for m in bench.output.messages if m.header.kind == ACKS]
    came = {int(root): int(root) | 1 for root in make_roots(bench.spout, np.arange(1, 17), np.arange(1, 17))}
    for message in sent:
        for root, edge in zip(column(message.frames[1]).tolist(), column(message.frames[2]).tolist(), strict=True):
            came[root] ^= edge
    assert dict(zip(column(acks.frames[0]).tolist(), column(acks.frames[1]).tolist(), strict=True)) == came
