"""The manifests, by their structure: what Kubernetes refuses or ignores silently must stand in them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from importlib.util import find_spec

import pytest

from ardea.cli.yaml import as_yaml
from ardea.errors import UserError
from ardea.scheduler.kubernetes import layout, objects, pods, processes
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.scheduler.kubernetes.submission import Options
from ardea.state.address import CREDENTIAL

RESTRICTED = {"emptyDir", "configMap", "secret", "projected"}
"""Of the volumes that the Pod Security standard `restricted` allows."""
OWNER = {"metadata": {"uid": "u-1"}}


def jobs(prepared, **config):
    return pods.jobs(prepared(config, image_pull_policy="IfNotPresent").inputs, OWNER)


def pod(job):
    return job["spec"]["template"]["spec"]


def containers(job):
    return {c["name"]: c for c in (*pod(job)["initContainers"], *pod(job)["containers"])}


def env(container):
    return {each["name"]: each for each in container["env"]}


def test_two_masters_and_a_job_for_each_container(prepared):
    assert [job["metadata"]["name"] for job in jobs(prepared)] == [
        "sums-master-1",
        "sums-master-2",
        "sums-container-1",
        "sums-container-2",
    ]


def test_each_instance_is_a_container_of_its_own_behind_the_managers(prepared):
    first = jobs(prepared)[2]
    assert [c["name"] for c in pod(first)["initContainers"]] == ["prepare", "stream-manager", "metrics-manager"]
    assert [c.get("restartPolicy") for c in pod(first)["initContainers"]] == [None, "Always", "Always"]
    assert [c["name"] for c in pod(first)["containers"]] == ["adds-up-0", "numbers-0"]


def test_tasks_end_as_the_stream_manager_of_their_pod_does(prepared):
    for job in jobs(prepared):
        led = {name for name, container in containers(job).items() if "--leader" in container["command"]}
        assert led == containers(job).keys() - {"prepare", "stream-manager", "metrics-manager", "topology-master"}
        for name in led:
            *_, folder, leader = containers(job)[name]["command"]
            assert leader == "stream-manager"
            assert containers(job)[leader]["command"][7:9] == ["--folder", folder]


def test_everything_passes_the_restricted_standard(prepared):
    for job in jobs(prepared):
        spec = pod(job)
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in containers(job).values():
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"]
            assert not security["allowPrivilegeEscalation"]
            assert security["capabilities"] == {"drop": ["ALL"]}
        assert {kind for v in spec["volumes"] for kind in v if kind != "name"} <= RESTRICTED


def test_masters_end_as_the_topology_does_and_containers_go_on(prepared):
    master, *_, container = jobs(prepared)
    assert pod(master)["restartPolicy"] == "Never"
    rules = master["spec"]["podFailurePolicy"]["rules"]
    failing = [rule["onExitCodes"] for rule in rules if rule["action"] == "FailJob"]
    assert {rule["containerName"]: rule["values"] for rule in failing} == {"prepare": [78], "topology-master": [78]}
    assert rules[-1] == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert pod(container)["restartPolicy"] == "OnFailure"
    assert container["spec"]["backoffLimit"] == 2147483647


def test_user_code_has_neither_the_clusters_nor_the_states_credential(prepared):
    master, _, container, _ = jobs(prepared)
    assert not pod(master)["automountServiceAccountToken"]
    assert not pod(container)["automountServiceAccountToken"]
    assert not any("serviceAccountToken" in json.dumps(volume) for volume in pod(container)["volumes"])
    given = {name: CREDENTIAL in env(c) for name, c in containers(container).items()}
    assert given == {
        "prepare": False,
        "stream-manager": True,
        "metrics-manager": True,
        "adds-up-0": False,
        "numbers-0": False,
    }
    assert not any("access" in json.dumps(c["volumeMounts"]) for c in containers(container).values())


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
def test_of_a_masters_pod_the_container_that_asks_the_api_server_has_a_token_alone(prepared, mode):
    """An author's init containers run beside it.  The volume is the one that Kubernetes adds by itself."""
    config = {"topology.reliability.mode": mode, "topology.stateful.storage": "/snapshots"}
    added = {"initContainers": [{"name": "fetch", "image": "i"}]}
    master = jobs(prepared, **config, **{"heron.kubernetes.pod.spec": added})[0]
    (volume,) = [v for v in pod(master)["volumes"] if "serviceAccountToken" in json.dumps(v)]
    kinds = [next(iter(source)) for source in volume["projected"]["sources"]]
    assert kinds == ["serviceAccountToken", "configMap", "downwardAPI"]
    mounts = {
        name: [m["mountPath"] for m in c.get("volumeMounts", ()) if m["name"] == volume["name"]]
        for name, c in containers(master).items()
    }
    assert mounts.pop("topology-master") == ["/var/run/secrets/kubernetes.io/serviceaccount"]
    assert mounts == {"prepare": [], "fetch": [], "metrics-manager": []}


