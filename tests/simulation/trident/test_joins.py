"""Joins and reducers of several streams, within batches."""

from __future__ import annotations

import pytest

from ardea import TopologyError
from ardea.testing import run
from ardea.trident import FixedBatchSpout, GroupedMultiReducer, JoinFields, JoinType, MultiReducer, TridentTopology

from .parts import AT_ONCE

INNER, OUTER = JoinType.INNER, JoinType.OUTER
PEOPLE = [["ann", 1], ["bob", 2], ["cid", 3], ["dan", 1]]
PETS = [[1, "cat"], [1, "dog"], [4, "eel"]]
TOWNS = [["x", 1, 7], ["y", 4, 8]]


def joined(rows, operations):
    """``rows``: of each stream, all in one batch; what comes out, sorted."""
    topology, seen = TridentTopology("join"), []
    fields = {"people": ["name", "id"], "pets": ["owner", "pet"], "towns": ["town", "who", "zip"]}
    streams = [
        topology.new_stream(name, FixedBatchSpout(fields[name], part, max(1, len(part)))).shuffle()
        for name, part in rows.items()
    ]
    end = operations(topology, streams)
    end.peek(lambda tup: seen.append(tuple(tup))).parallelism_hint(3)
    result = run(topology.build(), containers=2, config=AT_ONCE)
    assert (result.state, result.record.errors) == ("SUCCEEDED", [])
    return sorted(seen, key=str)


TWO = {"people": PEOPLE, "pets": PETS}
INSIDE = [(1, "ann", "cat"), (1, "ann", "dog"), (1, "dan", "cat"), (1, "dan", "dog")]
CASES = {
    "inner": (INNER, INSIDE),
    "outer": (OUTER, [*INSIDE, (2, "bob", None), (3, "cid", None), (4, None, "eel")]),
    "left": ([INNER, OUTER], [*INSIDE, (2, "bob", None), (3, "cid", None)]),
    "right": ([OUTER, INNER], [*INSIDE, (4, None, "eel")]),
}


@pytest.mark.parametrize("case", CASES)
def test_joins_of_two_streams(case):
    types, expected = CASES[case]
    seen = joined(TWO, lambda t, s: t.join(s, ["id", "owner"], ["id", "name", "pet"], types))
    assert seen == sorted(expected, key=str)


def test_a_join_that_keeps_all_fields():
    """A stream that has nothing under a key gives None for all its fields, the key's too."""
    names = ["name", "id", "owner", "pet"]
    seen = joined(TWO, lambda t, s: t.join(s, ["id", "owner"], names, [OUTER, INNER], JoinFields.PRESERVE))
    expected = [(name, key, key, pet) for key, name, pet in INSIDE]
    assert seen == sorted([*expected, (None, None, 4, "eel")], key=str)


def test_a_join_of_three_streams():
    rows = {**TWO, "towns": TOWNS}
    names = ["id", "name", "pet", "town", "zip"]
    seen = joined(rows, lambda t, s: t.join(s, ["id", "owner", "who"], names, [OUTER, INNER, INNER]))
    assert seen == sorted([(*row, "x", 7) for row in INSIDE] + [(4, None, "eel", "y", 8)], key=str)


def test_nothing_joins_across_batches():
    topology, seen = TridentTopology("apart"), []
    left = topology.new_stream("left", FixedBatchSpout(["k", "a"], [[1, "x"], [2, "y"]], 1))
    right = topology.new_stream("right", FixedBatchSpout(["k", "b"], [[2, "p"], [2, "q"]], 1))
    topology.join([left, right], ["k", "k"], ["k", "a", "b"]).peek(lambda tup: seen.append(tuple(tup)))
    assert run(topology.build(), config=AT_ONCE).state == "SUCCEEDED"
    assert seen == [(2, "y", "q")]


class Sizes(MultiReducer):
    """How many tuples each of two streams has in this task."""

    def init(self, collector):
        return [0, 0]

    def execute(self, state, stream, tup, collector):
        assert tup.fields == (("name",), ("owner",))[stream]
        state[stream] += 1

    def complete(self, state, collector):
        collector.emit(state)


class FirstOfEach(GroupedMultiReducer):
    """Emits as soon as a key has been in both streams."""

    def init(self, collector, group):
        return {}

    def execute(self, state, stream, group, tup, collector):
        state.setdefault(stream, tuple(tup))
        if len(state) == 2:
            collector.emit([*group, "both"])
            state[2] = None

    def complete(self, state, group, collector):
        if 2 not in state:
            collector.emit([*group, "one"])


def test_reducers_of_several_streams():
    seen = joined(TWO, lambda t, s: t.multi_reduce([x.global_() for x in s], Sizes(), ["a", "b"], ["name", "owner"]))
    assert seen == [(0, 0), (0, 0), (4, 3)]
    seen = joined(
        TWO, lambda t, s: t.multi_reduce([s[0].group_by("id"), s[1].group_by("owner")], FirstOfEach(), ["k", "x"])
    )
    assert seen == [(1, "both"), (2, "one"), (3, "one"), (4, "one")]


MISTAKES = {
    "gives 3 fields": lambda t, a, b: t.join([a, b], ["k", "k"], ["k", "a"]),
    "two or more": lambda t, a, b: t.join([a], ["k"], ["k", "a"]),
    "has 1 types": lambda t, a, b: t.join([a, b], ["k", "k"], ["k", "a", "b"], [INNER]),
    "different numbers": lambda t, a, b: t.join([a, b], ["k", ["k", "b"]], ["k", "a", "b"]),
    "non-existent field: 'x'": lambda t, a, b: t.join([a, b], ["x", "k"], ["k", "a", "b"]),
    "plain streams and a MultiReducer": lambda t, a, b: t.multi_reduce([a, b], FirstOfEach(), ["x"]),
    "has inputs for 1": lambda t, a, b: t.multi_reduce([a, b], Sizes(), ["x"], ["k"]),
    "of no stream": lambda t, a, b: t.multi_reduce([], Sizes(), ["x"]),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes(message):
    topology = TridentTopology("wrong")
    left = topology.new_stream("left", FixedBatchSpout(["k", "a"], [], 1))
    right = topology.new_stream("right", FixedBatchSpout(["k", "b"], [], 1))
    with pytest.raises(TopologyError, match=message):
        MISTAKES[message](topology, left, right)
