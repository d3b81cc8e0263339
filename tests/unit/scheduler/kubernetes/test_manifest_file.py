"""Manifests for kubectl: made without any cluster, complete, and without a secret unless it is asked for."""

from __future__ import annotations

import base64
import json
import os
import shlex
import socket
import stat
from itertools import count
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from ardea.cli.verbs import app
from ardea.errors import ExitCode
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.kill import Killing
from ardea.scheduler.kubernetes.manifest_file import KEPT
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.scheduler.kubernetes.topologies import find
from ardea.transport import CALLERS, KEY_FILE, Keyring, holder
from ardea.versions import __version__

TRIDENT = Path(__file__).parents[4] / "examples" / "trident_word_count.py"
DEFAULTS = {"image": "elsewhere/ardea:1", "state": "zookeeper://zk:1/x", "masterReplicas": 1, "labels": {"team": "a"}}
"""As a chart with other values has them."""


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """There is no cluster, no network and no kubeconfig."""

    def nobody(*_, **__):
        raise AssertionError("a dry run asks nobody")

    for name in ("KUBECONFIG", "ARDEA_STATE", "ARDEA_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(socket.socket, "connect", nobody)
    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    monkeypatch.setattr(Cluster, "connect", nobody)


@pytest.fixture
def dry_run(author):
    """The verb, with these options."""

    def run(*options, file=None):
        command = ["submit", "kubernetes", file or author(), "--dry-run", *options]
        return CliRunner().invoke(app, [str(each) for each in command], prog_name="ardea")

    return run


@pytest.fixture
def printed(dry_run):
    """What it prints, as objects by kind and name in their order, and its comments."""

    def run(*options, file=None):
        told = dry_run(*options, file=file)
        assert told.exit_code == 0, told.output
        comments = [line.removeprefix("# ") for line in told.stdout.splitlines() if line.startswith("#")]
        return by_name(yaml.load_all(told.stdout, Loader=yaml.CSafeLoader)), comments

    return run


def by_name(manifests):
    return {(each["kind"], each["metadata"]["name"]): each for each in manifests}


def secrets_by(comments):
    """Those of the file that the last comment names."""
    *_, file = shlex.split(comments[-1])
    return Path(file), by_name(json.loads(Path(file).read_text())["items"])


def value(secret, key):
    return base64.b64decode(secret["data"][key]).decode()


def test_nothing_is_owned_and_masters_are_the_last(printed):
    """kubectl deletes in the order of the file: the masters bring back whatever is gone before them."""
    manifests, _ = printed()
    assert [kind for kind, _ in manifests] == ["ConfigMap", "ConfigMap", *["Job"] * 4]
    names = [name for _, name in manifests]
    assert (names[0], names[1].rpartition("-")[0]) == ("sums", "sums-code")
    assert names[2:] == ["sums-container-1", "sums-container-2", "sums-master-1", "sums-master-2"]
    for manifest in manifests.values():
        assert manifest["metadata"].keys() <= {"name", "labels", "annotations"}
        assert '"annotations": {}' not in json.dumps(manifest), "kubectl would find a difference each time"


def test_the_last_comment_applies_the_secrets_which_only_their_owner_can_read(printed, tmp_path):
    manifests, comments = printed("-n", "streams")
    assert comments[-1].startswith("kubectl apply --server-side -f ")
    file, secrets = secrets_by(comments)
    assert file.parent == tmp_path / "home" / ".ardea" / "kubernetes"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]
    assert [name for _, name in secrets] == ["sums-access", "sums-callers", "sums-key-0", "sums-key-1", "sums-key-2"]
    inputs = ManifestInputs.read(manifests["ConfigMap", "sums"])
    assert file.name == f"{inputs.id}-secrets.json"
    user, _, password = value(secrets["Secret", "sums-access"], "zookeeper").partition(":")
    assert (user, len(password)) == (inputs.id, 32)
    assert len(value(secrets["Secret", "sums-access"], "token")) == 32
    keys = {holder(number): value(secrets["Secret", f"sums-key-{number}"], KEY_FILE) for number in range(3)}
    keys[CALLERS] = value(secrets["Secret", "sums-key-0"], CALLERS)
    assert {name: Keyring(key, {}).public.decode() for name, key in keys.items()} == inputs.definition.keys
    everything = [*manifests.values(), *secrets.values()]
    assert {each["metadata"]["namespace"] for each in everything} == {"streams"}
    assert not any("ownerReferences" in each["metadata"] for each in everything)
    assert [text for text in (password, *keys.values()) if text in json.dumps([*manifests.values()])] == []


