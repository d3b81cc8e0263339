"""Many rows at once do what the same rows do one by one."""

from __future__ import annotations

import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.backends.memory import KeyedTable, Lower
from ardea.errors import UserError
from ardea.protocol.dict_keys import as_key
from ardea.snapshots.key_groups import Keys

ALL = Keys("count", 0, 1, 720, 1)
TWO = Keys("count", 0, 1, 720, 2)
NUMBERS = st.none() | st.integers(-100, 100)
ROWS = st.one_of(
    st.lists(st.tuples(st.none() | st.sampled_from("abc"), NUMBERS)),
    st.lists(st.tuples(st.sampled_from([0.0, -0.0, 1.5, math.nan]), NUMBERS)),
    st.lists(st.tuples(st.lists(st.integers(0, 1), max_size=1), NUMBERS)),
)
FORMS = st.sampled_from(
    [list, pa.array, lambda values: pa.chunked_array([values[:2], values[2:]], pa.array(values).type)]
)


def table(make=lambda: 0, keys=ALL):
    return KeyedTable(make, Lower("t", keys))


def one_by_one(rows, start, together):
    found = dict(start)
    for key, value in rows:
        together(found, as_key(key), value)
    return found


def add(found, key, value):
    if value is not None:
        found[key] = found.get(key, 0) + value


def count(found, key, value):
    add(found, key, None if value is None else 1)


def least(found, key, value):
    if value is not None:
        found[key] = min(found.get(key, value), value)


def most(found, key, value):
    if value is not None:
        found[key] = max(found.get(key, value), value)


WAYS = st.sampled_from([("sum", add), ("count", count), ("min", least), ("max", most)])


@given(ROWS, FORMS, FORMS, WAYS)
def test_a_fold_is_that_of_its_rows_and_returns_the_new_values(rows, keys_as, values_as, way):
    fn, together = way
    keys, values = keys_as([key for key, _ in rows]), values_as([value for _, value in rows])
    words = table()
    words.update({"a": 7, 1.5: -3})
    expected = one_by_one(rows, words.copy(), together)
    new = words.fold(keys, values, fn)
    assert words.copy() == expected
    distinct = list(dict.fromkeys(as_key(key) for key, _ in rows))
    assert list(new) == distinct
    assert new == {key: words[key] for key in distinct}


@given(ROWS, FORMS, FORMS)
def test_a_function_is_called_once_a_key_with_the_values_of_its_rows_in_order(rows, keys_as, values_as):
    calls = []

    def join(current, values):
        values = values.to_pylist() if isinstance(values, pa.Array) else values
        calls.append(values)
        return [*current, *values]

    words = table(list)
    words.fold(keys_as([key for key, _ in rows]), values_as([value for _, value in rows]), join)
    expected = {}
    for key, value in rows:
        expected.setdefault(as_key(key), []).append(value)
    assert words.copy() == expected
    assert calls == list(expected.values())


@given(ROWS, FORMS, FORMS)
def test_put_and_get_are_those_of_the_rows(rows, keys_as, values_as):
    keys = keys_as([key for key, _ in rows])
    words = table(lambda: None)
    words.put_many(keys, values_as([value for _, value in rows]))
    expected = {as_key(key): value for key, value in rows}
    assert words.copy() == expected
    found = words.get_many(keys)
    assert isinstance(found, list | pa.Array)
    assert isinstance(found, list) == isinstance(keys, list)
    assert (found if isinstance(found, list) else found.to_pylist()) == [expected[as_key(key)] for key, _ in rows]
    words.freeze()
    assert table(lambda: 5).get_many(["a", "b", "a"]) == [5, 5, 5]


def test_a_nan_that_was_written_again_is_read_as_it_is_now():
    counts = table()
    counts[math.nan] = 1
    counts[float("nan")] = 2
    assert counts.get_many([float("nan")]) == [2]


