"""The scheduler of Kubernetes keeps the contract of all schedulers, on a real cluster."""

from __future__ import annotations

import pytest

from ardea.scheduler.registry import load
from ardea.testing.schedulers import check_scheduler
from tests.process.scheduler.kubernetes.releases import needs_cluster, objects
from tests.process.waiting import eventually

pytestmark = [needs_cluster, pytest.mark.soak(only=True), pytest.mark.timeout(900)]


def test_kubernetes_keeps_the_contract(space, tmp_path, monkeypatch):
    monkeypatch.setenv("ARDEA_STATE", str(tmp_path / "ardea"))  # for the Secrets of its dry run
    before = objects(space)
    check_scheduler(lambda: load("kubernetes")(namespace=space), tmp_path, patience=240)
    eventually(lambda: objects(space) == before, 60, lambda: f"nothing is left: {objects(space) - before}")
