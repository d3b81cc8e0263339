"""What the chart renders, for each file of values in helm/ci."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path

import msgspec
import pytest
import yaml

from ardea import __version__
from ardea.scheduler.kubernetes import names
from ardea.scheduler.kubernetes.doctor import RIGHTS
from ardea.scheduler.kubernetes.manifest_file import CHART as CHART_DEFAULTS
from ardea.scheduler.kubernetes.manifest_file import read_defaults
from tests.unit.helm.charts import (
    CHART,
    HELM,
    MATRIX,
    VERSION,
    Object,
    manifest,
    needs_helm,
    of_kind,
    pod_specs,
    render,
    tcp,
)

pytestmark = needs_helm

HELM_3 = shutil.which("helm3", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
ROLE_OF_MASTERS = {
    ("", "pods"): {"get", "list", "watch", "delete"},
    ("batch", "jobs"): {"get", "list", "watch", "create", "delete", "patch"},
    ("batch", "jobs/status"): {"patch"},
    ("", "configmaps"): {"get", "list", "watch", "patch"},
    ("", "configmaps/finalizers"): {"update"},
    ("", "events"): {"list", "create"},
    ("", "pods/status"): {"patch"},
    ("coordination.k8s.io", "leases"): {"get", "create", "patch"},
}
each_file = pytest.mark.parametrize("values", MATRIX, ids=lambda path: path.name.removesuffix("-values.yaml"))


def defaults(*arguments: str) -> Object:
    objects = render(*arguments)
    (found,) = (
        c for c in of_kind(objects, "ConfigMap") if c["metadata"].get("labels", {}).get("ardea.dev/role") == "defaults"
    )
    return json.loads(found["data"]["defaults.json"])


def test_lint_has_nothing_to_say():
    ended = subprocess.run([HELM, "lint", "--strict", CHART], capture_output=True, text=True, check=False, timeout=30)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "[WARNING]" not in ended.stdout


def test_the_chart_is_of_this_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__


@each_file
def test_objects_are_named_labelled_and_in_the_namespace(values):
    for (kind, name), thing in render("--values", str(values)).items():
        if name.endswith("-extra"):
            continue
        metadata = thing["metadata"]
        labels = metadata["labels"]
        assert metadata["namespace"] == "prod", (kind, name)
        assert labels["app.kubernetes.io/part-of"] == "ardea"
        assert labels["app.kubernetes.io/instance"] == "streams"
        assert labels["app.kubernetes.io/component"]
        if values.name.startswith("everything"):
            assert name.startswith("streams"), name
            assert labels["team"] == "streaming"
            assert metadata["annotations"]["example.org/owner"] == "streaming"


@each_file
def test_pods_pass_the_restricted_standard_with_a_read_only_root(values):
    for name, spec in pod_specs(render("--values", str(values))).items():
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        allowed = {"configMap", "emptyDir", "persistentVolumeClaim", "secret"}
        assert all(allowed & volume.keys() for volume in spec["volumes"])
        for container in spec["containers"]:
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["readOnlyRootFilesystem"] is True
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"]
            assert container["resources"]["limits"]["memory"]


@each_file
def test_every_reference_leads_to_an_object(values):
    objects = render("--values", str(values))
    for name, spec in pod_specs(objects).items():
        for volume in spec["volumes"]:
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in objects, name
        if "serviceAccountName" in spec:
            assert ("ServiceAccount", spec["serviceAccountName"]) in objects
    for binding in of_kind(objects, "RoleBinding"):
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in objects
    kept = [*of_kind(objects, "StatefulSet"), *of_kind(objects, "Deployment")]

    def selected(wanted: Object) -> Object:
        """The one whose pods these labels select."""
        (found,) = (k for k in kept if wanted.items() <= k["spec"]["template"]["metadata"]["labels"].items())
        return found

    for stateful in of_kind(objects, "StatefulSet"):
        assert ("Service", stateful["spec"]["serviceName"]) in objects
    for thing in of_kind(objects, "Service"):
        ports = selected(thing["spec"]["selector"])["spec"]["template"]["spec"]["containers"][0]["ports"]
        assert {port["targetPort"] for port in thing["spec"]["ports"]} <= {port["name"] for port in ports}
    for budget in of_kind(objects, "PodDisruptionBudget"):
        assert selected(budget["spec"]["selector"]["matchLabels"])


@each_file
def test_nothing_reaches_beyond_the_namespace(values):
    kinds = {kind for kind, _ in render("--values", str(values))}
    assert not {kind for kind in kinds if kind.startswith("Cluster")}


def test_masters_have_the_rights_that_they_use_and_containers_none():
    objects = render()
    role = objects["Role", "streams-ardea-master"]
    assert {
        (g, r): set(rule["verbs"]) for rule in role["rules"] for g in rule["apiGroups"] for r in rule["resources"]
    } == (ROLE_OF_MASTERS)
    assert [s["name"] for s in objects["RoleBinding", "streams-ardea-master"]["subjects"]] == ["streams-ardea-master"]
    container = objects["ServiceAccount", "streams-ardea-container"]
    assert container["automountServiceAccountToken"] is False
    bound = {s["name"] for binding in of_kind(objects, "RoleBinding") for s in binding["subjects"]}
    assert bound == {"streams-ardea-master", "streams-ardea-test", "streams-ardea-uninstall"}


def test_submitters_have_the_rights_that_verbs_use():
    held = {
        (verb, resource)
        for rule in render()["Role", "streams-ardea-submitter"]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    used = {(verb, f"{resource}/{part}".rstrip("/")) for row in RIGHTS.values() for verb, resource, part in row}
    assert used - held == set()


@pytest.mark.parametrize("name", ["1001", "on", "ops: data"])
def test_submitters_may_have_any_name(name):
    subjects = [{"kind": kind, "name": name} for kind in ("User", "Group")]
    bound = render("--set-json", f"rbac.submitters={json.dumps(subjects)}")["RoleBinding", "streams-ardea-submitter"]
    assert [subject["name"] for subject in bound["subjects"]] == [name, name]


def test_defaults_of_topologies():
    assert defaults() == {
        "image": f"ardea:{__version__}",
        "imagePullPolicy": "IfNotPresent",
        "state": "zookeeper://streams-ardea-zookeeper.prod.svc:2181/ardea",
        "masterServiceAccount": "streams-ardea-master",
        "containerServiceAccount": "streams-ardea-container",
        "masterReplicas": 2,
        "config": {},
        "labels": {},
        "annotations": {},
        "podSpec": {},
        "stateSecret": "",
    }
    everything = defaults("--values", str(CHART / "ci" / "everything-values.yaml"))
    assert everything["image"].startswith("registry.example.org/team/ardea@sha256:")
    assert everything["config"] == {"topology.message.timeout.secs": 60}
    assert everything["labels"] == {"cost-centre": "4711"}
    assert everything["annotations"] == {"example.org/sidecar": "false"}
    assert everything["podSpec"]["runtimeClassName"] == "gvisor"


def test_a_dry_run_takes_for_granted_what_the_documented_release_has(tmp_path):
    """Written down as docs/kubernetes.md says; in a file the address of ZooKeeper has to be good in any namespace."""
    command = [HELM, "template", "ardea", CHART, "-n", "prod", "--kube-version", VERSION]
    ended = subprocess.run([*command, "-s", "templates/topology/defaults.yaml"], capture_output=True, check=True)
    file = tmp_path / "defaults.yaml"
    file.write_bytes(ended.stdout)
    found = read_defaults(file)
    assert found.state.count(".prod.svc") == 1
    assert msgspec.structs.replace(found, state=found.state.replace(".prod.svc", "")) == CHART_DEFAULTS


def test_an_external_zookeeper_is_the_state_and_none_is_installed():
    values = "--values", str(CHART / "ci" / "external-zookeeper-values.yaml")
    assert defaults(*values)["state"] == (
        "zookeeper+tls://zk-0.example.org:2281,zk-1.example.org:2281,zk-2.example.org:2281/teams/data/ardea"
    )
    assert (defaults(*values)["stateSecret"], defaults()["stateSecret"]) == ("zookeeper-client", "")
    assert not of_kind(render(*values), "StatefulSet")
    assert not of_kind(render(*values), "Service")


def test_three_servers_know_each_other_and_one_at_a_time_may_go():
    objects = render("--set", "zookeeper.servers=3")
    config = objects["ConfigMap", "streams-ardea-zookeeper"]["data"]["zoo.cfg"]
    assert re.findall(r"^server\.\d=.*", config, re.MULTILINE) == [
        f"server.{n + 1}=streams-ardea-zookeeper-{n}.streams-ardea-zookeeper-headless.prod.svc:2888:3888"
        for n in range(3)
    ]
    stateful = objects["StatefulSet", "streams-ardea-zookeeper"]["spec"]
    assert (stateful["replicas"], stateful["podManagementPolicy"]) == (3, "Parallel")
    assert objects["PodDisruptionBudget", "streams-ardea-zookeeper"]["spec"]["maxUnavailable"] == 1
    assert "server." not in render()["ConfigMap", "streams-ardea-zookeeper"]["data"]["zoo.cfg"]
    assert not of_kind(render(), "PodDisruptionBudget"), "one for a single server would block every drain"


def test_a_change_of_the_configuration_restarts_the_servers():
    def checksum(*arguments: str) -> str:
        stateful = render(*arguments)["StatefulSet", "streams-ardea-zookeeper"]
        return stateful["spec"]["template"]["metadata"]["annotations"]["checksum/config"]

    assert checksum() != checksum("--set", "zookeeper.extraConfig.globalOutstandingLimit=2000")
    assert checksum() == checksum("--set", "topology.masterReplicas=3")


def test_another_version_of_the_chart_restarts_no_server(tmp_path):
    other = tmp_path / "helm"
    shutil.copytree(CHART, other)
    about = (other / "Chart.yaml").read_text()
    (other / "Chart.yaml").write_text(re.sub("(?m)^(version|appVersion):.*$", r"\1: 99.0.0", about))
    values = "--values", str(CHART / "ci" / "everything-values.yaml")
    now, then = (render(*values, chart=each)["StatefulSet", "streams-zookeeper"] for each in (CHART, other))
    assert now["metadata"] != then["metadata"]
    assert now["spec"]["template"] == then["spec"]["template"]


def test_numbers_of_the_servers_settings_are_written_out(tmp_path):
    """Helm reads each number of a file of values as a float."""
    values = tmp_path / "values.yaml"
    extra = {"maxSessionTimeout": 3600000, "fsync.warningthresholdms": 0.5, "quiet": True, "text": "a=b"}
    values.write_text(json.dumps({"zookeeper": {"extraConfig": extra}}))
    config = render("--values", str(values))["ConfigMap", "streams-ardea-zookeeper"]["data"]["zoo.cfg"].splitlines()
    written = {"maxSessionTimeout=3600000", "fsync.warningthresholdms=0.5", "quiet=true", "text=a=b"}
    assert written <= set(config)


def test_seconds_are_written_out_however_many_they_are(tmp_path):
    values = tmp_path / "values.yaml"
    grace = {"terminationGracePeriodSeconds": 3_000_000}
    values.write_text(
        json.dumps({"zookeeper": grace, "console": grace | {"enabled": True}, "tests": {"timeoutSeconds": 2_000_000}})
    )
    objects = render("--values", str(values))
    pods = [
        thing["spec"]["template"]["spec"]
        for (kind, _), thing in objects.items()
        if kind in {"StatefulSet", "Deployment"}
    ]
    assert [each["terminationGracePeriodSeconds"] for each in pods] == [3_000_000, 3_000_000]
    [test] = [thing["spec"]["containers"][0] for (kind, _), thing in objects.items() if kind == "Pod"]
    assert {"name": "SECONDS", "value": "2000000"} in test["env"]


def test_the_tests_account_has_rights_while_the_test_runs_and_its_pod_stays_for_its_log():
    objects = render()
    hooks = {
        key: {name.removeprefix("helm.sh/"): value for name, value in annotations.items()}
        for key, thing in objects.items()
        if "helm.sh/hook" in (annotations := thing["metadata"].get("annotations", {}))
        and key[1] != "streams-ardea-uninstall"
    }
    assert hooks == {
        ("RoleBinding", "streams-ardea-test"): {
            "hook": "test,pre-delete",  # Helm forgets hooks at an uninstall, but for those of the uninstall
            "hook-weight": "-1",
            "hook-delete-policy": "before-hook-creation,hook-succeeded,hook-failed",
        },
        ("Pod", "streams-ardea-test"): {
            "hook": "test",
            "hook-delete-policy": "before-hook-creation",
            "hook-output-log-policy": "hook-succeeded,hook-failed",
        },
    }
    pod = objects["Pod", "streams-ardea-test"]
    owner = next(e["value"] for e in pod["spec"]["containers"][0]["env"] if e["name"] == "OWNER")
    assert ("ConfigMap", owner) in objects
    always = [b for b in of_kind(objects, "RoleBinding") if "helm.sh/hook" not in b["metadata"].get("annotations", {})]
    assert "streams-ardea-test" not in {s["name"] for binding in always for s in binding["subjects"]}
    submitter, test = (objects["Role", f"streams-ardea-{name}"]["rules"] for name in ("submitter", "test"))
    assert test[: len(submitter)] == submitter
    assert [(rule["resources"], rule["resourceNames"], rule["verbs"]) for rule in test[len(submitter) :]] == [
        (["pods"], ["streams-ardea-test"], ["patch"]),
        (["rolebindings"], ["streams-ardea-test"], ["delete"]),
    ]


def test_a_scrape_keeps_our_own_label_container():
    monitor = render("--set", "monitoring.podMonitor.enabled=true")["PodMonitor", "streams-ardea-topology"]["spec"]
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True, "the operator's label `container` would displace it"
    assert (endpoint["port"], endpoint["path"]) == ("metrics", "/metrics")


def test_a_target_says_whose_it_is_before_it_has_answered():
    values = "--values", str(CHART / "ci" / "monitoring-values.yaml")
    (endpoint,) = render(*values)["PodMonitor", "streams-ardea-topology"]["spec"]["podMetricsEndpoints"]
    labels = [rule["targetLabel"] for rule in endpoint["relabelings"]]
    assert labels == ["role", "topology", "topology_id", "topology", "topology_id", "cluster"]


@pytest.mark.parametrize("name", ["Words", "Bestellübersicht", "_private", "of-" + "many" * 20 + "-words"])
@pytest.mark.parametrize("former", [False, True], ids=["now", "without the annotation"])
def test_a_target_is_called_as_its_series_are(name, former):
    """A label of a pod holds less than a name may have."""
    topology = f"{name}-0123abcd"
    annotations = {} if former else {names.TOPOLOGY_ID: topology}
    meta = {
        f"__meta_kubernetes_pod_{kind}_{re.sub('[./-]', '_', key)}": value
        for kind, pairs in (("label", names.labels(topology, names.MASTER, 0)), ("annotation", annotations))
        for key, value in pairs.items()
    }
    objects = render("--set", "monitoring.podMonitor.enabled=true")
    (endpoint,) = objects["PodMonitor", "streams-ardea-topology"]["spec"]["podMetricsEndpoints"]
    target = {}
    for rule in endpoint["relabelings"]:
        value = ";".join(meta.get(source, "") for source in rule["sourceLabels"])
        if matched := re.fullmatch(rule.get("regex", "(.*)"), value):
            target[rule["targetLabel"]] = matched[1]
    assert target["role"] == names.MASTER
    if not former or name == "Words":
        assert (target["topology"], target["topology_id"]) == (name, topology)
    else:
        assert all(target.values())


@pytest.mark.parametrize("enabled", [True, False])
def test_zookeeper_is_scraped_unless_its_image_cannot_serve_that(enabled):
    objects = render(
        f"--set=zookeeper.metrics.enabled={str(enabled).lower()}", "--set=monitoring.podMonitor.enabled=true"
    )
    config = objects["ConfigMap", "streams-ardea-zookeeper"]["data"]["zoo.cfg"]
    assert ("PrometheusMetricsProvider" in config) is enabled
    (container,) = pod_specs(objects)["streams-ardea-zookeeper"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"client": 2181, **({"metrics": 7000} if enabled else {})}
    assert ("metricsProvider.httpPort=7000" in config.splitlines()) is enabled
    selector = objects["PodMonitor", "streams-ardea-topology"]["spec"]["selector"]
    labels = objects["StatefulSet", "streams-ardea-zookeeper"]["spec"]["template"]["metadata"]["labels"]
    assert selector["matchLabels"].items() <= labels.items()
    (expression,) = selector["matchExpressions"]
    assert labels[expression["key"]] in expression["values"]


def test_policies_let_topologies_scrapes_and_clients_in():
    objects = render("--set", "zookeeper.servers=3")
    topology = objects["NetworkPolicy", "streams-ardea-topology"]["spec"]
    mesh, scrape = topology["ingress"]
    assert mesh == {"from": [{"podSelector": topology["podSelector"]}]}
    assert scrape == {"ports": [tcp("metrics")]}
    client, ensemble, server_scrape = objects["NetworkPolicy", "streams-ardea-zookeeper"]["spec"]["ingress"]
    assert server_scrape == {"ports": [tcp("metrics")]}
    assert client["from"] == [{"podSelector": {"matchLabels": {"app.kubernetes.io/part-of": "ardea"}}}]
    assert [port["port"] for port in ensemble["ports"]] == ["peer", "election"]


def egress(*arguments: str) -> list[Object]:
    spec = render(*arguments)["NetworkPolicy", "streams-ardea-egress"]["spec"]
    labels = {"app.kubernetes.io/part-of": "ardea", "app.kubernetes.io/component": "container"}
    assert spec["podSelector"] == {"matchLabels": labels}, "masters need the API server"
    assert spec["policyTypes"] == ["Egress"]
    dns, *rules = spec["egress"]
    assert dns == {"ports": [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]}
    return rules


def test_user_code_reaches_everything_but_metadata_services():
    (rule,) = egress()
    pods, four, six = rule["to"]
    assert pods == {"namespaceSelector": {}}
    assert four["ipBlock"]["cidr"] == "0.0.0.0/0"
    assert "169.254.169.254/32" in four["ipBlock"]["except"]
    assert six["ipBlock"]["cidr"] == "::/0"
    assert "fd00:ec2::254/128" in six["ipBlock"]["except"]
    for peer in (four, six):
        block = ip_network(peer["ipBlock"]["cidr"])
        assert all(ip_network(each).subnet_of(block) for each in peer["ipBlock"]["except"])


def test_addresses_are_closed_by_their_family():
    (rule,) = egress("--set", "networkPolicy.egress.except={10.0.0.0/8}")
    assert [peer["ipBlock"].get("except") for peer in rule["to"][1:]] == [["10.0.0.0/8"], None]
    assert ("NetworkPolicy", "streams-ardea-egress") not in render("--set", "networkPolicy.egress.enabled=false")


def test_user_code_may_be_kept_to_the_topologies_and_what_is_added():
    topologies = render()["NetworkPolicy", "streams-ardea-topology"]["spec"]["podSelector"]
    added = ("--set", "networkPolicy.extraEgress[0].ports[0].port=9092")
    own, kafka = egress("--set", "networkPolicy.egress.open=false", *added)
    assert own["to"][0] == {"podSelector": topologies}
    assert own["to"][1]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "zookeeper"
    assert kafka == {"ports": [{"port": 9092}]}
    elsewhere = ("--values", str(CHART / "ci" / "external-zookeeper-values.yaml"))
    own, kafka = egress("--set", "networkPolicy.egress.open=false", *added, *elsewhere)
    assert own["to"] == [{"podSelector": topologies}]


@each_file
@pytest.mark.skipif(HELM_3 is None, reason="there is no helm3: scripts/kubernetes.sh builds it, if there is Go")
def test_the_last_helm_3_renders_the_same(values):
    assert manifest("--values", str(values), helm=HELM_3) == manifest("--values", str(values))


def test_an_uninstall_asks_whether_topologies_run_unless_it_is_forced():
    """By hooks that leave nothing, and may do no more than list the roots."""
    objects = render()
    name = "streams-ardea-uninstall"
    asks = [objects[kind, name] for kind in ("ServiceAccount", "Role", "RoleBinding", "Job")]
    for thing in asks:
        said = thing["metadata"]["annotations"]
        assert said["helm.sh/hook"] == "pre-delete"
        assert "hook-failed" in said["helm.sh/hook-delete-policy"]
    assert asks[1]["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    assert asks[3]["metadata"]["annotations"]["helm.sh/hook-output-log-policy"] == "hook-failed"
    for way in ("uninstall.force=true", "rbac.create=false"):
        assert [key for key in render("--set", way) if key[1] == name] == []
