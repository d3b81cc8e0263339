"""SQLite: values of all types survive, and only the owner of a partition writes."""

from __future__ import annotations

import datetime as dt
import sqlite3
from contextlib import closing
from decimal import Decimal

import pytest

from ardea import FailedException
from ardea.errors import StateError
from ardea.testing import Cluster
from ardea.trident import FixedBatchSpout, MapGet, SqliteState, TridentTopology

from .parts import AT_ONCE

KINDS = ["opaque", "transactional", "non_transactional"]
NOON = dt.datetime(2020, 2, 3, 12, tzinfo=dt.UTC)
VALUES = {("a", 1): 5, ("b", None): "text", (b"c", 2.5): [1, "x"], (NOON,): Decimal("1.10")}


@pytest.fixture
def opened():
    """Closes what was made."""
    states = []
    yield lambda factory, index=0, number=2: states.append(factory.make_state({}, index, number)) or states[-1]
    for state in states:
        state.close()


def write(state, txid, values):
    state.begin_commit(txid)
    state.multi_put(list(values), list(values.values()))
    state.commit(txid)


@pytest.mark.parametrize("kind", KINDS)
def test_values_outlive_their_task(tmp_path, opened, kind):
    factory = getattr(SqliteState, kind)(tmp_path / "deep" / "state.sqlite")
    assert list(factory.items()) == []
    write(opened(factory), 1, VALUES)
    again = opened(factory)
    assert again.multi_get([*VALUES, ("missing",)]) == [*VALUES.values(), None]
    assert dict(factory.items()) == VALUES


def test_equal_keys_are_one_entry(tmp_path, opened):
    factory = SqliteState.opaque(tmp_path / "state.sqlite")
    write(opened(factory), 1, {(1,): "int"})
    assert opened(factory, 1).multi_get([(1.0,), (True,)]) == ["int", "int"]


def test_many_keys(tmp_path, opened):
    factory = SqliteState.transactional(tmp_path / "state.sqlite")
    many = {(number,): number for number in range(1801)}
    write(opened(factory), 1, many)
    assert opened(factory).multi_get(list(many)) == list(many.values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_that_was_replaced_writes_nothing(tmp_path, opened, kind):
    """Also not if the replacement has committed nothing yet; other partitions are not concerned."""
    factory = getattr(SqliteState, kind)(tmp_path / "state.sqlite")
    frozen, other = opened(factory), opened(factory, 1)
    write(frozen, 1, {("a",): 1})
    replacement = opened(factory)
    with pytest.raises(FailedException, match=r"partition 0 of .* belongs to another process now"):
        write(frozen, 2, {("a",): 2, ("b",): 2})
    write(other, 2, {("c",): 3})
    write(replacement, 2, {("d",): 4})
    assert dict(factory.items()) == {("a",): 1, ("c",): 3, ("d",): 4}


def test_a_topology_that_only_asks_leaves_the_file_to_its_owner(tmp_path, opened):
    factory = SqliteState.opaque(tmp_path / "state.sqlite", cache=5)
    owner, seen = opened(factory), []
    write(owner, 1, {("a",): 1})
    topology = TridentTopology("asks")
    words = topology.new_stream("words", FixedBatchSpout(["word"], [["a"], ["b"]], 2)).parallelism_hint(3)
    asked = words.partition_by("word").state_query(topology.new_static_state(factory), "word", MapGet(), "count")
    asked.parallelism_hint(3).peek(lambda tup: seen.append(tuple(tup)))
    with Cluster(topology, config=AT_ONCE) as cluster:
        cluster.run_until(lambda: cluster.over)
        assert cluster.state == "SUCCEEDED"
    assert sorted(seen) == [("a", 1), ("b", None)]
    write(owner, 2, {("a",): 2})
    assert dict(factory.items()) == {("a",): 2}


def test_a_write_that_fails_leaves_nothing(tmp_path, opened):
    factory = SqliteState.opaque(tmp_path / "state.sqlite")
    state = opened(factory)
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as blocked:
        blocked.execute(
            "CREATE TRIGGER no BEFORE INSERT ON entries WHEN NEW.txid = 2 BEGIN SELECT RAISE(FAIL, 'x'); END"
        )
    write(state, 1, {("a",): 1})
    with pytest.raises(StateError, match=r"cannot be written.*will be repeated"):
        write(state, 2, {("a",): 2})
    assert dict(factory.items()) == {("a",): 1}


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_with_another_number_of_partitions_all_former_tasks_are_replaced(tmp_path, opened, kind, number):
    """Whatever their index: their keys may be in any partition now."""
    factory = getattr(SqliteState, kind)(tmp_path / "state.sqlite")
    frozen = [opened(factory, index) for index in (0, 1)]
    last = opened(factory, number - 1, number)
    for former in frozen:
        with pytest.raises(FailedException, match="belongs to another process now"):
            write(former, 2, {("a",): 2})
    write(last, 2, {("a",): 3})
    assert dict(factory.items()) == {("a",): 3}


@pytest.mark.parametrize("cache", [0, 9])
@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (3, 2)])
def test_what_an_attempt_wrote_is_undone_though_keys_have_changed_their_partitions(
    tmp_path, opened, before, after, cache
):
    """The last partition had begun to commit; in the repeat, another task has one of its keys, and nobody the other."""
    factory = SqliteState.opaque(tmp_path / "state.sqlite", cache=cache)
    former = opened(factory, before - 1, before)
    write(former, 1, {("kept",): 1, ("gone",): 1})
    former.begin_commit(2)
    former.multi_put([("kept",), ("gone",), ("new",)], [100, 100, 100])
    for _ in range(2):  # the second time in their next lives
        tasks = [opened(factory, index, after) for index in range(after)]
        assert tasks[-1].multi_get([("gone",)])  # a query, which a cache remembers
        for task in tasks:
            task.begin_commit(2)
        tasks[-1].multi_put([("kept",)], [5])
        for task in tasks:
            task.commit(2)
        assert dict(factory.items()) == {("kept",): 5, ("gone",): 1, ("new",): None}
    write(tasks[-1], 3, {("kept",): 6})
    tasks[-1].begin_commit(4)
    assert tasks[-1].multi_update([("gone",)], [lambda stored: stored + 1]) == [2]
