"""When a release must not go."""

from __future__ import annotations

import msgspec

from ardea.scheduler.kubernetes import objects
from ardea.scheduler.kubernetes.objects import RootStatus
from ardea.scheduler.kubernetes.submission import submit
from ardea.scheduler.kubernetes.uninstall import refusal


def test_a_release_goes_unless_a_topology_runs(cluster, prepared):
    assert refusal(cluster, "ardea", "3") == ""
    made = prepared()
    submit(cluster, made)
    said = refusal(cluster, "ardea", "3")
    assert said.startswith(f"release ardea is not uninstalled: {made.inputs.id} still runs in namespace here")
    assert "`ardea kill TOPOLOGY -n here`" in said
    assert "`helm rollback ardea 3 -n here`" in said
    over = msgspec.json.encode(RootStatus(state="SUCCEEDED")).decode()
    cluster.patch("ConfigMap", "sums", {"metadata": {"annotations": {objects.STATUS: over}}})
    assert refusal(cluster, "ardea", "3") == ""
