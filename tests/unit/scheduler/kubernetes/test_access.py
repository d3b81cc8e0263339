"""Which tasks get a credential for the state manager, and what becomes of it."""

from __future__ import annotations

import base64
import json
from itertools import count
from pathlib import Path

import msgspec
import pytest

from ardea.errors import Conflict, NotFound, UserError
from ardea.scheduler.kubernetes import access, layout, names, pods, processes
from ardea.scheduler.kubernetes.kill import Killing
from ardea.scheduler.kubernetes.manifest_inputs import Defaults
from ardea.scheduler.kubernetes.submission import Options, prepare, submit
from ardea.scheduler.kubernetes.topologies import find
from ardea.state.address import SECRETS, Access, Address
from ardea.trident.drpc import labelled as labelled_by_name

EXAMPLE = Path(__file__).parents[4] / "examples" / "trident_word_count.py"
SECRET = "tridentwordcount-state"


@pytest.fixture
def trident():
    return prepare(str(EXAMPLE), {}, Options(), Defaults(image="i", state="zookeeper://zk:2181/ardea"))


def values(cluster):
    data = cluster.find("Secret", SECRET)["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def test_those_that_remember_transactions_or_serve_requests_get_it(trident):
    granted = trident.inputs.definition.state_users
    assert granted == {"$mastercoord-bg0", "$spoutcoord-spout-files", "spout-files", "spout-counts0"}
    holding, given = set(), set()
    for plan in trident.inputs.containers:
        spec = pods.container_job(trident.inputs, plan, {"metadata": {"uid": "u"}})["spec"]["template"]["spec"]
        assert "prepare" in {c["name"] for c in spec["initContainers"] if access.VOLUME not in json.dumps(c)}
        holding |= {c["name"] for c in spec["containers"] if access.VOLUME in json.dumps(c["volumeMounts"])}
        (volume,) = [v for v in spec["volumes"] if v["name"] == access.VOLUME]
        assert volume["secret"] == {"secretName": SECRET, "defaultMode": 0o440}
        specifications = processes.container(trident.inputs.id, plan, "10.0.0.1", granted)
        given |= {name for name, s in specifications.items() if str(layout.STATE_MOUNT) in s.argv}
    assert holding == given
    assert {name.rpartition("-")[0] for name in holding} == {component.lstrip("$") for component in granted}


def test_others_get_nothing(cluster, prepared):
    made = prepared()
    submit(cluster, made)
    assert cluster.find("Secret", "sums-state") is None
    assert access.VOLUME not in json.dumps(list(cluster.objects.values()))


def test_what_the_servers_want_to_see_is_mounted_where_the_state_is_opened(trident, prepared):
    def opening(inputs):
        found = set()
        for job in pods.jobs(inputs, None):
            spec = job["spec"]["template"]["spec"]
            for each in (*spec["initContainers"], *spec["containers"]):
                mounted = [m["name"] for m in each["volumeMounts"] if m["mountPath"] == str(layout.ZOOKEEPER_MOUNT)]
                told = [e["value"] for e in each["env"] if e["name"] == SECRETS]
                assert bool(mounted) == bool(told)
                if mounted:
                    (volume,) = [v for v in spec["volumes"] if v["name"] == mounted[0]]
                    assert volume["secret"] == {"secretName": "client", "defaultMode": 0o440}
                    assert told == [str(layout.ZOOKEEPER_MOUNT)]
                    found.add(each["name"])
        return found

    def given(option, default):
        return opening(prepared(options=Options(state_secret=option), state_secret=default).inputs)

    managers = {"stream-manager", "metrics-manager", "topology-master"}
    assert given(None, "client") == given("client", "") == given("client", "other") == managers
    assert given(None, "") == given("", "client") == set()
    inputs = trident.inputs
    found = opening(msgspec.structs.replace(inputs, pods=msgspec.structs.replace(inputs.pods, state_secret="client")))
    assert found > managers
    granted = {component.lstrip("$") for component in inputs.definition.state_users}
    assert {name.rpartition("-")[0] for name in found - managers} == granted


def test_an_author_may_ask_for_it(prepared):
    made = prepared(component={"topology.state.access": True})
    assert made.inputs.definition.state_users == {"adds_up"}


def test_the_credential_stands_in_its_secret_only(cluster, trident):
    submit(cluster, trident)
    user, _, password = values(cluster)["credential"].partition(":")
    assert values(cluster)["address"] == f"zookeeper://zk:2181/ardea/{user}"
    assert user != trident.inputs.id
    assert len(password) == 32
    others = {name: manifest for (_, name), manifest in cluster.objects.items() if name != SECRET}
    assert password not in json.dumps(others)
    assert base64.b64encode(password.encode()).decode() not in json.dumps(others)


def test_it_outlives_the_topology_for_the_next_one_of_its_name(cluster, trident):
    submit(cluster, trident)
    first = values(cluster)
    Killing(
        cluster, find(cluster, "TridentWordCount"), lambda _: None, clock=count().__next__, pause=lambda _: None
    ).kill(0.0)
    assert [name for _, name in cluster.objects] == [SECRET]
    moved = Defaults(image="i", state="zookeeper://moved/other/")
    submit(cluster, prepare(str(EXAMPLE), {}, Options(), moved))
    user = first["credential"].partition(":")[0]
    assert values(cluster) == {**first, "address": f"zookeeper://moved/other/{user}"}


def test_a_submit_that_is_refused_leaves_none(cluster, trident):
    cluster.refuses.add("tridentwordcount-container-1")
    with pytest.raises(NotFound):
        submit(cluster, trident)
    assert cluster.objects == {}


@pytest.mark.parametrize(
    ("key", "labels"),
    [
        ("password", {}),
        ("credential", {}),
        ("credential", names.of_name("TridentWordCounts")),
        ("password", names.of_name("TridentWordCount")),
    ],
)
def test_a_secret_of_somebody_else_is_left_as_it_is(cluster, trident, key, labels):
    metadata = {"name": SECRET, "labels": labels}
    there = cluster.apply({"kind": "Secret", "metadata": metadata, "data": {key: "eA=="}})
    with pytest.raises(Conflict, match=f"namespace here has a Secret {SECRET} .* it is left as it is"):
        submit(cluster, trident)
    assert list(cluster.objects.values()) == [there]


def test_what_is_mounted_is_read_and_not_shown(tmp_path):
    (tmp_path / "address").write_text("zookeeper://zk/ardea\n")
    with pytest.raises(UserError, match=f"{tmp_path}/credential"):
        Access.read(tmp_path)
    (tmp_path / "credential").write_text("me:s3cr3t\n")
    read = Access.read(tmp_path)
    assert read == Access("zookeeper://zk/ardea", "me:s3cr3t")
    assert "s3cr3t" not in repr(read)
    environment = {"ARDEA_ZOOKEEPER_AUTH": "other:word"}
    assert Address.parse(read.address, environment, read.credential).credential == "me:s3cr3t"
    assert Address.parse(read.address, environment).credential == "other:word"


def test_the_pod_that_serves_a_function_has_a_label_of_it(trident):
    labelled = {}
    for plan in trident.inputs.containers:
        job = pods.container_job(trident.inputs, plan, {"metadata": {"uid": "u"}})
        labels = job["spec"]["template"]["metadata"]["labels"]
        labelled[labels.get("drpc.ardea.dev/counts")] = {instance.component for instance in plan.instances}
    assert "spout-counts0" in labelled["true"]
    assert labelled_by_name("no label") == {}
    assert labelled_by_name("x" * 64) == {}
