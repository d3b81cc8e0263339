"""What gets lost on its way, or fails at the last moment, in a topology that runs: its transaction comes again."""

from __future__ import annotations

from collections import Counter

import pytest

from ardea import FailedException
from ardea.testing import Cluster
from ardea.trident import Coordinator, Count, Emitter, FixedBatchSpout, MemoryMapState, TridentSpout, TridentTopology
from ardea.trident.components import SubtopologyBolt
from ardea.trident.transactions import Phase, Step

from .parts import AT_ONCE

MASTER = "$mastercoord-bg0"
SENTENCES = ["the cow", "the man", "a moon", "the moon", "a man", "the dog", "a cow", "the end"]


def word_count(spout):
    """The state's tasks, b-0, commit; those before, b-1, do not."""
    topology, state = TridentTopology("words"), MemoryMapState()
    words = topology.new_stream("tester", spout).each("sentence", lambda tup: tup[0].split(), "word").group_by("word")
    words.persistent_aggregate(state, Count(), "count").parallelism_hint(6)
    return topology, state


def run(topology):
    """With three batches side by side, and nobody dying."""
    with Cluster(topology, containers=2, config={**AT_ONCE, "topology.max.spout.pending": 3}) as cluster:
        cluster.run_until(lambda: cluster.over, 200)
        assert cluster.state == "SUCCEEDED"
        assert cluster.record.errors == []
        assert {cluster.life(name) for name in cluster.names} == {1}
        return cluster.record


def attempts(record):
    """Transaction -> the attempts that were begun."""
    found = {}
    for txid, attempt, *_ in record.tuples(MASTER, "$batch"):
        found.setdefault(txid, []).append(attempt)
    return found


def counts_of(state):
    return {key[0]: count for key, count in state.values().items()}


TRUTH = Counter(word for sentence in SENTENCES for word in sentence.split())


@pytest.mark.parametrize("component", ["spout-tester", "b-1"])
@pytest.mark.parametrize("what", ["row", "report"])
def test_what_is_lost_fails_its_batch_before_it_commits(monkeypatch, component, what):
    """A row as soon as it is missed, also by tasks that commit, and a report by the timeout of messages."""
    lost, process_batch = [], SubtopologyBolt.process_batch

    def lossy(self, rows):
        if not lost and rows.component == component and rows.stream.startswith("s") == (what == "row"):
            for place, row in enumerate(rows.rows):
                if row[:2] == (2, 0):
                    lost.append(row)
                    rows._made = [tup for tup in rows if tup is not rows[place]]
                    rows.rows = [*rows.rows[:place], *rows.rows[place + 1 :]]
                    break
        if rows.rows:
            process_batch(self, rows)

    monkeypatch.setattr(SubtopologyBolt, "process_batch", lossy)
    topology, state = word_count(FixedBatchSpout(["sentence"], [[sentence] for sentence in SENTENCES], 2))
    record = run(topology)
    assert len(lost) == 1
    failed, timed_out = record.failed[MASTER], record.timed_out[MASTER]
    assert (failed, timed_out)[what == "report"] == [Step(Phase.BATCH, 2, 0)]
    assert (failed, timed_out)[what == "row"] == record.lost[MASTER] == []
    begun = attempts(record)
    assert (begun[1], begun[2], begun[3]) == ([0], [0, 1], [0, 1]), "3 was on its way and follows on 2"
    assert record.tuples(MASTER, "$commit") == [(1, 0), (2, 1), (3, 1), (4, begun[4][-1])]
    assert counts_of(state) == TRUTH


class Reluctant(TridentSpout):
    """Two sentences a batch; the second transaction commits at the second attempt.  ``log``: what emitters heard."""

    outputs = ["sentence"]
    committing = True

    def __init__(self):
        self.log = []

    def __deepcopy__(self, memo):
        return self

    def coordinator(self, config, context, store):
        return Four()

    def emitter(self, config, context, store):
        return ReluctantEmitter(self.log)


class Four(Coordinator):
    def is_ready(self, txid):
        return txid <= 4

    def finished(self, txid):
        return txid > 4


class ReluctantEmitter(Emitter):
    def __init__(self, log):
        self.log = log

    def emit_batch(self, attempt, metadata, collector):
        for sentence in SENTENCES[2 * attempt.txid - 2 : 2 * attempt.txid]:
            collector.emit([sentence])

    def commit(self, attempt):
        self.log.append(attempt[:2])
        if attempt[:2] == (2, 0):
            raise FailedException("the source is away for a moment")


def test_a_commit_of_a_spout_that_fails_repeats_its_transaction():
    """In Storm it ends the process; the states have committed then and do not count it twice."""
    spout = Reluctant()
    topology, state = word_count(spout)
    record = run(topology)
    assert record.failed[MASTER] == [Step(Phase.COMMIT, 2, 0)]
    assert record.timed_out[MASTER] == record.lost[MASTER] == []
    begun = attempts(record)
    assert (begun[1], begun[2], begun[3]) == ([0], [0, 1], [0, 1])
    assert record.tuples(MASTER, "$commit") == [(1, 0), (2, 0), (2, 1), (3, 1), (4, begun[4][-1])]
    assert spout.log == record.tuples(MASTER, "$commit")
    assert counts_of(state) == TRUTH
