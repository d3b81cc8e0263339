"""The console in the chart: off by default, let into topologies by name, and reached by whom the values say."""

from __future__ import annotations

import base64
import json

import pytest
import yaml

from ardea.scheduler.kubernetes import names
from tests.unit.helm.charts import CHART, Object, RefusedError, manifest, needs_helm, of_kind, pod_specs, render, tcp

pytestmark = needs_helm

ON = ("--set", "console.enabled=true")
FULL = ("--values", str(CHART / "ci" / "console-values.yaml"))
VALUES = yaml.safe_load((CHART / "ci" / "console-values.yaml").read_text())["console"]
NAME = "streams-ardea-console"
OWN = "console.serviceAccount.create=false,console.serviceAccount.name=ours"


def rules(*arguments: str) -> list[Object]:
    return render(*arguments)["Role", NAME]["rules"]


def rights(*arguments: str) -> dict[tuple[str, str], set[str]]:
    """What may be done with any object of a kind."""
    return {
        (group, resource): set(rule["verbs"])
        for rule in rules(*arguments)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if "resourceNames" not in rule
    }


def let_in(root: str, *arguments: str) -> dict[tuple[str, ...], tuple[list[str], list[str]]]:
    """What it may do with the objects of one topology, which its account is bound to."""
    objects, name = render(*arguments), f"{NAME}-{root}"
    assert objects["RoleBinding", name]["roleRef"]["name"] == name
    assert [subject["name"] for subject in objects["RoleBinding", name]["subjects"]] == [NAME]
    return {tuple(r["resources"]): (r["resourceNames"], r["verbs"]) for r in objects["Role", name]["rules"]}


def container(*arguments: str) -> Object:
    (found,) = pod_specs(render(*arguments))[NAME]["containers"]
    return found


def test_it_is_not_installed_unless_asked_for():
    assert "console" not in manifest()
    assert "console" not in manifest("--values", str(CHART / "ci" / "everything-values.yaml"))


def test_values_of_an_older_release_say_nothing_of_it():
    """As `helm upgrade --reuse-values` has them."""
    assert "console" not in manifest("--set-json", "console=null")


def test_what_is_made_of_it():
    kinds = {kind for kind, name in render(*ON) if name.startswith(NAME)}
    assert kinds == {"Deployment", "Service", "Secret", "ServiceAccount", "Role", "RoleBinding", "NetworkPolicy"}
    full = {kind for kind, name in render(*FULL) if name.startswith(NAME)}
    assert full == (kinds | {"Ingress", "PodDisruptionBudget"}) - {"Secret"}


def test_it_may_look_and_reads_no_secret_that_is_not_named():
    look = {
        ("", "configmaps"): {"get", "list"},
        ("coordination.k8s.io", "leases"): {"get", "list"},
        ("", "pods"): {"list"},
        ("", "events"): {"list"},
        ("batch", "jobs"): {"list"},
    }
    assert rights(*ON) == look | {("", "pods/log"): {"get"}}
    assert rights(*ON, "--set", "console.logs=false") == look
    for arguments in (ON, FULL):
        assert "pods/exec" not in str(rules(*arguments))
        assert "secrets" not in str(rules(*arguments)), "no names would be all Secrets"


def test_what_the_api_server_would_fill_in_is_written_down():
    """Helm 4.0 takes it for somebody else's, and refuses the next upgrade."""
    policies = of_kind(render(*FULL), "NetworkPolicy")
    rules = [rule for thing in policies for way in ("ingress", "egress") for rule in thing["spec"].get(way) or []]
    ports = [port for rule in rules for port in rule.get("ports", [])]
    assert ports
    assert all("protocol" in port for port in ports)


def test_it_is_let_into_the_topologies_that_are_named():
    """Their roots are called as submitting calls them."""
    for root in map(names.root, VALUES["topologies"]):
        assert let_in(root, *FULL) == {
            ("secrets",): ([names.callers_secret(root)], ["get"]),
            ("configmaps",): ([root], ["patch", "delete"]),
        }
        for way in ("console.kill=false", "console.act=false"):
            assert let_in(root, *FULL, "--set", way).keys() == {("secrets",)}
    assert all("resourceNames" not in rule for rule in rules(*FULL)), "no upgrade has to change it"


