"""While many windows are seen, rows that come take turns with them, however small their messages are."""

from __future__ import annotations

from ardea import Bolt, Grouping, Spout, Stream, Timestamps, Topology
from ardea.testing import run
from ardea.windows import Count, Tumbling, WindowBolt


class Keys(Spout):
    """2,000 keys of one minute, the next one, and then rows that are late, and others by which time goes on."""

    outputs = ("key", "at", "sent")
    timestamps = Timestamps("at")

    def initialize(self, config, context):
        self._now, self._left = context.now, 400
        self._added, self._ended = self._now() + 4.0, False
        self.emit_many([(key, 1.0, 0.0) for key in range(2000)])

    def next_tuple(self):
        if self._now() < self._added:
            return
        if not self._ended:
            self._ended = True
            self.emit((0, 100.0, 0.0))
        elif self._left:
            self._left -= 1
            self.emit((0, 2.0, self._now()) if self._left % 2 else (0, 110.0 - self._left * 0.01, 0.0))
        else:
            self.finish()


class Slow(WindowBolt):
    outputs = ("key", Stream(Keys.outputs, "late"))
    windows = Tumbling("1 min", on="at", fold=Count())

    def on_window(self, key, window, value):
        self.emit((key,))


class Waited(Bolt):
    outputs = ("seconds",)

    def initialize(self, config, context):
        self._now = context.now

    def process(self, tup):
        self.emit((self._now() - tup["sent"],))


def test_a_row_waits_for_no_more_than_some_turns():
    class Made(Topology):
        keys = Keys.spec()
        windows = Slow.spec(inputs={keys: Grouping.fields("key")})
        waited = Waited.spec(inputs=[windows["late"]])

    result = run(Made, cost={"keys": 0.003, "windows": 0.001})
    assert result.state == "SUCCEEDED"
    assert len(result.tuples("windows")) == 2001
    waits = [seconds for (seconds,) in result.tuples("waited")]
    assert len(waits) == 200
    assert max(waits) < 0.1
