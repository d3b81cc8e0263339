"""Values of declared types: what is stored comes back as itself, or is refused by name when it is stored or read."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import uuid
from decimal import Decimal
from typing import Any, NotRequired, TypedDict

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea import Bolt, KeyedState, ListState, TaskState
from ardea.backends.memory import KeyedTable, Lower
from ardea.backends.values import Packed, Typed, Values, values_of
from ardea.errors import EncodingError, UserError
from ardea.heron_instance.states import States
from ardea.snapshots.key_groups import Keys
from ardea.snapshots.pieces import HEAD
from ardea.snapshots.state_file import decode_state, encode_piece

ALL = Keys("count", 0, 1, 720, 1)


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Line(msgspec.Struct):
    item: str
    price: Decimal
    tags: set[str] = msgspec.field(default_factory=set)


class Order(msgspec.Struct):
    lines: list[Line]
    at: dt.datetime | None = None
    size: Size = Size.SMALL
    sums: dict[int, tuple[int, float]] = msgspec.field(default_factory=dict)


@dataclasses.dataclass
class User:
    id: uuid.UUID
    born: dt.date | None = None
    seen: list[str] = dataclasses.field(default_factory=list)
    parent: User | None = None


@dataclasses.dataclass
class Loose:
    name: str
    more: Any = None
    bag: dict = dataclasses.field(default_factory=dict)


class Page(TypedDict):
    url: str
    views: NotRequired[int]


TEXT = st.text(max_size=3)
LINES = st.builds(
    Line, TEXT, st.decimals(allow_nan=False, allow_infinity=False, places=3), st.sets(TEXT, max_size=3)
)  # fmt: skip
TIMES = st.one_of(st.datetimes(), st.datetimes(timezones=st.just(dt.UTC)))
NUMBERS = st.integers(-(2**63), 2**63 - 1)
ORDERS = st.builds(
    Order,
    st.lists(LINES, max_size=3),
    st.none() | TIMES,
    st.sampled_from(Size),
    st.dictionaries(NUMBERS, st.tuples(NUMBERS, st.floats(allow_nan=False))),
)
USERS = st.deferred(
    lambda: st.builds(User, st.uuids(), st.none() | st.dates(), st.lists(TEXT, max_size=2), st.none() | USERS)
)
ANYTHING = st.one_of(st.none(), NUMBERS, st.decimals(allow_nan=False), TIMES, st.dates(), st.uuids(), st.timedeltas())
LOOSE = st.builds(Loose, TEXT, ANYTHING, st.dictionaries(TEXT, ANYTHING, max_size=2))
PAGES = st.fixed_dictionaries({"url": TEXT}, optional={"views": NUMBERS})
CASES = [
    (Order, ORDERS),
    (User, USERS),
    (Loose, LOOSE),
    (Page, PAGES),
    (Order | None, st.none() | ORDERS),
    (int, st.integers()),
    (float, st.floats(allow_nan=False)),
    (list[int], st.lists(st.integers())),
    (set[Decimal], st.sets(st.decimals(allow_nan=False))),
    (tuple[str, int], st.tuples(TEXT, NUMBERS)),
    (dict, st.dictionaries(TEXT, ANYTHING)),
    (Size, st.sampled_from(Size)),
    (dt.date, st.dates()),
]
ANY_CASE = st.sampled_from(CASES).flatmap(lambda case: st.tuples(st.just(case[0]), case[1]))


def again(table, kind):
    """What a new table of that type has after a snapshot of this one."""
    table.freeze()
    content = HEAD + b"".join(map(encode_piece, table.lower.pieces(full=True)))
    fresh = table_of(kind)
    for piece in decode_state(content, "f"):
        fresh.lower.load(piece)
    return fresh


def table_of(kind, make=lambda: None):
    return KeyedTable(make, Lower("orders", ALL, values_of(kind)))


@given(ANY_CASE)
def test_a_value_comes_back_as_itself_from_base_and_file(case):
    kind, value = case
    table = table_of(kind)
    table["k"] = value
    fresh = again(table, kind)
    for found in (table["k"], fresh["k"]):
        assert found == value
        assert type(found) is type(value)


@given(ANY_CASE)
def test_alone_or_in_a_list_too(case):
    kind, value = case

    class Holds(Bolt):
        one = TaskState(type=kind)
        items = ListState(type=kind)

    bolt, restored = Holds(), Holds()
    states, back = States(bolt, ALL), States(restored, ALL)
    bolt.one, bolt.items = value, [value, value]
    states.freeze()
    back.load(b"".join(states.pieces(full=True)), "f")
    back.loaded(1)
    assert (restored.one, restored.items) == (value, [value, value])
    assert type(restored.one) is type(value)


def test_what_is_changed_in_place_counts_as_changed():
    table = table_of(User)
    table["k"] = User(uuid.UUID(int=1))
    fresh = again(table, User)
    fresh["k"].seen.append("a")
    fresh.freeze()
    (piece,) = fresh.lower.pieces(full=False)
    assert [key for key, _ in piece.rows] == ["k"]
    assert fresh["k"].seen == ["a"]


class OrderV2(msgspec.Struct):
    lines: list[Line]
    note: str = "none"
    at: dt.datetime | None = None
    tax: Decimal = Decimal("0.19")


class Renamed(msgspec.Struct):
    rows: list[Line]


class Other(msgspec.Struct):
    lines: list[int]


@dataclasses.dataclass
class Particular:
    seen: list[int]

    def __post_init__(self):
        self.look()

    def look(self):
        """All is well."""


@pytest.mark.parametrize(
    ("raised", "seen", "says"),
    [
        (KeyError("kept"), EncodingError, "it is no Particular: KeyError: 'kept'"),
        (ValueError("too old"), EncodingError, "it is no Particular: too old"),
        (MemoryError(), MemoryError, None),
    ],
)
def test_whatever_a_type_raises_as_a_value_is_made_says_that_it_cannot_be_read(raised, seen, says, monkeypatch):
    def raises(_self):
        raise raised

    table = table_of(Particular)
    table["k"] = Particular([])
    table.freeze()
    (piece,) = table.lower.pieces(full=True)
    monkeypatch.setattr(Particular, "look", raises)
    with pytest.raises(UserError if says else seen, match=says):
        table_of(Particular).lower.load(piece)
    with pytest.raises(seen, match=says):
        values_of(Particular).of_plain({"seen": []})


def test_a_field_with_a_default_reads_old_snapshots_and_one_that_is_gone_is_passed_over():
    table = table_of(Order)
    table["k"] = Order([Line("a", Decimal(2))], size=Size.LARGE)
    assert again(table, OrderV2)["k"] == OrderV2([Line("a", Decimal(2))])


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Renamed, "it is no Renamed: Object missing required field `rows`"),
        (Other, r"it is no Other: Expected `int`, got `object` - at `\$\.lines\[0\]`"),
        (None, "it was written by a state with type=, and this one has none"),
    ],
)
def test_a_type_that_does_not_read_the_old_state_is_an_error_that_says_where(kind, says):
    table = table_of(Order)
    table["k"] = Order([Line("a", Decimal(2))])
    with pytest.raises(UserError, match=rf"count: what the snapshot holds of state 'orders' at 'k' .*{says}") as caught:
        again(table, kind)
    assert "default" in caught.value.hint


def test_where_nobody_can_tell_that_a_type_was_taken_away_objects_are_read_as_dicts():
    class Before(Bolt):
        one = TaskState(default=None, type=Loose | None)

    class After(Bolt):
        one = TaskState(default=None)

    before, after = Before(), After()
    states = States(before, ALL)
    before.one = Loose("x")
    states.freeze()
    States(after, ALL).load(b"".join(states.pieces(full=True)), "f")
    assert after.one == {"name": "x", "more": None, "bag": {}}
    for kind, value in ((Loose, Loose("y")), (Line, Line("a", Decimal("NaN")))):
        table = table_of(kind)
        table["k"] = value
        assert isinstance(again(table, None)["k"], dict)


def test_a_type_is_given_to_values_that_had_none():
    table = table_of(None)
    table.update({"a": 1, "b": {"url": "x"}, "c": [1, 2]})
    assert again(table, float | Page | list[float]).copy() == {"a": 1.0, "b": {"url": "x"}, "c": [1.0, 2.0]}
    with pytest.raises(UserError, match="at 'a' cannot be read: it is no str: Expected `str`, got `int`"):
        again(table, str)


def test_of_a_task_state_too():
    class Before(Bolt):
        one = TaskState(default=0)

    class After(Bolt):
        one = TaskState(default="", type=str)

    states = States(Before(), ALL)
    states.freeze()
    with pytest.raises(UserError, match="count: what the snapshot holds of state 'one' cannot be read: it is no str"):
        States(After(), ALL).load(b"".join(states.pieces(full=True)), "f")


class Derived(Order, kw_only=True):
    extra: int = 1


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (int, "x", r"a str, .*it is no int: Expected `int`, got `str`"),
        (int, True, "a bool, .*it is no int"),
        (str, Decimal(1), r"a decimal\.Decimal, .*Expected `str`, got `decimal`"),
        (Order, {"lines": []}, "a dict, .*it is no Order"),
        (Order, Derived([]), "Derived, .*it is no Order"),
        (Order, Order(["a"]), r"Expected `object`, got `str` - at `\$\.lines\[0\]`"),
        (Order, Order([Line(Decimal(1), Decimal(1))]), r"Expected `str`, got `decimal` - at `\$\.lines\[0\]\.item`"),
        (Order, Order([Line("a", Decimal(1), {uuid.UUID(int=1)})]), "Expected `str`, got `uuid`"),
        (User, None, "a NoneType, .*it is no User"),
        (User, User(uuid.UUID(int=1), seen=[object()]), "a object has no type in msgpack"),
        (list[int], (1, 2), r"a tuple, .*it is no list\[int\]"),
        (Loose, Loose("a", object()), "a object has no type in msgpack"),
    ],
)
def test_a_value_of_another_type_is_refused_at_the_barrier_with_its_key(kind, value, says):
    table = table_of(kind)
    table["good"] = table["k"] = value
    with pytest.raises(UserError, match=rf"state 'orders' holds at 'good' .*{says}"):
        table.freeze()
    assert dict.keys(table) == {"good", "k"}, "nothing has changed"


def test_numpy_and_arrow_scalars_are_what_they_stand_for_and_a_whole_number_is_a_float():
    table = table_of(float)
    table.update({"a": np.float32(1.5), "b": 2})
    assert again(table, float).copy() == {"a": 1.5, "b": 2.0}
    table = table_of(int)
    table["a"] = np.int64(3)
    assert again(table, int).copy() == {"a": 3}


def test_a_value_that_is_kept_quickly_and_one_that_is_not_read_alike():
    typed = Typed(Order)
    order = Order([], sums={1: (2**63, 1.0)})
    assert typed.kept(order)[:1] == b"m"
    assert typed.value(Packed.of(typed.plain(order))) == order == typed.value(typed.kept(order))


class Unknown:
    pass


class Holds(msgspec.Struct):
    what: Unknown


@pytest.mark.parametrize("kind", [Unknown, Holds, list[Unknown], str | Decimal, "nothing"])
def test_a_type_whose_objects_cannot_be_kept_is_refused(kind):
    state = KeyedState(type=kind)
    with pytest.raises(UserError, match=r"type=.* cannot be the type of a state") as caught:
        state.check()
    assert "msgspec.Struct" in caught.value.hint


@pytest.mark.parametrize("default", [User(uuid.UUID(int=1)), Order([])])
def test_a_default_object_that_all_would_share_is_refused(default):
    with pytest.raises(UserError, match="all would share one"):
        KeyedState(default=default)


def test_without_a_type_a_dataclass_is_refused():
    with pytest.raises(EncodingError):
        Values().kept(User(uuid.UUID(int=1)))