@pytest.mark.parametrize("values_as", [list, pa.array])
def test_a_nan_gives_way_to_any_number(values_as):
    lows, values = table(lambda: None), [math.nan, 2.0, math.nan, 1.0]
    assert lows.fold(list("aaaa"), values_as(values), "min") == {"a": 1.0}
    lows["b"] = math.nan
    assert lows.fold(["b"], values_as([3.0]), "min") == {"b": 3.0}


def test_keys_of_several_fields_are_columns_or_tuples():
    words = table(keys=TWO)
    users, pages = pa.array(["a", "b", "a"]), pa.array([1, 2, 1])
    assert words.fold((users, pages), None, "count") == {("a", 1): 2, ("b", 2): 1}
    assert words.fold([("a", 1), ("b", 2)], [1, 1], "sum") == {("a", 1): 3, ("b", 2): 2}
    assert words.get_many((users, pages)).to_pylist() == [3, 2, 3]


def test_sums_of_any_type_and_a_default_of_none():
    words = table(lambda: None)
    words.fold(pa.array(["a", "a"]), pa.array([Decimal("1.5"), Decimal(2)]), "sum")
    assert words.copy() == {"a": Decimal("3.5")}


def test_dictionary_columns_are_their_values():
    words = table()
    words.fold(pa.array(["a", "b", "a"]).dictionary_encode(), None, "count")
    assert words.copy() == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("values", "fn"),
    [
        (pa.array([2**62] * 3), "sum"),
        (pa.array([-(2**62)] * 3), "sum"),
        (pa.array([2**63] * 3, pa.uint64()), "sum"),
        (pa.array([Decimal("9" * 38)] * 2, pa.decimal128(38, 0)), "sum"),
        (pa.array([100, None, 100], pa.int8()), "sum"),
        (pa.array([0.5, 0.25], pa.float16()), "sum"),
        (pa.array(["b", "a"]).dictionary_encode(), "min"),
    ],
    ids=lambda each: str(getattr(each, "type", each)),
)
def test_a_column_that_arrow_cannot_add_up_is_folded_as_its_values_are(values, fn):
    by_column, by_value = table(lambda: None), table(lambda: None)
    by_column.fold(pa.array(["k"] * len(values)), values, fn)
    by_value.fold(["k"] * len(values), values.to_pylist(), fn)
    assert by_column.copy() == by_value.copy()


@pytest.mark.parametrize("keys_as", [list, pa.array])
def test_a_key_of_another_task_is_named_once_a_batch_and_nothing_is_written(keys_as):
    one = Keys("count", 0, 2, 720, 1)
    mine = [key for key in "abcdefgh" if one.group(key) in one.owned]
    other = next(key for key in "abcdefgh" if one.group(key) not in one.owned)
    words = table(keys=one)
    words.put_many(keys_as(mine), keys_as(mine))
    for use in (
        lambda keys: words.put_many(keys, range(len(keys))),
        lambda keys: words.fold(keys, None, "count"),
        words.get_many,
    ):
        with pytest.raises(UserError, match=f"state 't': the key '{other}' is one of count-1"):
            use(keys_as([*mine, other]))
    assert set(words) == set(mine)


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda words: words.put_many(["a", "b"], [1]), "2 keys and 1 values"),
        (lambda words: words.fold(["a"], None, "sum"), "can only count"),
        (lambda words: words.fold(["a"], [1], "mean"), "fold.. by 'mean'"),
        (lambda words: words.fold([{}], [1], "sum"), "a value of type dict cannot be part of a key"),
    ],
)
def test_what_cannot_be_done_is_said(use, says):
    with pytest.raises(UserError, match=says):
        use(table())


@pytest.mark.parametrize("value", [(1, "a"), 2**63, "\ud800"], ids=["types", "size", "surrogate"])
def test_values_that_are_no_columns_come_as_a_list(value):
    words = table(lambda: value)
    assert words.get_many(["x"]) == [value]
    with pytest.raises(UserError, match="state 't': Arrow has no type for these values") as caught:
        words.get_many(pa.array(["x"]))
    assert "to_pylist" in caught.value.hint
