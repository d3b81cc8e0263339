"""How the coordinator paces batches, gives one up, and what it tells."""

from __future__ import annotations

import pytest

from ardea import FailedException
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from ardea.trident import (
    BatchSpout,
    Count,
    DirectorySpout,
    FixedBatchSpout,
    JsonLinesSpout,
    MemoryMapState,
    SqliteState,
    TridentTopology,
)
from ardea.trident.transactions import Phase, Transactions

from .parts import AT_ONCE, counted, counting, run_through, words_of, write_files

MASTER = "$mastercoord-bg0-0"
INTERVAL = "topology.trident.batch.emit.interval.millis"
FAILURES = "topology.trident.batch.max.failures"


def metric(cluster, name, task=MASTER):
    """The value of a metric; 0 while the task does not run."""
    executor = Inside(cluster).executor(task)
    user = executor.env.context.metrics.get(name) if executor else None
    if user is None:
        return 0
    return user.counts().get("", user.current()) or 0


def ten():
    topology, state = TridentTopology("ten"), MemoryMapState()
    rows = topology.new_stream("rows", FixedBatchSpout(["n"], [[n] for n in range(30)], 3))
    rows.shuffle().persistent_aggregate(state, Count(), "n")
    return topology, state


@pytest.mark.parametrize(("config", "seconds"), [({}, 4.5), ({INTERVAL: 200}, 1.8), ({INTERVAL: 0}, 0)])
def test_batches_are_paced(config, seconds):
    """Half a second apart, if nothing else is said."""
    topology, _ = ten()
    with Cluster(topology, config={"topology.max.spout.pending": 5, **config}) as cluster:
        cluster.run_until(lambda: metric(cluster, "trident-batches-committed") == 10)
        assert seconds <= cluster.time <= seconds + 0.5


def test_one_batch_at_a_time_unless_it_is_said_otherwise():
    """Whatever the engine's default is."""
    topology, _ = ten()
    with Cluster(topology, config=AT_ONCE) as cluster:
        cluster.run_until(lambda: len(cluster.record.acked["$mastercoord-bg0"]) >= 10)
        phases = [step.phase for step in cluster.record.acked["$mastercoord-bg0"][:10]]
        assert phases == [Phase.BATCH, Phase.COMMIT] * 5


def always(_):
    return True


def test_the_case_in_the_source_analysis():
    """Three at most; 1, 2, 3 are active and 2 is processed: no commit of 2, no batch 4.  1 is committed: both."""
    transactions = Transactions(1, 0, 3)
    one, two, three = transactions.next_steps(always)
    assert [step.txid for step in (one, two, three)] == [1, 2, 3]
    transactions.done(two)
    assert transactions.next_steps(always) == []
    transactions.done(one)
    (commit,) = transactions.next_steps(always)
    assert commit.txid == 1
    assert transactions.next_steps(always) == []
    transactions.done(commit)
    two, four = transactions.next_steps(always)
    assert [(two.phase, two.txid), (four.phase, four.txid)] == [(Phase.COMMIT, 2), (Phase.BATCH, 4)]


def test_an_interval_holds_for_batches_that_come_again_too():
    transactions = Transactions(1, 0, 2, interval=0.5)
    (one,) = transactions.next_steps(always, 10.0)
    assert transactions.next_steps(always, 10.4) == []
    (two,) = transactions.next_steps(always, 10.5)
    transactions.failed(one)
    assert transactions.next_steps(always, 10.6) == []
    assert [s.txid for s in transactions.next_steps(always, 11.0)] == [1]
    assert two.txid == 2


def test_only_its_own_failures_count_against_a_batch():
    transactions = Transactions(1, 0, 2, patience=2)
    for _ in range(3):
        one, _two = transactions.next_steps(always) or transactions.next_steps(always)
        transactions.failed(one)
        transactions._patience = 0
    assert (transactions.skips(1), transactions.skips(2)) == (True, False)


@pytest.mark.parametrize("kind", ["transactional", "opaque"])
def test_a_batch_that_fails_for_ever_is_skipped(tmp_path, kind):
    """Its tuples are lost, all others count; without the policy nothing would."""
    plain = write_files(tmp_path / "in", [["a b", "b c", "poison", "a a", "c"], ["a", "b"]])

    def fragile(tup):
        if tup["line"] == "poison":
            raise FailedException("it always will")

    spout = DirectorySpout.transactional if kind == "transactional" else DirectorySpout.opaque_transactional
    topology, counts = TridentTopology("words"), SqliteState.opaque(tmp_path / "counts.sqlite")
    stream = topology.new_stream("files", spout(tmp_path / "in", lines=1)).peek(fragile).each("line", words_of, "word")
    stream.group_by("word").persistent_aggregate(counts, Count(), "n")
    with Cluster(topology, config={**AT_ONCE, FAILURES: 3}) as cluster:
        cluster.run_until(lambda: cluster.over, 600)
        assert cluster.state == "SUCCEEDED"
        assert len(cluster.record.failed["$mastercoord-bg0"]) == 3
    lost = counted(counts)
    assert "poison" not in lost
    assert sum(plain.values()) - sum(lost.values()) == 1, "the poison was alone in its file's part of the batch"


