"""Each alert about ZooKeeper fires on real servers that serve metrics, and a real Prometheus; times are shortened."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.helm.alarms import Targets, sooner
from tests.process.helm.monitoring import ROOT, rules
from tests.process.metrics_manager.prometheus import Prometheus
from tests.process.state.conftest import connect, root
from tests.process.state.ensemble import Ensemble

__all__ = ["connect", "root"]

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.prometheus,
    pytest.mark.zookeeper,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        shutil.which("mvn") is None,
        reason="Debian's ZooKeeper serves no metrics; scripts/zookeeper-metrics.sh fetches one that does, with Maven",
    ),
]
NUMBERS = (1, 2, 3)


@pytest.fixture(scope="session")
def jars() -> str:
    fetched = subprocess.run([ROOT / "scripts" / "zookeeper-metrics.sh"], stdout=subprocess.PIPE, text=True, check=True)
    return fetched.stdout.strip()


@pytest.fixture
def servers(jars: str, tmp_path: Path) -> Iterator[Ensemble]:
    with Ensemble(tmp_path / "zookeeper", len(NUMBERS), jars) as ensemble:
        yield ensemble


@pytest.fixture
def targets(tmp_path: Path) -> Targets:
    return Targets(tmp_path)


@pytest.fixture
def prometheus(prometheus_binary: Path, servers: Ensemble, targets: Targets, tmp_path: Path) -> Iterator[Prometheus]:
    """With the rules for three servers, and those for the topologies that there are none of."""
    text = rules("here", "zookeeper", len(NUMBERS)).replace("> 1000", "> 0.001")
    text = sooner(text) + sooner(rules("here")).partition("groups:\n")[2]
    targets.set(
        (port, {"namespace": "here", "role": "zookeeper", "pod": f"zookeeper-{number}"})
        for number, port in zip(NUMBERS, servers.metrics, strict=True)
    )
    with contextlib.closing(Prometheus(prometheus_binary, tmp_path, targets.job, text)) as server:
        server.wait("count(up == 1) == 3", bool)
        yield server


def fires(prometheus: Prometheus, alert: str) -> dict:
    return prometheus.wait(f'ALERTS{{alertname="{alert}", alertstate="firing"}}', bool)


def firing(prometheus: Prometheus) -> set[str]:
    return {alert for (alert,) in prometheus.ask('group by (alertname) (ALERTS{alertstate="firing"})')}


def test_servers_that_die_one_after_the_other(servers, prometheus):
    prometheus.wait("count(num_alive_connections) == 3", bool)
    assert not firing(prometheus) & {"ArdeaZooKeeperNoQuorum", "ArdeaZooKeeperDown"}
    first, second, third = servers.servers
    first.kill()
    fires(prometheus, "ArdeaZooKeeperDown")
    second.kill()
    fires(prometheus, "ArdeaZooKeeperNoQuorum")
    prometheus.wait('absent(ALERTS{alertname="ArdeaZooKeeperDown"})', bool)
    assert third.runs, "it is there, but alone"
    servers.start()
    prometheus.wait('absent(ALERTS{alertname="ArdeaZooKeeperNoQuorum"})', bool)


def test_a_slow_server_and_masters_that_nobody_scrapes(servers, prometheus, connect):
    """A write that takes a microsecond is slow here; a lease is what a master has."""
    state = connect(servers)
    state.lease("/tmasters/wc-1", b"me")
    fires(prometheus, "ArdeaMetricsMissing")

    def write(answer: dict) -> bool:
        state.create("/topologies/wc-1", b"")
        state.delete("/topologies/wc-1")
        return bool(answer)

    prometheus.wait('ALERTS{alertname="ArdeaZooKeeperSlow", alertstate="firing"}', write)
    state.close()
    prometheus.wait('absent(ALERTS{alertname="ArdeaMetricsMissing"})', bool)
