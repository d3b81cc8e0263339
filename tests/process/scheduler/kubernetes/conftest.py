"""The image that tests on a cluster run."""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ardea import __version__
from tests.process.scheduler.kubernetes.releases import RELEASE, ROOT, install, namespace, remaining, run
from tests.process.scheduler.kubernetes.running import SMALL, Counted, counted, first_node
from tests.process.waiting import eventually

BUILT = f"ardea:{__version__}"


@pytest.fixture(scope="session", autouse=True)
def nothing_remains() -> Iterator[None]:
    yield
    if os.environ.get("KUBECONFIG"):
        eventually(lambda: not remaining(), 180, lambda: f"the namespaces of this run are gone: {remaining()}")


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Settings of the chart that name an image of this tree which the nodes have.

    ``ARDEA_IMAGE`` is one that they have already, as REPOSITORY:TAG.  Otherwise ``make image`` builds one, and the
    command ``ARDEA_KUBE_LOAD`` (``kind load docker-image``) puts it into the nodes: once for all workers, since a node
    may collect the layers of an image that another worker is just replacing.
    """
    if not (name := os.environ.get("ARDEA_IMAGE")):
        if not (load := os.environ.get("ARDEA_KUBE_LOAD")):
            pytest.skip("neither ARDEA_IMAGE nor ARDEA_KUBE_LOAD is set: the cluster has no image of Ardea to run")
        with Path(__file__).open() as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            loaded = tmp_path_factory.getbasetemp().parent / "image-is-loaded"  # of all workers of this run
            if not ("PYTEST_XDIST_WORKER" in os.environ and loaded.exists()):
                run(["make", "-C", ROOT, "image"], seconds=600)
                run([*shlex.split(load), BUILT], seconds=300)
                loaded.touch()
        name = BUILT
    repository, _, tag = name.rpartition(":")
    return [f"image.repository={repository}", f"image.tag={tag}"]


@pytest.fixture(scope="session")
def image_name(image: list[str]) -> str:
    """The same image, as a pod names it."""
    repository, tag = (setting.partition("=")[2] for setting in image)
    return f"{repository}:{tag}"


@pytest.fixture(scope="session")
def servers(image: list[str]) -> Iterator[str]:
    """One ZooKeeper for all tests, on the node that no test takes down; its address.

    Its state outlives its pod.
    """
    first = f"zookeeper.nodeSelector.kubernetes\\.io/hostname={first_node()}"
    with namespace() as space:
        install(space, *image, first, "zookeeper.persistence.enabled=true")
        yield f"{RELEASE}-zookeeper.{space}.svc:2181"


@pytest.fixture
def space(image: list[str], servers: str) -> Iterator[str]:
    """A namespace of the test's own, restricted, with the chart in it."""
    with _space(image, servers) as name:
        yield name


@pytest.fixture
def other_space(image: list[str], servers: str) -> Iterator[str]:
    """One more, on the same ZooKeeper."""
    with _space(image, servers) as name:
        yield name


@pytest.fixture(scope="module")
def topology(image: list[str], image_name: str, servers: str) -> Iterator[Counted]:
    """One under load, for all tests of a file; after the last of them nothing that it has read is missing.

    Not for the session: it would take a core from whatever else its worker runs later.
    """
    with _space(image, servers) as name, counted(name, image_name) as running:
        yield running
        running.finish()


@contextmanager
def _space(image: list[str], servers: str) -> Iterator[str]:
    with namespace() as name:
        external = ("zookeeper.enabled=false", f"externalZookeeper.servers[0]={servers}")
        install(name, *image, *external, f"externalZookeeper.root=/{name}", *SMALL)
        yield name
