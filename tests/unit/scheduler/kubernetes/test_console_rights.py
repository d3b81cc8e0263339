"""The console is let into a topology by who submits it, if that may; a topology runs without."""

from __future__ import annotations

import pytest

from ardea.errors import ClusterError, NotFound, Unreachable
from ardea.scheduler.kubernetes import console_rights
from ardea.scheduler.kubernetes.manifest_inputs import Console
from ardea.scheduler.kubernetes.submission import submit

CONSOLE = Console(account="ardea-console", kills=True)


@pytest.fixture
def submitted(cluster, prepared):
    """A topology, and what has become of the console's rights."""

    def make(console=CONSOLE):
        made = prepared(console=console)
        root = submit(cluster, made)
        return made.inputs, root, console_rights.grant(cluster, made.inputs, made.console, root)

    return make


def rights(cluster):
    return {kind: thing for (kind, _), thing in cluster.objects.items() if kind in ("Role", "RoleBinding")}


def test_its_account_gets_the_callers_secret_and_the_root_of_this_topology_alone(cluster, submitted):
    inputs, root, refused = submitted()
    assert not refused
    role, binding = rights(cluster)["Role"], rights(cluster)["RoleBinding"]
    assert role["apiVersion"] == binding["apiVersion"] == "rbac.authorization.k8s.io/v1"
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["sums-callers"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "delete"], "resourceNames": ["sums"]},
    ]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "ardea-console", "namespace": "here"}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == f"sums-callers-{inputs.id.rpartition('-')[2]}"
    cluster.delete("ConfigMap", "sums", uid=root["metadata"]["uid"])
    assert cluster.objects == {}, "they go with the topology"


def test_a_console_that_kills_nothing_may_not_touch_the_root(cluster, submitted):
    submitted(Console(account="ardea-console"))
    assert [rule["resources"] for rule in rights(cluster)["Role"]["rules"]] == [["secrets"]]


def test_without_a_console_nothing_is_made(cluster, submitted):
    assert submitted(None)[2] == ""
    assert not rights(cluster)


@pytest.mark.parametrize("error", [ClusterError, Unreachable, NotFound])
def test_a_topology_runs_though_the_console_cannot_be_let_in(error, cluster, submitted, monkeypatch):
    create = cluster.create

    def refuse(manifest, **options):
        if manifest["kind"] == "Role":
            raise error("cannot create Role")
        return create(manifest, **options)

    monkeypatch.setattr(cluster, "create", refuse)
    _, _, refused = submitted()
    assert "it was not let in (cannot create Role); name the topology in `console.topologies`" in refused
    assert cluster.find("ConfigMap", "sums") is not None