def test_user_code_writes_into_its_own_folder_only(prepared):
    instance = containers(jobs(prepared)[2])["numbers-0"]
    home, own, tmp = instance["volumeMounts"]
    assert (home["mountPath"], home["readOnly"]) == (str(layout.HOME), True)
    assert own["mountPath"].endswith("/container-1/numbers-0")
    assert own["mountPath"] == f"{layout.HOME}/{own['subPath']}"
    assert (tmp["mountPath"], tmp["subPath"]) == ("/tmp", "numbers-0")


def test_what_a_task_needs_is_what_its_container_gets(prepared):
    config = {"topology.component.rammap": {"numbers": "300MiB"}, "topology.component.cpumap": {"numbers": 0.25}}
    resources = containers(jobs(prepared, **config)[2])["numbers-0"]["resources"]
    assert resources["requests"]["cpu"] == "250m"
    assert resources["requests"]["memory"] == resources["limits"]["memory"] == str(300 << 20)
    assert "cpu" not in resources["limits"]


def specifications(inputs):
    """Of every process in every pod, by the name of its container."""
    containers = (processes.container(inputs.id, plan, "10.0.0.1") for plan in inputs.containers)
    return processes.master(inputs.id, "10.0.0.1") | {name: each for pod in containers for name, each in pod.items()}


def test_what_pods_run_are_modules_of_ardea_whatever_lies_in_the_working_directory(prepared):
    commands = [list(each.argv) for each in specifications(prepared().inputs).values()]
    commands += [each["command"] for job in jobs(prepared) for each in containers(job).values()]
    modules = {command[3] for command in commands if command[1:3] == ["-P", "-m"]}
    assert len(commands) == sum(command[1:3] == ["-P", "-m"] for command in commands)
    assert modules > {"ardea.heron_instance", "ardea.stream_manager", "ardea.scheduler.kubernetes.prepare"}
    assert [name for name in modules if not name.startswith("ardea.") or find_spec(name) is None] == []


def test_only_the_metrics_managers_of_masters_stay_for_a_last_scrape(prepared):
    inputs = prepared().inputs
    masters = processes.master(inputs.id, "10.0.0.1")["metrics-manager"].argv
    assert float(masters[masters.index("--last-scrape") + 1]) == processes.LAST_SCRAPE
    for plan in inputs.containers:
        assert "--last-scrape" not in processes.container(inputs.id, plan, "10.0.0.1")["metrics-manager"].argv


def test_libraries_for_arrays_keep_to_the_cores_of_their_task(prepared):
    config = {"topology.component.cpumap": {"numbers": 1.5}}
    cores = {name: each.cores for name, each in specifications(prepared(config).inputs).items()}
    assert {name: count for name, count in cores.items() if count != 1} == {"numbers-0": 2, "numbers-1": 2}
    assert {"topology-master", "stream-manager", "metrics-manager", "adds-up-0"} < cores.keys()


def test_a_master_gets_what_the_topology_says(prepared):
    made = jobs(prepared, **{"topology.master.cpu": 0.5, "topology.master.ram": "1GiB"})
    for job in made[:2]:
        resources = containers(job)["topology-master"]["resources"]
        assert resources["requests"]["cpu"] == "500m"
        assert resources["requests"]["memory"] == resources["limits"]["memory"] == str(1 << 30)
    assert containers(made[0])["metrics-manager"]["resources"]["requests"]["cpu"] == "50m"
    assert containers(made[2])["numbers-0"]["resources"]["requests"]["cpu"] == "1000m"


def test_cpu_is_limited_on_demand(prepared):
    resources = containers(jobs(prepared, **{"heron.kubernetes.cpu.limits": True})[2])["numbers-0"]["resources"]
    assert resources["limits"]["cpu"] == resources["requests"]["cpu"]


