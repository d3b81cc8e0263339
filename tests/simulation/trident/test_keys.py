"""Odd keys of groups and states meet as docs/keys.md says: NaN, lists, tuples, and what else a dict does not hold."""

from __future__ import annotations

import math
from decimal import Decimal
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea import EncodingError
from ardea.protocol.keys import encode_key
from ardea.testing import run
from ardea.trident import (
    CachedMap,
    Count,
    FixedBatchSpout,
    FolderState,
    GroupedMultiReducer,
    LRUMemoryMapState,
    MapGet,
    MemoryMap,
    MemoryMapState,
    NonTransactionalMap,
    OpaqueMap,
    ReducerAggregator,
    SqliteState,
    TransactionalMap,
    TridentTopology,
)
from ardea.trident.keys import as_keys
from ardea.trident.memory import LRUMemoryMap

from .parts import AT_ONCE

NAN, LIST = (math.nan,), ((1, (2, "x")),)
KEYS = {NAN: [float("nan"), Decimal("NaN"), np.float32("nan")], LIST: [[1, [2, "x"]], (1, (2, "x")), (1.0, [2, "x"])]}
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 1.0, -0.0, math.inf, float("nan"), Decimal("NaN"), Decimal("0.5"), Decimal(1)]),
    st.sampled_from(["", "a", b"a", bytearray(b"a"), memoryview(b"a"), UUID(int=1), np.int64(1), np.float64("nan")]),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner), max_leaves=4)


class Rows(ReducerAggregator):
    def init(self):
        return 0

    def reduce(self, current, tup):
        return current + 1


class Counted(GroupedMultiReducer):
    def init(self, collector, group):
        return [0]

    def execute(self, state, stream, group, tup, collector):
        state[0] += 1

    def complete(self, state, group, collector):
        collector.emit([group["key"], state[0]])


def counts_of(topology, stream):
    """Rows of a key and a count, as the last operation gives them."""
    seen = []
    stream.peek(lambda tup: seen.append((*as_keys([(tup[0],)])[0], tup[-1])))
    result = run(topology.build(), config=AT_ONCE)
    assert (result.state, result.record.errors) == ("SUCCEEDED", [])
    return seen


def nine(key):
    """A stream of nine rows of one key, three a batch, and its topology."""
    topology = TridentTopology("odd")
    return topology, topology.new_stream("rows", FixedBatchSpout(["key", "n"], [[k, 1] for k in KEYS[key] * 3], 3))


@given(st.lists(VALUES, min_size=2, max_size=5))
def test_a_dict_tells_keys_apart_as_fields_grouping_does(values):
    keys = as_keys([(value,) for value in values])
    for key, value in zip(keys, values, strict=True):
        found = {key}
        for other, second in zip(keys, values, strict=True):
            assert (other in found) == (encode_key([value]) == encode_key([second])), (key, other)


def test_keys_that_are_none():
    with pytest.raises(EncodingError, match="a value of type dict cannot be part of a key"):
        as_keys([({},)])


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("aggregator", [Count(), Rows()], ids=["combiner", "reducer"])
def test_every_state_counts_them(key, aggregator, tmp_path):
    states = [
        SqliteState.opaque(tmp_path / "opaque"),
        SqliteState.transactional(tmp_path / "transactional"),
        SqliteState.non_transactional(tmp_path / "plain", cache=10),
        FolderState.opaque(str(tmp_path / "folder")),
    ]
    topology, stream = nine(key)
    memory = [MemoryMapState(), MemoryMapState.transactional(), LRUMemoryMapState(9)]
    for state in [*states, *memory]:
        stream.group_by("key").persistent_aggregate(state, aggregator, "count")
    result = run(topology.build(), config=AT_ONCE)
    assert (result.state, result.record.errors) == ("SUCCEEDED", [])
    assert [dict(state.items()) for state in states] == [{key: 9}] * len(states)
    assert [state.values() for state in memory] == [{key: 9}] * len(memory)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("fields", ["key", ["key", "n"]], ids=str)
@pytest.mark.parametrize("aggregator", [Count(), Rows()], ids=["combiner", "reducer"])
def test_a_batch_has_one_group_of_them(key, fields, aggregator):
    topology, stream = nine(key)
    assert counts_of(topology, stream.group_by(fields).aggregate(aggregator, "count")) == [(key[0], 3)] * 3


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_streams_meet_by_them(key):
    topology, stream = nine(key)
    both = [stream.group_by("key"), stream.group_by("key")]
    assert counts_of(topology, topology.multi_reduce(both, Counted(), ["key", "count"])) == [(key[0], 6)] * 3


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_query_finds_them(key, tmp_path):
    state = SqliteState.opaque(tmp_path / "counts").make_state({}, 0, 1)
    state.begin_commit(1)
    state.multi_update([key], [lambda _: 9])
    state.commit(1)
    assert MapGet().batch_retrieve(state, [(value,) for value in KEYS[key]]) == [9] * 3


@pytest.mark.parametrize("make", [NonTransactionalMap, TransactionalMap, OpaqueMap])
@pytest.mark.parametrize("backing", [MemoryMap, lambda: LRUMemoryMap(9), lambda: CachedMap(MemoryMap(), 9)])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_an_updater_of_the_authors_counts_them(make, backing, key):
    state = make(backing())
    for txid in (1, 2):
        state.begin_commit(txid)
        for value in KEYS[key]:
            state.multi_update([(value,)], [lambda stored: (stored or 0) + 1])
        state.commit(txid)
    assert state.multi_get([(KEYS[key][0],)]) == [6]