def test_what_the_spout_itself_cannot_read_comes_again_until_it_can_and_is_skipped_once(tmp_path, caplog):
    """Where the next batch begins is not known before that."""
    file = tmp_path / "0.jsonl"
    file.write_text('{"n": 1}\nnonsense\n')
    topology, state = TridentTopology("lines"), MemoryMapState()
    lines = topology.new_stream("lines", JsonLinesSpout.transactional(tmp_path, "n", follow=True))
    lines.group_by("n").persistent_aggregate(state, Count(), "count")
    with Cluster(topology, config={**AT_ONCE, FAILURES: 2}) as cluster:
        cluster.run_until(lambda: metric(cluster, "trident-batches-failed") >= 6)
        assert metric(cluster, "trident-batches-skipped") == 0, "it comes again as long as the line is there"
        file.write_text('{"n": 1}\n{"n": 2}\n')
        cluster.run_until(lambda: metric(cluster, "trident-batches-committed") == 1)
        assert metric(cluster, "trident-batches-skipped") == 1
    assert caplog.text.count("transaction 1 failed too often: it is committed without its tuples") == 1


def test_without_the_policy_it_is_tried_for_ever():
    topology = TridentTopology("never")

    def fragile(tup):
        raise FailedException("no")

    topology.new_stream("rows", FixedBatchSpout(["n"], [[1]], 1)).peek(fragile)
    with Cluster(topology, config=AT_ONCE) as cluster:
        cluster.run_until(lambda: metric(cluster, "trident-batches-failed") >= 8)
        assert metric(cluster, "trident-batches-skipped") == 0


def test_what_is_told_of_batches():
    """Storm shows neither size nor attempt."""
    topology, tries = TridentTopology("told"), []

    def fragile(tup):
        if tup["n"] == 4 and len(tries) < 2:
            tries.append(1)
            raise FailedException("no")

    rows = topology.new_stream("rows", FixedBatchSpout(["n"], [[n] for n in range(8)], 3))
    rows.shuffle().peek(fragile)
    with Cluster(topology, config=AT_ONCE, cost={"b-0": 0.1}) as cluster:
        cluster.run_until(lambda: metric(cluster, "trident-batches-committed") == 2)
        assert metric(cluster, "trident-batch-id") == 2
        assert metric(cluster, "trident-batch-attempts") == 3
        assert metric(cluster, "trident-batches-failed") == 2
        assert 100 < metric(cluster, "trident-batch-latency-ms") < 1000
        assert metric(cluster, "trident-batch-size", "spout-rows-0") in (2, 3)


def test_a_state_in_memory_says_that_it_was_lost():
    topology, _ = ten()
    with Cluster(topology, config={INTERVAL: 100}) as cluster:
        cluster.run_until(lambda: metric(cluster, "trident-batches-committed") == 3)
        cluster.kill("b-1-0")
        lost = "the state in memory was lost: partition 0 begins empty at transaction"
        cluster.run_until(lambda: lost in Inside(cluster).error("b-1-0"))
        cluster.run_until(lambda: cluster.over)
        assert cluster.state == "SUCCEEDED"


def test_runs_of_the_helper_use_no_interval(tmp_path):
    write_files(tmp_path / "in", [["a"]])
    topology, counts = counting(tmp_path)
    assert run_through(topology).time < 0.5
    assert counted(counts) == {"a": 1}


class Endless(BatchSpout):
    outputs = ["n"]

    def emit_batch(self, batch_id, collector):
        collector.emit([batch_id])


@pytest.mark.parametrize("pending", [1, 5])
def test_who_is_told_to_end_begins_no_more_batches(pending):
    """And ends with nothing open, long before the time for that is over."""
    topology = TridentTopology("endless")
    topology.new_stream("n", Endless()).persistent_aggregate(MemoryMapState(), Count(), "n")
    with Cluster(topology, config={**AT_ONCE, "topology.max.spout.pending": pending}) as cluster:
        cluster.run_until(lambda: metric(cluster, "trident-batches-committed") > 20)
        cluster.drain()
        cluster.run_until(lambda: cluster.over, 2)
        assert (cluster.state, cluster.reason) == ("KILLED", "")
