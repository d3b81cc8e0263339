"""Timers are called once, in their order, by the task that owns their key, whatever is stored and put back."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ardea import Bolt, Timers, UserError
from ardea.backends import timers as module
from ardea.heron_instance.states import States
from ardea.protocol.dict_keys import as_key
from ardea.protocol.keys import encode_key
from ardea.snapshots.key_groups import Keys
from tests.sizes import size

KEYS = st.sampled_from(["a", "b", 1, 1.0, None, math.nan, ("a", 1), ["a", 1]])
NAMES = st.sampled_from(["", "x"])
TIMES = st.integers(0, 20).map(float)


class Bell(Bolt):
    timers = Timers()

    def on_timer(self, name, key, at): ...


def made(index=0, tasks=1):
    bolt = Bell()
    return bolt, States(bolt, Keys("bell", index, tasks, 12, 1))


def in_order(plain):
    return sorted(plain.items(), key=lambda item: (item[1], encode_key((item[0][0],)), item[0][1]))


class Rings(RuleBasedStateMachine):
    """``plain`` is (key, name) -> time."""

    def __init__(self):
        super().__init__()
        self.plain, self.files, self.at = {}, [], {}
        self.bolt, self.states = made()

    @rule(key=KEYS, name=NAMES, at=TIMES)
    def sets(self, key, name, at):
        self.bolt.timers.set(key, at, name)
        self.plain[as_key(key), name] = at

    @rule(key=KEYS, name=NAMES)
    def cancels(self, key, name):
        self.bolt.timers.cancel(key, name)
        self.plain.pop((as_key(key), name), None)

    @rule(now=TIMES)
    def rings(self, now):
        taken = []
        while (timer := self.bolt.timers.take(now)) is not None:
            taken.append(((timer.key, timer.name), timer.at))
        assert taken == [item for item in in_order(self.plain) if item[1] <= now]
        for timer, _ in taken:
            del self.plain[timer]

    @rule(full=st.booleans(), works=st.booleans())
    def barrier(self, full, works):
        self.states.freeze()
        full = full or not self.files
        content = b"".join(self.states.pieces(full=full))
        if works:
            self.files = [content] if full else [*self.files, content]
            self.at = dict(self.plain)
            self.states.stored()

    @rule()
    def goes_back(self):
        if self.files:
            self.bolt, self.states = made()
            for content in self.files:
                self.states.load(content, "f")
            self.states.loaded(1)
            self.plain = dict(self.at)

    @invariant()
    def knows_the_next(self):
        assert self.bolt.timers.next == min(self.plain.values(), default=math.inf)
        for (key, name), at in self.plain.items():
            assert self.bolt.timers.get(key, name) == at


Rings.TestCase.settings = settings(max_examples=size(100, 5000), stateful_step_count=40, deadline=None)


class TestRings(Rings.TestCase):
    @pytest.fixture(autouse=True)
    def _few_stale(self, monkeypatch):
        monkeypatch.setattr(module, "_MOST_STALE", 2)


@given(st.dictionaries(st.tuples(st.integers(0, 40), NAMES), TIMES), st.integers(1, 5), st.integers(1, 5))
def test_timers_move_with_their_key(timers, before, after):
    files = []
    for index in range(before):
        bolt, states = made(index, before)
        keys = Keys("bell", index, before, 12, 1)
        for (key, name), at in timers.items():
            if keys.group(key) in keys.owned:
                bolt.timers.set(key, at, name)
        states.freeze()
        files.append(b"".join(states.pieces(full=True)))
    found = {}
    for index in range(after):
        bolt, states = made(index, after)
        for former, content in enumerate(files):
            if states.needs(former, before):
                states.load(content, "f", former, own=former == index)
        states.loaded(before)
        keys = Keys("bell", index, after, 12, 1)
        while (timer := bolt.timers.take(100.0)) is not None:
            assert keys.group(timer.key) in keys.owned
            assert (timer.key, timer.name) not in found
            found[timer.key, timer.name] = timer.at
    assert found == timers


def test_a_timer_that_is_set_again_and_again_leaves_nothing():
    bolt, _ = made()
    for at in range(10_000):
        bolt.timers.set("a", at)
    assert len(bolt.timers._known()) < 3_000
    assert bolt.timers.take(9_998.0) is None
    assert bolt.timers.take(9_999.0).key == "a"
    assert bolt.timers.next == math.inf


@pytest.mark.parametrize(
    ("set_", "says"),
    [
        (lambda timers: timers.set("a", "now"), "a timer's time is a number of seconds since 1970, not 'now'"),
        (lambda timers: timers.set("a", math.nan), "a timer's time is a number"),
        (lambda timers: timers.set("a", 10**400), "a timer's time is a number"),
        (lambda timers: timers.set("a", 1.0, None), "a timer's name is a text, not None"),
        (lambda timers: timers.set({}, 1.0), "a value of type dict cannot be part of a key"),
    ],
)
def test_what_is_no_timer_is_refused(set_, says):
    with pytest.raises(UserError, match=f"state 'timers': {says}"):
        set_(made()[0].timers)


def test_a_key_of_another_task_is_refused_and_named():
    bolt, _ = made(0, 2)
    keys = Keys("bell", 0, 2, 12, 1)
    other = next(key for key in "abcdefgh" if keys.group(key) not in keys.owned)
    with pytest.raises(UserError, match=f"state 'timers': the key '{other}' is one of bell-1, and this is bell-0"):
        bolt.timers.set(other, 1.0)


def test_there_is_no_other_time():
    with pytest.raises(UserError, match="there is no such time") as caught:
        Timers(time="wall")
    assert "time='event'" in caught.value.hint


def test_on_a_bolt_that_no_topology_runs_it_says_so():
    with pytest.raises(UserError, match=r"Bell\.timers was used on a component that is not running"):
        Bell().timers.set("a", 1.0)
