"""Values that live as long as the watermark says: never too short, whatever is frozen, written late and put back."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ardea import Bolt, KeyedState, UserError
from ardea.backends import memory
from ardea.backends.bases import MemoryBackend
from ardea.backends.chosen import Scratch
from ardea.backends.contract import PARTS
from ardea.backends.memory import KeyedTable, Lower
from ardea.backends.rocksdb import RocksBackend
from ardea.heron_instance.states import States
from ardea.snapshots.key_groups import Keys
from ardea.watermarks import NEVER
from tests.sizes import size

ALL = Keys("count", 0, 1, 720, 1)
TTL = 80.0
KEYS = st.sampled_from("abcd")


class Count(Bolt):
    counts = KeyedState(default=0, ttl=TTL, time="event")
    watermark = None


class Watermark:
    """What a task's file has of it."""

    def __init__(self, bolt):
        self.bolt = bolt

    def saved(self):
        return [[NEVER if self.bolt.watermark is None else self.bolt.watermark]]

    def restore(self, former, own):
        [[[watermark]]] = former
        self.bolt.watermark = None if watermark == NEVER else watermark


class Lives(RuleBasedStateMachine):
    """``plain`` is what was written: (value, watermark then, that of the barrier behind; None: not stamped yet).

    ``looked``: the watermark of the last barrier, or of what was put back.
    """

    made = MemoryBackend

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="ardea-lives-")
        self.scratch, self.states = Scratch(self.made, Path(self.folder.name) / "scratch"), None
        self.files, self.at, self.writing = [], ({}, NEVER), None
        self.plain, self.looked = {}, NEVER
        self.reset()

    def teardown(self):
        self.states.close()
        self.folder.cleanup()

    def reset(self):
        if self.states is not None:
            self.states.close()
        self.bolt = Count()
        self.states = States(self.bolt, ALL, backend=self.scratch.open())
        self.states.time = Watermark(self.bolt)

    @property
    def now(self):
        return NEVER if self.bolt.watermark is None else self.bolt.watermark

    @rule(key=KEYS, value=st.integers(1, 9))
    def put(self, key, value):
        self.bolt.counts[key] = value
        self.plain[key] = value, self.now, None

    @rule(key=KEYS)
    def deletes(self, key):
        self.bolt.counts.pop(key, None)
        self.plain.pop(key, None)

    @rule(watermark=st.sampled_from([-500.0, 0.0, 3.0, 30.0, 79.0, 81.0]))
    def time_passes(self, watermark):
        if self.now != math.inf:
            self.bolt.watermark = watermark if self.bolt.watermark is None else self.now + abs(watermark)

    @rule()
    def all_input_ends(self):
        self.bolt.watermark = math.inf

    @precondition(lambda self: self.writing is None)
    @rule(full=st.booleans())
    def barrier(self, full):
        self.states.freeze()
        self.looked = self.now if self.now < math.inf else self.looked
        stamped = {
            key: (value, was, self.looked if stamp is None and self.looked not in (NEVER, 0.0) else stamp)
            for key, (value, was, stamp) in self.plain.items()
        }
        self.plain = stamped
        full = full or not self.files or self.states.stale
        self.writing = full, self.states.pieces(full=full), (dict(stamped), self.now)

    @precondition(lambda self: self.writing is not None)
    @rule()
    def written(self):
        (full, pieces, self.at), self.writing = self.writing, None
        content = b"".join(pieces)
        self.files = [content] if full else [*self.files, content]
        self.states.stored()

    @precondition(lambda self: self.writing is not None)
    @rule()
    def abandoned(self):
        self.writing = None

    @rule()
    def settles(self):
        self.states.settle()

    @precondition(lambda self: self.files)
    @rule()
    def goes_back(self):
        self.reset()
        self.writing = None
        for content in self.files:
            self.states.load(content, "f")
        self.states.loaded(1)
        plain, now = self.at
        assert self.now == now
        self.looked = now if now < math.inf else NEVER  # at the end nothing is known of an earlier one
        self.plain = dict(plain)

    @invariant()
    def lives_as_long_as_it_should(self):
        held = set(self.bolt.counts)
        assert held <= self.plain.keys()
        assert len(held) == len(self.bolt.counts)
        for key, (value, was, stamp) in self.plain.items():
            if key not in held:
                since = stamp if was == NEVER else was
                assert since is not None, "it is gone before there was a time"
                assert self.looked >= since + TTL, "it is gone too soon"
            else:
                assert self.bolt.counts[key] == value
                assert stamp is None or self.looked < stamp + TTL + TTL / PARTS, "it lives too long"


Lives.TestCase.settings = settings(max_examples=size(40, 5000, whole=150), stateful_step_count=40, deadline=None)


class LivesInRocks(Lives):
    made = RocksBackend


LivesInRocks.TestCase.settings = settings(max_examples=size(5, 1000, whole=15), stateful_step_count=40, deadline=None)


class TestLives(Lives.TestCase):
    @pytest.fixture(autouse=True)
    def _small_pieces(self, monkeypatch):
        monkeypatch.setattr(memory, "SLICE", 2)


class TestLivesInRocks(LivesInRocks.TestCase):
    @pytest.fixture(autouse=True)
    def _small_pieces(self, monkeypatch):
        monkeypatch.setattr(memory, "SLICE", 2)


@pytest.mark.parametrize("lives", [Lives, LivesInRocks])
def test_what_is_merged_once_there_is_a_time_counts_from_then(lives):
    lives = lives()
    lives.put(key="a", value=1)
    lives.barrier(full=False)
    for _ in range(2):
        lives.time_passes(watermark=-500.0)
        lives.written()
        lives.barrier(full=False)
    lives.lives_as_long_as_it_should()
    lives.teardown()


