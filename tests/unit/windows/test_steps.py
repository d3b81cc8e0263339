"""How many keys of a window are seen in a step: as many as the author's code can see in a few milliseconds."""

from __future__ import annotations

from ardea import Grouping, Spout, Timestamps, Topology
from ardea.protocol.wire_pb2 import WATERMARK, Header
from ardea.windows import Count, Tumbling, WindowBolt
from tests.unit.heron_instance.bench import Bench

STEP = 0.0005
KEYS = range(3000)


class Times(Spout):
    outputs = ("key", "at")
    timestamps = Timestamps("at")

    def next_tuple(self): ...


class Sizes(WindowBolt):
    windows = Tumbling(10, on="at", fold=Count(), allowed_lateness=5)

    def initialize(self, config, context):
        self.sizes = {0.0: [], 10.0: []}

    def on_windows(self, window, keys, values):
        self.sizes[window.start].append(len(keys))


class Made(Topology):
    times = Times.spec()
    sizes = Sizes.spec(inputs={times: Grouping.fields("key")})


def test_deleting_what_is_over_says_nothing_of_how_long_the_author_takes():
    bench = Bench(Made, "sizes", "times")
    windowing = bench.executor.runner._alarms.windows
    step = windowing._open.step

    def timed(*args):
        bench.now += STEP
        return step(*args)

    windowing._open.step = timed
    for start in bench.component.sizes:
        bench.arrives([(key, start) for key in KEYS])
        bench.turn()
    for watermark in (10.0, 15.0, 20.0):  # the first window is over; it is gone; the second is over
        bench.executor.handle((Header(kind=WATERMARK, source=bench.spout, watermark=watermark), []))
        while windowing.behind:
            bench.turn()
    assert sum(bench.component.sizes[0.0]) == len(KEYS)
    assert bench.component.sizes[10.0] == [1000, 1000, 1000]
