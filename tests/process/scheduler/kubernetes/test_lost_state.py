"""The chart's ZooKeeper comes back empty below a topology under load; a backup of it is restored."""

from __future__ import annotations

import time

import pytest

from tests.process.scheduler.kubernetes.pages import blocks
from tests.process.scheduler.kubernetes.releases import (
    RELEASE,
    install,
    kubectl,
    namespace,
    needs_cluster,
    read,
    run,
)
from tests.process.scheduler.kubernetes.running import SMALL, counted, described, pods
from tests.process.waiting import eventually

pytestmark = [pytest.mark.thorough, needs_cluster, pytest.mark.timeout(900)]
SERVER = f"{RELEASE}-zookeeper-0"
MASTERS = "app.kubernetes.io/component=master"
EMPTY = "zookeeper.persistence.enabled=false"


@pytest.fixture
def own(image):
    """A namespace whose ZooKeeper forgets all with its pod."""
    with namespace() as space:
        install(space, *image, *SMALL, EMPTY)
        yield space


def uid_of(space, pod):
    found = read("pods", f"--namespace={space}", f"--field-selector=metadata.name={pod}")["items"]
    return found[0]["metadata"]["uid"] if found else None


def lives(space):
    """How often each process of a container was started."""
    return {
        row["name"]: row["restarts"] for row in described("Counted", space)["processes"] if "master" not in row["name"]
    }


def term(space):
    status = described("Counted", space)["status"]
    return status["term"] if status else 0


def lose(space, *, masters):
    """Both at the same moment; when another server is there, nothing is in it."""
    first = uid_of(space, SERVER)
    victims = [pod["metadata"]["name"] for pod in pods(space, MASTERS)] if masters else []
    kubectl("delete", "pod", SERVER, *victims, f"--namespace={space}", "--grace-period=1", "--wait=false")
    eventually(lambda: uid_of(space, SERVER) not in (first, None), 60, "another server is there")
    kubectl("wait", f"pod/{SERVER}", "--for=condition=Ready", "--timeout=120s", f"--namespace={space}")


def test_a_topology_goes_on_when_zookeeper_comes_back_empty(own, image_name):
    with counted(own, image_name) as topology:
        topology.whole()
        for masters in (False, True):
            before, former, since = lives(own), term(own), time.monotonic()
            lose(own, masters=masters)
            eventually(
                lambda f=former: term(own) > f, 60, lambda: f"a master acts in a higher term: {topology.trouble()}"
            )
            topology.whole(since)
            assert lives(own) == before, "no process but a master has a new life"
        topology.finish()


def test_a_backup_is_made_and_restored_as_the_page_says(image, image_name, tmp_path):
    """Below a topology that has had another master since."""
    copy, put_back = blocks("docs/helm.md", "Backup and restore")
    with namespace() as space:

        def type_(lines):
            for line in lines:
                run(["sh", "-c", f"cd {tmp_path} && {line.replace('-n streams', f'-n {space}')}"])

        def zookeeper(*command):
            return kubectl("exec", SERVER, f"--namespace={space}", "--", "zkCli.sh", *command)

        install(space, *image, *SMALL, "zookeeper.persistence.enabled=true")
        with counted(space, image_name) as topology:
            topology.whole()
            zookeeper("create", "/kept", "by-the-copy")
            type_(copy)
            zookeeper("delete", "/kept")
            former = term(space)
            kubectl(
                "delete", "pod", f"--selector={MASTERS}", f"--namespace={space}", "--grace-period=1", "--wait=false"
            )
            eventually(lambda: term(space) > former, 60, lambda: f"another master acts: {topology.trouble()}")
            before, former, since = lives(space), term(space), time.monotonic()
            type_(put_back)
            assert "by-the-copy" in zookeeper("get", "/kept")
            eventually(lambda: term(space) > former, 60, lambda: f"a master acts above it: {topology.trouble()}")
            topology.whole(since)
            assert lives(space) == before, "no process but a master has a new life"
            topology.finish()
