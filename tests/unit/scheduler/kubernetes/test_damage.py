"""A root that cannot be read: no other topology of the namespace is disturbed, and its own verbs say what to do."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ardea.errors import StateError
from ardea.scheduler.kubernetes import names, objects
from ardea.scheduler.kubernetes.manifest_inputs import DEFINITION
from ardea.scheduler.kubernetes.submission import submit
from ardea.scheduler.kubernetes.topologies import find, listing, with_health
from ardea.scheduler.kubernetes.uninstall import refusal

OTHER = "others-00000000"
DAMAGED = [
    {},
    {"data": {}},
    {"data": {objects.RECORD: "{"}},
    {"data": {objects.RECORD: '{"id": 5}'}},
]


def damaged(content):
    labels = names.labels(OTHER) | {names.ROLE: "topology"}
    return {"kind": "ConfigMap", "metadata": {"name": "others", "namespace": "here", "labels": labels}, **content}


@pytest.fixture
def made(cluster, prepared):
    submit(cluster, made := prepared())
    return made


@pytest.mark.parametrize("content", DAMAGED)
def test_others_are_found_and_listed(cluster, made, content):
    cluster.apply(damaged(content))
    assert find(cluster, "Sums").id == find(cluster, made.inputs.id).id == made.inputs.id
    rows = {each.id: each for each in with_health(cluster, listing(cluster), datetime.now(UTC))}
    assert rows[made.inputs.id].problem is None
    assert (rows[OTHER].state, rows[OTHER].running, rows[OTHER].record) == ("UNREADABLE", True, None)


@pytest.mark.parametrize("content", DAMAGED)
def test_its_own_verbs_name_the_object_and_what_to_do(cluster, content):
    cluster.apply(damaged(content))
    with pytest.raises(StateError, match="ConfigMap others, the root of a topology, cannot be read") as raised:
        find(cluster, "others")
    assert "`kubectl delete configmap others -n here`" in str(raised.value.hint)
    assert f"{OTHER} still runs" in refusal(cluster, "ardea", "3")


@pytest.mark.parametrize("said", ["{", '{"state": 5}', '{"state": "GOING"}'])
def test_so_it_is_where_the_status_cannot_be_read(cluster, made, said):
    cluster.patch("ConfigMap", "sums", {"metadata": {"annotations": {objects.STATUS: said}}})
    (row,) = with_health(cluster, listing(cluster), datetime.now(UTC))
    assert (row.id, row.state, row.running) == (made.inputs.id, "UNREADABLE", True)
    with pytest.raises(StateError, match="ConfigMap sums"):
        find(cluster, "Sums")


def test_a_definition_that_is_gone_is_named_when_it_is_needed(cluster, made):
    del cluster.objects["ConfigMap", "sums"]["binaryData"][DEFINITION]
    found = find(cluster, "Sums")
    with pytest.raises(StateError, match=f"ConfigMap sums, .* it has no '{DEFINITION}'"):
        found.inputs  # noqa: B018


def test_a_name_whose_root_cannot_be_read_is_not_taken_over(cluster, made, prepared):
    cluster.objects["ConfigMap", "sums"].pop("data")
    with pytest.raises(StateError, match="ConfigMap sums"):
        submit(cluster, prepared())
    assert ("ConfigMap", "sums") in cluster.objects
