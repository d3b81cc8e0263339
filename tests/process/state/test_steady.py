"""Topologies on ZooKeeper, through the command's own code: they write nothing, and go on without it."""

from __future__ import annotations

import time
from contextlib import ExitStack
from datetime import datetime

import pytest

from ardea.plan.names import METRICS_MANAGER
from tests.process.engine.running import Running
from tests.process.state.ensemble import Ensemble, Server
from tests.sizes import size

pytestmark = [pytest.mark.zookeeper, pytest.mark.cluster, pytest.mark.alone]


OUTAGE = 15.0
SESSION = 8.0
LATE = 2.0
"""Seconds: a call to servers that are gone waits for up to seven, and a busy machine makes a loop late, too."""
MANAGERS = [(number, process) for number in (1, 2) for process in ("stream-manager", "metrics-manager")]


@pytest.mark.thorough
@pytest.mark.soak
def test_topologies_in_steady_state_write_nothing(root, tmp_path):
    """On a server of their own: a shared one may write down that sessions of an earlier test have expired."""
    with Ensemble(tmp_path / "zk") as ensemble, ExitStack() as stack:
        topologies = []
        for number in range(size(1, 10)):
            folder = tmp_path / str(number)
            folder.mkdir()
            settings = {"topology.name": f"steady-{number}", "topology.max.spout.pending": 100}
            running = Running("survivors.py:Survivors", folder, settings, state=ensemble.url(root))
            topologies.append(stack.enter_context(running))
        for topology in topologies:
            topology.running()
        for topology in topologies:
            topology.grows("acked", "numbers", 1000, seconds=60)
            # The last to connect, which the server writes down.
            topology.until(lambda: heard(topology) == {0, 1, 2}, "every metrics manager is connected")  # noqa: B023
        (zookeeper,) = ensemble.servers
        acked, before, end = topologies[0].total("acked", "numbers"), zookeeper.zxid, time.monotonic() + size(5, 60)
        while time.monotonic() < end:
            for topology in topologies:
                topology.run.step()
                assert not topology.run.over
        assert zookeeper.zxid == before
        assert topologies[0].total("acked", "numbers") > acked
        for topology in topologies:
            topology.raise_flag("enough")
        for topology in topologies:
            topology.finish()


def heard(topology):
    """The containers whose metrics managers have told the master of themselves."""
    return {row.container for row in topology.run.status.processes if row.process == METRICS_MANAGER}


def logged_at(line):
    """When the line of a log was written; as ``time.time()``."""
    return datetime.fromisoformat(" ".join(line.split()[:2]).replace(",", ".")).timestamp()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", [Server.kill, Server.freeze])
def test_tuples_flow_and_nobody_waits_while_every_server_is_gone(root, tmp_path, how):
    """For longer than a call to the servers waits, and than the master's lease lasts."""
    with (
        Ensemble(tmp_path / "zk") as ensemble,
        Running("survivors.py:Survivors", tmp_path, state=ensemble.url(root)) as topology,
    ):
        topology.running()
        topology.grows("acked", "numbers", 1000)
        before, cut_off = lags(topology), time.time()
        for server in ensemble.servers:
            how(server)
        end = time.monotonic() + OUTAGE
        acked = topology.out / "position-0"
        goal = int(acked.read_text()) + 2000
        topology.until(
            lambda: time.monotonic() > end and int(acked.read_text()) >= goal, "tuples are acked without servers", 60
        )
        late = {who: count - before[who] for who, count in lags(topology).items()}
        assert late == dict.fromkeys(MANAGERS, 0), f"timers that were more than {LATE:g} s late"
        lives = {name: process["life"] for name, process in topology.processes().items()}
        # A master whose lease may be another's ends before it can be, and stands by in its next life.
        assert {name for name, life in lives.items() if life > 1} == {"topology-master"}, lives
        end_of_master = topology.ends("topology-master", 0)[0]
        assert "lease may be another's" in end_of_master.reason
        # By then it acts no more; before it is gone it waits a little for servers that could answer.
        (said,) = (line for line in topology.log("topology-master").splitlines() if "this master ends" in line)
        assert 0.0 < logged_at(said) - cut_off < SESSION
        for server in ensemble.servers:
            server.resume()
        ensemble.start()
        topology.grows("acked", "numbers", 1000, seconds=60)
        topology.raise_flag("enough")
        topology.finish()


def lags(topology: Running) -> dict[tuple[int, str], float]:
    """For each manager, how often its loop came later than LATE to a timer, by container."""
    found = {}
    for container, process in MANAGERS:
        buckets = topology.metrics(container, "ardea_process_loop_lag_seconds_bucket")
        mine = {float(le): count for (_, le, name, _), count in buckets.items() if name == process}
        found[container, process] = mine[float("inf")] - mine[LATE]
    return found