def test_secrets_are_printed_on_demand_and_then_not_kept(printed, tmp_path):
    manifests, comments = printed("--include-secrets")
    assert [kind for kind, _ in manifests] == ["ConfigMap", "ConfigMap", *["Secret"] * 5, *["Job"] * 4]
    assert not (tmp_path / "home").exists()
    assert [line for line in comments if "Secrets" in line] == []


def test_all_that_pods_mount_is_there(printed):
    manifests, comments = printed(file=TRIDENT)
    _, secrets = secrets_by(comments)
    assert ("Secret", "tridentwordcount-state") in secrets
    wanted = set()
    for (kind, _), manifest in manifests.items():
        if kind == "Job":
            spec = manifest["spec"]["template"]["spec"]
            wanted |= {("ConfigMap", v["configMap"]["name"]) for v in spec["volumes"] if "configMap" in v}
            wanted |= {("Secret", v["secret"]["secretName"]) for v in spec["volumes"] if "secret" in v}
            for container in (*spec["initContainers"], *spec["containers"]):
                references = [e["valueFrom"]["secretKeyRef"] for e in container["env"] if "secretKeyRef" in str(e)]
                assert not any(reference.get("optional") for reference in references), "it would start without"
                wanted |= {("Secret", reference["name"]) for reference in references}
    assert len(wanted) > 5
    for_the_console = ("Secret", "tridentwordcount-callers")
    assert wanted | {for_the_console} == {key for key in {**manifests, **secrets} if key[0] != "Job"}


def test_as_json_it_is_one_list_and_stderr_has_the_command(dry_run):
    told = dry_run("-o", "json")
    document = json.loads(told.stdout)
    assert (document["kind"], len(document["items"])) == ("List", 6)
    _, secrets = secrets_by(told.stderr.strip().splitlines())
    assert len(secrets) == 5


def test_each_is_a_topology_of_its_own(printed):
    ids = {ManifestInputs.read(printed()[0]["ConfigMap", "sums"]).id for _ in range(2)}
    assert len(ids) == 2


def test_without_options_it_is_for_what_the_chart_installs(printed):
    manifests, comments = printed()
    pods = {name: job["spec"]["template"]["spec"] for (kind, name), job in manifests.items() if kind == "Job"}
    images = {c["image"] for pod in pods.values() for c in (*pod["initContainers"], *pod["containers"])}
    assert images == {f"ardea:{__version__}"}
    accounts = {name.split("-")[1]: pod["serviceAccountName"] for name, pod in pods.items()}
    assert accounts == {"master": "ardea-master", "container": "ardea-container"}
    inputs = ManifestInputs.read(manifests["ConfigMap", "sums"])
    assert inputs.definition.state == f"zookeeper://ardea-zookeeper:2181/ardea/{inputs.id}"
    for said in (images.pop(), "zookeeper://ardea-zookeeper:2181/ardea", *accounts.values(), "no cluster was asked"):
        assert said in comments[0]


def config_map(name="any-defaults", **defaults):
    metadata = {"name": name, "labels": {"ardea.dev/role": "defaults"}}
    data = {"defaults.json": json.dumps({**DEFAULTS, **defaults})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


OTHER = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}


