"""Below a topology under load: ZooKeeper comes back empty, a backup is restored, another release is installed."""

from __future__ import annotations

import time

import pytest

from tests.process.scheduler.kubernetes.pages import blocks
from tests.process.scheduler.kubernetes.releases import (
    RELEASE,
    CommandError,
    helm,
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


def masters(space):
    """The UIDs of their pods."""
    return {pod["metadata"]["uid"] for pod in pods(space, MASTERS)}


def lose(space, *, with_masters):
    """Both at the same moment; when another server is there, nothing is in it."""
    first = uid_of(space, SERVER)
    victims = [pod["metadata"]["name"] for pod in pods(space, MASTERS)] if with_masters else []
    kubectl("delete", "pod", SERVER, *victims, f"--namespace={space}", "--grace-period=1", "--wait=false")
    eventually(lambda: uid_of(space, SERVER) not in (first, None), 60, "another server is there")
    kubectl("wait", f"pod/{SERVER}", "--for=condition=Ready", "--timeout=120s", f"--namespace={space}")


def test_a_topology_goes_on_when_zookeeper_comes_back_empty(own, image_name):
    with counted(own, image_name) as topology:
        topology.whole()
        for with_masters in (False, True):
            before, former, since = lives(own), term(own), time.monotonic()
            lose(own, with_masters=with_masters)
            eventually(
                lambda f=former: term(own) > f, 60, lambda: f"a master acts in a higher term: {topology.trouble()}"
            )
            topology.whole(since)
            assert lives(own) == before, "no process but a master has a new life"
        topology.finish()


def test_what_runs_on_is_adopted_by_the_next_release(own, image, image_name):
    """Its masters get tokens of the new account by pods of their own; tuples flow on meanwhile."""
    with counted(own, image_name) as topology:
        topology.whole()
        with pytest.raises(CommandError, match="is not uninstalled: Counted"):
            helm("uninstall", RELEASE, f"--namespace={own}", "--wait", "--timeout=150s")
        before, former, since = lives(own), masters(own), time.monotonic()
        helm("uninstall", RELEASE, f"--namespace={own}", "--no-hooks", "--wait", "--timeout=150s")
        topology.works()
        install(own, *image, *SMALL, EMPTY)
        topology.works()
        eventually(lambda: len(masters(own) - former) == 2, 240, lambda: f"other masters: {topology.trouble()}")
        print(f"other masters after {time.monotonic() - since:.0f} s", flush=True)
        topology.whole()
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
