"""Exactly once: whatever is killed while batches run, the counts equal the plain ones."""

from __future__ import annotations

import random

import pytest

from ardea.testing import Cluster
from ardea.trident import Count, FixedBatchSpout, Function, MemoryMapState, TridentTopology
from ardea.trident.sqlite import SqliteMap

from .parts import AT_ONCE, counted, counting, run_through, write_files

KINDS = [("transactional", "transactional"), ("transactional", "opaque"), ("opaque", "opaque")]
WORDS = ["the", "cow", "jumped", "over", "moon", "a", "b", "c"]
PROCESSES = [
    *("$mastercoord-bg0-0", "$spoutcoord-spout-files-0", "spout-files-0", "spout-files-1"),
    *("b-0-0", "b-0-1", "b-0-2", "b-1-0", "b-1-1", "manager-1", "manager-2"),
]


def files(seed, count=4, most=30):
    rng = random.Random(seed)
    return [
        [" ".join(rng.choices(WORDS, k=rng.randint(0, 6))) for _ in range(rng.randint(0, most))] for _ in range(count)
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("spout", "state"), KINDS)
@pytest.mark.parametrize("pending", [1, 4])
def test_without_faults(tmp_path, spout, state, pending):
    plain = write_files(tmp_path / "in", files(1))
    topology, counts = counting(tmp_path, spout, state)
    cluster = run_through(topology, config={"topology.max.spout.pending": pending})
    assert (cluster.state, cluster.record.errors) == ("SUCCEEDED", [])
    assert not cluster.record.failed["$mastercoord-bg0"], "rows come before the reports that count them"
    assert counted(counts) == plain


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("spout", "state"), KINDS)
def test_kills_of_anything(tmp_path, spout, state, seed):
    """Some processes die, at moments when batches are on their way; costs stretch the batches over time."""
    plain = write_files(tmp_path / "in", files(seed))
    topology, counts = counting(tmp_path, spout, state)
    rng = random.Random(f"{spout} {state} {seed}")
    faults = sorted((rng.uniform(0.02, 1.5), rng.choice(PROCESSES)) for _ in range(rng.randint(1, 6)))
    cluster = run_through(
        topology,
        faults,
        seed=seed,
        config={"topology.max.spout.pending": rng.choice([1, 3])},
        cost={"b-0": 0.01, "b-1": 0.02, "spout-files": 0.01, "$mastercoord-bg0": 0.001},
    )
    assert (cluster.state, cluster.record.errors) == ("SUCCEEDED", [])
    assert counted(counts) == plain


VICTIMS = ["$mastercoord-bg0-0", "$spoutcoord-spout-files-0", "spout-files-0", "b-0-0", "b-0-1", "b-1-0", "manager-1"]


def killed_in_commit(folder, spout, state, victim, monkeypatch):
    """Kills ``victim`` each time that the third task's write of a batch is the first; returns (counts, plain)."""
    plain = write_files(folder / "in", files(7))
    topology, counts = counting(folder, spout, state)
    writes = []
    put = SqliteMap.multi_put

    def noting(self, *entries):
        put(self, *entries)
        writes.append(1)

    monkeypatch.setattr(SqliteMap, "multi_put", noting)
    with Cluster(topology, containers=2, config=AT_ONCE, cost={"b-0": 0.01, "$mastercoord-bg0": 0.01}) as cluster:
        for _ in range(4):
            before = len(writes)
            cluster.run_until(lambda before=before: len(writes) > before or cluster.over)
            cluster.kill(victim)
        cluster.run_until(lambda: cluster.over, 600)
        assert cluster.state == "SUCCEEDED"
        assert len(cluster.record.lost["$mastercoord-bg0"]) + 4 * (victim == VICTIMS[0]) >= 2
    return counted(counts), plain


@pytest.mark.sampled(4)
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize(("spout", "state"), KINDS)
def test_kills_between_the_writes_of_a_commit(tmp_path, spout, state, victim, monkeypatch):
    """One partition is committed, others are not, and somebody dies: the batch comes again and counts once."""
    counts, plain = killed_in_commit(tmp_path, spout, state, victim, monkeypatch)
    assert counts == plain


def test_without_transactions_the_same_kills_show(tmp_path, monkeypatch):
    """The kills above do hit: a state that takes no notice of transactions counts some words twice."""
    counts, plain = killed_in_commit(tmp_path, "transactional", "non_transactional", VICTIMS[0], monkeypatch)
    assert counts != plain
    assert all(counts[word] >= plain[word] for word in plain)


def test_rows_of_an_attempt_that_fails_are_in_no_batch():
    """The function has emitted them before it raises, and the next attempt emits them, too."""
    raised = []

    class Shout(Function):
        def execute(self, tup, collector):
            collector.emit([tup["word"].upper()])
            if tup["word"] == "b" and not raised:
                raised.append(True)
                raise ValueError("once")

    topology, counts = TridentTopology("words"), MemoryMapState.transactional()
    words = topology.new_stream("words", FixedBatchSpout(["word"], [["a"], ["b"]], 2))
    words.each("word", Shout(), "loud").group_by("loud").persistent_aggregate(counts, Count(), "n")
    assert (run_through(topology).state, raised) == ("SUCCEEDED", [True])
    assert counts.values() == {("A",): 1, ("B",): 1}
