"""When a release must not go."""

from __future__ import annotations

import msgspec
import pytest

from ardea.errors import ClusterError, Unreachable, UserError
from ardea.scheduler.kubernetes import objects
from ardea.scheduler.kubernetes.objects import RootStatus
from ardea.scheduler.kubernetes.submission import submit
from ardea.scheduler.kubernetes.uninstall import main, refusal
from tests.unit.scheduler.kubernetes.fake import FakeCluster


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


class Silent(FakeCluster):
    """Answers no list."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def list(self, kind, selector=""):
        raise self.error


@pytest.mark.parametrize(
    "error",
    [Unreachable("cannot list ConfigMaps: it does not answer"), ClusterError("cannot list ConfigMaps: no right")],
)
def test_where_topologies_cannot_be_listed_the_way_out_is_named(capsys, error):
    assert main(["tern", "3"], lambda: Silent(error)) == 1
    said = capsys.readouterr().out
    assert said.startswith("release tern is not uninstalled, as its topologies could not be listed: ")
    assert error.message in said
    assert "`helm uninstall tern -n here --no-hooks`" in said


def test_the_way_out_is_named_without_a_namespace_where_no_cluster_is_known(capsys):
    def connect():
        raise UserError("no cluster is known")

    assert main(["tern", "3"], connect) == 1
    assert "`helm uninstall tern --no-hooks`" in capsys.readouterr().out


def test_a_release_without_topologies_may_go(capsys, cluster):
    assert main(["tern", "3"], lambda: cluster) == 0
    assert capsys.readouterr().out == "no topology runs: release tern may go\n"
