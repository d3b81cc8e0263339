"""``kill -9`` and a hung task, with as many tuples in flight as there may be: what was read arrives at least once."""

from __future__ import annotations

import functools
import signal

import pytest

import ardea.scheduler.local_processes
from tests.machine import patient
from tests.process.engine.running import Running, all_arrived
from tests.sizes import size

pytestmark = pytest.mark.cluster

PENDING = 500
SILENCE = 3.0
VICTIMS = (
    "through-0",
    "numbers-0",
    "container-1/stream-manager",
    "container-2/stream-manager",
    "container-1/metrics-manager",
    "topology-master",
    "container-0/metrics-manager",
    "through-1",
    "numbers-1",
)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_every_input_is_processed_at_least_once_whoever_is_killed(tmp_path, monkeypatch):
    """Bolts, spouts, managers and the master, one after the other; then one that hangs."""
    monkeypatch.setattr(
        ardea.scheduler.local_processes,
        "Policy",
        functools.partial(ardea.scheduler.local_processes.Policy, silence=patient(SILENCE)),
    )
    with Running("survivors.py", tmp_path) as topology:
        topology.running()

        def in_flight():
            return all(topology.total("pending", f"numbers-{n}") >= 0.8 * PENDING for n in (0, 1))

        def works_again():
            more = {("executed", "arrived"): 2 * PENDING}
            for n in (0, 1):
                more |= {("acked", f"numbers-{n}"): PENDING, ("executed", f"through-{n}"): PENDING}
            goals = {what: topology.total(*what) + by for what, by in more.items()}
            topology.until(lambda: all(topology.total(*what) >= goal for what, goal in goals.items()), f"{more} more")

        works_again()
        for victim in VICTIMS * size(1, 20):
            topology.until(in_flight, "the spouts have as many open trees as they may")
            life = topology.kill(victim)
            topology.returned(victim, life)
            works_again()

        topology.until(in_flight, "the spouts have as many open trees as they may")
        life = topology.kill("through-0", signal.SIGSTOP)
        topology.returned("through-0", life)
        works_again()
        container = next(
            topology.packing.container_of(i.task) for i in topology.packing.instances if i.name == "through-0"
        )
        assert "it is stopped" in topology.ends("through-0", container)[-1].reason

        topology.raise_flag("enough")
        outcome = topology.finish()
    all_arrived(topology, outcome)
    assert outcome.components["numbers"].lost > 0
