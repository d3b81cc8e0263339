"""Timers by event time that windows set, or that are due when set, are called ahead of the watermark and of the end."""

from __future__ import annotations

import pytest

from ardea import Bolt, Grouping, Spout, TaskState, Timers, Timestamps, Topology
from ardea.testing import run
from ardea.windows import CountTumbling, Last, Tumbling, WindowBolt

MOST = 20
AGAIN = 1000.0


class Rows(Spout):
    """One each second."""

    outputs = ("key", "at")
    timestamps = Timestamps("at")
    place = TaskState(default=0)

    def next_tuple(self):
        if self.place == MOST:
            self.finish()
            return
        self.emit(("a", float(self.place)))
        self.place += 1


class Sets(WindowBolt):
    outputs = ("at",)
    timers = Timers(time="event")

    def on_window(self, key, window, value):
        self.timers.set(key, value, str(value))

    def on_timer(self, name, key, at):
        self.emit((at,))
        self.timers.set(key, at + AGAIN)

    def end_of_input(self):
        assert self.timers.get("a") is None, "at the end on_timer sets none, and all others were called"


class Reads(Bolt):
    outputs = ("late",)

    def process(self, tup):
        self.emit((self.watermark is not None and tup["at"] < self.watermark,))


def times(kind, mode, cost):
    class Made(Topology):
        rows = Rows.spec()
        sets = type("Sets", (Sets,), {"windows": kind}).spec(inputs={rows: Grouping.fields("key")})
        reads = Reads.spec(inputs=[sets])

    result = run(Made, config={"topology.reliability.mode": mode}, cost=cost)
    assert (result.state, result.record.errors) == ("SUCCEEDED", [])
    assert {late for (late,) in result.tuples("reads")} <= {False}
    return [at for (at,) in result.tuples("sets") if at < AGAIN]


@pytest.mark.parametrize("cost", [{}, {"rows": 0.3}, {"rows": 0.01, "sets": 0.05}], ids=["at once", "slow", "queued"])
@pytest.mark.parametrize("mode", ["ATMOST_ONCE", "ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
@pytest.mark.parametrize(
    "kind", [Tumbling(6, on="at", fold=Last("at")), CountTumbling(6, fold=Last("at"))], ids=["by time", "by number"]
)
def test_timers_that_windows_set_are_called_ahead_of_the_watermark_and_of_the_end(kind, mode, cost):
    assert times(kind, mode, cost) == [5.0, 11.0, 17.0, 19.0]


class Due(Bolt):
    """Each row sets a timer that is due."""

    outputs = ("what",)
    timers = Timers(time="event")

    def process(self, tup):
        if self.watermark is not None:
            self.emit(("row",))
            self.timers.set("a", self.watermark)

    def on_timer(self, name, key, at):
        self.emit(("timer",))


class Knows(Bolt):
    outputs = ("what", "watermark")

    def process(self, tup):
        self.emit((tup["what"], self.watermark))


def test_a_timer_that_is_due_when_it_is_set_is_called_before_the_watermark_is_passed_on():
    class Made(Topology):
        rows = Rows.spec()
        due = Due.spec(inputs={rows: Grouping.GLOBAL})
        knows = Knows.spec(inputs=[due])

    result = run(Made, cost={"rows": 0.01, "due": 0.05})
    assert result.state == "SUCCEEDED"
    last = None
    for what, watermark in result.tuples("knows"):
        assert what == "row" or watermark == last
        last = watermark
    assert last is not None
