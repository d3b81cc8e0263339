"""How long an executor was at work, asked at any time: also inside a call that does not end."""

from __future__ import annotations

from ardea import Bolt, Spout, Topology
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


def test_a_call_that_has_not_returned_counts():
    bench = Bench(T, "long", "source")
    bench.arrives([(1,)])
    busy = bench.instruments.spent.busy
    assert busy.current() == 0.0
    bench.turn()
    assert (bench.component.before, bench.component.inside) == (0.0, 7.0)
    assert busy.current() == busy.value == 7.0
    bench.now += 100.0
    assert busy.current() == 7.0


def test_so_does_one_of_a_spout():
    bench = Bench(T, "source", "long")
    bench.turn()
    busy = bench.instruments.spent.busy
    assert (bench.component.before, bench.component.inside) == (0.0, 7.0)
    assert busy.current() == busy.value == 7.0
    bench.now += 100.0
    assert busy.current() == 7.0


def test_it_never_falls():
    spent = Bench(T, "long", "source").instruments.spent
    spent.under_way = lambda: 5.0
    assert spent.busy.current() == 5.0
    spent.busy.value, spent.under_way = 4.0, lambda: 0.0
    assert spent.busy.current() == 5.0
