"""One executor by itself: what its component emits, acks and fails stays here; the clock stands still."""

from __future__ import annotations

import numpy as np

from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.instruments import Instruments
from ardea.heron_instance.queues import BoundedQueue
from ardea.metrics import Identity, Registry
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.flow import Window
from ardea.protocol.ids import column, make_roots, offsets_column
from ardea.protocol.values import RowCodec
from ardea.protocol.wire_pb2 import ACKS, MANY, ONE, ROWS, Header
from ardea.scheduler.packing import packing_for


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


class Bench:
    """The executor of the component ``name`` of a topology; a bolt reads ``source``."""

    def __init__(self, topology, name, source=None, **config):
        logical = topology.plan(config)
        plan = PhysicalPlan.of(logical, packing_for(logical.config).pack(logical), 1)
        self.now = 1.0
        self.output = Output()
        self.codec = RowCodec()
        self.spout = plan.component_tasks[source][0] if source else None
        task = plan.tasks[plan.component_tasks[name][0]]
        self.component = logical[name].cls()
        env = Environment(
            plan=plan,
            task=task,
            life=1,
            component=self.component,
            settings=Settings.of(logical.config),
            config=logical.config,
            context=TopologyContext(plan, task.task, logical.config),
            inbox=BoundedQueue("data_in", 100, 1 << 20),
            output=self.output,
            window=Window(1 << 20, 5.0),
            instruments=Instruments(Registry(Identity("t", 1, task.name, name, task.task, 1))),
            clock=lambda: self.now,
            rng=np.random.default_rng(1),
        )
        self.instruments = env.instruments
        self.executor = Executor(env)
        self.component.bench = self
        self.executor.set_active(active=True)
        self.first = 0

    def passes(self, seconds):
        """Time, in the middle of a call or between two; the sender looks at the executor then."""
        self.now += seconds
        self.executor.user_code.look(self.now)
        return self.executor.user_code.look(self.now)

    def arrives(self, rows):
        """A batch of tracked rows; their roots."""
        numbers = np.arange(self.first, self.first + len(rows))
        self.first += len(rows)
        roots = make_roots(self.spout, numbers, numbers)
        header = Header(kind=ROWS, source=self.spout, rows=len(rows), ids=ONE)
        self.executor.handle((header, [self.codec.encode(rows), roots.tobytes(), (roots | np.uint64(1)).tobytes()]))
        return roots.tolist()

    def turn(self):
        """As the loop does it."""
        return self.executor.advance(self.now)

    def left(self):
        """The rows that have left, in order."""
        frames = [m.frames[0] for m in self.output.messages if m.header.kind == ROWS]
        return [row for frame in frames for row in self.codec.decode(frame)]

    def edges(self):
        """(root, edge) of each row that has left; what each acked root was acked with; the failed ones; in order."""
        events = []
        for message in self.output.messages:
            frames = message.frames
            if message.header.kind == ROWS and message.header.ids in (ONE, MANY):
                events += [("row", *pair) for pair in zip(*(column(f).tolist() for f in frames[-2:]), strict=True)]
                assert message.header.ids == ONE or len(offsets_column(frames[1])) == message.rows + 1
            elif message.header.kind == ACKS:
                events += [("ack", *pair) for pair in zip(*(column(f).tolist() for f in frames[:2]), strict=True)]
                events += [("fail", root, 0) for root in column(frames[2]).tolist()]
        return events
