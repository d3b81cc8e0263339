"""Processes that stand still, and links that are cut or slow."""

from __future__ import annotations

import functools

import pytest

import ardea.scheduler.local_processes
from ardea.supervision.records import read_exits
from tests.machine import patient
from tests.process.faults.counted import Counted

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

SILENCE = 3.0
FOR_EVER = 3600.0


@pytest.mark.thorough
def test_what_stands_still_for_less_than_ten_seconds_and_a_link_that_is_cut_lose_nothing(tmp_path):
    """Between two living processes nothing is lost: nobody is started again, no tree is lost or times out."""
    with Counted(tmp_path) as run:
        assert run.topology.until(run.topology.links, "links are named") >= {
            frozenset(("manager-1", "manager-2")),
            frozenset(("manager-1", "master")),
            frozenset(("manager-2", "master")),
        }
        before = run.topology.processes.running()
        for disturb in (
            lambda: run.faults.cut("manager-1", "manager-2", 3.0),
            lambda: run.faults.delay("manager-1", "manager-2", 0.5, 3.0),
            lambda: run.faults.freeze("manager-1", 4.0),
            lambda: run.faults.freeze("first-1", 4.0),
            lambda: run.faults.freeze("master", 4.0),
            lambda: run.faults.cut("manager-2", "master", 7.0),
        ):
            run.full()
            disturb()
            run.topology.disturbed(20.0)
            run.works()
        assert run.topology.processes.running() == before
        outcome = run.finish()
    assert (outcome.components["numbers"].lost, outcome.components["numbers"].timed_out) == (0, 0)


def test_what_stands_still_for_longer_is_killed_and_started_again(tmp_path, monkeypatch):
    """Managers, a task, the master; then a container with its supervisor, in whose place another one comes."""
    monkeypatch.setattr(
        ardea.scheduler.local_processes,
        "Policy",
        functools.partial(ardea.scheduler.local_processes.Policy, silence=patient(SILENCE)),
    )
    with Counted(tmp_path) as run:
        folder, processes = run.topology.folder, run.topology.processes
        for name, container, private in (
            ("manager-1", "container-1", "stream-manager"),
            ("second-1", None, "second-1"),
            ("master", "container-0", "topology-master"),
            ("metrics-2", "container-2", "metrics-manager"),
        ):
            run.full()
            run.faults.freeze(name, FOR_EVER)
            frozen = run.faults.done[-1]
            run.topology.until(lambda: (p := processes.running().get(name)) and p.life > frozen.life, f"{name} is back")  # noqa: B023
            homes = [folder / container] if container else sorted(folder.glob("container-*"))
            [end] = [end for home in homes for end in read_exits(home, private) if end.pid == frozen.pid]
            assert (end.signal, "it is stopped" in end.reason) == ("SIGKILL", True)
            run.works()

        run.full()
        before = processes.running()
        run.faults.freeze("container-2", FOR_EVER)
        run.topology.until(
            lambda: (
                (p := processes.running()).keys() == before.keys() and p["manager-2"].pid != before["manager-2"].pid
            ),
            "the container's processes have been replaced",
            60.0,
        )
        run.works()
        assert processes.running()["manager-1"] == before["manager-1"]
        outcome = run.finish()
    assert outcome.components["numbers"].lost > 0
    assert outcome.components["numbers"].given_up == 0
