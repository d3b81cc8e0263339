"""What an instance tells its supervisor: each second that it works, and at its end whether another life can help."""

from __future__ import annotations

import itertools
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from ardea import Bolt, FailedException, Topology, UserError, parent_link
from ardea.errors import ExitCode
from ardea.heron_instance import executor_thread, process
from ardea.heron_instance.executor_thread import ExecutorThread
from ardea.heron_instance.wires import Addresses
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.scheduler.packing import packing_for
from ardea.testing import CollectBolt, RowsSpout
from tests.unit.heron_instance.bench import Bench


class Pair(Topology):
    rows = RowsSpout.of(["n"], []).spec()
    keep = CollectBolt.spec(inputs=[rows])


class Minute:
    """Wires on which nothing comes; waiting is what takes time, a minute in all."""

    malformed = 0

    def __init__(self):
        self.now, self.snapshots = 100.0, []

    def wait(self, pause, _has_work):
        self.now += max(pause, 0.01)
        if self.now >= 160.0:
            self.instance.exit()
        return set()

    def receive(self, _ready):
        return ()

    def send(self, _lane, _message):
        pass

    def send_metrics(self, _snapshot, *, last):
        if not last:
            self.snapshots.append(self.now)

    def wake(self):
        pass

    def close(self):
        pass


@pytest.fixture
def made(monkeypatch):
    """Wires, and by an interval of metrics the instance that has them."""
    wires = Minute()
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: wires.now))
    monkeypatch.setattr(process, "Wires", lambda *_: wires)
    monkeypatch.setattr(process, "signal", SimpleNamespace(signal=lambda *_: None, SIGTERM=0, SIGINT=0, SIG_IGN=0))

    def make(interval):
        logical = Pair.plan({"heron.metrics.export.interval.sec": interval})
        packing, shape = packing_to_bytes(packing_for(logical.config).pack(logical)), shape_of(logical)
        definition = Definition(
            topology="pair-1", state="file:///nowhere", location="p", config={}, shape=shape, packing=packing
        )
        wires.instance = process.InstanceProcess(definition, logical, 1, 1, Addresses("control", "data", "metrics"))
        return wires.instance

    return wires, make


@pytest.mark.parametrize(("interval", "told"), [(0.25, 240), (1.0, 60), (60.0, 1)])
def test_beats_keep_to_the_second(made, monkeypatch, interval, told):
    (wires, make), beats = made, []
    monkeypatch.setattr(parent_link, "beat", lambda **_: beats.append(wires.now))
    make(interval).run()
    assert 58 <= len(beats) <= 62
    assert max(later - earlier for earlier, later in itertools.pairwise(beats)) < 1.1
    assert len(wires.snapshots) == pytest.approx(told, abs=max(1, told // 20))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("no"), ExitCode.TEMPORARY),
        (FailedException("not now"), ExitCode.TEMPORARY),
        (UserError("never"), ExitCode.PERMANENT),
    ],
)
def test_what_another_life_may_not_meet_has_the_process_started_again(made, error, code):
    _, make = made
    instance = make(60.0)
    instance._executor.failure = error
    assert instance.run() is code


class Begins(Bolt):
    outputs = ("n",)

    def initialize(self, config, context):
        self.seen = self.bench.executor.in_user_code

    def process(self, tup):
        """Nothing."""


class Beginning(Topology):
    rows = RowsSpout.of(["n"], []).spec()
    begins = Begins.spec(inputs=[rows])
    keep = CollectBolt.spec(inputs=[begins])


def test_initialize_is_a_call_of_the_authors():
    """One that waits for ever is reported, and one that keeps the interpreter's lock is not killed."""
    assert Bench(Beginning, "begins", "rows").component.seen


def test_so_is_the_making_of_the_object(monkeypatch):
    said, made, go_on = [], threading.Event(), threading.Event()
    monkeypatch.setattr(parent_link, "beat", lambda **beat: said.append(beat))
    monkeypatch.setattr(parent_link, "report", said.append)
    monkeypatch.setattr(executor_thread, "gc", Mock())
    shell = SimpleNamespace(
        executor=None, component=Beginning.plan({})["begins"], instruments=Mock(), failed=lambda _error: None
    )
    thread = ExecutorThread(shell, "begins-0", lambda: None)
    thread.beat()

    def make():
        made.set()
        go_on.wait(30.0)
        raise ValueError("no table")

    thread.start(make, None)
    assert made.wait(30.0)
    thread.beat()
    go_on.set()
    thread._thread.join(30.0)
    assert said[:2] == [{"in_user_code": False, "same_call": True}, {"in_user_code": True, "same_call": True}]
    assert thread.over
