"""What is added to pods in Kubernetes' own words, and what of Ardea's it never touches."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ardea.errors import UserError
from ardea.scheduler.kubernetes import pods
from ardea.scheduler.kubernetes.pod_spec import KEY, layered, merged

OWN_VOLUMES = {"home", "tmp", "topology", "code", "key", "access", "ardea-state", "ardea-account"}
FETCH = {"name": "fetch", "volumeMounts": [{"name": "model", "mountPath": "/model"}]}
PROXY = {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}
MODEL = {"name": "model", "mountPath": "/model", "emptyDir": {}}


def specs(inputs):
    """Of all pods, by the name of their Job."""
    return {job["metadata"]["name"]: job["spec"]["template"]["spec"] for job in pods.jobs(inputs, None)}


def configured(inputs, topology, component=None, namespace=None):
    """The same topology with this added to its pods; ``component``: to those with a task of adds_up."""
    shape = inputs.definition.shape
    own = [
        msgspec.structs.replace(c, config={**c.config, KEY: component or {}}) if c.name == "adds_up" else c
        for c in shape.components
    ]
    shape = msgspec.structs.replace(shape, config={**shape.config, KEY: topology}, components=own)
    return msgspec.structs.replace(
        inputs,
        definition=msgspec.structs.replace(inputs.definition, shape=shape),
        pods=msgspec.structs.replace(inputs.pods, spec=namespace or {}),
    )


def names(entries):
    return [entry["name"] for entry in entries]


def container(spec, name):
    (found,) = (each for each in (*spec["initContainers"], *spec["containers"]) if each["name"] == name)
    return found


def test_the_topology_adds_to_all_pods_and_a_component_to_those_with_its_tasks(prepared):
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}
    made = specs(
        prepared(
            {
                KEY: {"runtimeClassName": "gvisor", "nodeSelector": {"disk": "ssd"}, "affinity": affinity},
                "topology.stmgrs": 3,
                "heron.class.packing.algorithm": "ResourceCompliantRR",
                "topology.container.max.instances": 1,
            },
            {KEY: {"runtimeClassName": "runc", "nodeSelector": {"gpu": "yes"}}},
        ).inputs
    )
    ours = {name: any(each.startswith("adds-up") for each in names(spec["containers"])) for name, spec in made.items()}
    assert {True, False} <= set(ours.values())
    for name, spec in made.items():
        assert spec["runtimeClassName"] == ("runc" if ours[name] else "gvisor")
        assert spec["nodeSelector"] == {"disk": "ssd", **({"gpu": "yes"} if ours[name] else {})}
        assert spec["affinity"] == affinity


def test_the_namespace_is_below_the_topology(prepared):
    below = {
        "priorityClassName": "low",
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "nodeSelector": {"a": "1"},
    }
    above = {
        "priorityClassName": "high",
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "nodeSelector": {"a": None},
    }
    for spec in specs(prepared({KEY: above}, pod_spec=below).inputs).values():
        assert spec["priorityClassName"] == "high"
        assert [each["key"] for each in spec["tolerations"]][2:] == ["spot", "gpu"]
        assert spec["nodeSelector"] == {}


def test_init_containers_run_after_prepare_and_before_the_managers(prepared):
    inputs = prepared({}, {KEY: {"initContainers": [FETCH, PROXY]}, "heron.kubernetes.volumes": [MODEL]}).inputs
    for name, spec in specs(inputs).items():
        if "master" in name:
            assert names(spec["initContainers"]) == ["prepare", "metrics-manager"]
            continue
        assert names(spec["initContainers"]) == ["prepare", "fetch", "proxy", "stream-manager", "metrics-manager"]
        fetch, proxy = container(spec, "fetch"), container(spec, "proxy")
        assert (fetch["image"], fetch["imagePullPolicy"]) == ("ardea:test", "IfNotPresent")
        assert proxy == PROXY
        assert {"name": "model", "emptyDir": {}} in spec["volumes"]
        (adds,) = (each for each in spec["containers"] if each["name"].startswith("adds-up"))
        assert {"name": "model", "mountPath": "/model"} in adds["volumeMounts"]


def test_the_containers_of_a_component_are_hardened_and_get_devices(prepared):
    said = {"securityContext": {"readOnlyRootFilesystem": False}, "resources": {"limits": {"nvidia.com/gpu": 1}}}
    inputs = prepared({KEY: {"containers": [{"name": "adds_up", **said}]}}).inputs
    spec = specs(inputs)["sums-container-1"]
    adds, numbers = container(spec, "adds-up-0"), container(spec, "numbers-0")
    assert adds["securityContext"] == {**numbers["securityContext"], "readOnlyRootFilesystem": False}
    assert adds["resources"]["limits"] == {**numbers["resources"]["limits"], "nvidia.com/gpu": 1}
    assert adds["resources"]["requests"] == numbers["resources"]["requests"]


def test_all_of_a_pod_runs_as_the_user_that_is_said(prepared):
    inputs = prepared({KEY: {"securityContext": {"runAsUser": 4711, "supplementalGroups": [7]}}}).inputs
    for spec in specs(inputs).values():
        security = spec["securityContext"]
        assert (security["runAsUser"], security["supplementalGroups"]) == (4711, [7])
        assert security["runAsNonRoot"]
        assert all("runAsUser" not in each["securityContext"] for each in spec["containers"])


def test_constraints_replace_the_spreading_and_select_the_topologys_pods(prepared):
    zone = {"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    other = {**zone, "labelSelector": {"matchLabels": {"app": "db"}}}
    inputs = prepared().inputs
    plain = specs(inputs)
    for name, spec in specs(configured(inputs, {"topologySpreadConstraints": [zone, other]})).items():
        first, second = spec["topologySpreadConstraints"]
        (own,) = plain[name]["topologySpreadConstraints"]
        assert (first, second) == ({**zone, "labelSelector": own["labelSelector"]}, other)
    for spec in specs(configured(inputs, {"topologySpreadConstraints": []})).values():
        assert spec["topologySpreadConstraints"] == []


def test_lists_with_names_are_merged_by_them():
    below = {"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {"medium": "Memory"}}]}
    above = {
        "volumes": [{"name": "b", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "c"}],
        "hostAliases": [{"ip": "1.2.3.4"}],
    }
    assert merged(below, above) == {
        "volumes": [
            {"name": "a", "emptyDir": {}},
            {"name": "b", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "c"},
        ],
        "hostAliases": [{"ip": "1.2.3.4"}],
    }
    assert merged(below, {"volumes": None}) == {}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"restartPolicy": "Always"}, "restartPolicy, which is Ardea's: how a Job ends depends on it"),
        ({"serviceAccountName": "admin"}, "serviceAccounts of the chart"),
        ({"automountServiceAccountToken": True}, "user code gets none"),
        ({"hostNetwork": True}, "by names that each pod has for itself"),
        ({"hostPID": True}, "process 1 of each container is its supervisor"),
        ({"shareProcessNamespace": True}, "process 1 of each container is its supervisor"),
        ({"terminationGracePeriodSeconds": 5}, "set heron.kubernetes.grace.secs"),
        ({"activeDeadlineSeconds": 60}, "`ardea kill`"),
        ({"volumes": [{"name": "home", "emptyDir": {}}]}, "home is a name of Ardea's own"),
        ({"volumes": [{"name": "key", "emptyDir": {}}]}, "key is a name of Ardea's own"),
        ({"initContainers": [{"name": "prepare"}]}, "prepare is a name of Ardea's own"),
        ({"initContainers": [{"name": "stream-manager"}]}, "stream-manager is a name of Ardea's own"),
        ({"initContainers": [{"name": "numbers-0"}]}, "numbers-0 is a name of Ardea's own"),
        (
            {"initContainers": [{"name": "a", "volumeMounts": [{"name": "home"}]}]},
            "mounts home, which nobody has added",
        ),
        ({"initContainers": [PROXY, PROXY]}, "two initContainers of the name proxy"),
        ({"containers": [{"name": "shipper"}]}, r"containers has shipper, and takes the names of components only"),
        ({"containers": [{"name": "numbers", "image": "x"}]}, "container numbers, cannot set image, which is Ardea's"),
        ({"containers": [{"name": "numbers", "command": []}]}, "cannot set command, which is Ardea's"),
        ({"containers": [{"name": "numbers", "env": []}]}, "set heron.kubernetes.env"),
        ({"containers": [{"name": "numbers", "volumeMounts": []}]}, "set heron.kubernetes.volumes"),
        ({"containers": [{"name": "numbers", "securityContext": {"runAsUser": 1}}]}, "run as one user"),
        ({"containers": [{"name": "numbers", "resources": {"limits": {"cpu": 1}}}]}, "what it was packed with"),
        ({"containers": [{"name": "numbers", "ports": [{"name": "metrics"}]}]}, "cannot name a port metrics"),
        ({"tolerations": "spot"}, r"no part of a PodSpec: Expected `array \| null`, got `str` - at `\$.tolerations`"),
        ({"volumes": [{"emptyDir": {}}]}, r"missing required field `name` - at `\$.volumes\[0\]`"),
    ],
)
def test_what_is_ardeas_is_refused_with_the_reason(prepared, said, why):
    with pytest.raises(UserError, match=why):
        prepared({KEY: said})


def test_a_volume_of_a_component_is_not_in_a_masters_pod(prepared):
    inputs = prepared({"heron.kubernetes.volumes": [MODEL]}).inputs
    with pytest.raises(UserError, match="init container fetch mounts model, which nobody has added") as refused:
        specs(configured(inputs, {"initContainers": [FETCH]}))
    assert "not in masters'" in refused.value.hint
    specs(configured(inputs, {}, {"initContainers": [FETCH]}))
    specs(configured(inputs, {"initContainers": [FETCH], "volumes": [{"name": "model", "emptyDir": {}}]}))


def test_the_namespace_is_named_where_it_is_wrong(prepared):
    for said in ({"restartPolicy": "Never"}, {"containers": [{"name": "numbers"}]}):
        with pytest.raises(UserError, match=r"^topology.podSpec of the chart"):
            prepared(pod_spec=said)


def test_components_of_one_pod_that_want_different_things_are_refused():
    def both(one, other):
        return layered({}, {}, {"one": one, "other": other}, ["one", "other"])

    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = [{"nodeAffinity": {required: {"nodeSelectorTerms": [{"matchFields": []}] * n}}} for n in (1, 2)]
    for one, other, where in (
        ({"runtimeClassName": "a"}, {"runtimeClassName": "b"}, "runtimeClassName"),
        ({"nodeSelector": {"gpu": "a"}}, {"nodeSelector": {"gpu": None}}, "nodeSelector.gpu"),
        ({"affinity": terms[0]}, {"affinity": terms[1]}, f"affinity.nodeAffinity.{required}.nodeSelectorTerms"),
        ({"initContainers": [PROXY]}, {"initContainers": [{**PROXY, "image": "x"}]}, "initContainers.proxy.image"),
        ({"volumes": None}, {"volumes": [{"name": "a"}]}, "volumes"),
    ):
        with pytest.raises(UserError, match=rf"^one and other have tasks in one pod, .* differ in {where}$"):
            both(one, other)
    assert both({"nodeSelector": {"a": "1"}, "tolerations": [{"key": "x"}]}, {"tolerations": [{"key": "y"}]}) == {
        "nodeSelector": {"a": "1"},
        "tolerations": [{"key": "x"}, {"key": "y"}],
    }


def mostly(accepted, refused):
    """One refusal hides all that stands beside it."""
    return st.integers(0, 19).flatmap(lambda number: accepted if number else refused)


text = st.sampled_from(["mine", "b", "c", "d", "e"])
called = mostly(text, st.sampled_from(["key", "home", "prepare", "stream-manager", "numbers-0"]))
values = st.one_of(st.none(), text, st.integers(0, 9), st.lists(text, max_size=2))
loose = st.dictionaries(text, values, max_size=3)
amounts = st.dictionaries(st.sampled_from(["gpu", "fpga", "tpu", "npu", "cpu"]), st.integers(1, 9), max_size=1)
resources = st.fixed_dictionaries({}, optional={"limits": amounts, "requests": amounts})
hardening = st.dictionaries(mostly(st.just("privileged"), st.just("runAsUser")), st.booleans(), max_size=1)
mounts = st.fixed_dictionaries({"name": mostly(st.just("given"), called), "mountPath": text})
added_containers = st.fixed_dictionaries(
    {"name": called, "image": text},
    optional={
        "command": st.lists(text, max_size=1),
        "restartPolicy": st.just("Always"),
        "securityContext": loose,
        "resources": resources,
        "volumeMounts": st.lists(mounts, max_size=1),
    },
)
of_tasks = st.fixed_dictionaries(
    {"name": st.just("adds_up")},
    optional={"securityContext": hardening, "resources": resources, "ports": st.lists(loose, max_size=1)},
)
fine = st.fixed_dictionaries(
    {"volumes": st.builds(lambda name, source: [{"name": "given"}, {"name": name, "emptyDir": source}], called, loose)},
    optional={
        "enableServiceLinks": st.booleans(),
        "unknown": loose,
        "initContainers": st.lists(added_containers, max_size=2, unique_by=lambda entry: entry["name"]),
        "containers": st.lists(of_tasks, max_size=1),
        "tolerations": st.lists(loose, max_size=2),
        "topologySpreadConstraints": st.lists(loose, max_size=2),
        "securityContext": loose,
        "nodeSelector": st.dictionaries(text, text, max_size=2),
    },
)
ours = st.dictionaries(st.sampled_from(["restartPolicy", "hostNetwork", "serviceAccountName"]), values, min_size=1)
fragments = mostly(fine, st.builds(lambda one, other: one | other, fine, ours))
KEPT = ("restartPolicy", "serviceAccountName", "automountServiceAccountToken", "terminationGracePeriodSeconds")
PACKED = ("cpu", "memory", "ephemeral-storage")
ACCEPTED = (
    {"volumes": [{"name": "given"}], "initContainers": [FETCH | {"volumeMounts": [{"name": "given"}]}]},
    {"containers": [{"name": "adds_up", "securityContext": {"privileged": False}}], "tolerations": [{"key": "gpu"}]},
    {"nodeSelector": {"disk": "ssd"}, "securityContext": {"fsGroup": 7}, "initContainers": [PROXY]},
)
"""For the topology, a component and the namespace."""


def test_whatever_is_added_what_is_ardeas_is_unchanged(prepared):
    """It is refused, or it leaves alone what processes, keys and the end of a Job depend on."""
    plain = prepared().inputs
    before = specs(plain)

    @example(*ACCEPTED)
    @given(fragments, fragments, fragments.filter(lambda fragment: "containers" not in fragment))
    def holds(topology, component, namespace):
        try:
            after = specs(configured(plain, topology, component, namespace))
        except UserError:
            assert (topology, component, namespace) != ACCEPTED
            return
        for name, spec in before.items():
            unchanged(spec, after[name])

    holds()


def unchanged(before, after):
    assert {key: after[key] for key in KEPT} == {key: before[key] for key in KEPT}
    assert not {"hostNetwork", "hostPID", "shareProcessNamespace", "activeDeadlineSeconds"} & after.keys()
    assert all(each in after["volumes"] for each in before["volumes"])
    assert len(set(names(after["volumes"]))) == len(after["volumes"])
    assert all(each in after["tolerations"] for each in before["tolerations"])
    own = [each for each in after["initContainers"] if each["name"] in names(before["initContainers"])]
    assert own == before["initContainers"]
    assert after["initContainers"][0] == own[0]
    others = [each for each in after["initContainers"] if each not in own]
    assert [*after["initContainers"]] == [own[0], *others, *own[1:]]
    assert not {mount["name"] for each in others for mount in each.get("volumeMounts", ())} & OWN_VOLUMES
    everyone = [*names(after["initContainers"]), *names(after["containers"])]
    assert len(set(everyone)) == len(everyone)
    for former, now in zip(before["containers"], after["containers"], strict=True):
        changeable = ("securityContext", "resources", "ports")
        assert {k: v for k, v in now.items() if k not in changeable} == {
            k: v for k, v in former.items() if k not in changeable
        }
        assert now.get("ports", [])[: len(former.get("ports", []))] == former.get("ports", [])
        assert not {"runAsUser", "runAsGroup"} & now["securityContext"].keys()
        for kind in ("requests", "limits"):
            packed = [(now["resources"][kind].get(key), former["resources"][kind].get(key)) for key in PACKED]
            assert all(is_ == was for is_, was in packed)
