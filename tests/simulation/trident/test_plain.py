"""Spouts of the engine's as sources of batches: how many tuples, what comes again, who hears of the end."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ardea import FailedException, Spout, Stream, TopologyError, UserError
from ardea.errors import StateError
from ardea.testing import Cluster, run
from ardea.trident import Attempt, MemoryMapState, PlainSpout, Sum, TridentTopology
from ardea.trident.store import MemoryStore, StreamStore

from .parts import AT_ONCE, ONE_TASK

CONFIG = {"topology.spout.max.batch.size": 3}


class Emitted(list):
    def emit(self, values):
        self.append(values[0])


class Numbers(Spout):
    outputs = ["n"]
    last = 100

    def initialize(self, config, context):
        self.n, self.heard, self.acked = 0, ["initialize"], []

    def activate(self):
        self.heard.append("activate")

    def next_tuple(self):
        self.n += 1
        self.emit([self.n], tup_id=self.n)
        if self.n == self.last:
            self.finish()

    def ack(self, tup_id):
        self.acked.append(tup_id)

    def close(self):
        self.heard.append("close")


class Decides(Numbers):
    """Replays by itself."""

    def initialize(self, config, context):
        super().initialize(config, context)
        self.failed = []

    def fail(self, tup_id):
        self.failed.append(tup_id)


def emitter_of(spout):
    made = []

    class Seen(spout):
        def __init__(self):
            made.append(self)

    emitter = PlainSpout(Seen).emitter(CONFIG, ONE_TASK, StreamStore(MemoryStore(), "t", "s"))
    return emitter, made[0]


def emit(emitter, txid, attempt=0):
    emitted = Emitted()
    emitter.emit_batch(Attempt(txid, attempt), None, emitted)
    return list(emitted)


def test_a_list_may_be_changed_and_emitted_again():
    class Reuses(Numbers):
        row = [0]

        def next_tuple(self):
            self.row[0] += 1
            self.emit(self.row)

    emitter, _ = emitter_of(Reuses)
    assert emit(emitter, 1) == [1, 2, 3]


def test_batches_have_the_size_that_is_configured_and_end_with_the_spout():
    emitter, spout = emitter_of(Numbers)
    spout.last = 5
    assert [emit(emitter, txid) for txid in (1, 2, 3)] == [[1, 2, 3], [4, 5], []]
    assert spout.heard == ["initialize", "activate"]
    emitter.close()
    assert spout.heard[-1] == "close"


def test_what_is_committed_is_acked_in_order():
    emitter, spout = emitter_of(Numbers)
    for txid in (1, 2):
        emit(emitter, txid)
    emitter.success(1)
    assert spout.acked == [1, 2, 3]
    emitter.success(2)
    assert spout.acked == [1, 2, 3, 4, 5, 6]


def test_a_batch_that_comes_again_has_its_tuples_and_those_of_later_ones():
    """In the order in which they were emitted, and no more than were: the rest comes with the next batch."""
    emitter, spout = emitter_of(Numbers)
    assert [emit(emitter, txid) for txid in (1, 2, 3)] == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert emit(emitter, 2, 1) == [4, 5, 6, 7, 8, 9]
    assert emit(emitter, 3, 1) == [10, 11, 12]
    emitter.success(3)
    assert spout.acked == list(range(1, 13))


def test_a_spout_that_replays_by_itself_hears_of_failures_instead():
    emitter, spout = emitter_of(Decides)
    emit(emitter, 1)
    assert emit(emitter, 1, 1) == [4, 5, 6]
    assert spout.failed == [1, 2, 3]
    emitter.success(1)
    assert spout.acked == [4, 5, 6]


@pytest.mark.parametrize(
    ("tup_ids", "acked"),
    [(["a", None], ["a", "a"]), (np.array([3, 4]), [3, 4, 3, 4]), (range(2), [0, 1, 0, 1])],
    ids=str,
)
def test_arrow_batches_are_rows_here(tup_ids, acked):
    class Columns(Numbers):
        def next_tuple(self):
            self.emit_batch(pa.record_batch({"n": [7, 8]}), tup_ids=tup_ids)

    emitter, spout = emitter_of(Columns)
    assert emit(emitter, 1) == [7, 8, 7, 8]
    emitter.success(1)
    assert spout.acked == acked


class Breaks(Numbers):
    """Its source is away once, after the second row."""

    away = True

    def next_tuple(self):
        super().next_tuple()
        if self.n == 2 and self.away:
            self.away = False
            raise ConnectionError("away")


class BreaksAndDecides(Breaks, Decides):
    pass


def test_rows_that_were_taken_before_something_was_raised_come_again():
    emitter, _ = emitter_of(Breaks)
    with pytest.raises(ConnectionError):
        emit(emitter, 1)
    assert emit(emitter, 1, 1) == [1, 2, 3]


def test_a_spout_that_replays_by_itself_hears_of_them_too():
    emitter, spout = emitter_of(BreaksAndDecides)
    with pytest.raises(ConnectionError):
        emit(emitter, 1)
    assert (emit(emitter, 1, 1), spout.failed) == ([3, 4, 5], [1, 2])


class Sends(Numbers):
    """Emits a row that fails again, and one more for each that is acked."""

    def fail(self, tup_id):
        self.emit([tup_id], tup_id=tup_id)
        return True

    def ack(self, tup_id):
        self.emit([-tup_id])


def test_what_a_spout_emits_when_it_hears_of_its_rows_is_in_the_next_batch():
    emitter, _ = emitter_of(Sends)
    assert [emit(emitter, txid) for txid in (1, 2)] == [[1, 2, 3], [4, 5, 6]]
    emitter.success(1)
    assert emit(emitter, 2, 1) == [-1, -2, -3, 4, 5, 6]
    emitter.success(2)
    assert emit(emitter, 3) == [-4, -5, -6]


def test_a_spout_is_asked_again_also_where_the_state_manager_was_away_when_its_rows_failed(monkeypatch):
    emitter, spout = emitter_of(Decides)
    spout.last = 2
    assert emit(emitter, 1) == [1, 2]
    with monkeypatch.context() as away:
        away.setattr(MemoryStore, "delete", refuse)
        with pytest.raises(StateError):
            emit(emitter, 1, 1)
    assert (emit(emitter, 1, 2), spout.failed) == ([3, 4, 5], [1, 2])


def refuse(self, path, owner=None):
    raise StateError("nobody answers")


@pytest.mark.parametrize(
    "tup_ids",
    [[5, None], np.array([5, 6]), pa.array([5, 6]), range(5, 7)],
    ids=["list", "NumPy", "Arrow", "range"],
)
def test_a_spout_may_hear_of_all_acks_of_a_batch_at_once(tup_ids):
    """Ids of a range or an array of integers come as an array, others as a list."""
    heard = []

    class Columns(Numbers):
        def next_tuple(self):
            self.emit([self.n], tup_id="plain")
            self.emit_batch(pa.record_batch({"n": [7, 8]}), tup_ids=tup_ids)

        def ack_batch(self, tup_ids):
            heard.append(tup_ids)

    emitter, _ = emitter_of(Columns)
    emit(emitter, 1)
    emitter.success(1)
    if isinstance(tup_ids, list):
        assert heard == [["plain", 5]]
    else:
        plain, array = heard
        assert (plain, type(array), array.tolist()) == (["plain"], np.ndarray, [5, 6])


@pytest.mark.parametrize("more", [{"stream": "other"}, {"direct_task": 1}, {"need_task_ids": True}], ids=str)
def test_it_emits_plainly(more):
    class Odd(Numbers):
        outputs = ["n", Stream(["n"], "other")]

        def next_tuple(self):
            self.emit([1], **more)

    emitter, _ = emitter_of(Odd)
    with pytest.raises(UserError, match="emits plainly, on the default stream"):
        emit(emitter, 1)


def test_a_spout_without_fields_is_refused():
    class Silent(Spout):
        outputs = [Stream(["n"], "other")]

    with pytest.raises(TopologyError, match="declares no fields for its default stream"):
        PlainSpout(Silent)


class Ten(Numbers):
    """Ten numbers in each task."""

    last = 10


class Insistent(Ten):
    """Replays by itself what failed, and finishes again then."""

    def initialize(self, config, context):
        super().initialize(config, context)
        self.failed, self.finishes = [], 0

    def fail(self, tup_id):
        self.failed.append(tup_id)

    def next_tuple(self):
        if self.n < self.last:
            super().next_tuple()
        else:
            for n in self.failed:
                self.emit([n], tup_id=n)
            self.failed.clear()
            self.finish()


def summing(spout, tasks, check=lambda tup: True):
    """The sums of a stream's numbers, and its topology."""
    topology, sums = TridentTopology("plain"), MemoryMapState.non_transactional()
    stream = topology.new_stream("numbers", spout).parallelism_hint(tasks).filter(check).shuffle()
    stream.each("n", lambda tup: ["all"], "key").group_by("key").persistent_aggregate(sums, Sum(), "sum", "n")
    topology.set_config({**CONFIG, **AT_ONCE, "topology.max.spout.pending": 2})
    return topology.build(), sums


