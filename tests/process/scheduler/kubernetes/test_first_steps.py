"""Each command of the first steps, and of the page about manifests, as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from ardea import __version__
from tests.process.scheduler.kubernetes.pages import blocks
from tests.process.scheduler.kubernetes.releases import ROOT, namespace, needs_cluster, objects, run
from tests.process.waiting import eventually

pytestmark = [needs_cluster, pytest.mark.thorough, pytest.mark.timeout(1200)]


@pytest.fixture
def typed(image_name, tmp_path, monkeypatch):
    """Runs a line in a folder that has what a checkout has; `kind` is whatever brings images to this cluster."""
    if image_name != f"ardea:{__version__}":
        pytest.skip(f"the nodes have {image_name}, and the pages are about ardea:{__version__}")
    if not (load := os.environ.get("ARDEA_KUBE_LOAD")):
        pytest.skip("ARDEA_KUBE_LOAD is unset: nothing brings images to the nodes")
    checkout, tools = tmp_path / "checkout", tmp_path / "tools"
    checkout.mkdir()
    tools.mkdir()
    for name in ("examples", "helm"):
        (checkout / name).symlink_to(ROOT / name)
    kind = tools / "kind"
    kind.write_text(f'#!/bin/sh\n[ "$1 $2" = "load docker-image" ] && exec {load} "$3"\n')
    kind.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ARDEA_STATE", raising=False)

    def in_namespace(space):
        def type_(line):
            """What it prints on stdout and stderr."""
            line = re.sub(r"\bstreams\b", space, line)
            if line.startswith("helm install") and "ARDEA_ZOOKEEPER_IMAGE" not in os.environ:
                line += " --set zookeeper.metrics.enabled=false"  # Debian's package has no provider of metrics
            where = ROOT if line.startswith("make ") else checkout
            ended = run(["sh", "-c", f"cd {shlex.quote(str(where))} && {line}"], seconds=600)
            return ended.stdout + ended.stderr

        return type_

    return in_namespace


def test_every_command_does_what_the_pages_say(typed):
    with namespace() as space:
        type_ = typed(space)
        steps, _ = blocks("README.md", "On Kubernetes")  # the others are for images of buildah
        said = {line: type_(line) for line in steps}
        (notes,) = (told for line, told in said.items() if line.startswith("helm install"))
        for line, told in said.items():
            if line.startswith("ardea "):
                assert re.sub(r"\bstreams\b", space, line) in notes
            if line.startswith("ardea submit"):
                assert "has SUCCEEDED" in told
            if line.startswith("ardea logs"):
                assert "equal, word by word" in told

        before = objects(space)
        by_hand, at_once, of_the_chart = blocks("docs/kubernetes.md", "Manifests in a file")
        for line in by_hand:
            type_(line)
        assert objects(space) == before
        for line in at_once:
            type_(line)
        eventually(lambda: objects(space) == before, 90, lambda: f"nothing is left: {objects(space) - before}")
        for line in of_the_chart:
            type_(line)
        assert objects(space) == before