def told(*arguments: str) -> object:
    """What submitters hear of it."""
    (found,) = (c for c in of_kind(render(*arguments), "ConfigMap") if c["metadata"]["name"].endswith("-defaults"))
    return json.loads(found["data"]["defaults.json"]).get("console")


def of_submitters(*arguments: str) -> list[tuple[list[str], list[str]]]:
    """What they may do with rights."""
    submitter = render(*arguments).get(("Role", "streams-ardea-submitter"), {"rules": []})
    return [(rule["resources"], rule["verbs"]) for rule in submitter["rules"] if "rbac" in rule["apiGroups"][0]]


def test_submitters_let_it_into_what_they_submit():
    assert told(*ON) == {"account": NAME, "kills": True}
    assert told(*ON, "--set", "console.kill=false") == told(*ON, "--set", "console.act=false")
    assert told(*ON, "--set", "console.kill=false") == {"account": NAME, "kills": False}
    assert told(*ON, "--set", "console.serviceAccount.name=ours") == {"account": "ours", "kills": True}
    assert of_submitters(*ON) == [(["roles", "rolebindings"], ["create"])]


@pytest.mark.parametrize("values", [(), (*ON, "--set", f"rbac.create=false,{OWN}"), ("--set-json", "console=null")])
def test_without_it_or_its_rights_they_do_not(values):
    assert told(*values) is None
    assert not of_submitters(*values)


@pytest.mark.parametrize(
    "topology",
    [
        "a",
        "WordCount",
        "word count",
        "--a..b--",
        "x" * 40,
        "x" * 41,
        "a" * 30 + "----" + "b" * 30,
        "Zähler",
        "数",
        "a_数",
        "2024",
        "On",
    ],
)
def test_a_root_is_called_in_the_chart_as_it_is_by_submit(topology):
    named = let_in(names.root(topology), *ON, "--set-json", f'console.topologies=["{topology}"]')
    assert named["secrets",] == ([names.callers_secret(names.root(topology))], ["get"])
    assert named["configmaps",] == ([names.root(topology)], ["patch", "delete"])


def test_its_account_alone_is_bound_and_has_no_token_by_itself():
    objects = render(*ON)
    assert [s["name"] for s in objects["RoleBinding", NAME]["subjects"]] == [NAME]
    assert objects["ServiceAccount", NAME]["automountServiceAccountToken"] is False
    assert pod_specs(objects)[NAME]["automountServiceAccountToken"] is True, "it asks the API server"
    own = render(*ON, "--set", OWN)
    assert [s["name"] for s in own["RoleBinding", NAME]["subjects"]] == ["ours"]
    assert ("ServiceAccount", NAME) not in own


def test_the_pod_gets_its_tokens_as_files_and_nothing_in_its_environment():
    spec = pod_specs(render(*ON))[NAME]
    (tokens,) = [v["secret"] for v in spec["volumes"] if "secret" in v]
    assert (tokens["secretName"], tokens["defaultMode"]) == (NAME, 0o440)
    assert [item["key"] for item in tokens["items"]] == ["view", "act"]
    assert [e["name"] for e in container(*ON)["env"]] == ["HOME"]
    looks = pod_specs(render(*ON, "--set", "console.act=false"))[NAME]
    assert [i["key"] for v in looks["volumes"] if "secret" in v for i in v["secret"]["items"]] == ["view"]
    others = pod_specs(render(*FULL))[NAME]
    assert next(v["secret"]["secretName"] for v in others["volumes"] if "secret" in v) == "console-tokens"


def test_tokens_are_made_long_and_apart():
    data = render(*ON)["Secret", NAME]["data"]
    view, act = (base64.b64decode(data[key]).decode() for key in ("view", "act"))
    assert len(view) == len(act) == 40
    assert view != act


def test_it_is_started_with_the_names_by_which_it_is_reached():
    assert container(*ON)["command"] == ["python", "-P", "-m", "ardea.console"]
    service = [NAME, f"{NAME}.prod", f"{NAME}.prod.svc", f"{NAME}.prod.svc.cluster.local"]
    common = ["--port=8080", "--tokens=/etc/ardea/console"]
    assert container(*ON)["args"] == [*common, *(f"--host={name}" for name in service)]
    more = ["console.example.org", "streams.example.org"]
    hosts = [each for each in container(*FULL)["args"] if each.startswith("--host")]
    assert hosts == [f"--host={name}" for name in (*service, *more)]