@pytest.mark.parametrize("tasks", [1, 3])
def test_a_topology_ends_when_all_tasks_of_a_plain_spout_have_finished(tasks):
    built, sums = summing(Ten, tasks)
    for _ in range(2):  # what the first run has stored does not end the second
        result = run(built, config=AT_ONCE, containers=2)
        assert (result.state, result.record.errors) == ("SUCCEEDED", [])
        assert sums.values() == {("all",): 55 * tasks}


@pytest.mark.parametrize("spout", [Ten, Insistent])
def test_it_ends_too_if_batches_fail(spout):
    failed = []

    def once(tup):
        if tup["n"] in {4, 10} and tup["n"] not in failed:
            failed.append(tup["n"])
            raise FailedException("once")
        return True

    built, sums = summing(spout, 1, once)
    result = run(built, config=AT_ONCE)
    assert (result.state, failed) == ("SUCCEEDED", [4, 10])
    assert sums.values() == {("all",): 55}


@pytest.mark.parametrize("victim", ["spout-numbers-1", "$spoutcoord-spout-numbers-0", "$mastercoord-bg0-0"])
def test_it_ends_too_if_a_process_is_killed(victim):
    built, sums = summing(Ten, 2)
    with Cluster(built, containers=2, config={"topology.trident.batch.emit.interval.millis": 500}) as cluster:
        cluster.at(1.0, lambda c: c.kill(victim))
        cluster.run_until(lambda: cluster.over, 600)
        assert cluster.state == "SUCCEEDED"
    assert sums.values()[("all",)] >= 110
