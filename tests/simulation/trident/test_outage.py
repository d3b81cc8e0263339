"""The state manager does not answer for a while: batches wait, tasks that begin start again, counts stay exact."""

from __future__ import annotations

import pytest

from ardea.errors import StateError
from ardea.state import Unavailable
from ardea.testing import Cluster
from ardea.trident import DirectorySpout
from ardea.trident.store import MemoryStore

from .parts import AT_ONCE, Emissions, counted, counting, write_files

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


@pytest.fixture
def full(monkeypatch):
    """While the list has something in it, there is no room for positions; all else is stored."""
    full, put = [], MemoryStore.put

    def refusing(self, path, *args):
        if full and "/positions/" in path:
            raise StateError("no space left")
        put(self, path, *args)

    monkeypatch.setattr(MemoryStore, "put", refusing)
    return full


@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_a_batch_commits_only_with_its_positions(tmp_path, kind, full):
    """Else all that commits while they cannot be stored comes twice when the spout's task has died."""
    plain = write_files(tmp_path / "in", [["a b c", "a"] * 20, ["b a"] * 40])
    topology, counts = counting(tmp_path, kind)
    config = AT_ONCE | {"topology.max.spout.pending": 3}
    with Cluster(topology, containers=2, config=config, cost={"b-0": 0.01, "spout-files": 0.01}) as cluster:
        cluster.run_until(lambda: sum(counted(counts).values()) >= 20)
        full.append(True)
        cluster.advance(20)
        cluster.kill("spout-files-0")
        cluster.advance(5)
        full.clear()
        cluster.run_until(lambda: cluster.over, 600)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
    assert counted(counts) == plain


def test_a_batch_whose_positions_were_not_stored_may_have_more_rows_until_they_are(tmp_path, full):
    """From then on it is the same in all lives, also where files have grown."""
    write_files(tmp_path, [["a"], ["b"]])
    emissions = Emissions(DirectorySpout.transactional(tmp_path, follow=True))
    full.append(True)
    for grown in (["a", "c"], ["a", "c", "d"]):
        with pytest.raises(StateError):
            emissions.emit()
        write_files(tmp_path, [grown, ["b"]])
    full.clear()
    assert emissions.emit() == ["a", "c", "d", "b"]
    write_files(tmp_path, [["a", "c", "d", "e"], ["b"]])
    emissions.new_life()
    assert emissions.emit() == ["a", "c", "d", "b"]
    emissions.commit()
    assert emissions.emit() == ["e"]


@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_a_commit_that_cannot_be_recorded_is_no_failure_of_its_batch(tmp_path, monkeypatch, kind):
    """However often that is: all has committed it, and without its tuples an opaque state would set it back."""
    plain = write_files(tmp_path / "in", [["a b c", "a"] * 20, ["b a"] * 40])
    topology, counts = counting(tmp_path, kind)
    left, swap = [], MemoryStore.swap

    def refusing(self, path, *args):
        if left and "/coordinator/" in path:
            left.pop()
            raise StateError("no space left")
        return swap(self, path, *args)

    monkeypatch.setattr(MemoryStore, "swap", refusing)
    config = AT_ONCE | {"topology.trident.batch.max.failures": 3}
    with Cluster(topology, containers=2, config=config) as cluster:
        cluster.run_until(lambda: sum(counted(counts).values()) >= 20)
        left += [True] * 5
        cluster.run_until(lambda: cluster.over, 600)
        assert (cluster.state, cluster.reason, left) == ("SUCCEEDED", "", [])
    assert counted(counts) == plain
