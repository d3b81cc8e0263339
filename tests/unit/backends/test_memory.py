"""Keyed state in memory is a dict to its author, whatever is frozen, stored, merged and put back in between."""

from __future__ import annotations

import math
import tempfile
from collections.abc import MutableMapping
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ardea.backends import memory
from ardea.backends.bases import MemoryBackend
from ardea.backends.chosen import Scratch
from ardea.backends.memory import KeyedTable, Lower
from ardea.backends.rocksdb import RocksBackend
from ardea.errors import EncodingError, UserError
from ardea.protocol.dict_keys import as_key
from ardea.snapshots.key_groups import Keys
from ardea.snapshots.pieces import HEAD, Kind
from ardea.snapshots.state_file import Piece, decode_state, encode_piece
from tests.sizes import size

ONE = st.sampled_from([1, 1.0, True, Decimal("1.00"), -0.0, 0, Decimal(0)])
NANS = st.builds(float, st.just("nan")) | st.builds(Decimal, st.just("nan"))
"""Another object each time."""
KEYS = st.one_of(st.sampled_from(["a", None, ("a", (1, "b"))]), ONE, NANS, st.tuples(st.just("a"), NANS))
LISTS = st.sampled_from([pa.scalar(1), np.int64(1), ["a", [1, "b"]], [1.0, bytearray(b"x")], ("a", [True, "b"])])
"""Which are no keys of a dict, or none that it finds again."""
SMALL = st.integers(-5, 5)
VALUES = st.one_of(SMALL, st.text(max_size=2), st.none(), st.tuples(SMALL, st.lists(SMALL)))


ALL = Keys("count", 0, 1, 720, 1)


def table(make=lambda: 0, keys=ALL):
    return KeyedTable(make, Lower("t", keys))


class Kept(RuleBasedStateMachine):
    """``plain`` is what the author has; ``at`` what he had at each barrier whose file lies in the store."""

    made = MemoryBackend

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="ardea-kept-")
        self.scratch, self.backend = Scratch(self.made, Path(self.folder.name) / "scratch"), None
        self.plain, self.files, self.at = {}, [], {}
        self.writing = None
        self.reset()

    def teardown(self):
        self.backend.close()
        self.folder.cleanup()

    def reset(self):
        if self.backend is not None:
            self.backend.close()
        self.backend = self.scratch.open()
        self.lower = Lower("t", ALL, base=self.backend.base("t", ALL, None, lambda: 0.0))
        self.table = KeyedTable(lambda: 0, self.lower)

    @rule(key=KEYS, value=VALUES)
    def put(self, key, value):
        self.table[key] = value
        self.plain[as_key(key)] = value

    @rule(key=KEYS, value=st.integers())
    def appends(self, key, value):
        if isinstance(self.plain.get(as_key(key)), list):
            self.table[key].append(value)
            self.plain[as_key(key)].append(value)
        else:
            self.table[key], self.plain[as_key(key)] = [value], [value]

    @rule(key=KEYS | LISTS)
    def deletes(self, key):
        if as_key(key) in self.plain:
            del self.table[key]
            del self.plain[as_key(key)]
        else:
            with pytest.raises(KeyError):
                del self.table[key]

    @rule(key=KEYS)
    def reads(self, key):
        assert self.table[key] == self.plain.get(as_key(key), 0)

    @rule(key=KEYS | LISTS)
    def other_ways_to_read(self, key):
        assert self.table.get(key, "none") == self.plain.get(as_key(key), "none")
        assert (key in self.table) == (as_key(key) in self.plain)

    @rule(key=KEYS | LISTS, value=st.integers())
    def other_ways_to_write(self, key, value):
        assert self.table.pop(key, None) == self.plain.pop(as_key(key), None)
        assert self.table.setdefault(key, value) == self.plain.setdefault(as_key(key), value)
        self.table |= {"a": value}
        self.plain |= {"a": value}

    @rule(written=KEYS, value=VALUES, key=KEYS | st.sampled_from([math.nan, ("a", math.nan)]))
    def reads_at_once_what_was_written(self, written, value, key):
        self.put(written, value)
        self.other_ways_to_read(key)

    @rule(values=st.dictionaries(KEYS, VALUES, max_size=4), key=KEYS)
    def many_at_once(self, values, key):
        self.table.update(values)
        self.plain.update((as_key(key), value) for key, value in values.items())
        assert self.table[key] == self.plain.get(as_key(key), 0)

    @rule()
    def clears(self):
        self.table.clear()
        self.plain.clear()

    @precondition(lambda self: self.writing is None)
    @rule(full=st.booleans())
    def barrier(self, full):
        self.table.freeze()
        self.writing = (full or not self.files), self.lower.pieces(full=full or not self.files), self.copy()

    def copy(self):
        return {key: list(value) if isinstance(value, list) else value for key, value in self.plain.items()}

    @precondition(lambda self: self.writing is not None)
    @rule(works=st.booleans())
    def written(self, works):
        (full, pieces, was), self.writing = self.writing, None
        if works:
            content = HEAD + b"".join(map(encode_piece, pieces))
            self.files = [content] if full else [*self.files, content]
            self.at = was
            self.lower.stored()

    @rule()
    def settles(self):
        self.lower.settle()

    @precondition(lambda self: self.files)
    @rule()
    def goes_back(self):
        self.reset()
        self.writing = None
        for content in self.files:
            for piece in decode_state(content, "f"):
                self.lower.load(piece)
        self.plain = self.at
        self.at = self.copy()

    @invariant()
    def is_the_dict(self):
        assert len(self.table) == len(self.plain)
        assert self.table == self.plain
        assert set(self.table) == self.plain.keys()
        assert {self.lower.keys.group(key) for key in self.table} == {self.lower.keys.group(key) for key in self.plain}
        assert dict(self.table) == {**self.table} == self.plain
        assert all(type(value) is type(self.plain[key]) for key, value in self.table.items())


