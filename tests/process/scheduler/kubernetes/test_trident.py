"""Trident and DRPC on a real cluster: exactly once through dying tasks, and nothing but their own part of the state."""

from __future__ import annotations

import base64
import json
import shutil
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.process.scheduler.kubernetes.releases import CommandError, kubectl, needs_cluster, read
from tests.process.scheduler.kubernetes.running import TOPOLOGIES, ardea, pods, signal_process
from tests.process.waiting import eventually

pytestmark = [pytest.mark.thorough, needs_cluster, pytest.mark.timeout(600)]
WORDS = ("the", "moon", "and", "sea")
FILES, LINES = 3, 400
STRUCK = ("mastercoord-bg0-0", "b-4-count-0", "spout-lines-0", "mastercoord-bg0-0")
"""Tasks that die one after another; the coordinator most often while something is written and not yet committed."""
ASK = """
import sys, urllib.request
print(urllib.request.urlopen(f"http://{sys.argv[1]}/drpc/counts", sys.argv[2].encode(), timeout=10).read().decode())
"""


@pytest.fixture
def file(tmp_path):
    """The topology, and lines for it; each has some of the words."""
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        lines = (" ".join(WORDS[: 1 + (number + line) % len(WORDS)]) for line in range(LINES))
        (tmp_path / "in" / f"{number}.txt").write_text("".join(f"{line}\n" for line in lines))
    return Path(shutil.copy(TOPOLOGIES / "exact.py", tmp_path))


def right(file):
    lines = [line for path in file.parent.glob("in/*") for line in path.read_text().splitlines()]
    return dict(Counter(word for line in lines for word in line.split()))


def tasks(space):
    """(pod, container) of each."""
    found = pods(space, "app.kubernetes.io/component=container")
    return [(pod, container) for pod in found for container in pod["spec"]["containers"]]


def ask(space):
    """What the function answers a pod of the masters, through a Service."""
    asker = pods(space, "app.kubernetes.io/component=master")[0]["metadata"]["name"]
    inside = ("exec", asker, f"--namespace={space}", "-c", "topology-master", "--", "python", "-P", "-c", ASK)
    try:
        return dict(json.loads(kubectl(*inside, "counts:8080", " ".join(WORDS))))
    except CommandError as error:  # a request that a dying task had
        return {"": str(error)}


def more(space, counted):
    """How often the first word has been counted, if that is oftener than it was."""
    now = ask(space).get(WORDS[0]) or 0
    return now if now > counted else None


def test_every_word_counts_once_though_tasks_die(space, file):
    ardea("submit", "kubernetes", file, "--include", "in/*.txt", "--wait-secs", "240", space=space)
    kubectl("create", "service", "clusterip", "counts", "--tcp=8080", f"--namespace={space}")
    kubectl("set", "selector", "service", "counts", "drpc.ardea.dev/counts=true", f"--namespace={space}")
    places = {c["name"]: pod["metadata"]["name"] for pod, c in tasks(space)}
    counted = 0
    for name in STRUCK:
        counted = eventually(partial(more, space, counted), 90, lambda name=name: f"it counts before {name} is struck")
        assert counted < right(file)["the"], f"all has been counted before {name} is struck"
        signal_process(space, places[name], name)
    eventually(lambda: ask(space) == right(file), 120, lambda: f"{ask(space)} becomes {right(file)}")

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
