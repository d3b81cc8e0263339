"""The state manager does not answer for a while: batches wait, tasks that begin start again, counts stay exact."""

from __future__ import annotations

import pytest

from ardea.state import Unavailable
from ardea.testing import Cluster
from ardea.trident.store import MemoryStore

from .parts import AT_ONCE, counted, counting, write_files

TASKS = ["$mastercoord-bg0-0", "$spoutcoord-spout-files-0", "spout-files-0", "b-0-0"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("victim", [None, *TASKS])
@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_batches_wait_for_the_state_manager(tmp_path, monkeypatch, kind, victim, caplog):
    plain = write_files(tmp_path / "in", [["a b c", "a"] * 20, ["b a"] * 40])
    topology, counts = counting(tmp_path, kind)
    away = []

    def failing(method):
        def call(self, *args):
            if away:
                raise Unavailable("nobody answers")
            return method(self, *args)

        return call

    for name in ("get", "put", "swap", "delete", "children", "take_over"):
        monkeypatch.setattr(MemoryStore, name, failing(getattr(MemoryStore, name)))
    config = AT_ONCE | {"topology.max.spout.pending": 3}
    with Cluster(topology, containers=2, config=config, cost={"b-0": 0.01, "spout-files": 0.01}) as cluster:
        cluster.run_until(lambda: sum(counted(counts).values()) >= 20)
        away.append(True)
        if victim is not None:
            cluster.kill(victim)
        cluster.advance(20)
        before = counted(counts)
        cluster.advance(5)
        assert counted(counts) == before != plain
        away.clear()
        cluster.run_until(lambda: cluster.over, 600)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
    assert counted(counts) == plain