def test_all_that_a_container_asks_for_is_what_was_packed(prepared):
    inputs = prepared().inputs
    plan = inputs.containers[0]
    asked = [c["resources"]["requests"] for c in containers(pods.container_job(inputs, plan, OWNER)).values()]
    asked = asked[1:]  # prepare has ended before the others begin
    assert sum(int(each["memory"]) for each in asked) == plan.required.ram
    assert sum(int(each["cpu"][:-1]) for each in asked) == round(plan.required.cpu * 1000)


def hook_in(job, container, tmp_path):
    """The folder of its pod's processes in ``tmp_path``, and what runs the container's hook on it."""
    shell, option, script = container["lifecycle"]["preStop"]["exec"]["command"]
    assert (shell, option) == ("sh", "-c")
    folder = tmp_path / job["metadata"]["name"]
    for name in (container["name"], "stream-manager"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "stream-manager" / "left").touch()
    where = re.search(r"(\S+)/stream-manager/left", script)[1]
    command = [shell, option, script.replace(where, str(folder))]
    return folder, lambda: subprocess.run(command, check=True, timeout=5)


def test_a_task_that_is_to_end_waits_until_nothing_is_on_its_way_to_its_pod(prepared, tmp_path):
    """For twenty seconds of its thirty; ten are for its end."""
    for job in jobs(prepared)[2:]:
        for container in pod(job)["containers"]:
            script = container["lifecycle"]["preStop"]["exec"]["command"][2]
            assert "seq 100" in script
            assert f"/{container['name']}/leaving;" in script
            assert "/stream-manager/left ]" in script
            folder, run = hook_in(job, container, tmp_path)
            (folder / container["name"] / "lock").touch()
            run()
            assert (folder / container["name"] / "leaving").exists()


def test_a_container_that_ends_because_its_supervisor_stands_still_says_nothing_of_leaving(prepared, tmp_path):
    """Its pod stays: spouts that wait for it to leave would wait for nothing."""
    job = jobs(prepared)[2]
    container = pod(job)["containers"][0]
    folder, run = hook_in(job, container, tmp_path)
    lock = folder / container["name"] / "lock"
    lock.touch()
    os.utime(lock, (0, 0))
    run()
    assert not (folder / container["name"] / "leaving").exists()


def test_a_task_that_is_to_end_says_so_until_it_may(prepared, tmp_path):
    """Its supervisor, if it has just begun, removes what the hook before it has left."""
    job = jobs(prepared)[2]
    container = pod(job)["containers"][0]
    own = tmp_path / job["metadata"]["name"] / container["name"]
    left, begun = own.parent / "stream-manager" / "left", tmp_path / "begun"
    meanwhile = f"if [ -e {begun} ]; then touch {left}; else touch {begun}; rm {own}/leaving; fi"
    command = container["lifecycle"]["preStop"]["exec"]["command"]
    command[2] = command[2].replace("sleep 0.2", meanwhile)
    _, run = hook_in(job, container, tmp_path)
    left.unlink()
    (own / "lock").touch()
    run()
    assert begun.exists()
    assert (own / "leaving").exists()


def test_liveness_fails_when_the_supervisor_has_touched_nothing_for_long(prepared, tmp_path):
    job = jobs(prepared)[2]
    for name, container in containers(job).items():
        if name == "prepare":
            assert "livenessProbe" not in container
            continue
        shell, option, script = container["livenessProbe"]["exec"]["command"]
        lock = tmp_path / name
        command = [shell, option, re.sub(r"\S+/lock", str(lock), script)]
        assert command[2] != script
        codes = []
        for prepare in (lambda: None, lock.touch, lambda lock=lock: os.utime(lock, (0, 0))):
            prepare()
            codes.append(subprocess.run(command, check=False, capture_output=True, timeout=5).returncode == 0)
        assert codes == [False, True, False]


def test_lost_nodes_are_left_after_five_seconds(prepared):
    for job in jobs(prepared):
        borne = {t["key"]: t["tolerationSeconds"] for t in pod(job)["tolerations"]}
        assert borne == {"node.kubernetes.io/not-ready": 5, "node.kubernetes.io/unreachable": 5}
        (spread,) = pod(job)["topologySpreadConstraints"]
        labels = job["spec"]["template"]["metadata"]["labels"]
        assert spread["labelSelector"]["matchLabels"].items() <= labels.items()


def test_the_metrics_port_is_named_once_where_every_network_looks_for_it(prepared):
    """Of init containers, sidecars too, some networks do not know the names of ports."""
    number = {"name": "metrics", "containerPort": 9404}
    for job, port in zip(jobs(prepared), (9404, 9404, 9405, 9406), strict=True):
        first, *others = pod(job)["containers"]
        assert first["ports"] == [{**number, "containerPort": port}]
        assert not any("ports" in each for each in (*others, *pod(job)["initContainers"]))
        assert containers(job)["metrics-manager"]["readinessProbe"]["httpGet"]["port"] == port


