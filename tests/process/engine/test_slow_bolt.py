"""Slow bolts behind spouts that never wait: back pressure holds these spouts, and others go on."""

from __future__ import annotations

import time

import pytest

from tests.machine import patient
from tests.process.engine.running import Running
from tests.sizes import size

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

SECONDS = size(36, 600, whole=90)
WARM = min(SECONDS / 3, 60)
PACE = 500
"""Rows a second that the spout of the branch emits which is not slow."""
LATE = 3
"""Seconds, over both ends of the time that is measured, by which reports may be late."""
SPOUTS = {"slow": "fast", "slower": "faster", "quick": "paced"}


class Acks:
    """Of one spout: when its count was seen to change, first and last."""

    def __init__(self) -> None:
        self.count = 0
        self.changes: list[tuple[float, int]] = []

    def look(self, acked: int) -> None:
        if self.count and acked > self.count:
            self.changes = [*self.changes[:1], (time.monotonic(), acked)]
        self.count = acked

    @property
    def rate(self) -> float:
        (began, first), (ended, last) = self.changes
        return (last - first) / (ended - began)


def total(topology, name, component):
    """Of a component's tasks, or of all."""
    series = [labels for container in (0, 1, 2) for labels in topology.metrics(container, name).items()]
    return sum(value for labels, value in series if component in labels)


def executed(topology, bolt):
    name = "ardea_instance_execute_duration_seconds"
    return total(topology, f"{name}_count", bolt), total(topology, f"{name}_sum", bolt)


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_back_pressure_holds_the_spouts_that_reach_a_slow_bolt_and_nothing_else(tmp_path):
    acks = {spout: Acks() for spout in SPOUTS.values()}
    peak = {}

    def until(topology, end):
        def over():
            for spout, each in acks.items():
                each.look(topology.total("acked", spout))
            for name, resident in topology.resident().items():
                peak[name] = max(peak.get(name, 0), resident)
            return time.monotonic() >= end

        topology.until(over, "the time is over", 2 * SECONDS)

    with Running("slow.py:SlowBolts", tmp_path, {"test.pace": PACE}) as topology:
        topology.running()
        until(topology, time.monotonic() + patient(WARM))
        early, before = dict(peak), {bolt: executed(topology, bolt) for bolt in SPOUTS}
        acks.update({spout: Acks() for spout in acks})
        until(topology, time.monotonic() + SECONDS - WARM)
        after = {bolt: executed(topology, bolt) for bolt in SPOUTS}
        paused = {
            labels[0]: seconds
            for container in (1, 2)
            for labels, seconds in topology.metrics(container, "ardea_stmgr_backpressure_seconds_total").items()
        }
        broken = {
            (what, spout): total(topology, f"ardea_instance_tuples_{what}_total", spout)
            for what in ("failed", "timed_out", "lost")
            for spout in acks
        }
        own = {bolt: (after[bolt][0] - n) / (after[bolt][1] - seconds) for bolt, (n, seconds) in before.items()}
        rates = {bolt: acks[spout].rate for bolt, spout in SPOUTS.items()}
        print(f"acked/s {rates}\nslow bolts' own {own}\npaused {paused}")
        print({name: f"{early.get(name, 0) / 2**20:.1f} -> {peak[name] / 2**20:.1f} MiB" for name in peak})
        topology.run.stop()
    assert {name: (early[name], most) for name, most in peak.items() if most > 1.1 * early[name]} == {}
    assert set(broken.values()) == {0}, broken
    assert min(paused["slow-0"], paused["slower-0"]) > SECONDS / 2, paused
    for bolt in ("slow", "slower"):
        assert rates[bolt] == pytest.approx(own[bolt], rel=0.05 + LATE / (SECONDS - WARM)), bolt
    assert rates["quick"] >= 0.9 * PACE
