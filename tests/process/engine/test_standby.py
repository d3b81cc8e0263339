"""Two masters: one acts, and the other takes over when it is gone."""

from __future__ import annotations

import pytest

from ardea.state import open_state, paths, records
from ardea.state.records import MasterLocation
from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster

MOST = 6  # masters that are killed


def test_a_standby_takes_over_and_the_former_stands_by(tmp_path):
    """Until each has taken over from the other; data flows on, and each term is higher.

    One that is back before the other has noticed acts again: that is as good, and its turn comes again.
    """
    with Running("survivors.py", tmp_path, {"heron.topology.master.replicas": 2}) as topology:
        topology.running()
        first, took_over = topology.run.status.term, set()
        for _ in range(MOST):
            former = acting(topology)
            life = topology.kill(former)
            topology.until(lambda: topology.run.status.term > first, "another master acts")  # noqa: B023
            first = topology.run.status.term
            topology.returned(former, life)
            took_over |= {acting(topology)} - {former}
            topology.grows("acked", "numbers-0", 1000)
            if len(took_over) == 2:
                break
        assert len(took_over) == 2, f"only {took_over} took over"
        topology.raise_flag("enough")
        outcome = topology.finish()
    assert outcome.state == "SUCCEEDED"
    assert outcome.components["numbers"].lost == outcome.components["numbers"].timed_out == 0


def acting(topology):
    """The master that the state names."""
    path = paths.master(topology.run.topology)
    with open_state(topology.run.submission.definition.state) as state:
        pid = records.decode(state.get(path).data, MasterLocation, path).pid
    return next(name for name in ("topology-master", "topology-master-2") if topology.pid(name) == pid)
