"""How an executor spends its time, asked at any time: also inside a call that does not end."""

from __future__ import annotations

from functools import partial

import pytest

from ardea import Bolt, CustomStreamGrouping, Grouping, Spout, Topology
from ardea.testing import CollectBolt
from tests.unit.heron_instance.bench import Bench


class Source(Spout):
    outputs = ["n"]

    def next_tuple(self):
        busy = self.bench.instruments.spent.busy
        self.before = busy.current()
        self.bench.now += 7.0
        self.inside = busy.current()


class Long(Bolt):
    def process(self, tup):
        busy = self.bench.instruments.spent.busy
        self.before = busy.current()
        self.bench.now += 7.0
        self.inside = busy.current()


class T(Topology):
    source = Source.spec()
    long = Long.spec(inputs=[source])


class Slow(CustomStreamGrouping):
    def prepare(self, context, component, stream, targets):
        self.targets = targets

    def choose_tasks(self, values):
        Slow.bench.now += 7.0
        return self.targets


class Emits(Spout):
    """One row, once."""

    outputs = ["n"]
    emitted = False

    def next_tuple(self):
        if not self.emitted:
            self.emit([1], 1)
        self.emitted = True


class HearsAcks(Emits):
    def ack(self, tup_id):
        self.bench.now += 7.0


class Ticks(Bolt):
    def process(self, tup):
        pass

    def process_tick(self, tup):
        self.bench.now += 7.0


class Raises(Bolt):
    auto_fail = False

    def process(self, tup):
        self.bench.now += 7.0
        raise ValueError("no")


def made(component, grouping=None):
    """Its bench; what a spout emits is acked at once."""
    if issubclass(component, Spout):
        made = component.spec("made")
        reader = CollectBolt.spec("reader", inputs={made: grouping} if grouping else [made])
        topology, source = {"made": made, "reader": reader}, None
    else:
        source = Source.spec("source")
        topology, source = {"source": source, "made": component.spec("made", inputs=[source])}, "source"
    config = {"topology.acker.executors": 0, "topology.tick.tuple.freq.secs": 5}
    return Bench(type("Line", (Topology,), topology), "made", source, **config)


def spends(bench, seconds):
    """Has the loop run for so long: it waits as its thread does; returns busy, idle and held back."""
    executor, began = bench.executor, bench.now
    work = executor.work()
    pause = next(work)
    while bench.now < began + seconds:
        bench.now += pause
        pause = work.send(executor.env.inbox.take())
    spent = bench.instruments.spent
    figures = spent.busy.current(), spent.idle.value, spent.backpressured.value
    assert sum(figures) == pytest.approx(bench.now - began)
    return figures


def test_a_call_that_has_not_returned_counts():
    bench = Bench(T, "long", "source")
    bench.arrives([(1,)])
    busy = bench.instruments.spent.busy
    assert busy.current() == 0.0
    work = bench.executor.work()
    next(work)
    assert (bench.component.before, bench.component.inside) == (0.0, 7.0)
    assert busy.current() == busy.value == 7.0
    bench.now += 100.0
    assert busy.current() == 7.0


def test_so_does_one_of_a_spout():
    bench = Bench(T, "source", "long")
    work = bench.executor.work()
    next(work)
    busy = bench.instruments.spent.busy
    assert (bench.component.before, bench.component.inside) == (0.0, 7.0)
    assert busy.current() == busy.value == 7.0
    bench.now += 100.0
    assert busy.current() == 7.0


@pytest.mark.parametrize("component", [Ticks, HearsAcks])
def test_so_does_whatever_else_a_component_is_called_for(component):
    busy, idle, held_back = spends(made(component), 8.0)
    assert (busy, held_back) == (7.0, 0.0)
    assert idle > 0.0


def test_so_does_a_flush():
    bench = Slow.bench = made(Emits, Grouping.custom(Slow))
    assert spends(bench, 8.0)[0] == 7.0


def test_so_does_a_function_that_was_handed_over():
    bench = made(Ticks)
    work = bench.executor.work()
    next(work)
    bench.now += 2.0
    work.send(lambda: bench.executor.submitted(partial(bench.passes, 7.0)))
    spent = bench.instruments.spent
    assert (spent.busy.value, spent.idle.value) == (7.0 + 7.0, 2.0), "with a tick that is due then"


def test_so_does_a_call_that_raises():
    bench = made(Raises)
    bench.arrives([(1,)])
    with pytest.raises(ValueError, match="no"):
        next(bench.executor.work())
    busy = bench.instruments.spent.busy
    assert busy.current() == busy.value == 7.0


def test_a_spout_is_held_back_while_its_output_is_though_there_is_room_when_it_wakes():
    bench = Bench(T, "source", "long")
    bench.output.held = True
    work = bench.executor.work()
    next(work)
    bench.now += 5.0
    bench.output.held = False
    work.send(None)
    spent = bench.instruments.spent
    assert (spent.busy.value, spent.idle.value, spent.backpressured.value) == (7.0, 0.0, 5.0)


def test_it_never_falls():
    spent = Bench(T, "long", "source").instruments.spent
    spent.under_way = lambda: 5.0
    assert spent.busy.current() == 5.0
    spent.busy.value, spent.under_way = 4.0, lambda: 0.0
    assert spent.busy.current() == 5.0
