"""Record batches where something else happens at the same moment: rows, refusals, errors, nothing at all."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pytest

from ardea import Bolt, CustomStreamGrouping, Grouping, Spout, Topology
from ardea.protocol.columns import ColumnRows
from ardea.testing import Cluster
from heron_instance.anchoring import Anchoring
from heron_instance.outlet import _part_of

GOT, ACKED, CALLS = [], [], []


@pytest.fixture(autouse=True)
def empty():
    for each in (GOT, ACKED, CALLS):
        each.clear()


class Sink(Bolt):
    def process(self, tup):
        GOT.append(tup[0])


class Once(Spout):
    """Emits ``rows`` one by one, then finishes."""

    outputs = ["n"]
    rows = (0, 1, 2)
    done = False

    def next_tuple(self):
        if self.done:
            self.finish()
            return
        self.done = True
        for row in self.rows:
            self.emit([row], tup_id=row)

    def ack(self, tup_id):
        ACKED.append(tup_id)


def test_rows_that_fail_emits_while_a_batch_leaves_leave_too():
    class Replaces(Once):
        def next_tuple(self):
            if self.done:
                self.finish()
                return
            self.done = True
            self.emit([object()], tup_id=1)  # cannot be sent
            self.emit_batch(pa.record_batch({"n": [10, 11]}), tup_ids=range(10, 12))

        def fail(self, tup_id):
            self.emit([1], tup_id=100)
            return True

    class Replaced(Topology):
        spout = Replaces.spec()
        sink = Sink.spec(inputs=[spout])

    with Cluster(Replaced) as cluster:
        cluster.run_until(lambda: cluster.over, 30)
        assert cluster.state == "SUCCEEDED"
    assert (sorted(GOT), sorted(ACKED)) == ([1, 10, 11], [10, 11, 100])


def test_a_spout_that_emits_empty_batches_sleeps():
    class Empty(Once):
        def next_tuple(self):
            CALLS.append(1)
            self.emit_batch(pa.record_batch({"n": pa.array([], pa.int64())}), tup_ids=range(0))

    class Emptied(Topology):
        spout = Empty.spec()
        sink = Sink.spec(inputs=[spout])

    with Cluster(Emptied) as cluster:
        cluster.advance(1)
    assert 10 < len(CALLS) < 500


class Chooses(CustomStreamGrouping):
    """Raises once."""

    def prepare(self, context, component, stream, target_tasks):
        self.targets, self.calls = target_tasks, 0

    def choose_tasks(self, values):
        self.calls += 1
        if self.calls == 1:
            raise ValueError("once")
        return self.targets[:1]


def test_a_batch_that_cannot_be_routed_takes_no_row_with_it():
    class Both(Bolt):
        outputs = ["n"]

        def process(self, tup):
            if tup[0] == 0:
                self.emit_batch(pa.record_batch({"n": [100]}))
            else:
                self.emit([tup[0]])

    class Routed(Topology):
        spout = Once.spec()
        both = Both.spec(inputs=[spout])
        sink = Sink.spec(inputs={both: Grouping.custom(Chooses())})

    with Cluster(Routed) as cluster:
        cluster.run_until(lambda: cluster.over, 60)
        assert cluster.state == "SUCCEEDED"
    assert {1, 2, 100} <= set(GOT)
    assert sorted(ACKED) == [0, 1, 2]


def test_keys_of_a_type_that_arrow_cannot_tell_apart():
    class Ids(Once):
        rows = tuple(uuid.UUID(int=number) for number in range(8))

    class Passes(Bolt):
        outputs = ["n"]

        def process_columns(self, columns):
            self.emit_batch(columns.batch)

    class Keyed(Topology):
        spout = Ids.spec()
        passes = Passes.spec(inputs=[spout])
        sink = Sink.spec(par=3, inputs={passes: Grouping.fields("n")})

    with Cluster(Keyed) as cluster:
        cluster.run_until(lambda: cluster.over, 30)
        assert cluster.state == "SUCCEEDED"
    assert sorted(GOT) == list(Ids.rows)


def test_a_part_of_a_batch_does_not_carry_the_whole_dictionary():
    words = pa.array([f"{number:0>9}" for number in range(1000)])
    batch = pa.record_batch({"word": words.dictionary_encode()})
    for picked in (np.arange(5, 8), np.array([1, 500, 900])):
        part = _part_of(batch, picked)
        assert list(ColumnRows(part)) == [(words[int(row)].as_py(),) for row in picked]
        assert part.get_total_buffer_size() < 500
    assert _part_of(batch, None) is batch


def test_inputs_that_emit_nothing_are_not_remembered():
    """Untracked, and without output, nothing is ever flushed."""

    class Buffer:
        number, rows = 1, ()

    anchoring, batches = Anchoring(always_mixed=False), [object() for _ in range(100)]
    for batch in batches:
        anchoring.begin(batch, [Buffer])
        run = anchoring.run(0, 0)
        run.ends += [0] * 10
        anchoring.close(run, 0)
    assert anchoring._spans == {1: [(batches[-1], 0)]}
    assert anchoring._runs == []
