"""Every series of the chart's dashboards and alerts is one that a topology really exports."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.process.engine.running import Running
from tests.process.helm.monitoring import OBSERVED, REMEMBERING, answers_everything, rules
from tests.process.metrics_manager.prometheus import Prometheus, local

pytestmark = [pytest.mark.cluster, pytest.mark.prometheus]


def test_a_real_prometheus_has_an_answer_for_every_panel_and_alert(prometheus_binary: Path, tmp_path: Path):
    folders = [tmp_path / "observed", tmp_path / "remembering"]
    for folder in folders:
        folder.mkdir()
    with Running(str(OBSERVED), folders[0]) as observed, Running(str(REMEMBERING), folders[1]) as remembering:
        topologies = (observed, remembering)
        for topology in topologies:
            topology.running()
        ports = [topology.port(number) for topology in topologies for number in (0, 1, 2)]
        prometheus = Prometheus(prometheus_binary, tmp_path, local(*ports, namespace="here"), rules("here"))
        with contextlib.closing(prometheus):
            answers_everything(
                prometheus, "here", lambda: [topology.run.step() for topology in topologies], remembers=True
            )
