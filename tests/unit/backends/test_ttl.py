"""Values with a time to live: there for all of it, gone soon after, whatever is frozen, stored, merged and put back."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ardea import Bolt, KeyedState, UserError
from ardea.backends import memory
from ardea.backends.bases import AgingBase, MemoryBackend
from ardea.backends.chosen import Scratch
from ardea.backends.contract import PARTS
from ardea.backends.memory import KeyedTable, Lower
from ardea.backends.rocksdb import RocksBackend
from ardea.heron_instance.states import States
from ardea.snapshots.key_groups import Keys
from ardea.snapshots.pieces import HEAD
from ardea.snapshots.state_file import decode_state, encode_piece
from tests.sizes import size

ALL = Keys("count", 0, 1, 720, 1)
TTL = 80.0
LATER = TTL / PARTS
KEYS = st.sampled_from("abcd")


class Lives(RuleBasedStateMachine):
    """``plain`` is what was written; ``first`` and ``last`` when at the earliest and latest its time began."""

    made = MemoryBackend

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="ardea-lives-")
        self.scratch, self.backend = Scratch(self.made, Path(self.folder.name) / "scratch"), None
        self.now = 1000.0
        self.plain, self.first, self.last = {}, {}, {}
        self.files, self.at, self.writing = [], ({}, {}, {}), None
        self.unstored = set()
        self.reset()

    def teardown(self):
        self.backend.close()
        self.folder.cleanup()

    def reset(self):
        def clock():
            return self.now

        if self.backend is not None:
            self.backend.close()
        self.backend = self.scratch.open()
        self.lower = Lower("t", ALL, base=self.backend.base("t", ALL, TTL, clock), clock=clock)
        self.table = KeyedTable(lambda: 0, self.lower)

    @rule(key=KEYS, value=st.integers(1, 9))
    def put(self, key, value):
        self.table[key] = [value] if value % 2 else value
        self.plain[key] = [value] if value % 2 else value
        self.first.pop(key, None)
        self.last.pop(key, None)
        self.unstored.add(key)

    @rule(key=KEYS)
    def deletes(self, key):
        self.table.pop(key, None)
        self.plain.pop(key, None)

    @rule(seconds=st.sampled_from([1.0, 5.0, 30.0, 79.0, 81.0]))
    def time_passes(self, seconds):
        self.now += seconds

    @precondition(lambda self: self.writing is None)
    @rule(full=st.booleans())
    def barrier(self, full):
        self.table.freeze()
        full = full or not self.files
        for key in self.unstored:
            self.first.setdefault(key, self.now)
            self.last[key] = self.now
        self.writing = full, self.lower.pieces(full=full), (dict(self.plain), dict(self.first), dict(self.last))
        self.frozen, self.unstored = self.unstored, set()

    @precondition(lambda self: self.writing is not None)
    @rule(works=st.booleans())
    def written(self, works):
        (full, pieces, was), self.writing = self.writing, None
        content = HEAD + b"".join(map(encode_piece, pieces))
        if works:
            self.files = [content] if full else [*self.files, content]
            self.at = was
            self.lower.stored()
        else:
            self.unstored |= self.frozen

    @rule()
    def settles(self):
        self.lower.settle()

    @precondition(lambda self: self.files)
    @rule()
    def goes_back(self):
        self.reset()
        self.writing, self.unstored = None, set()
        for content in self.files:
            for piece in decode_state(content, "f"):
                self.lower.load(piece)
        self.plain, self.first, self.last = (dict(each) for each in self.at)

    @invariant()
    def lives_as_long_as_it_should(self):
        held = set(self.table)
        assert len(held) == len(self.table)
        for key in "abcd":
            if key in held:
                assert key in self.plain
                assert self.now < self.last.get(key, self.now) + TTL + LATER, "it lives too long"
            elif key in self.plain:
                assert self.now >= self.first[key] + TTL, "it is gone too soon"
            assert (key in self.table) == (key in held)
            if key in held and not isinstance(self.plain[key], list):  # reading one would be a write
                assert self.table[key] == self.plain[key]


Lives.TestCase.settings = settings(max_examples=size(150, 5000), stateful_step_count=40, deadline=None)


class LivesInRocks(Lives):
    made = RocksBackend


LivesInRocks.TestCase.settings = settings(max_examples=size(15, 1000), stateful_step_count=40, deadline=None)


class TestLives(Lives.TestCase):
    @pytest.fixture(autouse=True)
    def _small_pieces(self, monkeypatch):
        monkeypatch.setattr(memory, "SLICE", 2)


class TestLivesInRocks(LivesInRocks.TestCase):
    @pytest.fixture(autouse=True)
    def _small_pieces(self, monkeypatch):
        monkeypatch.setattr(memory, "SLICE", 2)


class Seen(Bolt):
    seen = KeyedState(default=list, ttl="1 min")


def test_without_snapshots_too_values_are_gone_in_time_and_may_be_anything():
    now = 0.0
    bolt = Seen()
    states = States(bolt, None, lambda: now)
    odd = object()
    bolt.seen["a"], bolt.seen["b"] = [odd], [1]
    while now < 60.0:
        now += 1.0
        states.age()
        if now == 40.0:
            bolt.seen["b"].append(2)
    assert "b" in bolt.seen
    now += 15.0
    states.age()
    assert ("a" in bolt.seen, bolt.seen.get("b")) == (False, [1, 2])
    now += 80.0
    for _ in range(3):
        states.age()
    assert dict(bolt.seen) == {"b": [1, 2]}, "reading a list has written it again"


def test_what_an_older_version_stored_without_a_time_begins_to_age_when_it_is_put_back():
    now = 500.0
    plain = KeyedTable(lambda: 0, Lower("t", ALL))
    plain["a"] = 1
    plain.freeze()
    aging = Lower("t", ALL, base=AgingBase(ALL, TTL, lambda: now), clock=lambda: now)
    for piece in plain.lower.pieces(full=True):
        aging.load(piece)
    assert aging.get("a") == 1
    now += TTL
    assert aging.get("a") is memory.ABSENT


@pytest.mark.parametrize(("written", "seconds"), [(5, 5.0), ("30 s", 30.0), ("1.5h", 5400.0), ("7 d", 604800.0)])
def test_a_time_is_seconds_or_has_a_unit(written, seconds):
    assert KeyedState(ttl=written).ttl == seconds


@pytest.mark.parametrize("written", [0, -1, "1 year", "h", True, float("inf")])
def test_what_is_no_time_is_refused(written):
    with pytest.raises(UserError, match="ttl takes a number of seconds above 0, or a text like '30 s'"):
        KeyedState(ttl=written)
