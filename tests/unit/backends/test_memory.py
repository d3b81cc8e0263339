"""Keyed state in memory is a dict to its author, whatever is frozen, stored, merged and put back in between."""

from __future__ import annotations

from collections.abc import MutableMapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ardea.backends import memory
from ardea.backends.memory import KeyedTable, Lower
from ardea.snapshots.state_file import HEAD, Kind, decode_state, encode_piece
from tests.sizes import size

KEYS = st.sampled_from(["a", None, ("a", (1, "b"))])
VALUES = st.one_of(
    st.integers(-5, 5), st.text(max_size=2), st.none(), st.tuples(st.integers(), st.lists(st.integers()))
)


def table(make=lambda: 0):
    return KeyedTable("t", make, Lower())


class Kept(RuleBasedStateMachine):
    """``plain`` is what the author has; ``at`` what he had at each barrier whose file lies in the store."""

    def __init__(self):
        super().__init__()
        self.plain, self.files, self.at = {}, [], {}
        self.writing = None
        self.reset()

    def reset(self):
        self.lower = Lower()
        self.table = KeyedTable("t", lambda: 0, self.lower)

    @rule(key=KEYS, value=VALUES)
    def put(self, key, value):
        self.table[key] = value
        self.plain[key] = value

    @rule(key=KEYS, value=st.integers())
    def appends(self, key, value):
        if isinstance(self.plain.get(key), list):
            self.table[key].append(value)
            self.plain[key].append(value)
        else:
            self.table[key], self.plain[key] = [value], [value]

    @rule(key=KEYS)
    def deletes(self, key):
        if key in self.plain:
            del self.table[key]
            del self.plain[key]
        else:
            with pytest.raises(KeyError):
                del self.table[key]

    @rule(key=KEYS)
    def reads(self, key):
        assert self.table[key] == self.plain.get(key, 0)
        assert self.table.get(key, "none") == self.plain.get(key, "none")
        assert (key in self.table) == (key in self.plain)

    @rule(key=KEYS, value=st.integers())
    def other_ways_to_write(self, key, value):
        assert self.table.pop(key, None) == self.plain.pop(key, None)
        assert self.table.setdefault(key, value) == self.plain.setdefault(key, value)
        self.table |= {"a": value}
        self.plain |= {"a": value}

    @rule()
    def clears(self):
        self.table.clear()
        self.plain.clear()

    @precondition(lambda self: self.writing is None)
    @rule(full=st.booleans())
    def barrier(self, full):
        self.table.freeze()
        self.writing = (full or not self.files), self.lower.rows(full=full or not self.files), dict(self.copy())

    def copy(self):
        return {key: list(value) if isinstance(value, list) else value for key, value in self.plain.items()}

    @precondition(lambda self: self.writing is not None)
    @rule(works=st.booleans())
    def written(self, works):
        (full, rows, was), self.writing = self.writing, None
        if works:
            content = HEAD + b"".join(encode_piece("t", kind, piece) for kind, piece in rows)
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
                self.lower.load(piece.kind, piece.rows)
        self.plain = self.at
        self.at = self.copy()

    @invariant()
    def is_the_dict(self):
        assert len(self.table) == len(self.plain)
        assert self.table == self.plain
        assert sorted(map(repr, self.table)) == sorted(map(repr, self.plain))
        assert dict(self.table) == {**self.table} == self.plain
        assert all(type(value) is type(self.plain[key]) for key, value in self.table.items())


Kept.TestCase.settings = settings(max_examples=size(150, 5000), stateful_step_count=40, deadline=None)


class TestKept(Kept.TestCase):
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


def test_reading_a_number_changes_nothing_and_reading_a_list_may():
    words = table()
    words.update({"number": 1, "list": [1]})
    words.freeze()
    assert (words["number"], words["list"], words["missing"]) == (1, [1], 0)
    assert dict.keys(words) == {"list"}


def test_a_key_that_comes_back_before_its_deletion_was_stored_is_there():
    lower = Lower()
    words = KeyedTable("t", lambda: 0, lower)
    words["a"] = 1
    words.freeze()
    lower.stored()
    del words["a"]
    words.freeze()  # and is not stored
    words["a"] = 2
    words.freeze()
    assert list(lower.rows(full=False)) == [(Kind.PUT, [("a", 2)])]
