"""Each alert about topologies fires on real processes and a real Prometheus; times and thresholds are shortened."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import ardea.scheduler.local_processes
from ardea.scheduler.local_processes import LocalProcesses
from ardea.state.records import RunState
from ardea.supervision.records import read_status
from ardea.supervision.spec import ProcessSpec
from tests.process.engine.running import Running
from tests.process.helm.alarms import SOONER, Alarms, sooner
from tests.process.helm.monitoring import OBSERVED, REMEMBERING, rules
from tests.process.state.ensemble import Ensemble
from tests.process.waiting import eventually

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.cluster,
    pytest.mark.prometheus,
    pytest.mark.zookeeper,
]

ALARMING = Path(__file__).parent / "topologies" / "alarming.py"


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Supervisors let a process stand still."""
    policy = functools.partial(ardea.scheduler.local_processes.Policy, silence=300.0)
    monkeypatch.setattr(ardea.scheduler.local_processes, "Policy", policy)


@contextlib.contextmanager
def watched(
    file: Path, prometheus: Path, folder: Path, state: str = "", settings: Mapping[str, Any] | None = None
) -> Iterator[tuple[Running, Alarms]]:
    with Running(str(file), folder, settings, state=state) as topology:
        topology.running()
        with contextlib.closing(Alarms(prometheus, folder, topology)) as alarms:
            alarms.scrape(0, 1, 2)
            alarms.asked('count(ardea_build_info{topology_id!=""}) == 3')
            yield topology, alarms


@contextlib.contextmanager
def frozen(topology: Running, process: str) -> Iterator[None]:
    topology.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        topology.kill(process, signal.SIGCONT)


def goes_on(topology: Running, seconds: float) -> None:
    """What a fault, or the silence of alerts, has to last."""
    end = time.monotonic() + seconds
    eventually(lambda: topology.run.over or topology.run.step() or time.monotonic() >= end, seconds + 10)
    eventually(lambda: time.monotonic() >= end, seconds + 10)


@pytest.fixture
def last_scrape(monkeypatch):
    """Metrics managers stay for it, as they do in the pods of masters."""

    def stays(processes: LocalProcesses, number: int) -> ProcessSpec:
        spec = metrics(processes, number)
        return dataclasses.replace(spec, argv=(*spec.argv, "--last-scrape", "75"))

    metrics = LocalProcesses._metrics
    monkeypatch.setattr(LocalProcesses, "_metrics", stays)


def test_what_makes_alerts_fire_sooner_finds_what_it_replaces():
    text = rules("here") + rules("here", "zookeeper")
    assert [pattern for pattern, _ in SOONER if not re.search(pattern, text)] == []
    assert re.findall(r"\[\d+[mhd]\]|for: \d+m", sooner(text)) == []


def test_work_that_fails_or_cannot_keep_up(prometheus_binary, tmp_path):
    with watched(OBSERVED, prometheus_binary, tmp_path) as (_, alarms):
        for alert in ("ArdeaTuplesFailing", "ArdeaUserExceptions", "ArdeaBackPressure", "ArdeaTaskSaturated"):
            alarms.fires(alert)


def test_processes_that_stand_still_or_die(prometheus_binary, tmp_path):
    with watched(ALARMING, prometheus_binary, tmp_path) as (topology, alarms):
        with frozen(topology, "container-1/metrics-manager"):
            alarms.fires("ArdeaMetricsMissing")
        with frozen(topology, "container-2/stream-manager"):
            alarms.fires("ArdeaManagerSilent")
            alarms.fires("ArdeaLinkDown")
            life = topology.kill("topology-master")
            topology.returned("topology-master", life)
            alarms.fires("ArdeaContainersMissing")
        topology.grows("acked", "numbers", 100)
        for _ in range(3):
            with frozen(topology, "works-0"):
                goes_on(topology, 3.0)
            goes_on(topology, 1.0)
        alarms.fires("ArdeaLoopLag")
        for _ in range(4):
            life = topology.kill("works-0")
            topology.returned("works-0", life)
            alarms.asked(f'max(ardea_process_life{{process="works-0"}}) > {life}')
        alarms.fires("ArdeaCrashLoop")