def test_what_the_configuration_adds(prepared):
    volume = {"name": "data", "mountPath": "/data", "persistentVolumeClaim": {"claimName": "d"}}
    made = prepared(
        {
            "heron.kubernetes.labels": {"team": "a"},
            "heron.kubernetes.annotations": "note=x",
            "heron.kubernetes.env": {"LEVEL": "1", "KEPT": "1"},
            "heron.kubernetes.grace.secs": 45,
        },
        {
            "heron.kubernetes.labels": {"gpu": "yes"},
            "heron.kubernetes.env": {"LEVEL": "2"},
            "heron.kubernetes.env.from": ["secret/keys"],
            "heron.kubernetes.volumes": [volume],
        },
        labels={"owner": "ops", "ardea.dev/topology-id": "stolen"},
    )
    master, _, first, _ = pods.jobs(made.inputs, OWNER)
    labels = [job["spec"]["template"]["metadata"]["labels"] for job in (master, first)]
    assert [each.get("team") for each in labels] == ["a", "a"]
    assert [each.get("gpu") for each in labels] == [None, "yes"]
    assert [each["owner"] for each in labels] == ["ops", "ops"]
    annotations = [job["spec"]["template"]["metadata"]["annotations"] for job in (master, first)]
    assert [each["note"] for each in annotations] == ["x", "x"]
    assert {each["ardea.dev/topology-id"] for each in (*labels, *annotations)} == {made.inputs.id}
    spec = pod(first)
    assert spec["terminationGracePeriodSeconds"] == 45
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "d"}} in spec["volumes"]
    adds, numbers = (containers(first)[name] for name in ("adds-up-0", "numbers-0"))
    assert {"name": "data", "mountPath": "/data"} in adds["volumeMounts"]
    assert adds["envFrom"] == [{"secretRef": {"name": "keys"}}]
    assert (env(adds)["LEVEL"]["value"], env(adds)["KEPT"]["value"]) == ("2", "1")
    assert env(numbers)["LEVEL"]["value"] == "1"
    assert "envFrom" not in numbers


def claim(name, path="/data"):
    return {"name": "data", "mountPath": path, "persistentVolumeClaim": {"claimName": name}}


def test_different_volumes_of_one_name_in_one_pod_are_refused(prepared):
    """One of the two components would work on the other's claim."""
    with pytest.raises(UserError, match="adds_up and numbers have tasks in one pod, and different volumes named data"):
        prepared({"heron.kubernetes.volumes": [claim("a")]}, {"heron.kubernetes.volumes": [claim("b")]})


def test_one_volume_may_be_mounted_by_each_component_where_it_likes(prepared):
    made = prepared({"heron.kubernetes.volumes": [claim("a")]}, {"heron.kubernetes.volumes": [claim("a", "/other")]})
    _, _, first, _ = pods.jobs(made.inputs, OWNER)
    for name, path in (("adds-up-0", "/other"), ("numbers-0", "/data")):
        assert {"name": "data", "mountPath": path} in containers(first)[name]["volumeMounts"]


@pytest.mark.parametrize("of_component", [True, False])
@pytest.mark.parametrize(
    ("volumes", "why"),
    [
        ([{"mountPath": "/data", "emptyDir": {}}], "{}: volume 1 has no name"),
        ([claim("a"), {**claim("a"), "name": 7}], "{}: volume 2 has no name"),
        ([claim("a"), claim("a", "/other")], "{}: two volumes are named data"),
    ],
)
def test_each_volume_has_a_name_of_its_own(prepared, of_component, volumes, why):
    said = {"heron.kubernetes.volumes": volumes}
    where = f"heron.kubernetes.volumes of {'adds_up' if of_component else 'the topology'}"
    with pytest.raises(UserError, match=why.format(where)):
        prepared(*((None, said) if of_component else (said,)))


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
def test_a_master_reaches_the_store_of_snapshots_as_the_topologys_tasks_do(prepared, mode):
    """And has nothing of the topology's where there is none; its own variables are not the topology's to set."""
    volume = {"name": "snapshots", "mountPath": "/snapshots", "persistentVolumeClaim": {"claimName": "s"}}
    made = prepared(
        {
            "topology.reliability.mode": mode,
            "topology.stateful.storage": "/snapshots",
            "heron.kubernetes.env": {"AWS_REGION": "eu-west-1", CREDENTIAL: "stolen"},
            "heron.kubernetes.env.from": ["secret/bucket"],
            "heron.kubernetes.volumes": [volume],
        }
    )
    master, _, first, _ = pods.jobs(made.inputs, OWNER)
    acting, remembers = containers(master)["topology-master"], mode == "EFFECTIVELY_ONCE"
    names = [each["name"] for each in acting["env"]]
    mount, source = {"name": "snapshots", "mountPath": "/snapshots"}, [{"secretRef": {"name": "bucket"}}]
    assert [names.count("AWS_REGION"), names.count(CREDENTIAL)] == [remembers, 1]
    assert "value" not in env(acting)[CREDENTIAL]
    assert acting.get("envFrom") == (source if remembers else None)
    assert (mount in acting["volumeMounts"]) == remembers
    assert any(each["name"] == "snapshots" for each in pod(master)["volumes"]) == remembers
    assert mount in containers(first)["numbers-0"]["volumeMounts"]