Kept.TestCase.settings = settings(max_examples=size(150, 5000), stateful_step_count=40, deadline=None)


class TestKept(Kept.TestCase):
    @pytest.fixture(autouse=True)
    def _small_pieces(self, monkeypatch):
        monkeypatch.setattr(memory, "SLICE", 2)


class KeptInRocks(Kept):
    made = RocksBackend


KeptInRocks.TestCase.settings = settings(max_examples=size(15, 1000), stateful_step_count=40, deadline=None)


class TestKeptInRocks(KeptInRocks.TestCase):
    @pytest.fixture(autouse=True)
    def _small_pieces(self, monkeypatch):
        monkeypatch.setattr(memory, "SLICE", 2)


def test_it_is_a_mapping_and_says_what_it_holds():
    words = table()
    words["a"] = 1
    words.freeze()
    words["b"] = 2
    assert isinstance(words, MutableMapping)
    assert sorted(repr(words)) == sorted("{'a': 1, 'b': 2}")
    assert (words | {"c": 3}, {"a": 0} | words) == ({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2})
    assert sorted([words.popitem(), words.popitem()]) == [("a", 1), ("b", 2)]
    with pytest.raises(KeyError):
        words.popitem()
    with pytest.raises(TypeError):
        reversed(words)


def test_while_it_is_gone_through_values_may_be_written():
    words = table()
    words.update(dict.fromkeys("abc", 1))
    words.freeze()
    words["d"] = 1
    for key in words:
        words[key] += 1
    assert words == dict.fromkeys("abcd", 2)


@pytest.mark.parametrize(("stored", "fresh"), [("abcdef", ""), ("abc", "def"), ("", "abcdef")])
def test_while_it_is_gone_through_keys_may_be_deleted(stored, fresh):
    words = table()
    words.update(dict.fromkeys(stored, 1))
    words.freeze()
    words.update(dict.fromkeys(fresh, 1))
    pairs = dict(zip("abcdef", "defabc", strict=True))
    seen = []
    for key, value in words.items():
        seen.append((key, value))
        del words[key], words[pairs[key]]
    assert not words
    assert len(seen) == 3
    assert all(value == 1 for _, value in seen), "a key that was gone"


def test_reading_a_number_changes_nothing_and_reading_a_list_may():
    words = table()
    words.update({"number": 1, "list": [1]})
    words.freeze()
    assert (words["number"], words["list"], words["missing"]) == (1, [1], 0)
    assert dict.keys(words) == {"list"}


def test_a_key_that_comes_back_before_its_deletion_was_stored_is_there():
    lower = Lower("t", ALL)
    words = KeyedTable(lambda: 0, lower)
    words["a"] = 1
    words.freeze()
    lower.stored()
    del words["a"]
    words.freeze()  # and is not stored
    words["a"] = 2
    words.freeze()
    group = ALL.group("a")
    assert list(lower.pieces(full=False)) == [Piece("t", Kind.PUT, range(group, group + 1), [("a", 2)])]


def test_a_key_of_another_task_is_refused_at_its_first_read_and_else_when_it_is_stored():
    one = Keys("count", 0, 2, 720, 1)
    mine = next(key for key in "abcdefgh" if one.group(key) in one.owned)
    other = next(key for key in "abcdefgh" if one.group(key) not in one.owned)
    words = table(keys=one)
    says = f"state 't': the key '{other}' is one of count-1, and this is count-0"
    assert words[mine] == 0
    with pytest.raises(UserError, match=says):
        words[other]
    words.update({mine: 1, other: 1})
    words.freeze()
    with pytest.raises(UserError, match=says):
        list(words.lower.pieces(full=True))


