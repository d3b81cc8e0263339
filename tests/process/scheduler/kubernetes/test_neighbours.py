"""Two topologies on one node: what one of them takes too much of is not taken from the other."""

from __future__ import annotations

import json
import time

import pytest

from tests.process.scheduler.kubernetes.releases import needs_cluster
from tests.process.scheduler.kubernetes.running import TOPOLOGIES, ardea, counted, first_node, life, pause, pods
from tests.process.waiting import eventually

pytestmark = [
    needs_cluster,
    pytest.mark.alone,
    pytest.mark.soak(only=True),
    pytest.mark.timeout(1200),
]
COST = 0.02
"""Seconds of CPU that the bolt of entitled.py needs for a tuple.

It asks for 0.4 of a core: where all nodes together have two, as in CI, the cluster itself and this test need the rest.
If threads were equal, the sixteen busy ones of the neighbour would leave it 0.1.
"""
WINDOW = 30.0


def rate(topology):
    """Tuples a second that reach the collector."""
    began, before = time.monotonic(), topology.seen()
    pause(WINDOW)
    seen = topology.seen()
    return (seen - before) / (time.monotonic() - began)


def entitled(space):
    """Tuples a second that the bolt can do by what its container asks for."""
    (work,) = (c for pod in pods(space) for c in pod["spec"]["containers"] if c["name"] == "work-0")
    assert "cpu" not in work["resources"]["limits"], "it is the neighbour that is held back, not the bolt"
    return float(work["resources"]["requests"]["cpu"].removesuffix("m")) / 1000 / COST


def ended(space):
    """Of each process of the noisy topology: how often it was started again."""
    found = json.loads(ardea("describe", "Noisy", "-o", "json", space=space).stdout)
    return {row["name"]: row["restarts"] for row in found["processes"]}


def test_a_noisy_neighbour_disturbs_nobody(space, other_space, image_name):
    selector = {"nodeSelector": {"kubernetes.io/hostname": first_node()}}
    here = ("--set", f"heron.kubernetes.pod.spec={json.dumps(selector)}")
    with counted(space, image_name, TOPOLOGIES / "entitled.py", *here, "--set", f"work.cost={COST}") as topology:
        due, alone = entitled(space), rate(topology)
        ardea("submit", "kubernetes", TOPOLOGIES / "noisy.py", *here, "--wait-secs", "240", space=other_space)
        assert {pod["spec"]["nodeName"] for pod in pods(space) + pods(other_space)} == {first_node()}
        rates = []
        for deaths in (1, 2):
            eventually(lambda d=deaths: life(other_space, "leak:0", "Noisy") > d, 120, "it leaks until it is killed")
            rates.append(rate(topology))
        print(f"entitled to {due:.1f}/s; alone {alone:.1f}/s; beside the noise {[round(each, 1) for each in rates]}")
        assert min(rates) >= 0.9 * due
        assert {name for name, count in ended(other_space).items() if count} <= {"leak-0"}  # in place: no container
        said = ardea("logs", "Noisy", "leak:0", space=other_space).stdout
        assert (
            "by the kernel" in said or "killed for its memory" in ardea("describe", "Noisy", space=other_space).stdout
        )
        for task in ("hog:0", "idle:0"):
            assert life(other_space, task, "Noisy") == 1
        for task in ("numbers:0", "work:0", "written:0"):
            assert life(space, task) == 1
        ardea("kill", "Noisy", space=other_space)
        topology.finish()
