"""Whether a container fits a node, with nodes as the cluster's own client describes them."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes import client

from ardea.errors import ClusterError, UserError
from ardea.scheduler.kubernetes import capacity, doctor, pods
from ardea.scheduler.kubernetes.manifest_file import CHART
from ardea.scheduler.kubernetes.manifest_inputs import Defaults
from ardea.scheduler.kubernetes.submission import Options, prepare

GIB = 1 << 30
EXAMPLES = [path for path in sorted((Path(__file__).parents[4] / "examples").glob("*.py")) if path.stem != "test_hello"]
OWNER = {"metadata": {"uid": "of-the-root"}}


def node(name="node-1", cpu="4", memory="8Gi", disk="20Gi", labels=None, taints=()):
    """As the API server sends it."""
    made = client.V1Node(
        kind="Node",
        metadata=client.V1ObjectMeta(name=name, labels={"kubernetes.io/os": "linux", **(labels or {})}),
        spec=client.V1NodeSpec(taints=[client.V1Taint(**taint) for taint in taints] or None),
        status=client.V1NodeStatus(
            capacity={"cpu": "64", "memory": "512Gi", "ephemeral-storage": "900Gi", "pods": "110"},
            allocatable={"cpu": cpu, "memory": memory, "ephemeral-storage": disk, "pods": "110", "hugepages-2Mi": "0"},
        ),
    )
    return client.ApiClient().sanitize_for_serialization(made)


def container(cpu="100m", memory="1Gi", **more):
    wanted = client.V1ResourceRequirements(requests={"cpu": cpu, "memory": memory, "ephemeral-storage": "64Mi"})
    return client.V1Container(name="count-1", resources=wanted, **more)


def pod(*containers, **spec):
    made = client.V1PodSpec(containers=list(containers) or [container()], **spec)
    return client.ApiClient().sanitize_for_serialization(made)


def test_nothing_is_said_if_one_node_is_large_enough():
    nodes = [node(memory="1Gi"), node("node-2", memory="4Gi")]
    assert capacity.shortage(nodes, [("a", pod(container(memory="3Gi")))]) == ""
    assert capacity.shortage(nodes, []) == ""


def test_one_sentence_says_what_is_asked_for_and_what_there_is():
    nodes = [node(cpu="8", memory="7900Mi"), node("node-2", cpu="2", memory="3Gi")]
    jobs = [("words-container-1", pod(container(memory="9Gi"))), ("words-container-2", pod(container(memory="12Gi")))]
    said = capacity.shortage(nodes, jobs)
    assert said == (
        "no node is large enough for the pod of words-container-2 (count-1) (like 1 more), even when it is empty, so "
        "it cannot be scheduled: it asks for 12.00 GiB of memory, and node-1, which comes closest, has 7.71 GiB of "
        "memory; more containers (--containers) make each of them smaller, and ram=, cpu= and disk= of components say "
        "what a task asks for"
    )


def test_all_that_is_short_is_named():
    said = capacity.shortage([node(cpu="1500m")], [("a", pod(container(cpu="2"), container(cpu="250m", memory="9Gi")))])
    assert "it asks for 2.25 CPU, 10.00 GiB of memory, and node-1, which comes closest, has 1.5 CPU, 8.00 GiB" in said


def test_a_node_has_to_be_large_enough_in_every_respect():
    """Neither of these is, although both amounts exist."""
    nodes = [node(cpu="16", memory="2Gi"), node("node-2", cpu="1", memory="64Gi")]
    said = capacity.shortage(nodes, [("a", pod(container(cpu="8", memory="4Gi")))])
    assert "it asks for 4.00 GiB of memory, and node-1, which comes closest, has 2.00 GiB of memory" in said


def test_nodes_that_do_not_take_the_pod_do_not_count():
    small, tainted = node(memory="1Gi"), {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    large = node("node-2", memory="64Gi", labels={"disk": "ssd"}, taints=[tainted])
    wanted = [container(memory="8Gi")]
    said = capacity.shortage([small, large], [("a", pod(*wanted))])
    assert "node-1, which comes closest, has 1.00 GiB" in said
    tolerations = [client.V1Toleration(key="gpu", operator="Exists")]
    assert capacity.shortage([small, large], [("a", pod(*wanted, tolerations=tolerations))]) == ""
    said = capacity.shortage([small, large], [("a", pod(*wanted, node_selector={"disk": "ssd"}))])
    assert said.startswith(
        "no node takes the pod of a, so it cannot be scheduled: none has the label disk=ssd and only taints that it"
    )


@pytest.mark.parametrize(
    ("toleration", "admitted"),
    [
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_taint_is_tolerated_as_kubernetes_has_it(toleration, admitted):
    tainted = node(taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    assert capacity.admits(tainted, pod(tolerations=[client.V1Toleration(**toleration)])) is admitted


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affine(*terms):
    return pod() | {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ({"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}, True),
        ({"key": "disk", "operator": "In", "values": ["hdd"]}, False),
        ({"key": "rack", "operator": "In", "values": ["1"]}, False),
        ({"key": "disk", "operator": "NotIn", "values": ["hdd"]}, True),
        ({"key": "rack", "operator": "NotIn", "values": ["1"]}, True),
        ({"key": "disk", "operator": "NotIn", "values": ["ssd"]}, False),
        ({"key": "disk", "operator": "Exists"}, True),
        ({"key": "rack", "operator": "Exists"}, False),
        ({"key": "rack", "operator": "DoesNotExist"}, True),
        ({"key": "disk", "operator": "DoesNotExist"}, False),
        ({"key": "cores", "operator": "Gt", "values": ["7"]}, True),
        ({"key": "cores", "operator": "Gt", "values": ["8"]}, False),
        ({"key": "cores", "operator": "Lt", "values": ["9"]}, True),
        ({"key": "cores", "operator": "Lt", "values": ["8"]}, False),
        ({"key": "rack", "operator": "Lt", "values": ["8"]}, False),
        ({"key": "disk", "operator": "Gt", "values": ["8"]}, False),
    ],
)
def test_node_affinity_is_as_kubernetes_has_it(expression, allowed):
    labelled = node(labels={"disk": "ssd", "cores": "8"})
    assert capacity.admits(labelled, affine({"matchExpressions": [expression]})) is allowed
    never = {"matchExpressions": [{"key": "no", "operator": "Exists"}]}
    assert capacity.admits(labelled, affine({"matchExpressions": [expression]}, never)) is allowed, (
        "terms are alternatives"
    )
    both = {"matchExpressions": [expression, {"key": "disk", "operator": "Exists"}]}
    assert capacity.admits(labelled, affine(both)) is allowed
    assert not capacity.admits(labelled, affine({"matchExpressions": [expression, *never["matchExpressions"]]}))


def test_affinity_names_a_node_and_an_empty_term_none():
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    assert capacity.admits(node("node-1"), affine(named))
    assert not capacity.admits(node("node-2"), affine(named))
    assert not capacity.admits(node(), affine({}))
    said = capacity.shortage([node("node-2")], [("a", affine(named))])
    assert "none fits its affinity and has only taints that it tolerates" in said


def test_affinity_to_pods_and_what_is_preferred_keep_nobody_away():
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}]}
    wanted = {"nodeAffinity": preferred, "podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]}}
    assert capacity.admits(node(), pod() | {"affinity": wanted})


def test_a_container_that_asks_for_nothing_or_has_a_limit_alone_counts_as_kubernetes_counts():
    sidecar = {"name": "proxy", "restartPolicy": "Always"}
    limited = {"name": "fetch", "resources": {"limits": {"memory": "5Gi", "cpu": 1}, "requests": {"cpu": "2"}}}
    asked = capacity.requests(pod() | {"initContainers": [sidecar, limited]})
    assert (asked["cpu"], asked["memory"]) == (2000, 5 * GIB)
    with pytest.raises(UserError, match=r"'lots'.* are no amounts that Kubernetes knows"):
        capacity.requests(pod() | {"initContainers": [{"name": "a", "resources": {"limits": {"memory": "lots"}}}]})


def test_a_soft_taint_keeps_nobody_away_and_a_cordon_not_for_ever():
    assert capacity.admits(node(taints=[{"key": "a", "effect": "PreferNoSchedule"}]), pod())
    cordoned = node(taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])
    assert capacity.admits(cordoned, pod())
    assert capacity.largest([cordoned]) == capacity.NONE


def test_sidecars_count_beside_the_containers_and_init_containers_before_them():
    sidecar = container(cpu="500m", memory="1Gi", restart_policy="Always")
    first, small = container(cpu="3", memory="1Gi"), container(cpu="1", memory="4Gi")
    asked = capacity.requests(pod(small, small, init_containers=[sidecar, first]))
    assert (asked["cpu"], asked["memory"]) == (3500, 9 * GIB)
    before_the_sidecar = capacity.requests(pod(small, small, init_containers=[first, sidecar]))
    assert before_the_sidecar["cpu"] == 3000


def many(number, name="words-container", **asks):
    return [(f"{name}-{n + 1}", pod(container(**asks))) for n in range(number)]


def test_pods_that_have_too_few_places_are_told_with_both_numbers():
    """Two of them fit no node of four cores, although three nodes have cores enough for all."""
    nodes = [node(f"node-{number}") for number in range(3)]
    assert capacity.shortage(nodes, many(3, cpu="3")) == ""
    assert capacity.shortage(nodes, [*many(2, "words-master", cpu="500m"), *many(4, cpu="2500m")]) == (
        "4 pods ask for as much as that of words-container-1 (2.5 CPU, 1.00 GiB of memory, 0.06 GiB of disk) or more, "
        "and the nodes have room for 3 of these, even when they are empty, so not all can be scheduled; ram=, cpu= and "
        "disk= of components say what a task asks for"
    )


def test_pods_that_ask_for_too_much_together_are_told_with_both_amounts():
    unequal = [(f"p-{n}", pod(container(cpu=f"{n}500m", memory=f"{3 - n}Gi"))) for n in range(3)]
    assert capacity.shortage([node(cpu="5", memory="6Gi")], unequal) == ""
    assert capacity.shortage([node(cpu="4", memory="5Gi")], unequal) == (
        "the 3 pods ask for 4.5 CPU, 6.00 GiB of memory together, and the nodes have 4 CPU, 5.00 GiB of memory, even "
        "when they are empty, so not all can be scheduled; ram=, cpu= and disk= of components say what a task asks for"
    )


def test_a_node_has_places_for_so_many_pods():
    assert capacity.shortage([node(cpu="64", memory="512Gi")], many(110)) == ""
    assert "have room for 110 of these" in capacity.shortage([node(cpu="64", memory="512Gi")], many(111))


def test_nodes_that_take_none_of_the_pods_have_no_room():
    tainted = node("node-2", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])
    assert "room for 1 of these" in capacity.shortage([node(), tainted], many(2, cpu="3"))


amounts = st.integers(1, 64)


@given(st.lists(st.lists(st.tuples(amounts, amounts), min_size=1, max_size=4), min_size=1, max_size=4))
def test_what_has_been_placed_is_never_refused(placed):
    """Nodes that are exactly as large as the pods that were put onto each."""
    nodes = [
        node(f"n{number}", cpu=str(sum(c for c, _ in pods_)), memory=f"{sum(m for _, m in pods_)}Gi")
        for number, pods_ in enumerate(placed)
    ]
    everything = enumerate(itertools.chain(*placed))
    wanted = [(f"p{n}", pod(container(cpu=str(cpu), memory=f"{ram}Gi"))) for n, (cpu, ram) in everything]
    assert capacity.shortage(nodes, wanted) == ""


@given(asked=st.tuples(amounts, amounts), nodes=st.lists(st.tuples(amounts, amounts), min_size=1, max_size=5))
def test_something_is_short_exactly_if_no_node_fits(asked, nodes):
    there = [node(f"n{number}", cpu=str(cpu), memory=f"{ram}Gi") for number, (cpu, ram) in enumerate(nodes)]
    said = capacity.shortage(there, [("a", pod(container(cpu=str(asked[0]), memory=f"{asked[1]}Gi")))])
    assert bool(said) is not any(asked[0] <= cpu and asked[1] <= ram for cpu, ram in nodes)


@given(st.lists(st.tuples(amounts, amounts, st.sampled_from(["main", "init", "sidecar"])), max_size=6))
def test_a_pod_asks_for_the_most_that_runs_at_a_time(parts):
    """Started one by one: an init container is gone before the next, a sidecar stays."""
    made = {"main": [], "init": []}
    staying = most = (0, 0)
    for cpu, ram, kind in sorted(parts, key=lambda part: part[2] == "main"):
        of = container(cpu=str(cpu), memory=f"{ram}Gi", restart_policy="Always" if kind == "sidecar" else None)
        made["main" if kind == "main" else "init"].append(of)
        now = (staying[0] + cpu, staying[1] + ram)
        most = tuple(map(max, most, now))
        staying = staying if kind == "init" else now
    spec = client.V1PodSpec(containers=made["main"], init_containers=made["init"])
    asked = capacity.requests(client.ApiClient().sanitize_for_serialization(spec))
    assert (asked["cpu"], asked["memory"]) == (most[0] * 1000, most[1] * GIB)


class Cluster:
    """Only lists nodes, or does not."""

    namespace = "here"

    def __init__(self, nodes):
        self.nodes = nodes

    def list(self, kind, selector=""):
        assert (kind, selector) == ("Node", "")
        if self.nodes is None:
            raise ClusterError("cannot list Nodes in namespace here: nodes is forbidden")
        return self.nodes


def test_a_topology_with_a_pod_for_no_node_is_refused(prepared):
    inputs = prepared().inputs
    asked = max(capacity.requests(job["spec"]["template"]["spec"])["memory"] for job in pods.jobs(inputs, OWNER))
    capacity.require(Cluster([node(memory=str(asked))] * 4), inputs)
    with pytest.raises(UserError, match=r"^no node is large enough for the pod of sums-container-") as refused:
        capacity.require(Cluster([node(memory=str(asked - 1))] * 4), inputs)
    assert "heron.kubernetes.nodes.grow=true" in refused.value.hint


def test_so_is_one_whose_pods_fit_one_by_one_and_not_together(prepared):
    inputs = prepared().inputs
    asked = max(capacity.requests(job["spec"]["template"]["spec"])["memory"] for job in pods.jobs(inputs, OWNER))
    with pytest.raises(UserError, match="so not all can be scheduled") as refused:
        capacity.require(Cluster([node(memory=str(asked))]), inputs)
    assert "heron.kubernetes.nodes.grow=true" in refused.value.hint


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_fits_a_small_cluster_with_other_work_on_it(example):
    """Half of four cores, masters included."""
    loaded = sys.modules.copy()
    config = {"topology.stmgrs": 2, "topology.stateful.storage": "s3://bucket/snapshots"}
    inputs = prepare(str(example), config, Options(), CHART).inputs
    if example.stem not in loaded:
        del sys.modules[example.stem]  # other tests load it in folders of their own
    asked = [capacity.requests(job["spec"]["template"]["spec"])["cpu"] for job in pods.jobs(inputs, None)]
    assert sum(asked) <= 2000


def test_nodes_may_come_when_they_are_asked_for(prepared):
    inputs = prepared({"heron.kubernetes.nodes.grow": True}).inputs
    capacity.require(Cluster([node(memory="1Mi")]), inputs)
    capacity.require(Cluster([]), inputs)


def test_who_may_not_list_nodes_hears_nothing(prepared):
    capacity.require(Cluster(None), prepared().inputs)


@pytest.mark.parametrize(
    ("nodes", "row"),
    [
        (None, ("nodes", True, "may not be listed, so that submit cannot refuse a container that fits none")),
        ([], ("nodes", False, "none takes pods")),
        (
            [node(), node("big", cpu="7910m", memory="15Gi"), node("no", taints=[{"key": "x", "effect": "NoExecute"}])],
            ("nodes", True, "2 take pods; the largest has 7.91 CPU, 15.00 GiB of memory, 20.00 GiB of disk"),
        ),
    ],
    ids=["forbidden", "none", "three"],
)
def test_doctor_says_how_large_the_nodes_are(monkeypatch, nodes, row):
    cluster = Cluster(nodes)
    monkeypatch.setattr(cluster, "version", lambda: (1, 34), raising=False)
    monkeypatch.setattr(cluster, "may", lambda *_: True, raising=False)
    monkeypatch.setattr(doctor, "find_defaults", lambda _: Defaults(image="a", state="b"))
    found = list(doctor.checks(cluster))
    assert row in found
    assert [(what, good) for what, good, _ in found if what.startswith("rights") and not good] == []