def test_it_is_told_of_a_prometheus_and_its_token():
    assert "prometheus" not in str(container(*ON))
    spec = pod_specs(render(*FULL))[NAME]
    (told,) = spec["containers"]
    file = "--prometheus-token=/etc/ardea/prometheus/token"
    assert told["args"][-2:] == ["--prometheus=http://prometheus.monitoring:9090", file]
    (mount,) = [each["mountPath"] for each in told["volumeMounts"] if each["name"] == "prometheus"]
    (secret,) = [each["secret"] for each in spec["volumes"] if each["name"] == "prometheus"]
    assert (mount, secret["secretName"]) == ("/etc/ardea/prometheus", "prometheus-token")
    assert secret["items"] == [{"key": "bearer", "path": "token"}]
    alone = (*ON, "--set", "console.prometheus.url=http://a")
    assert container(*alone)["args"][-1] == "--prometheus=http://a"
    assert "prometheus" not in [each["name"] for each in pod_specs(render(*alone))[NAME]["volumes"]]
    (policy,) = [p for p in of_kind(render(*FULL), "NetworkPolicy") if p["metadata"]["name"] == NAME]
    assert policy["spec"]["egress"][-1]["ports"] == [{"port": 9090, "protocol": "TCP"}]


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_probes_ask_how_it_is(probe):
    assert container(*ON)[probe]["httpGet"] == {"path": "/healthz", "port": "http"}


def test_nobody_reaches_it_but_whom_the_values_say():
    policy = render(*ON)["NetworkPolicy", NAME]["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["ingress"] == []
    (rule,) = render(*FULL)["NetworkPolicy", NAME]["spec"]["ingress"]
    assert rule == {"ports": [tcp("http")], "from": VALUES["networkPolicy"]["from"]}


def test_it_reaches_names_the_api_server_and_masters():
    dns, api, masters = render(*ON)["NetworkPolicy", NAME]["spec"]["egress"]
    assert {port["port"] for port in dns["ports"]} == {53}
    assert api == {"ports": [tcp(443), tcp(6443)]}
    labels = {"app.kubernetes.io/part-of": "ardea", "app.kubernetes.io/component": "master"}
    assert masters == {"to": [{"podSelector": {"matchLabels": labels}}]}
    assert render(*FULL)["NetworkPolicy", NAME]["spec"]["egress"][1] == {"ports": [tcp(6443)]}


def test_masters_let_it_in_and_no_other_pod_of_a_topology_does():
    objects = render(*ON)
    policy = objects["NetworkPolicy", f"{NAME}-masters"]["spec"]
    assert policy["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "master"
    (rule,) = policy["ingress"]
    (peer,) = rule["from"]
    labels = objects["Deployment", NAME]["spec"]["template"]["metadata"]["labels"]
    assert peer["podSelector"]["matchLabels"].items() <= labels.items()
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "console"
    assert not of_kind(render(*ON, "--set", "networkPolicy.enabled=false"), "NetworkPolicy")


def test_an_ingress_has_a_class_a_certificate_and_a_name():
    spec = render(*FULL)["Ingress", NAME]["spec"]
    assert spec["ingressClassName"] == "nginx"
    assert spec["tls"] == [{"hosts": ["console.example.org"], "secretName": "console-tls"}]
    (rule,) = spec["rules"]
    assert rule["host"] == "console.example.org"
    with pytest.raises(RefusedError, match=r"console\.ingress\.host is empty"):
        manifest(*ON, "--set", "console.ingress.enabled=true")


def test_one_pod_can_be_drained_and_of_two_one_at_a_time():
    assert ("PodDisruptionBudget", NAME) not in render(*ON)
    assert render(*FULL)["PodDisruptionBudget", NAME]["spec"]["maxUnavailable"] == 1


def test_an_account_without_rights_is_refused():
    with pytest.raises(RefusedError, match="the console's account would have no rights"):
        manifest(*ON, "--set", "rbac.create=false")
    objects = render(
        *ON, "--set", "rbac.create=false,console.serviceAccount.create=false,console.serviceAccount.name=a"
    )
    assert pod_specs(objects)[NAME]["serviceAccountName"] == "a"
