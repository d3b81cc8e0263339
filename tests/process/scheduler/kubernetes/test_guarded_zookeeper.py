"""ZooKeeper that somebody else keeps, with TLS and SASL: the Secret of docs/helm.md, and one that has become old."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.process.scheduler.kubernetes.exact import Exact
from tests.process.scheduler.kubernetes.pages import blocks
from tests.process.scheduler.kubernetes.releases import kubectl, namespace, needs_cluster, read, run
from tests.process.scheduler.kubernetes.running import RESTRICTED, SMALL, ardea
from tests.process.scheduler.kubernetes.test_health import becomes, listed, told
from tests.process.state.guarded import CONFIG, USERS, certificates
from tests.process.waiting import eventually

pytestmark = [pytest.mark.thorough, needs_cluster, pytest.mark.timeout(900)]
PORT = 2281
SERVER = """
jars=$(ls /usr/share/java/zookeeper.jar /usr/share/java/netty-codec.jar /apache-zookeeper*/lib/*.jar 2>/dev/null)
exec java -Xmx128m -Djava.security.auth.login.config=/guarded/users -cp "$(echo $jars | tr ' ' :)" \
    org.apache.zookeeper.server.quorum.QuorumPeerMain /guarded/zoo.cfg
"""
CHANGED = 120
"""Seconds in which kubelet brings a Secret that was changed to the pods that have it."""


class Guarded:
    """One server, which speaks TLS only, with what it and its clients need in Secrets of its namespace."""

    def __init__(self, space: str, folder: Path) -> None:
        self.space, self.folder = space, folder
        self.host = f"zookeeper.{space}.svc"
        self.password = ""

    def renew(self, password: str) -> None:
        """Another CA, and certificates and a password that are new; the Secret is the server's."""
        self.folder.mkdir(exist_ok=True)
        self.password = password
        certificates(self.folder, f"CA of {password}", f"DNS:{self.host}")
        shutil.copy(self.folder / "client.crt", self.folder / "tls.crt")
        shutil.copy(self.folder / "client.key", self.folder / "tls.key")
        (self.folder / "sasl").write_text(f"ardea:{password}")
        (self.folder / "users").write_text(USERS.format(password))
        config = CONFIG.format(port=PORT, address="0.0.0.0", folder="/guarded", more="tickTime=2000\ndataDir=/data")
        (self.folder / "zoo.cfg").write_text(f"{config}\nadmin.enableServer=false\n")
        self.secret("zookeeper-server", "ca.crt", "server.pem", "users", "zoo.cfg")

    def secret(self, name: str, *files: str) -> None:
        """The Secret holds these files as they are now."""
        sources = [f"--from-file={self.folder / file}" for file in files]
        made = kubectl("create", "secret", "generic", name, *sources, "--dry-run=client", "--output=yaml")
        kubectl("apply", "-f", "-", f"--namespace={self.space}", stdin=made)

    def start(self) -> None:
        container = {
            "name": "zookeeper",
            "image": "zookeeper:3.9",
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", SERVER],
            "volumeMounts": [{"name": "guarded", "mountPath": "/guarded"}, {"name": "data", "mountPath": "/data"}],
            "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            "securityContext": RESTRICTED,
        }
        user = {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
        volumes = [{"name": "guarded", "secret": {"secretName": "zookeeper-server"}}, {"name": "data", "emptyDir": {}}]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "zookeeper", "labels": {"app": "zookeeper"}},
            "spec": {"securityContext": user, "containers": [container], "volumes": volumes},
        }
        where = f"--namespace={self.space}"
        kubectl("create", "-f", "-", where, stdin=json.dumps(pod))
        kubectl("create", "service", "clusterip", "zookeeper", f"--tcp={PORT}", where)
        kubectl("wait", "pod/zookeeper", "--for=condition=Ready", "--timeout=120s", where)

    def restart(self) -> None:
        """With the present Secret, once it has arrived; what the server holds stays."""
        inside = ("exec", "zookeeper", f"--namespace={self.space}", "--")
        users = (self.folder / "users").read_text()
        eventually(lambda: kubectl(*inside, "cat", "/guarded/users") == users, CHANGED, "the server's files are new")
        kubectl(*inside, "sh", "-c", "kill 1")


def test_a_topology_goes_on_when_certificates_and_passwords_are_renewed(image, tmp_path):
    """Installed as the page says.  Masters with an old Secret say what is wrong; with the new one they work again."""
    with namespace() as space:
        guarded = Guarded(space, tmp_path / "files")
        guarded.renew("a-first-password")
        guarded.start()
        (steps,) = blocks("docs/helm.md", "Three servers, or yours")
        create, install = (
            step.replace("-n streams", f"-n {space}").replace("zk-0.example.org", guarded.host) for step in steps
        )
        run(["sh", "-c", f"cd {guarded.folder} && {create}"])
        settings = " ".join(f"--set '{setting}'" for setting in (*image, *SMALL))
        run(["sh", "-c", f"{install.replace('./helm', 'helm')} {settings}"])
        exact = Exact(space, tmp_path / "exact")
        becomes(space, "HEALTHY", 15)
        counted = eventually(lambda: exact.more(0), 90, "it counts")

        guarded.renew("a-second-password")
        guarded.restart()
        becomes(space, "UNREACHABLE", 90)
        told(
            space, r"Exact-\w+: exact-master-\d-\w+: cut off from .*lets nobody in: TLS: the server's certificate.*", 60
        )
        guarded.secret("zookeeper-client", "ca.crt", "tls.crt", "tls.key", "sasl")
        becomes(space, "HEALTHY", CHANGED + 60)
        eventually(lambda: exact.more(counted), 90, lambda: f"it counts on: {listed(space)}")
        eventually(lambda: exact.ask() == exact.right(), 180, lambda: f"{exact.ask()} becomes {exact.right()}")

        said = [
            kubectl(
                "logs", "--all-containers", "--prefix", "--selector=app.kubernetes.io/instance=Exact", f"-n={space}"
            )
        ]
        said += [json.dumps(read("pods,events,configmaps", f"-n={space}")), "\n".join(listed(space))]
        assert not any("-password" in text for text in said)
        ardea("kill", "Exact", space=space)
