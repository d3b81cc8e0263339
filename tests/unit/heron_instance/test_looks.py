"""A look at a long call that fails, or finds nothing, spoils nothing."""

from __future__ import annotations

import pytest

from ardea import Bolt, CustomStreamGrouping, Grouping, Spout, Stream, Topology
from ardea.protocol.wire_pb2 import ACKS
from ardea.testing import CollectBolt
from tests.simulation.heron_instance.test_long_calls import NUMBERS, bench
from tests.unit.heron_instance.bench import Bench


class NotNow(CustomStreamGrouping):
    """Raises on the sender's thread, as an object may that belongs to the executor's."""

    calls = 0

    def prepare(self, context, component, stream, targets):
        self.targets = targets

    def choose_tasks(self, values):
        NotNow.calls += 1
        if NotNow.calls == 1:
            raise ValueError("not now")
        return [self.targets[0]]


class Acker(Bolt):
    outputs = ["n"]
    auto_ack = False

    def process(self, tup):
        self.emit([tup[0]])
        (self.ack if tup[0] else self.fail)(tup)
        self.bench.passes(1.0)


class TwoStreamedAcker(Acker):
    outputs = ["n", Stream(["n"], name="other")]


def grouped(component, source=None, **config):
    inputs = {"inputs": [NUMBERS]} if source else {}
    made = component.spec("made", **inputs)
    sink = CollectBolt.spec("sink", inputs={made: Grouping.custom(NotNow)})
    components = {"numbers": NUMBERS} if source else {}
    NotNow.calls = 0
    return Bench(type("Line", (Topology,), {**components, "made": made, "sink": sink}), "made", source, **config)


@pytest.mark.parametrize("component", [Acker, TwoStreamedAcker])
def test_acks_and_fails_outlast_a_grouping_that_raises(component):
    made = grouped(component, "numbers")
    roots = made.arrives([(0,), (1,)])
    while made.executor.runner.busy:
        made.turn()
    made.executor.runner.emitted.send()
    said = [(what, root) for what, root, _ in made.edges() if what != "row"]
    assert sorted(said) == [("ack", roots[1]), ("fail", roots[0])]


class Unsendable(Bolt):
    outputs = ["n"]
    auto_ack = False

    def process(self, tup):
        self.emit(["\ud800"])
        self.ack(tup)
        self.bench.passes(1.0)


class AutoUnsendable(Bolt):
    """What its first call emits cannot be sent; its second one is long."""

    outputs = ["n"]

    def process(self, tup):
        if tup[0]:
            self.bench.passes(1.0)
        else:
            self.emit(["\ud800"])
            self.bench.now += 0.02
            self.bench.executor.runner.hurry()


@pytest.mark.parametrize("component", [Unsendable, AutoUnsendable])
def test_a_tuple_fails_no_later_than_it_is_acked_where_a_row_of_it_cannot_be_sent(component):
    made = bench(component)
    root, *_ = made.arrives([(n,) for n in range(2)])
    runner, emitted = made.executor.runner, made.executor.runner.emitted
    for row in range(2):
        runner.process(emitted.batch, row, row + 1)
        if component is AutoUnsendable:
            emitted.acking.ack_processed(emitted.batch, row, row + 1)
    made.executor.runner.emitted.send()
    said = [what for what, of, _ in made.edges() if of == root]
    first = next(m for m in made.output.messages if m.header.kind == ACKS)
    assert "fail" in said
    assert first.frames[2], "the ack has left ahead of the fail"


class HearsAcks(Spout):
    outputs = ["n"]

    def next_tuple(self):
        if not self.heard:
            self.emit([1], 1)
            self.bench.passes(1.0)

    def ack(self, tup_id):
        self.heard.append(tup_id)


def test_an_untracked_spout_hears_one_ack_of_a_row_whose_grouping_raises():
    made = grouped(HearsAcks, **{"topology.acker.executors": 0})
    made.component.heard = []
    made.turn()
    made.turn()
    assert made.component.heard == [1]
    assert made.executor.env.instruments.acked.value == 1


class Waits(Spout):
    """Its source is empty, and each call finds that out in 50 ms."""

    outputs = ["n"]

    def next_tuple(self):
        self.bench.passes(0.05)


def test_a_long_call_that_emits_nothing_is_followed_by_a_pause():
    made = bench(Waits)
    pauses = []
    for _ in range(4):
        wake = made.turn()
        pauses.append(round(wake - made.now, 6))
        made.now = wake
    assert pauses == [0.001, 0.002, 0.004, 0.008]


class Free(Bolt):
    outputs = ["n"]
    seen = 0

    def process(self, tup):
        self.seen += 1


def test_a_bolt_whose_tuples_take_no_time_goes_on():
    """As in a simulated cluster with a cost of 0: as many tuples fit into a slice as there are."""
    made = bench(Free)
    for number in range(3000):
        made.arrives([(number,)])
        made.turn()
    assert made.component.seen == 3000
