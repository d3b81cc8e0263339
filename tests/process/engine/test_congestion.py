"""A spout that could emit all its pending within milliseconds does not, where a slow bolt is behind quick ones."""

from __future__ import annotations

import time

import pytest

from tests.process.engine.running import Running
from tests.sizes import size

pytestmark = [pytest.mark.thorough, pytest.mark.cluster, pytest.mark.alone]

TIMEOUT = size(8, 30)
SECONDS = 3 * TIMEOUT
WARM = TIMEOUT / 2


@pytest.mark.soak
@pytest.mark.parametrize("cost", size([0.02], [0.002, 0.02, 0.1]))
@pytest.mark.timeout(600)
def test_nothing_times_out_behind_a_slow_bolt_and_that_is_never_idle(tmp_path, cost):
    settings = {"topology.stmgrs": 2, "topology.message.timeout.secs": TIMEOUT, "test.seconds": cost}
    with Running("behind.py:Behind", tmp_path, settings) as topology:
        topology.running()
        began = time.monotonic()
        topology.until(lambda: time.monotonic() >= began + WARM, "it is warm", 2 * WARM)

        def executed():
            name = "ardea_instance_execute_duration_seconds"
            found = [topology.metrics(container, f"{name}_{part}") for part in ("count", "sum") for container in (1, 2)]
            return [sum(v for each in found[i : i + 2] for k, v in each.items() if "slow" in k) for i in (0, 2)]

        before, since = executed(), time.monotonic()
        topology.until(lambda: time.monotonic() >= began + SECONDS, "the time is over", 2 * SECONDS)
        rows, busy = (now - then for now, then in zip(executed(), before, strict=True))
        lasted = time.monotonic() - since
        broken = {what: topology.total(what, "endless") for what in ("failed", "timed_out", "lost")}
        print(f"{cost:g} s: {rows / lasted:.1f} rows/s, {busy / lasted:.1%} busy, {broken}")
        topology.run.stop()
    assert set(broken.values()) == {0}, broken
    assert busy / lasted > 0.9