@pytest.mark.parametrize("lives", [Lives, LivesInRocks])
def test_after_a_rollback_values_are_as_old_as_they_would_be_without(lives):
    """Not as of the first snapshot after it: who goes back forgets what it would have forgotten."""
    lives = lives()
    lives.put(key="a", value=1)
    lives.barrier(full=False)
    lives.written()
    lives.time_passes(watermark=30.0)
    lives.barrier(full=False)
    lives.written()
    lives.goes_back()
    for _ in range(2):
        lives.time_passes(watermark=79.0)
        lives.barrier(full=False)
        lives.written()
        lives.lives_as_long_as_it_should()
    assert dict(lives.bolt.counts) == {}
    lives.teardown()


def barrier(states, files, full=False):
    states.freeze()
    files.append(b"".join(states.pieces(full=full)))
    states.stored()
    while not states.settle():
        pass


@pytest.mark.parametrize("back", [False, True])
def test_what_was_written_before_there_was_a_watermark_counts_from_the_first_snapshot_that_has_one(back):
    bolt, files = Count(), []
    states = States(bolt, ALL)
    states.time = Watermark(bolt)
    bolt.counts["a"] = 1
    barrier(states, files, full=True)
    if back:
        bolt = Count()
        states = States(bolt, ALL)
        states.time = Watermark(bolt)
        states.load(files[0], "f")
        states.loaded(1)
    bolt.watermark = 1000.0
    states.freeze()
    assert dict(bolt.counts) == {"a": 1}
    states.stored()
    barrier(states, files)
    assert dict(bolt.counts) == {"a": 1}
    bolt.watermark = 1000.0 + TTL - 1.0
    barrier(states, files)
    assert dict(bolt.counts) == {"a": 1}
    bolt.watermark += 1.0
    barrier(states, files)
    assert dict(bolt.counts) == {}


@pytest.mark.parametrize("made", [MemoryBackend, RocksBackend])
def test_keys_that_got_their_time_together_with_later_ones_are_found_by_other_tasks(made, tmp_path):
    """What was written at no time is stamped as the later ones are, and lies in a part of its own."""
    scratch = Scratch(made, tmp_path)
    files, bolt = [], Count()
    states = States(bolt, ALL, backend=scratch.open())
    states.time = Watermark(bolt)
    for watermark in (None, 1000.0, 1001.0):
        bolt.watermark = watermark
        bolt.counts.update((number, number) for number in range(len(bolt.counts), len(bolt.counts) + 1500))
        barrier(states, files)
    states.freeze()
    content = b"".join(states.pieces(full=True))
    states.close()
    found = []
    for index in range(4):
        bolt = Count()
        states = States(bolt, Keys("count", index, 4, 720, 1), backend=scratch.open())
        states.time = Watermark(bolt)
        states.load(content, "f")
        found += bolt.counts
        states.close()
    assert sorted(found) == [*range(4500)]


@pytest.mark.parametrize("made", [MemoryBackend, RocksBackend])
def test_what_an_abandoned_snapshot_has_replaced_or_deleted_stays_away_when_its_time_is_over(made, tmp_path):
    now, backend, pieces = NEVER, Scratch(made, tmp_path).open(), []

    def table_of(state):
        base = backend.base(state, ALL, TTL, lambda: now)
        return KeyedTable(lambda: 0, Lower(state, ALL, base=base, clock=lambda: max(now, 0.0)))

    def snapshot(*, stored):
        table.freeze()
        if stored:
            pieces.extend(table.lower.pieces(full=not pieces))
            table.lower.stored()
            while not table.lower.settle():
                pass

    table = table_of("before")
    table.update({"replaced": 1, "deleted": 1})
    snapshot(stored=True)
    now = 1000.0
    table["replaced"] = 2
    del table["deleted"]
    snapshot(stored=False)
    now += TTL
    assert (len(table), dict(table), table.get("replaced")) == (0, {}, None)
    snapshot(stored=True)
    assert (len(table), dict(table)) == (0, {})
    table = table_of("after")
    for piece in pieces:
        table.lower.load(piece)
    assert (len(table), dict(table)) == (0, {})
    backend.close()


def test_without_snapshots_too_values_live_by_the_watermark():
    now = 0.0
    bolt = Count()
    states = States(bolt, None, lambda: now)
    bolt.counts["early"] = 1
    for _ in range(100):
        now += TTL
        states.age()
    assert dict(bolt.counts) == {"early": 1}, "by the machine's clock it would be gone"
    bolt.watermark = 500.0
    states.age()
    bolt.counts["late"] = 2
    for _ in range(20):
        bolt.watermark += TTL / PARTS
        states.age()
        if bolt.watermark < 500.0 + TTL:
            assert "early" in bolt.counts
    assert dict(bolt.counts) == {}
    bolt.counts["last"] = 3
    bolt.watermark = math.inf
    states.age()
    assert dict(bolt.counts) == {"last": 3}, "nothing is forgotten at the end"


@pytest.mark.parametrize(
    ("options", "words"),
    [({"ttl": 5, "time": "wall"}, "there is no such time"), ({"time": "event"}, "and there is no ttl=")],
)
def test_what_an_author_says_is_checked(options, words):
    with pytest.raises(UserError) as caught:
        KeyedState(**options)
    assert words in caught.value.message


def test_a_name_known_at_run_time_only_needs_a_watermark_too():
    states = States(Count(), ALL)
    state = KeyedState(ttl=5, time="event")
    state.name = "other"
    with pytest.raises(UserError, match="no spout that it reads says by timestamps="):
        states.add(state)
    states.time = Watermark(Count())
    states.add(state)
