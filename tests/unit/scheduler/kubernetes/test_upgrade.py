"""Verbs, and pods, for a topology in a cluster that another version has submitted; its root object was recorded."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import msgspec
import pytest

from ardea.documents.topologies import of_topology
from ardea.errors import ClusterError, ExitCode, OtherVersion, Unreachable
from ardea.scheduler.kubernetes import prepare as preparing
from ardea.scheduler.kubernetes.handle import KubernetesHandle
from ardea.scheduler.kubernetes.kill import Killing
from ardea.scheduler.kubernetes.manifest_inputs import DEFINITION
from ardea.scheduler.kubernetes.prepare import prepare
from ardea.scheduler.kubernetes.submission import Options
from ardea.scheduler.kubernetes.topologies import find, listing
from ardea.scheduler.kubernetes.ways import Ways
from ardea.scheduler.next_definition import Change
from ardea.versions import FORMAT, UNNUMBERED

RECORDED = Path(__file__).parents[3] / "fixtures"
ROOTS = {
    number: json.loads((RECORDED / f"state-{commit}" / "root.json").read_text())
    for number, commit in ((UNNUMBERED, "72bfe26"), (2, "549b37d"))
}
VERSIONS = {UNNUMBERED: "0.1.0.dev0", 2: "0.2.0.dev0"}
NAME = "WordCount"


@pytest.fixture(params=ROOTS, ids=lambda number: f"format-{number}")
def number(request):
    return request.param


@pytest.fixture
def former(cluster, number):
    """The namespace has the topology."""
    cluster.apply(ROOTS[number])
    return cluster


def test_it_is_listed_and_both_versions_are_named(former, number):
    (found,) = listing(former)
    told = msgspec.to_builtins(of_topology(found.topology))
    assert (told["name"], told["running"]) == (NAME, True)
    assert f"Ardea {VERSIONS[number]} (format {number}), and this is" in told["other_version"]
    assert [instance.component for plan in found.inputs.containers for instance in plan.instances]


def restart(found):
    found.restart(None, 1.0)


def update(found):
    found.update(Change(parallelism={"count": 2}), None)


@pytest.mark.parametrize("verb", [restart, update])
def test_what_starts_processes_is_refused(former, verb, number):
    before = list(former.calls)
    with pytest.raises(ClusterError) as refusal:
        verb(KubernetesHandle(former, find(former, NAME), Options(), Ways()))
    assert f"`ardea {verb.__name__}` cannot go on with it; nothing was changed" in refusal.value.message
    assert f"(format {number})" in refusal.value.message
    assert f"(format {FORMAT})" in refusal.value.message
    assert former.calls == before


def test_the_master_of_one_whose_image_has_no_program_that_asks_cannot_be_asked_and_its_objects_can(cluster):
    cluster.apply(ROOTS[UNNUMBERED])
    found = KubernetesHandle(cluster, find(cluster, NAME), Options(), Ways())
    told = found.describe()
    assert told.status is None
    assert "its masters cannot be asked by this version" in told.silence
    assert (told.topology.name, told.kept_by.host) == (NAME, cluster.namespace)
    with pytest.raises(Unreachable, match="cannot be asked by this version"), found.control():
        pass


def test_it_is_killed(former):
    said: list[str] = []
    Killing(former, find(former, NAME), said.append, pause=lambda _: None).kill(0.0)
    assert former.list("ConfigMap") == []


@pytest.mark.parametrize("number", [UNNUMBERED, FORMAT + 1])
def test_a_pod_whose_image_is_of_another_version_does_not_start(prepared, tmp_path, number):
    inputs = prepared().inputs
    definition = msgspec.structs.replace(inputs.definition, format=number)
    (tmp_path / DEFINITION).write_bytes(definition.packed())
    with pytest.raises(OtherVersion, match=rf"\(format {number}\), and this is .* \(format {FORMAT}\)"):
        prepare(1, "10.0.0.1", mount=tmp_path, code=tmp_path)


def test_and_the_pod_says_so(monkeypatch, tmp_path, capsys, number):
    """Where kubelet looks for it, so that ``ardea describe`` shows it; starting again would not help."""
    written = base64.b64decode(ROOTS[number]["binaryData"][DEFINITION])
    (tmp_path / DEFINITION).write_bytes(written)
    monkeypatch.setenv("POD_IP", "10.0.0.1")
    monkeypatch.setattr("sys.argv", ["prepare", "--container", "1"])
    monkeypatch.setattr(preparing.layout, "TERMINATION_LOG", tmp_path / "said")
    monkeypatch.setattr(preparing, "prepare", lambda *args: prepare(*args, mount=tmp_path))
    assert preparing.main() is ExitCode.PERMANENT
    assert f"(format {number})" in (tmp_path / "said").read_text()
    assert f"(format {FORMAT})" in capsys.readouterr().err
