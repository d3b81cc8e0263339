"""Trident and DRPC on a real cluster: exactly once through dying tasks, and nothing but their own part of the state."""

from __future__ import annotations

import base64
import json
from functools import partial

import pytest

from tests.process.scheduler.kubernetes.exact import Exact
from tests.process.scheduler.kubernetes.releases import needs_cluster, read
from tests.process.scheduler.kubernetes.running import ardea, pods, signal_process
from tests.process.waiting import eventually

pytestmark = [pytest.mark.thorough, needs_cluster, pytest.mark.timeout(600)]
STRUCK = ("mastercoord-bg0-0", "b-4-count-0", "spout-lines-0", "mastercoord-bg0-0")
"""Tasks that die one after another; the coordinator most often while something is written and not yet committed."""


def tasks(space):
    """(pod, container) of each."""
    found = pods(space, "app.kubernetes.io/component=container")
    return [(pod, container) for pod in found for container in pod["spec"]["containers"]]


def test_every_word_counts_once_though_tasks_die(space, tmp_path):
    exact = Exact(space, tmp_path)
    places = {c["name"]: pod["metadata"]["name"] for pod, c in tasks(space)}
    counted = 0
    for name in STRUCK:
        counted = eventually(partial(exact.more, counted), 90, lambda name=name: f"it counts before {name} is struck")
        assert counted < exact.right()["the"], f"all has been counted before {name} is struck"
        signal_process(space, places[name], name)
    eventually(lambda: exact.ask() == exact.right(), 120, lambda: f"{exact.ask()} becomes {exact.right()}")

    holding = {c["name"] for _, c in tasks(space) if "/etc/ardea/state" in json.dumps(c["volumeMounts"])}
    assert {"mastercoord-bg0-0", "spoutcoord-spout-lines-0", "spout-lines-0", "spout-counts0-0"} == holding
    logs = {name: ardea("logs", "Exact", name, space=space).stdout for name in holding | {*STRUCK}}
    lives = {name: logs[name].count(" started, pid") for name in STRUCK}
    assert all(count > STRUCK.count(name) for name, count in lives.items()), lives
    secret = read("secret", "exact-state", f"--namespace={space}")
    password = base64.b64decode(secret["data"]["credential"]).decode().partition(":")[2]
    said = [*logs.values(), ardea("describe", "Exact", "-o", "json", space=space).stdout]
    assert len(password) == 32
    assert not any(password in text for text in [*said, json.dumps(read("pods", f"-n={space}"))])

    ardea("kill", "Exact", space=space)
    left = read("secrets", f"--namespace={space}", "--selector=app.kubernetes.io/instance=Exact")["items"]
    assert [(secret["metadata"]["name"], secret["data"]) for secret in left] == [("exact-state", secret["data"])]
