"""What an author declares as state, on an object that a topology runs and on one that nobody does."""

from __future__ import annotations

import array
import dataclasses
import datetime as dt
import enum
import re
from collections import deque
from decimal import Decimal
from fractions import Fraction
from functools import partial
from ipaddress import ip_address
from pathlib import Path, PurePath
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from msgspec import UNSET

from ardea import Bolt
from ardea.errors import UserError
from ardea.heron_instance.states import States
from ardea.keyed import KeyedState, TaskState, states_of
from ardea.snapshots.key_groups import Keys

ALL = Keys("count", 0, 1, 720, 1)


class Base(Bolt):
    position = TaskState(default=0)
    lists = KeyedState(default=list)


class Derived(Base):
    counts = KeyedState(default=0)
    position = TaskState(default=7)


def test_a_missing_key_reads_as_the_default_and_is_not_stored_by_that():
    bolt = Derived()
    States(bolt, ALL)
    assert (bolt.counts["a"], dict(bolt.counts)) == (0, {})
    bolt.counts["a"] += 2
    assert dict(bolt.counts) == {"a": 2}
    bolt.lists["x"].append(1)
    bolt.lists["x"].append(2)
    assert bolt.lists == {"x": [1, 2]}, "what is changed in place would be lost if it were not stored"
    assert bolt.lists.get("y") is None
    assert bolt.lists == {"x": [1, 2]}


def test_each_object_has_its_own():
    one, other = Derived(), Derived()
    States(one, ALL)
    States(other, ALL)
    one.counts["a"] = 1
    one.position = 9
    assert (dict(other.counts), other.position, one.position) == ({}, 7, 9)


def written(states):
    states.freeze()
    return b"".join(states.pieces(full=True))


def test_what_was_written_comes_back_into_a_new_object():
    bolt, again = Derived(), Derived()
    states = States(bolt, ALL)
    bolt.counts.update({"a": 1, ("b", (2, None)): 3})
    bolt.position = 12
    States(again, ALL).load(written(states), "f")
    assert (dict(again.counts), again.position) == (dict(bolt.counts), 12)


def test_a_state_that_the_file_knows_and_the_class_does_not_is_passed_over():
    bolt, older = Derived(), Base()
    states = States(bolt, ALL)
    bolt.counts["a"] = 1
    States(older, ALL).load(written(states), "f")
    assert older.position == 7


def test_states_are_found_in_all_bases_by_name():
    assert [state.name for state in states_of(Derived)] == ["counts", "lists", "position"]
    assert states_of(Bolt) == []


@pytest.mark.parametrize("use", [lambda b: b.counts["a"], lambda b: b.position])
def test_on_an_object_that_no_topology_runs_it_says_so(use):
    with pytest.raises(UserError, match=r"Derived\.(counts|position) was used on a component that is not running"):
        use(Derived())


@pytest.mark.parametrize("name", ["counts", "position"])
def test_what_init_assigns_to_a_state_is_refused(name):
    bolt = Derived()
    setattr(bolt, name, None)
    where = rf"Derived\.{name}, declared at test_keyed\.py:\d+, was assigned before initialize\(\)"
    with pytest.raises(UserError, match=where):
        States(bolt, ALL)


@dataclasses.dataclass
class Annotated(Bolt):
    counts: Any = KeyedState(default=0)  # noqa: RUF009 -- as authors write it
    position: Any = TaskState(default=3)  # noqa: RUF009


def test_what_a_dataclass_gives_each_object_is_no_value():
    bolt = Annotated()
    States(bolt, ALL)
    assert (dict(bolt.counts), bolt.position) == ({}, 3)


def test_a_state_may_be_put_on_a_class_after_that_was_made():
    late = type("Late", (Bolt,), {})
    late.position = TaskState(default=3)
    bolt = late()
    States(bolt, ALL)
    assert (bolt.position, [state.name for state in states_of(late)]) == (3, ["position"])


def test_a_state_has_one_name():
    class Twice(Bolt):
        first = second = TaskState(default=0)

    with pytest.raises(UserError, match=r"declaration, at test_keyed\.py:\d+, has the names first and second"):
        Twice.first.check()


@pytest.mark.parametrize(("name", "instead"), [("counts", "self.counts.clear()"), ("position", "self.position = None")])
def test_a_state_that_is_deleted_is_named(name, instead):
    bolt = Derived()
    states = States(bolt, ALL)
    delattr(bolt, name)
    with pytest.raises(UserError, match=rf"Derived\.{name}, declared at .*, was deleted: no snapshot") as caught:
        states.freeze()
    assert instead in caught.value.hint


@pytest.mark.parametrize("default", [[], {}, set()])
def test_a_default_that_all_would_share_is_refused(default):
    with pytest.raises(UserError, match="all would share one") as caught:
        KeyedState(default=default)
    assert f"default={type(default).__name__}" in caught.value.hint


@pytest.mark.parametrize("default", [([], 0), (1, ("a", {}))])
def test_a_default_with_something_in_it_that_can_be_changed_is_refused(default):
    with pytest.raises(UserError, match="all would share one tuple") as caught:
        KeyedState(default=default)
    assert caught.value.hint == f"give what makes a new one: default=lambda: {default!r}"


class Total:
    pages = 0


class Day(enum.Enum):
    FIRST = 1


class Point(NamedTuple):
    x: int
    unit: object = np.add


class Money:
    """What has a hash of its value is not changed."""

    def __eq__(self, other):
        return isinstance(other, Money)

    def __hash__(self):
        return 1


@pytest.mark.parametrize(
    ("default", "maker"),
    [
        (deque(), "deque"),
        (deque([1]), "lambda: deque([1])"),
        (np.array([0, 0]), "lambda: array([0, 0])"),
        (Total(), "lambda: Total(...)"),
        (Point(1, Total()), None),
        (iter("ab"), None),
        (array.array("i"), "lambda: array('i')"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_object_of_another_type_that_all_would_share_is_refused(default, maker):
    with pytest.raises(UserError, match=f"all would share one {type(default).__name__}") as caught:
        KeyedState(default=default)
    assert maker is None or caught.value.hint == f"give what makes a new one: default={maker}"


@pytest.mark.parametrize(
    "default",
    [
        ((1, "a"), frozenset({2})), None, ..., UNSET, 1j, Fraction(1, 2), Decimal("NaN"), dt.timedelta(1), dt.UTC,
        UUID(int=1), Path("a"), re.compile("a"), range(3), b"", memoryview(b""), np.int64(1), np.float32("nan"),
        np.datetime64("2026-01-01"), Day.FIRST, Point(1), Money(), object(), PurePath("a"), ip_address("::1"),
        ZoneInfo("UTC"), (len,),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_default_that_cannot_be_changed_may_be_anything(default):
    assert KeyedState(default=default).make() is default


@pytest.mark.parametrize("make", [deque, Total, lambda: np.zeros(2), partial(deque, maxlen=3)])
def test_what_makes_a_default_is_called_for_each_key(make):
    state = KeyedState(default=make)
    assert state.make() is not state.make()
