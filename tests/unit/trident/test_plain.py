"""Spouts of the engine's as sources of batches: how many tuples, what comes again, who hears of the end."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ardea import Spout, Stream, TopologyError, UserError
from ardea.trident import Attempt, PlainSpout

CONFIG = {"topology.spout.max.batch.size": 3}


class Context:
    """What the spout asks of it."""

    this_component_id = "spout"


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

    emitter = PlainSpout(Seen).emitter(CONFIG, Context(), None)
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
