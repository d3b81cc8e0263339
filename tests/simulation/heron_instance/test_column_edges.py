"""Record batches where something else happens at the same moment: rows, refusals, errors, nothing at all."""

from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pytest

from ardea import Bolt, CustomStreamGrouping, Grouping, Spout, Stream, Topology, UserError
from ardea.heron_instance.anchoring import Anchoring
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.parcels import part_of
from ardea.plan.logical import StreamPlan
from ardea.protocol.columns import ColumnRows
from ardea.testing import Cluster
from tests.unit.heron_instance.bench import Bench

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
        part = part_of(batch, picked)
        assert list(ColumnRows(part)) == [(words[int(row)].as_py(),) for row in picked]
        assert part.get_total_buffer_size() < 500
    assert part_of(batch, None) is batch


def test_one_row_leaves_a_dictionary_behind_that_would_be_too_large_for_it():
    words = pa.array([f"{number:0>9}" for number in range(1000)])

    class OneWord(Spout):
        outputs = ["word"]

        def next_tuple(self):
            self.emit_batch(pa.record_batch({"word": pa.DictionaryArray.from_arrays(pa.array([7]), words)}), [0])
            self.finish()

    class Words(Topology):
        spout = OneWord.spec()
        sink = Sink.spec(inputs=[spout])
        config = {"topology.max.tuple.bytes": 5000}

    with Cluster(Words) as cluster:
        cluster.run_until(lambda: cluster.over, 30)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
    assert GOT == ["000000007"]


class Twice(CustomStreamGrouping):
    """The first row twice, the second one to nobody."""

    def prepare(self, context, component, stream, target_tasks):
        self.targets = target_tasks

    def choose_tasks(self, values):
        return [self.targets[0]] * (2, 0, 1)[values[0]]


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("columns", [False, True])
def test_a_row_may_go_to_a_task_twice_and_another_to_none(columns, tracked):
    class Emits(Once):
        def next_tuple(self):
            if self.done:
                self.finish()
            elif columns:
                self.emit_batch(pa.record_batch({"n": [0, 1, 2]}), range(3) if tracked else None)
            else:
                for row in self.rows:
                    self.emit([row], tup_id=row if tracked else None)
            self.done = True

    class Uneven(Topology):
        spout = Emits.spec()
        sink = Sink.spec(inputs={spout: Grouping.custom(Twice())})

    with Cluster(Uneven) as cluster:
        cluster.run_until(lambda: cluster.over, 30)
    assert sorted(GOT) == [0, 0, 2]


def test_inputs_that_emit_nothing_are_not_remembered():
    """Untracked, and without output, nothing is ever flushed."""
    buffer = StreamBuffer(1, StreamPlan("default", ("n",)), [])
    anchoring, batches = Anchoring(always_mixed=False), [object() for _ in range(100)]
    for batch in batches:
        anchoring.begin(batch, [buffer])
        run = anchoring.run(0, 0)
        run.ends += [0] * 10
        anchoring.close(run, 0)
    assert anchoring._spans == {1: [(batches[-1], 0)]}
    assert anchoring._runs == []


class Three(Once):
    """One batch of three rows."""

    def next_tuple(self):
        if self.done:
            self.finish()
            return
        self.done = True
        self.emit_batch(pa.record_batch({"n": [0, 1, 2]}), tup_ids=range(3))


def test_a_row_joins_no_tree_whose_ack_has_left():
    class Early(Bolt):
        outputs = ["n"]
        auto_ack = False

        def process_columns(self, columns):
            self.ack_batch(columns, [0])
            self.emit_batch(columns.batch.slice(1), anchors=[1, 2])  # the ack leaves
            self.emit([100])  # anchored to the whole batch
            self.ack_batch(columns, [1, 2])

    class Left(Topology):
        spout = Three.spec()
        early = Early.spec(inputs=[spout])
        sink = Sink.spec(inputs=[early])

    with Cluster(Left) as cluster:
        cluster.run_until(lambda: cluster.over, 10)  # before any tree could time out
        assert cluster.state == "SUCCEEDED"
    assert (sorted(GOT), sorted(ACKED)) == ([1, 2, 100], [0, 1, 2])


def test_rows_one_by_one_join_no_tree_whose_ack_has_left():
    class Early(Bolt):
        outputs = ["n"]
        auto_ack = False

        def process_batch(self, rows):
            self.ack(rows[0])
            self.emit_batch(pa.record_batch({"n": [50]}), anchors=())  # the ack leaves
            self.emit([100])
            for tup in rows[1:]:
                self.ack(tup)

    class Left(Topology):
        spout = Three.spec()
        early = Early.spec(inputs=[spout])
        sink = Sink.spec(inputs=[early])

    with Cluster(Left) as cluster:
        cluster.run_until(lambda: cluster.over, 10)
        assert cluster.state == "SUCCEEDED"
    assert (sorted(GOT), sorted(ACKED)) == ([50, 100], [0, 1, 2])


def test_a_batch_anchored_to_one_tuple_that_is_acked_is_refused():
    errors = []

    class Late(Bolt):
        outputs = ["n"]
        auto_ack = False

        def process(self, tup):
            self.ack(tup)
            with pytest.raises(UserError) as error:
                self.emit_batch(pa.record_batch({"n": [1, 2]}))
            errors.append(error.value.message)

    class Refused(Topology):
        spout = Once.spec()
        late = Late.spec(inputs=[spout])
        sink = Sink.spec(inputs=[late])

    with Cluster(Refused) as cluster:
        cluster.run_until(lambda: cluster.over, 10)
        assert cluster.state == "SUCCEEDED"
    assert (GOT, sorted(ACKED)) == ([], [0, 1, 2])
    assert len(errors) == 3
    assert "acked or failed already" in errors[0]


def test_a_row_that_is_refused_keeps_no_other_row_of_its_tuple():
    """The second batch names the same inputs, one of which has failed meanwhile."""

    class Twice(Bolt):
        outputs = [Stream(["text"]), Stream(["n"], "numbers")]

        def process_columns(self, columns):
            CALLS.append(len(columns.batch))
            texts = ["a" * (2_000_000 if n == 1 else 10) for n in columns.batch["n"].to_pylist()]
            self.emit_batch(pa.record_batch({"text": texts}))
            self.emit_batch(columns.batch, "numbers")

    class Large(Topology):
        spout = Three.spec()
        twice = Twice.spec(inputs=[spout])
        sink = Sink.spec(inputs=[twice["numbers"]])
        texts = Sink.spec(inputs=[twice])
        config = {"topology.max.tuple.bytes": 1_200_000, "topology.max.tuple.replays": 0}

    with Cluster(Large) as cluster:
        cluster.run_until(lambda: cluster.over, 10)
        assert cluster.state == "FAILED"  # it gave up one tuple, which cannot be sent
    assert (sorted(map(str, GOT)), sorted(ACKED)) == (["0", "1", "2", "a" * 10, "a" * 10], [0, 2])
    assert CALLS == [3]


def test_batches_without_rows_are_not_remembered():
    """Nothing is ever flushed that would end what is noted of the order of emission."""

    class Empties(Bolt):
        outputs = [Stream(["n"]), Stream(["n"], "odd")]

        def process(self, tup):
            nothing = pa.record_batch({"n": pa.array([], pa.int64())})
            for stream in ("default", "odd") * 50:
                self.emit_batch(nothing, stream)

    class Nothing(Topology):
        spout = Once.spec()
        empties = Empties.spec(inputs=[spout])

    bench = Bench(Nothing, "empties", "spout")
    bench.arrives([(1,)])
    bench.turn()
    assert bench.executor.task_output.runs == []