@given(st.dictionaries(st.tuples(SMALL, SMALL), VALUES, max_size=60), st.integers(1, 7), st.integers(1, 7), st.data())
def test_each_task_loads_its_own_keys_however_many_there_were_before(content, before, after, data):
    """From a base and a delta of each former task."""
    gone = set(data.draw(st.lists(st.sampled_from(sorted(content)), max_size=5))) if content else set()
    files = []
    for index in range(before):
        words = table(keys=Keys("count", index, before, 12, 2))
        own = {key: value for key, value in content.items() if words.lower.keys.group(key) in words.lower.keys.owned}
        words.update(own)
        for full in (True, False):
            words.freeze()
            files += [HEAD + b"".join(map(encode_piece, words.lower.pieces(full=full)))]
            words.lower.stored()
            for key in gone & set(words):
                del words[key]
    found = {}
    for index in range(after):
        words = table(keys=Keys("count", index, after, 12, 2))
        for file in files:
            for piece in decode_state(file, "f", words.lower.keys.owned):
                words.lower.load(piece)
        assert not found.keys() & set(words), "a key has two owners"
        assert all(words.lower.keys.group(key) in words.lower.keys.owned for key in words)
        found |= words.copy()
    assert found == {key: value for key, value in content.items() if key not in gone}


@pytest.mark.parametrize(
    "use",
    [
        lambda words, key: words[key],
        lambda words, key: key in words,
        lambda words, key: words.get(key),
        lambda words, key: words.pop(key, None),
        lambda words, key: words.setdefault(key, 1),
    ],
    ids=["[]", "in", "get", "pop", "setdefault"],
)
def test_a_key_of_another_task_is_not_said_to_be_missing(use):
    words = table(keys=Keys("count", 1, 2, 24, 1))
    mine = {n: words.lower.keys.group(n) >= 12 for n in range(20)}
    for key, is_mine in mine.items():
        if is_mine:
            use(words, key)
        else:
            with pytest.raises(UserError, match=f"the key {key} is one of count-0"):
                use(words, key)


def test_pieces_are_cut_between_groups(monkeypatch):
    monkeypatch.setattr(memory, "SLICE", 10)
    words = table(keys=Keys("count", 1, 2, 24, 1))
    words.update({n: n for n in range(100) if words.lower.keys.group(n) >= 12})
    words.freeze()
    pieces = list(words.lower.pieces(full=True))
    assert [piece.groups.start for piece in pieces] == [12, *(piece.groups.stop for piece in pieces[:-1])]
    for piece in pieces:
        assert {words.lower.keys.group(key) for key, _ in piece.rows} <= set(piece.groups)
    assert all(len(piece.rows) >= 10 for piece in pieces[:-1])


def test_a_nan_is_one_key_also_before_the_next_barrier_and_in_a_tuple():
    words = table(keys=Keys("count", 0, 1, 720, 2))
    for _ in range(3):
        words["a", float("nan")] += 1
        words[float("nan")] += 1
    assert (words["a", float("nan")], words[math.nan], len(words)) == (3, 3, 2)
    words.freeze()
    words["a", Decimal("nan")] += 1
    assert words.copy() == {("a", math.nan): 4, math.nan: 3}


@pytest.mark.parametrize(("form", "another"), [(math.nan, float("nan")), (("a", (math.nan,)), ("a", (float("nan"),)))])
def test_the_nan_that_items_give_finds_what_was_written_under_another(form, another):
    words = table(keys=Keys("count", 0, 1, 720, 2))
    words[another] = 5
    assert form in words
    words[form] += 1
    assert words.copy() == {form: 6}

    words = table(keys=Keys("count", 0, 1, 720, 2))
    words[another] = 5
    words[form] += 1
    assert (words.pop(form, "gone"), len(words)) == (6, 0)


def test_a_scalar_of_numpy_is_its_number():
    words = table()
    words[np.int64(1)] += 1
    words[1] += 1
    words.freeze()
    words[np.int64(1)] += 1
    assert words.copy() == {1: 3}
    assert {type(key) for key in words} == {int}


def test_a_list_is_the_tuple_of_its_items_everywhere_but_in_brackets():
    words = table()
    words[1, 2] = 5
    assert (words.get([1, 2]), [1, 2] in words, words.pop([1, 2]), words.setdefault([3], 1)) == (5, True, 5, 1)
    assert words.copy() == {(3,): 1}
    with pytest.raises(TypeError, match="unhashable"):
        words[[3]]


def test_what_can_be_no_key_is_refused_and_nothing_is_lost():
    words = table()
    words.update({"a": 1, float("nan"): 2, np.longdouble(1): 3})
    with pytest.raises(EncodingError):
        len(words)
    assert dict.__len__(words) == 3