@pytest.mark.parametrize(
    "documents",
    [[config_map()], [OTHER, None, config_map()], [{"kind": "List", "items": [OTHER, config_map()]}]],
    ids=["helm template -s", "helm template", "kubectl get"],
)
def test_what_the_chart_says_is_taken_from_a_file_and_options_win(printed, tmp_path, documents):
    file = tmp_path / "defaults.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    manifests, _ = printed("--defaults", file, "--image", "mine")
    root = manifests["ConfigMap", "sums"]
    inputs = ManifestInputs.read(root)
    assert (inputs.pods.image, inputs.pods.masters, root["metadata"]["labels"]["team"]) == ("mine", 1, "a")
    assert inputs.definition.state == f"zookeeper://zk:1/x/{inputs.id}"


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (None, ExitCode.INVALID, "cannot be read: [Errno 2]"),
        ("a: [", ExitCode.INVALID, "cannot be read: while parsing"),
        ("- 1\n---\nitems: [1]", ExitCode.INVALID, "holds no ConfigMap with the label ardea.dev/role=defaults"),
        (yaml.safe_dump(OTHER), ExitCode.INVALID, "holds no ConfigMap with the label ardea.dev/role=defaults"),
        (yaml.safe_dump_all([config_map(), config_map("b")]), ExitCode.CONFLICT, "several ConfigMaps with defaults"),
        (yaml.safe_dump(config_map(image=1)), ExitCode.INVALID, "any-defaults holds no defaults.json that can be read"),
        (yaml.safe_dump(config_map(image="")), ExitCode.INVALID, "no image is known"),
    ],
    ids=["missing", "no YAML", "other things", "another object", "two", "unreadable", "without an image"],
)
def test_a_file_without_the_charts_defaults_is_refused(dry_run, tmp_path, text, code, says):
    file = tmp_path / "defaults.yaml"
    if text is not None:
        file.write_text(text)
    told = dry_run("--defaults", file)
    assert (told.exit_code, told.stdout) == (code, "")
    assert says in told.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("option", ["--context", "--kubeconfig"])
def test_what_names_a_cluster_has_no_place_beside_it(dry_run, option):
    told = dry_run(option, "x")
    assert (told.exit_code, told.stdout) == (ExitCode.USAGE, "")


def test_secrets_cannot_be_included_where_nothing_is_printed(author):
    told = CliRunner().invoke(app, ["submit", "kubernetes", str(author()), "--include-secrets"])
    assert (told.exit_code, told.stdout) == (ExitCode.USAGE, "")


def test_the_secrets_of_the_last_dry_runs_stay(printed, monkeypatch, tmp_path):
    monkeypatch.setenv("ARDEA_STATE", str(tmp_path / "other"))
    folder = tmp_path / "other" / "kubernetes"
    folder.mkdir(parents=True)
    for number in range(KEPT + 2):
        old = folder / f"{number}-secrets.json"
        old.touch()
        os.utime(old, (number, number))
    (folder / "mine.txt").touch()
    file, _ = secrets_by(printed()[1])
    kept = {f"{number}-secrets.json" for number in range(3, KEPT + 2)}
    assert {path.name for path in folder.iterdir()} == {*kept, file.name, "mine.txt"}


def test_where_the_secrets_cannot_be_kept_nothing_is_printed(dry_run, tmp_path):
    (tmp_path / "home" / ".ardea").mkdir(parents=True)
    (tmp_path / "home" / ".ardea" / "kubernetes").touch()
    told = dry_run()
    assert (told.exit_code, told.stdout) == (ExitCode.FAILED, "")
    assert "--include-secrets prints them instead" in told.stderr


def test_what_kubectl_has_made_is_found_and_killed_as_what_was_submitted(cluster, printed):
    manifests, comments = printed()
    _, secrets = secrets_by(comments)
    stays = {"kind": "Secret", "metadata": {"name": "another", "labels": {"ardea.dev/topology-id": "Another-1"}}}
    for manifest in (*manifests.values(), *secrets.values(), stays):
        cluster.apply(manifest)
    found = find(cluster, "Sums")
    assert found.topology.running
    Killing(cluster, found, lambda _: None, clock=count().__next__, pause=lambda _: None).kill(0.0)
    assert [name for _, name in cluster.objects] == ["another"]
