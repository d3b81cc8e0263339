"""What the chart renders is taken by a real API server, for each file of values in helm/ci."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.scheduler.kubernetes.releases import CHART, helm, kubectl, namespace, needs_cluster, run

pytestmark = needs_cluster

MATRIX = sorted((CHART / "ci").glob("*-values.yaml"))
CRDS = Path(__file__).parent / "crds.yaml"


@pytest.fixture(scope="module")
def space() -> Iterator[str]:
    """A namespace of a cluster that knows the Prometheus operator's kinds: the operator's own, or this test's."""
    bring = "podmonitors.monitoring.coreos.com" not in kubectl("get", "customresourcedefinitions", "--output=name")
    if bring:
        kubectl("create", "-f", str(CRDS))
        kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(CRDS))
    try:
        with namespace() as name:
            yield name
    finally:
        if bring:
            kubectl("delete", "-f", str(CRDS), "--wait")


@pytest.mark.parametrize("values", MATRIX, ids=lambda path: path.name.removesuffix("-values.yaml"))
def test_an_api_server_takes_every_object(space, values):
    version = ["--kube-version=1.31.0", "--api-versions=monitoring.coreos.com/v1"]
    rendered = helm("template", "ardea", CHART, f"--namespace={space}", f"--values={values}", *version)
    accounts = [text for text in rendered.split("\n---\n") if "\nkind: ServiceAccount\n" in text]
    if accounts:  # admission looks the accounts of pods up: these are made for real
        kubectl("apply", "-f", "-", "--server-side", f"--namespace={space}", stdin="\n---\n".join(accounts))
    dry_run = ["--dry-run=server", "--validate=strict", "--server-side", f"--namespace={space}"]
    ended = run(["kubectl", "apply", "-f", "-", *dry_run], rendered)
    assert "Warning" not in ended.stderr, "Pod Security or a deprecation"
    applied = ended.stdout.splitlines()
    assert len(applied) == rendered.count("\nkind: ")