def test_all_is_owned_by_the_root(prepared):
    for job in jobs(prepared):
        (owner,) = job["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("ConfigMap", "sums", "u-1")


def test_the_root_gives_back_the_inputs(prepared):
    made = prepared()
    assert ManifestInputs.read(made.root()) == made.inputs


def test_too_much_for_an_object_is_refused(prepared, monkeypatch):
    monkeypatch.setattr("ardea.scheduler.submission.MAX_DEFINITION_BYTES", 500)
    with pytest.raises(UserError, match=r"KiB compressed.*nothing was started"):
        prepared()


def test_code_in_the_image_sends_no_bundle(prepared):
    made = prepared(options=Options(path_in_image="/app/sums.py"))
    assert made.bundle is None
    assert made.inputs.definition.location == "/app/sums.py"
    (volume,) = [v for v in pod(pods.jobs(made.inputs, OWNER)[-1])["volumes"] if v["name"] == "code"]
    assert [item["key"] for item in volume["configMap"]["items"]] == ["pods.json"]
    assert "binaryData" not in objects.code(made.inputs, made.bundle, OWNER)


def test_containers_mount_the_code_of_their_version_and_masters_none(prepared):
    made = prepared()
    code = objects.code(made.inputs, made.bundle, OWNER)
    master, _, *containers_ = pods.jobs(made.inputs, OWNER)
    assert "code" not in [volume["name"] for volume in pod(master)["volumes"]]
    for job in containers_:
        (volume,) = [v["configMap"] for v in pod(job)["volumes"] if v["name"] == "code"]
        assert volume["name"] == code["metadata"]["name"] == f"sums-code-{made.inputs.definition.code}"
        assert (
            [item["key"] for item in volume["items"]] == ["pods.json", "bundle"] == [*code["data"], *code["binaryData"]]
        )


def test_a_version_is_its_files_and_its_pods(prepared):
    """The same again is the same version; another image, or another file, is another."""
    one = prepared()
    assert prepared().inputs.definition.code == one.inputs.definition.code
    assert prepared(image="other").inputs.definition.code != one.inputs.definition.code
    assert prepared({"topology.debug": True}).inputs.definition.code != one.inputs.definition.code  # in the file


def test_what_stands_twice_is_written_twice(prepared):
    """kubectl reads no references."""
    text = as_yaml(pods.jobs(prepared().inputs, None), "first\nsecond", "last")
    assert text.startswith("# first\n# second\napiVersion")
    assert text.endswith("\n# last\n")
    assert text.count("\nkind: Job\n") == 4
    assert "&id" not in text


def test_without_an_owner_none_is_named(prepared):
    assert not any("ownerReferences" in job["metadata"] for job in pods.jobs(prepared().inputs, None))


@pytest.mark.parametrize(("ip", "everywhere"), [("10.0.0.1", "0.0.0.0"), ("fd00::5", "::")])
def test_managers_listen_at_the_address_of_the_pod_and_metrics_at_all_of_its_kind(prepared, ip, everywhere):
    (plan,) = prepared().inputs.containers[:1]

    def host(specification):
        return specification.argv[specification.argv.index("--host") + 1]

    for made in (processes.master("sums-1", ip), processes.container("sums-1", plan, ip)):
        hosts = {name: host(each) for name, each in made.items() if "--host" in each.argv}
        assert hosts.pop("metrics-manager") == everywhere
        assert [*hosts.values()] == [ip]
