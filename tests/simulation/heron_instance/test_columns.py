"""Bolts that are written for columns: anchoring by row numbers, mixing with row bolts, at least and at most once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ardea import Bolt, FailedException, Grouping, Spout, Topology, UserError
from ardea.protocol.wire_pb2 import ARROW, ROWS
from ardea.testing import CollectBolt, RowsSpout, run
from tests.simulation.heron_instance.numbered import PAIRS, ROWS_OF, TOTAL, Batches, Same, SameRows
from tests.sizes import share

containers = pytest.mark.parametrize("containers", [1, 2])
AT_ONCE = [{"topology.reliability.mode": "ATMOST_ONCE"}, {"topology.acker.executors": 0}]


class BatchAcks(Batches):
    """Hears of acks many at once."""

    heard = None

    def ack_batch(self, tup_ids):
        BatchAcks.heard.update(np.asarray(tup_ids).tolist())


class Filter(Bolt):
    """Each third row goes on, twice."""

    outputs = ["n", "word"]

    def process_columns(self, columns):
        kept = np.flatnonzero(columns["n"].to_numpy() % 3 == 0).repeat(2)
        self.emit_batch(columns.batch.take(kept), anchors=kept)


def chain(spout, *bolts):
    """One bolt after another, by turns shuffled and grouped; ``sink`` reads the last."""
    body, last = {"spout": spout.spec()}, None
    for place, bolt in enumerate(bolts):
        source = body["spout"] if last is None else last
        inputs = {source: Grouping.fields("word")} if place % 2 else [source]
        last = body[f"bolt{place}"] = bolt.spec(par=2, inputs=inputs)
    body["sink"] = CollectBolt.spec(inputs=[last])
    return type("Chain", (Topology,), body)


@pytest.mark.sampled(4)
@containers
@pytest.mark.parametrize("spout", [Batches, ROWS_OF], ids=["batches", "rows"])
@pytest.mark.parametrize(
    "bolts", [(Same,), (Same, Same), (SameRows, Same, SameRows), (Same, SameRows, Same)], ids=lambda b: f"{len(b)}"
)
def test_row_and_column_bolts_mix(spout, bolts, containers, headers):
    """Every row arrives once, every tree is complete; what a column bolt emits travels as columns."""
    result = run(chain(spout, *bolts), containers=containers)
    assert (result.state, sorted(result.inputs("sink"))) == ("SUCCEEDED", PAIRS)
    assert sorted(result.acked["spout"]) == list(range(TOTAL))
    for place, bolt in enumerate(bolts):
        tasks = {r.source for r in result.received[f"bolt{place + 1}" if place + 1 < len(bolts) else "sink"]}
        arrow = {h.codec == ARROW for _, _, h in headers if h.kind == ROWS and h.source in tasks}
        assert arrow == {bolt is Same}


@pytest.mark.parametrize("mode", AT_ONCE, ids=["at most once", "no ackers"])
def test_without_acking(mode):
    BatchAcks.heard = Counter()
    result = run(chain(BatchAcks, Same, SameRows, Same), config=mode)
    assert (result.state, sorted(result.inputs("sink"))) == ("SUCCEEDED", PAIRS)
    assert BatchAcks.heard == Counter(range(TOTAL))


@containers
def test_a_spout_hears_of_many_acks_at_once(containers):
    BatchAcks.heard = Counter()
    result = run(chain(BatchAcks, Filter), containers=containers)
    assert (result.state, sorted(result.inputs("sink"))) == ("SUCCEEDED", sorted(PAIRS[::3] * 2))
    assert BatchAcks.heard == Counter(range(TOTAL))


class FailsSome(Bolt):
    """Fails each tuple of some numbers as often as it is told; columns or rows."""

    times = 2

    def initialize(self, config, context):
        self.failed = Counter()

    def fails(self, n):
        self.failed[n] += 1
        return n % 10 == 3 and self.failed[n] <= self.times

    def process(self, tup):
        if self.fails(tup["n"]):
            raise FailedException


class FailsColumns(FailsSome):
    def process_columns(self, columns):
        assert columns["n"].type == pa.int64()
        failing = [place for place, n in enumerate(columns["n"].to_pylist()) if self.fails(n)]
        self.fail_batch(columns, failing)


@pytest.mark.sampled(4)
@containers
@pytest.mark.parametrize("sink", [FailsSome, FailsColumns])
@pytest.mark.parametrize("spout", [Batches, ROWS_OF], ids=["batches", "rows"])
def test_failed_rows_are_sent_again_and_no_others(spout, sink, containers):
    class Failing(Topology):
        spout_ = spout.spec("spout")
        same = Same.spec(inputs=[spout_])
        sink_ = sink.spec("sink", par=2, inputs={same: Grouping.fields("n")})

    result = run(Failing, containers=containers)
    threes = list(range(3, TOTAL, 10)) * 2
    assert result.state == "SUCCEEDED"
    assert sorted(result.failed["spout"]) == sorted(threes)
    assert sorted(n for n, _ in result.inputs("sink")) == sorted([*range(TOTAL), *threes])
    assert sorted(result.acked["spout"]) == list(range(TOTAL))


def test_what_is_sent_again_has_its_types(headers):
    """Columns of a batch that failed come as columns, with the types they had."""

    class Typed(Spout):
        outputs = ["n"]

        def next_tuple(self):
            self.emit_batch(pa.record_batch({"n": pa.array([1, None, 3], pa.int16())}), np.arange(3))
            self.finish()

    class Once(Bolt):
        types = []

        def process_columns(self, columns):
            self.types.append(columns["n"].type)
            if len(self.types) == 1:
                raise FailedException

    class TypedTopology(Topology):
        spout = Typed.spec()
        sink = Once.spec(inputs=[spout])

    Once.types.clear()
    result = run(TypedTopology)
    assert (result.state, sorted(result.acked["spout"]), sorted(result.failed["spout"])) == (
        "SUCCEEDED", [0, 1, 2], [0, 1, 2]
    )  # fmt: skip
    assert Once.types == [pa.int16()] * 2


class Sums(Bolt):
    """The sum of each remainder in a batch, anchored to all rows that are in it."""

    outputs = ["key", "sum"]

    def process_columns(self, columns):
        numbers = columns["n"]
        table = pa.table({"key": pc.bit_wise_and(numbers, 3), "n": numbers, "row": np.arange(len(numbers))})
        sums = table.group_by("key").aggregate([("n", "sum"), ("row", "list")]).combine_chunks()
        batch = pa.record_batch([sums["key"].chunk(0), sums["n_sum"].chunk(0)], ["key", "sum"])
        self.emit_batch(batch, anchors=sums["row_list"].chunk(0))


class FailsOnce(Bolt):
    """Fails the first sum of each key."""

    def initialize(self, config, context):
        self.seen = set()

    def process(self, tup):
        if tup["key"] not in self.seen:
            self.seen.add(tup["key"])
            raise FailedException


class Doubles(Bolt):
    """Each row becomes two, of one tree: anchors further on share roots."""

    outputs = ["n", "word"]

    def process(self, tup):
        self.emit(tup.values)
        self.emit(tup.values)


@containers
def test_a_row_of_many_anchors_fails_all_of_them(containers):
    class Summed(Topology):
        spout = Batches.spec()
        twice = Doubles.spec(inputs=[spout])
        sums = Sums.spec(inputs=[twice])
        sink = FailsOnce.spec(inputs=[sums])

    result = run(Summed, containers=containers)
    assert (result.state, sorted(result.acked["spout"])) == ("SUCCEEDED", list(range(TOTAL)))
    assert {n & 3 for n in result.failed["spout"]} == {0, 1, 2, 3}
    totals = Counter()
    for key, total in result.inputs("sink"):
        totals[key] += total
    again = Counter()
    for n in result.failed["spout"]:
        again[n & 3] += 2 * n
    assert totals == {key: 2 * sum(range(key, TOTAL, 4)) + again[key] for key in range(4)}


def test_rows_emitted_one_by_one_hang_on_the_whole_batch():
    """A summary row fails: the whole batch comes again."""

    class Summary(Bolt):
        outputs = ["rows"]

        def process_columns(self, columns):
            self.emit([len(columns)])

    class Once(Bolt):
        seen = 0

        def process(self, tup):
            Once.seen += 1
            if Once.seen == 1:
                raise FailedException

    class Summaries(Topology):
        spout = Batches.spec()
        summary = Summary.spec(inputs=[spout])
        sink = Once.spec(inputs=[summary])

    Once.seen = 0
    result = run(Summaries)
    first = result.inputs("sink")[0][0]
    assert (result.state, sorted(result.acked["spout"])) == ("SUCCEEDED", list(range(TOTAL)))
    assert sorted(result.failed["spout"]) == list(range(first))


def test_batches_are_held_joined_and_acked_later():
    """Two streams joined by place; anchors name both batches; what is held is acked in flush()."""

    class Joined(Bolt):
        outputs = ["n", "word"]
        auto_ack = False

        def initialize(self, config, context):
            self.held = []

        def process_columns(self, columns):
            self.held.append(columns)

        def flush(self):
            left = [c for c in self.held if c.component == "left"]
            right = {
                n: (c, row) for c in self.held if c.component == "right" for row, n in enumerate(c["n"].to_pylist())
            }
            if right.keys() != {n for columns in left for n in columns["n"].to_pylist()}:
                return  # of a pair that failed one has come again, and all rest until the other does
            self.held.clear()
            for columns in left:
                for row, n in enumerate(columns["n"].to_pylist()):
                    other, place = right[n]
                    self.emit_batch(columns.batch.slice(row, 1), anchors={columns: [row], other: [place]})
            for columns in [*left, *{id(c): c for c, _ in right.values()}.values()]:
                self.ack_batch(columns, range(0, len(columns), 2))
                self.ack_batch(columns)
                with pytest.raises(UserError, match="acked or failed already"):
                    self.emit_batch(columns.batch.slice(0, 1), anchors={columns: [0]})

    class Once(Bolt):
        seen = Counter()

        def process(self, tup):
            self.seen[tup["n"]] += 1
            if tup["n"] == 5 and self.seen[5] == 1:
                raise FailedException

    small = RowsSpout.of(["n", "word"], PAIRS[:40])

    class Joining(Topology):
        left = small.spec()
        right = small.spec()
        joined = Joined.spec(inputs=[left, right])
        sink = Once.spec(inputs=[joined])

    Once.seen.clear()
    result = run(Joining)
    assert result.state == "SUCCEEDED"
    assert (result.failed["left"], result.failed["right"]) == ([5], [5])
    assert sorted(result.acked["left"]) == sorted(result.acked["right"]) == list(range(40))


def test_a_row_bolt_emits_batches():
    """process(): all rows on its tuple; process_batch(): row by row, or by numbers; end_of_input(): on none."""

    class Explodes(Bolt):
        outputs = ["n", "word"]

        def process(self, tup):
            self.emit_batch(pa.record_batch({"n": [tup["n"]] * 3, "word": [tup["word"]] * 3}))
            with pytest.raises(UserError, match="row numbers"):
                self.emit_batch(pa.record_batch({"n": [1], "word": ["a"]}), anchors=[0])

        def end_of_input(self):
            self.emit_batch(pa.record_batch({"n": [-1], "word": ["end"]}))

    class Every(Bolt):
        outputs = ["n", "word"]

        def process_batch(self, rows):
            batch = pa.record_batch({"n": [t["n"] for t in rows], "word": [t["word"] for t in rows]})
            self.emit_batch(batch)
            self.emit_batch(batch.slice(0, 1), anchors=[0])

    class Once(Bolt):
        seen = Counter()

        def process(self, tup):
            self.seen[tup.values] += 1
            if tup["n"] == 7 and self.seen[tup.values] == 1:
                raise FailedException

    class Exploding(Topology):
        spout = RowsSpout.of(["n", "word"], PAIRS[:20]).spec()
        explodes = Explodes.spec(inputs=[spout])
        every = Every.spec(inputs=[explodes])
        sink = Once.spec(inputs=[every])

    Once.seen.clear()
    result = run(Exploding)
    assert (result.state, sorted(result.acked["spout"])) == ("SUCCEEDED", list(range(20)))
    assert set(result.failed["spout"]) == {7}
    assert set(Once.seen) == {*PAIRS[:20], (-1, "end")}


@containers
def test_rows_and_batches_of_one_call_keep_order_and_anchors(containers):
    """A row, a batch and a row: any of them fails their tuple, and no other."""

    class Mixes(Bolt):
        outputs = ["n", "word"]

        def process(self, tup):
            n = tup["n"]
            self.emit([n, "first"])
            self.emit_batch(pa.record_batch({"n": [n, n], "word": ["second", "third"]}))
            self.emit([n, "last"])

    class Once(Bolt):
        seen = Counter()

        def process(self, tup):
            self.seen[tup.values] += 1
            if tup.values in [(3, "first"), (5, "third"), (8, "last")] and self.seen[tup.values] == 1:
                raise FailedException

    class Mixing(Topology):
        spout = RowsSpout.of(["n", "word"], PAIRS[:20]).spec()
        mixes = Mixes.spec(inputs=[spout])
        sink = Once.spec(inputs=[mixes])

    Once.seen.clear()
    result = run(Mixing, containers=containers)
    assert (result.state, sorted(result.failed["spout"])) == ("SUCCEEDED", [3, 5, 8])
    assert sorted(result.acked["spout"]) == list(range(20))
    order = [word for n, word in result.inputs("sink") if n == 7]
    assert order == ["first", "second", "third", "last"]


# What one batch becomes: rows of the output, each with the places of its anchors.
plans = st.lists(st.lists(st.integers(0, 999), max_size=3), max_size=12)


@settings(max_examples=share(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), containers=st.sampled_from([1, 2]), seed=st.integers(0, 9))
def test_a_row_is_complete_when_all_that_is_anchored_to_it_is(data, containers, seed):
    """Any anchors, any failures: what the sink fails fails exactly its anchors' rows, and all is acked in the end."""
    plan = data.draw(plans)
    double = data.draw(st.booleans())
    failing = set(data.draw(st.lists(st.integers(0, 11), max_size=3)))
    origin, failed = {}, Counter()

    class Emits(Bolt):
        outputs = ["id"]

        def process_columns(self, columns):
            numbers = columns["n"].to_pylist()
            anchors = [sorted({place % len(numbers) for place in row}) for row in plan]
            ids = [len(origin) + place for place in range(len(anchors))]
            origin.update(zip(ids, [{numbers[place] for place in row} for row in anchors], strict=True))
            lists = pa.array(anchors, pa.list_(pa.int64()))
            if data.draw(st.booleans()):
                self.emit_batch(pa.record_batch({"id": pa.array(ids, pa.int64())}), anchors=lists)
            else:
                single = [(i, row[0]) for i, row in zip(ids, anchors, strict=True) if row]
                for i in ids:
                    origin[i] = set(list(origin[i])[:0])
                origin.update((i, {numbers[row]}) for i, row in single)
                batch = pa.record_batch({"id": pa.array([i for i, _ in single], pa.int64())})
                self.emit_batch(batch, anchors=[row for _, row in single])

    class Sink(Bolt):
        seen = Counter()

        def process_columns(self, columns):
            bad = []
            for place, number in enumerate(columns["id"].to_pylist()):
                if number in failing:
                    failing.discard(number)
                    failed.update(origin[number])
                    bad.append(place)
            self.fail_batch(columns, bad)

    class Anchored(Topology):
        spout = RowsSpout.of(["n", "word"], PAIRS[:20]).spec()
        middle = (Doubles if double else SameRows).spec(inputs=[spout])
        emits = Emits.spec(inputs=[middle])
        sink = Sink.spec(inputs=[emits])

    result = run(Anchored, containers=containers, seed=seed)
    assert (result.state, sorted(result.acked["spout"])) == ("SUCCEEDED", list(range(20)))
    assert set(result.failed["spout"]) == set(failed)
