"""Who gets what from a real cluster: strangers, other topologies, other namespaces, those with a small quota."""

from __future__ import annotations

import base64
import json

import pytest
from kubernetes.utils import parse_quantity

from ardea.scheduler.kubernetes import layout
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.state import paths
from ardea.transport import KEY_FILE, holder
from tests.process.scheduler.kubernetes.releases import CommandError, kubectl, namespace, needs_cluster, objects, read
from tests.process.scheduler.kubernetes.running import TOPOLOGIES, ardea, described, pod_of, pods
from tests.process.waiting import eventually

pytestmark = [needs_cluster, pytest.mark.timeout(600)]
QUIET = TOPOLOGIES / "quiet.py"
NOTE = "/notes/quiet"
READ = """
import sys
from pathlib import Path
from ardea.errors import ArdeaError
from ardea.state import open_state
from ardea.state.address import Access
address, path, folder = sys.argv[1:]
try:
    with open_state(address, Access.read(Path(folder)).credential if folder else "") as state:
        print(len(state.get(path).data), "bytes")
except ArdeaError as error:
    print(error.message)
"""
KNOCK = """
import os, sys, zmq
from pathlib import Path
address, server, key = sys.argv[1:]
dealer = zmq.Context().socket(zmq.DEALER)
if key:
    secret = Path(key).read_bytes().strip()
    dealer.curve_secretkey, dealer.curve_publickey = secret, zmq.curve_public(secret)
    dealer.curve_serverkey = server.encode()
monitor = dealer.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
dealer.connect(f"tcp://{address}")
print("let in" if monitor.poll(3000) else "refused", flush=True)
os._exit(0)
"""
PORTS = """
import sys, msgspec
from pathlib import Path
from ardea.stream_manager.container_setup import Remembered
known = msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=Remembered)
print(known.data_port, known.control_port)
"""
MASTER = """
import sys
from ardea.state import open_state, paths, records
path = paths.master(sys.argv[2])
with open_state(sys.argv[1]) as state:
    print(records.decode(state.get(path).data, records.MasterLocation, path).port)
"""
ASK = """
import os, ssl, sys, urllib.error, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount/"
if not os.path.exists(folder):
    sys.exit(print("no token"))
request = urllib.request.Request(
    f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}/{sys.argv[1]}",
    headers={"Authorization": "Bearer " + open(folder + "token").read()},
)
try:
    print(urllib.request.urlopen(request, context=ssl.create_default_context(cafile=folder + "ca.crt")).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


class Quiet:
    """The topology of ``quiet.py``, running in a namespace."""

    def __init__(self, space):
        ardea("submit", "kubernetes", QUIET, "--wait-secs", "240", space=space)
        self.space = space
        self.definition = ManifestInputs.read(read("configmap", "quiet", f"--namespace={space}")).definition
        secret = read("secret", "quiet-state", f"--namespace={space}")["data"]
        self.notes = base64.b64decode(secret["address"]).decode()
        self.container = pod_of(space, 1)
        (self.master,) = pods(space, "app.kubernetes.io/component=master")

    def run(self, container, script, *arguments):
        """What a Python in that container prints."""
        pod = self.master if container == "topology-master" else self.container
        inside = ("exec", pod["metadata"]["name"], f"--namespace={self.space}", "-c", container, "--")
        return kubectl(*inside, "python", "-P", "-c", script, *arguments).strip()

    def reads(self, container, address, path):
        """With the credential that the container has mounted, or that is in its environment, if it has any."""
        return self.run(container, READ, address, path, str(layout.STATE_MOUNT) if container == "ticks-0" else "")

    def knocks(self, container, address, server, key=str(layout.KEY_MOUNT / KEY_FILE)):
        return self.run(container, KNOCK, address, server, key)


@pytest.fixture
def quiet(space):
    return Quiet(space)


@pytest.fixture
def foreign(other_space):
    return Quiet(other_space)


REFUSED = "does not allow it; nothing was changed"


@pytest.mark.thorough
def test_topologies_of_two_namespaces_reach_nothing_of_each_other(quiet, foreign):
    status = paths.execution_state(quiet.definition.topology)
    for state, path, reader in (
        (quiet.definition.state, status, "topology-master"),
        (quiet.definition.state, status, "stream-manager"),
        (quiet.notes, NOTE, "ticks-0"),
    ):
        assert quiet.reads(reader, state, path).endswith("bytes"), reader
        for container in {"topology-master", "stream-manager", "ticks-0", "ends-0"} - {reader}:
            manages = {container, reader} <= {"topology-master", "stream-manager"}
            assert (REFUSED in quiet.reads(container, state, path)) is not manages, (container, path)
        for container in ("topology-master", "stream-manager", "ticks-0", "ends-0"):
            assert REFUSED in foreign.reads(container, state, path), (container, path)

    manager = layout.process_folder(quiet.definition.topology, 1, "stream-manager") / "manager.plan"
    ports = quiet.run("stream-manager", PORTS, str(manager)).split()
    master = quiet.run("topology-master", MASTER, quiet.definition.state, quiet.definition.topology)
    listening = [(f"{quiet.container['status']['podIP']}:{port}", quiet.definition.keys[holder(1)]) for port in ports]
    listening.append((f"{quiet.master['status']['podIP']}:{master}", quiet.definition.keys[holder(0)]))
    for address, server in listening:
        assert quiet.knocks("topology-master", address, server) == "let in"
        assert quiet.knocks("stream-manager", address, server) == "let in"
        assert foreign.knocks("stream-manager", address, server) == "refused", "another topology's key"
        assert foreign.knocks("ends-0", address, server, "") == "refused", "no key"

    for kind in ("configmaps", "secrets", "pods"):
        own, others = (f"api/v1/namespaces/{topology.space}/{kind}" for topology in (foreign, quiet))
        assert foreign.run("topology-master", ASK, own) == ("403" if kind == "secrets" else "200")
        assert foreign.run("topology-master", ASK, others) == "403"
        assert foreign.run("ends-0", ASK, own) == foreign.run("stream-manager", ASK, own) == "no token"
    assert described("Quiet", quiet.space)["status"]["silent_tasks"] == []


@pytest.mark.thorough
def test_restricted_is_enforced_where_topologies_run():
    container = {"name": "c", "image": "none", "securityContext": {"privileged": True}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "privileged"}, "spec": {"containers": [container]}}
    with namespace() as space, pytest.raises(CommandError, match='violates PodSecurity "restricted'):
        kubectl("create", "-f", "-", f"--namespace={space}", stdin=json.dumps(pod))


@pytest.mark.thorough
def test_a_quota_that_is_too_small_is_told(space):
    kubectl("create", "quota", "small", "--hard=pods=1", f"--namespace={space}")
    said = ardea("submit", "kubernetes", QUIET, "--wait-secs", "10", space=space, code=4).stderr
    assert "gets no pod" in said
    assert "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1" in said
    (row,) = [row for row in described("Quiet", space)["pods"] if row["pod"] is None]
    assert "exceeded quota: small" in row["trouble"]
    ardea("kill", "Quiet", space=space)


def test_what_a_quota_refuses_at_once_leaves_nothing():
    with namespace() as space:
        kubectl("create", "quota", "small", "--hard=count/jobs.batch=1", f"--namespace={space}")
        before = objects(space)
        options = ("--image", "none", "--state", "zookeeper://nowhere/ardea")
        anywhere = ("--set", "heron.kubernetes.nodes.grow=true")
        said = ardea("submit", "kubernetes", QUIET, *options, *anywhere, space=space, code=1).stderr
        assert "exceeded quota: small, requested: count/jobs.batch=1" in said
        assert "kubectl describe quota" in said
        eventually(lambda: objects(space) == before, 60, lambda: f"nothing is left: {objects(space) - before}")


def test_what_fits_no_node_is_refused_before_anything_is_made(space):
    before = objects(space)
    huge = ("--set", "topology.stmgr.ram=17592186044416")
    said = ardea("submit", "kubernetes", QUIET, *huge, space=space, code=6).stderr
    assert "no node is large enough for the pod of" in said
    assert "heron.kubernetes.nodes.grow=true" in said
    nodes = [node["status"]["allocatable"]["memory"] for node in read("nodes")["items"]]
    most = max(int(parse_quantity(memory)) for memory in nodes)
    each = ("--set", f"topology.metricsmgr.ram={most * 6 // 10}")
    many = ("--set", f"heron.topology.master.replicas={len(nodes) + 1}")
    said = ardea("submit", "kubernetes", QUIET, *each, *many, space=space, code=6).stderr
    assert "so not all can be scheduled" in said
    assert objects(space) == before
