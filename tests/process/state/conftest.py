"""State managers on a real ZooKeeper: one server for the suite, three for the tests of faults."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ardea.state.zookeeper import ZooKeeperState
from tests.process.state.ensemble import Ensemble
from tests.unit.state.conftest import Backend, other, poll_until, run_python, state

__all__ = ["backend", "connect", "other", "poll_until", "root", "run_python", "server", "state", "three"]

_ROOTS = itertools.count()


class ZooKeeper(Backend):
    """Each under a root of its own on one server."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        super().__init__()

    def begin(self, name: str) -> None:
        self._root = f"/suite/{next(_ROOTS)}-{name}"

    def open(self) -> ZooKeeperState:
        return ZooKeeperState(self._ensemble.address(self._root))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """One server for all tests that do not harm it."""
    with Ensemble(tmp_path_factory.mktemp("zookeeper")) as ensemble:
        yield ensemble


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Ensemble]:
    """Three servers, to which the test may do what it likes."""
    with Ensemble(tmp_path, 3) as ensemble:
        yield ensemble


@pytest.fixture
def backend(server: Ensemble) -> Iterator[Backend]:
    backend = ZooKeeper(server)
    yield backend
    backend.close()


@pytest.fixture
def root() -> str:
    """A root that no other test uses."""
    return f"/tests/{next(_ROOTS)}"


@pytest.fixture
def connect(root: str) -> Iterator[Callable[..., ZooKeeperState]]:
    """``connect(ensemble, credential="", **options)``: one more state manager under the test's root."""
    with ExitStack() as stack:

        def connect(ensemble: Ensemble, credential: str = "", **options: float) -> ZooKeeperState:
            return stack.enter_context(ZooKeeperState(ensemble.address(root, credential), **options))

        yield connect
