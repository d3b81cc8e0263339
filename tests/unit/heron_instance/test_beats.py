"""An instance tells its supervisor each second that it works, however seldom its metrics are collected."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from ardea import Topology, parent_link
from ardea.heron_instance import process
from ardea.heron_instance.wires import Addresses
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.scheduler.packing import packing_for
from ardea.testing import CollectBolt, RowsSpout


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


@pytest.mark.parametrize(("interval", "told"), [(0.25, 240), (1.0, 60), (60.0, 1)])
def test_beats_keep_to_the_second(monkeypatch, interval, told):
    wires, beats = Minute(), []
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: wires.now))
    monkeypatch.setattr(process, "Wires", lambda *_: wires)
    monkeypatch.setattr(process, "signal", SimpleNamespace(signal=lambda *_: None, SIGTERM=0, SIGINT=0, SIG_IGN=0))
    monkeypatch.setattr(parent_link, "beat", lambda **_: beats.append(wires.now))
    logical = Pair.plan({"heron.metrics.export.interval.sec": interval})
    packing = packing_to_bytes(packing_for(logical.config).pack(logical))
    definition = Definition(
        topology="pair-1", state="file:///nowhere", location="p", config={}, shape=shape_of(logical), packing=packing
    )
    wires.instance = process.InstanceProcess(definition, logical, 1, 1, Addresses("control", "data", "metrics"))
    wires.instance.run()
    assert 58 <= len(beats) <= 62
    assert max(later - earlier for earlier, later in itertools.pairwise(beats)) < 1.1
    assert len(wires.snapshots) == pytest.approx(told, abs=max(1, told // 20))