def test_snapshots_that_cannot_be_stored_and_state_that_does_not_come_back(prometheus_binary, tmp_path):
    down = tmp_path / "down"
    settings = {"test.down": str(down), "topology.stateful.storage": str(tmp_path / "store")}
    with watched(REMEMBERING, prometheus_binary, tmp_path, settings=settings) as (topology, alarms):
        store = tmp_path / "store" / topology.folder.name
        alarms.asked("ardea_tm_snapshots_committed_total > 1")
        down.touch()
        alarms.fires("ArdeaSinkBehind")
        down.unlink()
        alarms.asked("max(ardea_tm_sink_waiting_seconds) < 2")
        aside = store.rename(store.with_name("aside"))
        store.touch()  # in the way
        alarms.fires("ArdeaSnapshotsAbandoned")
        alarms.fires("ArdeaNoSnapshot")
        store.unlink()
        aside.rename(store)
        alarms.asked("ardea_tm_snapshots_abandoned_in_a_row == 0")
        for _ in range(5):
            topology.returned("count-1", topology.kill("count-1"))
            alarms.asked(
                'ardea_tm_snapshot_state{state="RUNNING"} + on () ardea_tm_snapshot_state{state="TAKING"} == 1'
            )
        alarms.fires("ArdeaRollbacks")
        with frozen(topology, "count-0"):
            topology.kill("count-1")
            alarms.fires("ArdeaStateNotRestored")
        alarms.asked('absent(ALERTS{alertname="ArdeaStateNotRestored"})')


@pytest.mark.usefixtures("last_scrape")
def test_trees_that_are_not_completed_and_an_end_that_is_a_failure(prometheus_binary, tmp_path):
    with watched(ALARMING, prometheus_binary, tmp_path) as (topology, alarms):
        topology.raise_flag("hold")
        alarms.fires("ArdeaNothingAcked")
        (topology.out / "hold").unlink()
        topology.raise_flag("refuse")
        life = topology.kill("works-0")  # with what it holds
        topology.returned("works-0", life)
        alarms.fires("ArdeaTuplesGivenUp")
        topology.raise_flag("enough")
        alarms.fires("ArdeaTopologyFailed")
        eventually(lambda: topology.run.over or topology.run.step(), 60, "it is over")
        assert topology.run.outcome().state is RunState.FAILED
        alarms.scrape()
        eventually(lambda: alarms.firing() == {"ArdeaTopologyFailed"}, 20, lambda: f"nothing else: {alarms.firing()}")


@pytest.mark.usefixtures("last_scrape")
def test_nothing_fires_for_a_topology_that_was_killed_in_all_its_troubles(prometheus_binary, tmp_path):
    with watched(ALARMING, prometheus_binary, tmp_path) as (topology, alarms):
        topology.raise_flag("hold")
        alarms.fires("ArdeaNothingAcked")
        topology.run.stop()
        alarms.asked('ardea_tm_topology_state{state="KILLED"} == 1')
        eventually(lambda: topology.run.over or topology.run.step(), 60, "it is over")
        assert topology.run.outcome().state is RunState.KILLED
        alarms.scrape()
        alarms.asked("absent(up)")
        goes_on(topology, 2.0)
        assert alarms.firing() == set()


def test_servers_that_do_not_answer_and_a_topology_that_vanishes(prometheus_binary, tmp_path):
    with (
        Ensemble(tmp_path / "zookeeper") as ensemble,
        watched(ALARMING, prometheus_binary, tmp_path, ensemble.url("/ardea")) as (topology, alarms),
    ):
        ensemble.servers[0].freeze()
        alarms.fires("ArdeaStateSilent")
        alarms.fires("ArdeaMasterMissing")
        ensemble.servers[0].resume()
        alarms.asked("ardea_tm_leader == 1")
        alarms.asked('absent(ALERTS{alertname="ArdeaStateSilent"})')
        os.kill(read_status(topology.folder)["pid"], signal.SIGKILL)  # the others die with it
        eventually(lambda: topology.run.over or topology.run.step(), 60, "it is gone")
        alarms.scrape()
        alarms.fires("ArdeaTopologyVanished")
