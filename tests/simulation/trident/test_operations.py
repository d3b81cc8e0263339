"""What the operations do, each in a topology on simulated time."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from ardea import CustomStreamGrouping, FailedException
from ardea.testing import Cluster, run
from ardea.testing.inside import Inside
from ardea.trident import (
    Aggregator,
    Count,
    Equals,
    Filter,
    FilterNull,
    FixedBatchSpout,
    Function,
    MapGet,
    Max,
    MemoryMapState,
    Min,
    Negate,
    ReducerAggregator,
    SnapshotGet,
    Sum,
    TridentTopology,
)
from ardea.trident.tuples import projection, tuple_class

from .parts import AT_ONCE

ROWS = [["the cow", 3], ["the man", 1], ["", 4], ["over the moon", 1], ["cow", None]]


class Rows:
    """A stream of ROWS; what ``run`` gives are the rows at the end of the operations, in the order of their batches."""

    def __init__(self, rows=ROWS, size=2, fields=("text", "n"), hint=1):
        self.topology = TridentTopology("tester")
        self.stream = self.topology.new_stream("rows", FixedBatchSpout(fields, rows, size)).parallelism_hint(hint)
        self.seen = []

    def run(self, operations, containers=2):
        end = operations(self.stream)
        end.peek(lambda tup: self.seen.append(tuple(tup)))
        result = run(self.topology.build(), containers=containers, config=AT_ONCE)
        assert (result.state, result.record.errors) == ("SUCCEEDED", [])
        return self.seen


class Split(Function):
    def prepare(self, config, context):
        self.calls = 0
        assert context.partition_index < context.num_partitions

    def execute(self, tup, collector):
        self.calls += 1
        for word in tup["text"].split():
            collector.emit([word])


class Long(Filter):
    def is_keep(self, tup):
        return len(tup["text"]) > 4


class Longest(ReducerAggregator):
    def init(self):
        return ""

    def reduce(self, current, tup):
        return max(current, tup[0], key=len)


class Twice(Aggregator):
    """Emits each value as it comes, and the number at the end."""

    def init(self, batch_id, collector):
        return []

    def aggregate(self, value, tup, collector):
        value.append(tup[0])
        collector.emit([tup[0]])

    def complete(self, value, collector):
        collector.emit([f"{len(value)} in all"])


class Greeting(Twice):
    """Emits a row as the batch begins, too."""

    def init(self, batch_id, collector):
        collector.emit(["begins"])
        return []


class Silent(Aggregator):
    def init(self, batch_id, collector):
        return None

    def aggregate(self, value, tup, collector):
        pass

    def complete(self, value, collector):
        pass


TEXTS = [row[0] for row in ROWS]
SPLIT = [(text, n, word) for text, n in ROWS for word in text.split()]
CASES = {
    "each appends": (lambda s: s.each("text", Split(), "word"), SPLIT),
    "a generator": (lambda s: s.each("text", lambda tup: (w for w in tup[0].split()), "word"), SPLIT),
    "two fields": (
        lambda s: s.each(["n"], lambda tup: [(tup["n"], "x")], ["m", "x"]).project(["x", "m"]),
        [("x", row[1]) for row in ROWS],
    ),
    "None is no row": (lambda s: s.each("n", lambda tup: None, "m"), []),
    "filter": (lambda s: s.filter(Long()).project("text"), [(t,) for t in TEXTS if len(t) > 4]),
    "a lambda filters": (lambda s: s.filter(lambda tup: tup["n"] == 1), [tuple(r) for r in ROWS if r[1] == 1]),
    "FilterNull": (lambda s: s.filter(FilterNull(), "n").project("n"), [(3,), (1,), (4,), (1,)]),
    "Negate, Equals": (
        lambda s: s.each("n", lambda _: [1], "one").filter(Negate(Equals()), ["n", "one"]).project("n"),
        [(3,), (4,), (None,)],
    ),
    "map keeps the fields": (
        lambda s: s.map(lambda tup: (tup[0].upper(), 0)).project("text"),
        [(t.upper(),) for t in TEXTS],
    ),
    "map to one field": (lambda s: s.map(lambda tup: len(tup["text"]), "size"), [(len(t),) for t in TEXTS]),
    "flat_map": (lambda s: s.flat_map(lambda tup: tup["text"].split(), "word"), [(w,) for _, _, w in SPLIT]),
    "project": (lambda s: s.project(["n", "text"]), [(n, text) for text, n in ROWS]),
    "count of batches": (lambda s: s.aggregate(Count(), "count"), [(2,), (2,), (1,)]),
    "count of nothing": (lambda s: s.filter(lambda _: False).aggregate(Count(), "count"), [(0,)] * 3),
    "max of nothing": (lambda s: s.filter(lambda _: False).aggregate(Max(), "max", "n"), [(None,)] * 3),
    "min": (lambda s: s.aggregate(Min(), "min", "n"), [(1,), (1,), (None,)]),
    "a reducer": (lambda s: s.aggregate(Longest(), "longest", "text"), [("the cow",), ("over the moon",), ("cow",)]),
    "an aggregator": (
        lambda s: s.filter(FilterNull(), "n").aggregate(Twice(), "x", "n"),
        [(3,), (1,), ("2 in all",), (4,), (1,), ("2 in all",), ("0 in all",)],
    ),
    "an aggregator that emits at once": (
        lambda s: s.filter(FilterNull(), "n").aggregate(Greeting(), "x", "n"),
        [("begins",), (3,), (1,), ("2 in all",), ("begins",), (4,), (1,), ("2 in all",), ("begins",), ("0 in all",)],
    ),
    "the same, before a repartition": (
        lambda s: s.filter(FilterNull(), "n").aggregate(Greeting(), "x", "n").shuffle().map(lambda tup: tup["x"], "x"),
        [("begins",), (3,), (1,), ("2 in all",), ("begins",), (4,), (1,), ("2 in all",), ("begins",), ("0 in all",)],
    ),
    "the same, before another aggregator": (
        lambda s: s.partition_aggregate(Greeting(), "x", "n").partition_aggregate(Count(), "c"),
        [(4,), (4,), (3,)],
    ),
    "a chain of combiners": (
        lambda s: (
            s.filter(FilterNull(), "n").chained_agg().aggregate(Count(), "c").aggregate(Sum(), "s", "n").chain_end()
        ),
        [(2, 4), (2, 5), (0, 0)],
    ),
    "a mixed chain": (
        lambda s: s.chained_agg().aggregate(Count(), "c").aggregate(Longest(), "l", "text").chain_end(),
        [(2, "the cow"), (2, "over the moon"), (1, "cow")],
    ),
    "a chain in which one is silent": (
        lambda s: s.chained_agg().aggregate(Count(), "c").aggregate(Silent(), "x", "n").chain_end(),
        [],
    ),
    "grouped, of nothing": (lambda s: s.filter(lambda _: False).group_by("n").aggregate(Count(), "c"), []),
    "a grouped each": (
        lambda s: s.group_by("n").each("text", lambda tup: [len(tup[0])], "size").aggregate(Sum(), "size", "size"),
        [(3, 7), (1, 7), (4, 0), (1, 13), (None, 3)],
    ),
    "a grouped partition_aggregate": (
        lambda s: s.group_by("n").partition_aggregate(Count(), "c"),
        [(3, 1), (1, 1), (4, 1), (1, 1), (None, 1)],
    ),
    "a grouped chain": (
        lambda s: s.group_by("n").chained_agg().aggregate(Count(), "c").aggregate(Longest(), "l", "text").chain_end(),
        [(3, 1, "the cow"), (1, 1, "the man"), (4, 1, ""), (1, 1, "over the moon"), (None, 1, "cow")],
    ),
    "first_n": (lambda s: s.first_n(1, "n"), [("the man", 1), ("over the moon", 1)]),
    "max_by": (
        lambda s: s.max_by(lambda tup: len(tup["text"])).project("text"),
        [("the man",), ("over the moon",), ("cow",)],
    ),
    "min_by": (lambda s: s.min_by("text").project("text"), [("the cow",), ("",), ("cow",)]),
    "max_by passes over None": (lambda s: s.max_by("n"), [("the cow", 3), ("", 4)]),
    "min_by of nothing": (lambda s: s.filter(lambda _: False).min_by("n"), []),
}


@pytest.mark.parametrize("case", CASES)
def test_operations(case):
    """One task throughout: the order is that of the batches."""
    operations, expected = CASES[case]
    assert Rows().run(operations) == expected


@pytest.mark.parametrize(
    "repartition",
    [
        lambda s: s.shuffle(),
        lambda s: s.local_or_shuffle(),
        lambda s: s.partition_by("n"),
        lambda s: s.global_(),
        lambda s: s.batch_global(),
        lambda s: s.identity_partition(),
        lambda s: s.shuffle().partition_by("text"),
    ],
)
def test_repartitions_lose_and_double_nothing(repartition):
    rows = [[str(n % 7), n] for n in range(200)]
    seen = Rows(rows, 30).run(lambda s: repartition(s).map(lambda tup: tup).parallelism_hint(3))
    assert Counter(seen) == Counter(map(tuple, rows))


class Where(Function):
    def prepare(self, config, context):
        self.index = context.partition_index

    def execute(self, tup, collector):
        collector.emit([self.index])


def test_batch_global_sends_a_batch_to_one_task_and_the_next_one_to_another():
    rows = [[str(n // 10), n] for n in range(60)]  # the text names the batch
    seen = Rows(rows, 10).run(lambda s: s.batch_global().each("n", Where(), "task").parallelism_hint(3))
    where = {(text, task) for text, _, task in seen}
    assert sorted(text for text, _ in where) == list("012345")
    assert Counter(task for _, task in where) == {0: 2, 1: 2, 2: 2}


@pytest.mark.parametrize(("aggregator", "nothing"), [(Count(), 0), (Longest(), "")])
def test_an_empty_batch_is_told_once_whatever_the_number_of_tasks(aggregator, nothing):
    seen = Rows().run(lambda s: s.filter(lambda _: False).aggregate(aggregator, "x", "text").parallelism_hint(3))
    assert seen == [(nothing,)] * 3


def test_broadcast_goes_to_every_task():
    seen = Rows().run(lambda s: s.broadcast().project("text").parallelism_hint(3))
    assert Counter(seen) == Counter({(text,): 3 for text in TEXTS})


class LastTask(CustomStreamGrouping):
    def prepare(self, context, component, stream, target_tasks):
        self.targets = target_tasks

    def choose_tasks(self, values):
        assert len(values) == 2
        return [self.targets[-1]]


def test_a_grouping_of_the_authors_own_sees_the_streams_fields():
    seen = Rows().run(lambda s: s.partition(LastTask()).partition_aggregate(Count(), "c").parallelism_hint(2))
    assert sorted(seen) == [(0,), (0,), (0,), (1,), (2,), (2,)]


def test_groups_meet_whatever_the_parallelism():
    """Partial counts of three tasks are combined; a plain aggregator gets all tuples of a group."""
    rows = [[str(n % 5), n] for n in range(100)]
    expected = Counter(text for text, _ in rows)

    def operations(stream):
        stream = stream.shuffle().map(lambda tup: tup).parallelism_hint(3)
        return stream.group_by("text").aggregate(Count(), "c")

    assert sorted(Rows(rows, 100).run(operations)) == sorted(expected.items())
    seen = Rows(rows, 100).run(lambda s: s.shuffle().group_by("text").aggregate(Longest(), "x", "text"))
    assert sorted(seen) == [(key, key) for key in sorted(expected)]


@pytest.mark.parametrize("kind", [Count, Longest])
def test_persistent_aggregates_and_their_new_values(kind):
    tester, state = Rows(), MemoryMapState()
    words = tester.stream.each("text", Split(), "word").shuffle()

    def operations(_):
        return words.group_by("word").persistent_aggregate(state, kind(), "value", inputs="word").new_values_stream()

    seen = tester.run(operations)
    plain = Counter(word for _, _, word in SPLIT)
    expected = dict(plain) if kind is Count else {word: word for word in plain}
    assert {key[0]: value for key, value in state.values().items()} == expected
    assert dict(seen) == expected
    assert seen.count(("the", 2)) == (kind is Count)


@pytest.mark.parametrize("kind", [Count, Longest])
def test_persistent_aggregates_of_everything(kind):
    state = MemoryMapState()
    seen = Rows().run(lambda s: s.persistent_aggregate(state, kind(), "v", inputs="text").new_values_stream())
    assert seen == ([(2,), (4,), (5,)] if kind is Count else [("the cow",), ("over the moon",), ("over the moon",)])
    assert list(state.values().values()) == [seen[-1][0]]


def test_a_stream_asks_the_state_of_another():
    tester = Rows([["the cow", 0], ["the", 1]], 2)
    counts = (
        tester.stream.each("text", Split(), "word")
        .group_by("word")
        .persistent_aggregate(MemoryMapState(), Count(), "count")
    )
    total = tester.stream.persistent_aggregate(MemoryMapState(), Count(), "all")
    seen = []

    def note(tup):
        seen.append(tuple(tup))

    asked = tester.topology.new_stream("asked", FixedBatchSpout(["word"], [["the"], ["nothing"]] * 40, 2))
    asked = asked.group_by("word").state_query(counts, "word", MapGet(), "count").project(["word", "count"])
    asked.global_().state_query(total, (), SnapshotGet(), "all").peek(note)
    result = run(tester.topology.build(), containers=2, config=AT_ONCE)
    assert result.state == "SUCCEEDED"
    assert len(seen) == 80
    assert seen[-2:] == [("the", 2, 2), ("nothing", None, 2)]


def test_streams_merge_within_batches():
    tester = Rows()

    def operations(stream):
        numbers = stream.project("n").filter(FilterNull())
        sizes = stream.map(lambda tup: len(tup[0]), "size")
        return tester.topology.merge([numbers.shuffle(), sizes], "x").aggregate(Count(), "c")

    assert tester.run(operations) == [(4,), (4,), (1,)]


def test_new_values_meet_what_did_not_wait_for_the_commit():
    """In Storm the two wait for each other until the message timeout."""
    rows = Rows()

    def operations(stream):
        words = stream.each("text", Split(), "word").project("word").shuffle()
        counts = words.group_by("word").persistent_aggregate(MemoryMapState(), Count(), "count")
        values = counts.parallelism_hint(2).new_values_stream().project("word").partition_by("word")
        merged = rows.topology.merge([words.partition_by("word"), values])
        return merged.group_by("word").aggregate(Count(), "n")

    seen = rows.run(operations)
    assert Counter(seen) == Counter(
        {("the", 3): 1, ("cow", 2): 2, ("man", 2): 1, ("over", 2): 1, ("the", 2): 1, ("moon", 2): 1}
    )


def test_two_spouts_of_one_batch_group_feed_one_state_and_end_together():
    topology, seen = TridentTopology("two"), []
    short = topology.new_stream("short", FixedBatchSpout(["x"], [[1]], 1))
    long = topology.new_stream("long", FixedBatchSpout(["x"], [[2], [3], [4]], 1))
    merged, state = topology.merge([short, long]), MemoryMapState()
    merged.aggregate(Sum(), "sum").peek(lambda tup: seen.append(tup[0]))
    merged.persistent_aggregate(state, Sum(), "all")
    assert run(topology.build(), config=AT_ONCE).state == "SUCCEEDED"
    assert seen == [3, 3, 4]
    assert list(state.values().values()) == [10]


@pytest.mark.parametrize("error", [FailedException("no"), ValueError("no")])
def test_a_function_that_raises_fails_its_batch_which_comes_again(error):
    tester, tries = Rows(), []
    state = MemoryMapState()

    def fragile(tup):
        if tup["text"] == "over the moon" and len(tries) < 3:
            tries.append(1)
            raise error
        return True

    tester.stream.filter(fragile).persistent_aggregate(state, Count(), "n")
    result = run(tester.topology.build(), containers=2, config=AT_ONCE)
    assert result.state == "SUCCEEDED"
    assert list(state.values().values()) == [5]
    attempts = [tuple(tup_id)[1:] for tup_id in result.failed["$mastercoord-bg0"]]
    assert attempts == [(2, 0), (2, 1), (2, 2)]


def length(tup):
    return len(tup[0])


@pytest.mark.parametrize(
    ("operation", "what"),
    [
        (lambda s: s.each("text", lambda tup: [(1, 2, 3)], ["a", "b"]), "gave 3 values where 2 are declared"),
        (lambda s: s.map(lambda tup: (1, 2, 3), ["a", "b"]), "gave 3 values where 2 are declared"),
        (lambda s: s.each("text", length, "size"), "function length returned 7, which is no list of rows"),
        (lambda s: s.flat_map(length, "size"), "function length returned 7, which is no list of rows"),
    ],
)
def test_what_a_function_returns_wrongly_is_an_error_that_names_its_line(operation, what):
    tester = Rows()
    operation(tester.stream)
    with Cluster(tester.topology.build()) as cluster:
        cluster.run_until(lambda: cluster.record.failed["$mastercoord-bg0"])
        error = Inside(cluster).error("b-0-0")
    assert what in error
    assert re.search(r" at test_operations\.py:\d+ \((tuple|the first of)", error)


def test_tuples():
    """Storm's TridentTupleViewTest."""
    abc = tuple_class(("a", "b", "c"))((3, 2, 1))
    assert (abc, abc["a"], abc[-1], abc.as_dict()) == ((3, 2, 1), 3, 1, {"a": 3, "b": 2, "c": 1})
    assert ("a" in abc, "d" in abc, abc.select(["c", "a"])) == (True, False, (1, 3))
    assert projection("abcde", "da")((3, 2, 1, 4, 5)) == (4, 3)
    view = projection("abcdef", "afb")((1, 2, 3, 4, 5, 6))
    assert (view, view["f"]) == ((1, 6, 2), 6)
    assert projection("ab", "")((1, 2)) == ()
    with pytest.raises(KeyError, match="no field 'x'"):
        abc["x"]


def test_appended_fields_stand_behind_those_of_the_input():
    """The rest of Storm's TridentTupleViewTest: chains of appends, a projection in another order, and one more."""
    seen = []

    def look(tup):
        seen.append({name: tup[name] for name in tup.fields})

    def complete(stream):
        five = stream.each("a", lambda _: [(4, 5)], ["d", "e"])
        five.each("a", lambda _: [7], "g").peek(look)
        six = stream.each("a", lambda _: [4], "d").each("a", lambda _: [(5, 6)], ["e", "f"])
        return six.project(["a", "f", "b"]).each("a", lambda _: [8], "c").peek(look)

    assert Rows([[1, 2, 3]], fields=["a", "b", "c"]).run(complete) == [(1, 6, 2, 8)]
    six, four = sorted(seen, key=len, reverse=True)
    assert list(six.items()) == [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("g", 7)]
    assert list(four.items()) == [("a", 1), ("f", 6), ("b", 2), ("c", 8)]
