"""State in RocksDB, on simulated processes: whatever dies, and whatever is wrong with its folder, counts are exact."""

from __future__ import annotations

import pytest

from ardea.backends.bases import PlainBase
from ardea.backends.contract import ScratchError
from ardea.backends.rocksdb import RocksBase
from ardea.testing.inside import Inside
from tests.simulation.snapshots.test_words import cluster, counted
from tests.sizes import size

CASES = [
    (name, seed) for seed in range(1, size(1, 20, 4) + 1) for name in ("count-0", "words-1", "manager-2", "master")
]


@pytest.mark.parametrize(("name", "seed"), CASES)
def test_whoever_dies_all_is_counted_once(name, seed):
    with cluster(seed, state_backend="rocksdb") as topology:
        inside = Inside(topology)
        topology.advance(5.0)
        topology.kill(name)
        counted(topology, inside.store)
        for task in ("count-0", "count-1"):
            base = inside.executor(task).env.component.counts.lower.base
            assert (type(base), len(base) > 0) == (RocksBase, True)


def test_a_scratch_that_fails_is_a_rollback_and_is_made_anew(monkeypatch):
    """The error has no traceback, and names the task and what to do."""
    with cluster(2, state_backend="rocksdb") as topology:
        inside = Inside(topology)
        topology.advance(5.0)
        lives = {each: topology.life(each) for each in topology.names}
        backend = inside.executor("count-0").env.component.counts.lower.base._backend
        backend.database.close()
        topology.run_until(lambda: inside.error("count-0"))
        said = inside.error("count-0")
        assert said.startswith("count-0: the state backend rocksdb failed: ")
        assert "from the last snapshot; look for room on that disk" in said
        counted(topology, inside.store)
        assert {each: topology.life(each) for each in topology.names} == lives
        assert inside.executor("count-0").env.component.counts.lower.base._backend is not backend


class SpoiltBase(PlainBase):
    def get(self, key, default=None):
        if key == "w3":
            raise ScratchError("block 7 of the disk cannot be read")
        return super().get(key, default)


class Spoilt:
    """Of one word it can never say how often it was counted."""

    def __init__(self, folder):
        pass

    def base(self, state, keys, ttl, now):
        return SpoiltBase(keys)

    def close(self):
        pass


def test_a_scratch_that_never_reads_a_key_is_the_end_and_no_row_is_blamed():
    with cluster(3, state_backend=f"{__name__}:Spoilt") as topology:
        topology.run_until(lambda: topology.over, 120)
        assert topology.state == "FAILED"
        assert topology.reason.startswith("count has ended 4 timelines without a snapshot that counts in between")
        assert "no single row can be blamed" in topology.reason
        assert topology.reason.endswith("block 7 of the disk cannot be read")
