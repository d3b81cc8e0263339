"""A version whose keys would be others, or at other tasks, is refused before anything is asked of a master."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import msgspec
import pytest

from ardea import Bolt, Grouping, KeyedState, Spout, TaskState, Timers, Topology
from ardea.errors import UserError
from ardea.plan.definition import Begins
from ardea.plan.keyed import KeyedComponent, keyed_components
from ardea.plan.shape import shape_of
from ardea.scheduler.next_definition import check_states
from ardea.snapshots import beginning
from ardea.snapshots.manifest import Manifest
from ardea.snapshots.savepoint import Savepoint
from ardea.windows import CountSliding, CountTumbling, Global, Session, Sliding, Tumbling, WindowBolt


class Visits(Spout):
    outputs = ("user", "page", "at")
    position = TaskState(default=0)

    def next_tuple(self):
        pass


class Renamed(Visits):
    outputs = ("who", "page", "at")


class Longer(Visits):
    outputs = ("id", "user", "page", "at")


class Reordered(Visits):
    outputs = ("page", "user", "at")


class Count(Bolt):
    counts = KeyedState(default=0)

    def process(self, tup):
        pass


class Sees(Bolt):
    def process(self, tup):
        pass


class ByUser(Count):
    counts = KeyedState(default=0, by=1)


class Reminds(Bolt):
    timers = Timers()

    def process(self, tup):
        pass

    def on_timer(self, name, key, at):
        pass


class Named(Bolt):
    _windows = KeyedState(default=0)

    def process(self, tup):
        pass


class Other(Count):
    counts = None
    numbers = KeyedState(default=0)


def plan(*fields, bolt=Count, spout=Visits, by=None, par=2, more=()):
    grouping = Grouping.fields(*fields) if by is None else by

    class Made(Topology):
        visits = spout.spec(par=1)
        news = Visits.spec(par=1)
        count = bolt.spec(par=par, inputs={visits: grouping, **({news: Grouping.fields(*more)} if more else {})})
        rest = Sees.spec(inputs=[news])

    return Made.plan({"topology.reliability.mode": "EFFECTIVELY_ONCE"})


@pytest.fixture
def begins(monkeypatch):
    """Looks whether a topology can begin from a savepoint of count, whose keys were so."""

    def look(plan_, keyed):
        content = Savepoint(
            request="r", topology="t-1", ardea="1", groups=720, number=1, timeline=1, keyed=keyed,
            manifest=Manifest(number=1, timeline=0, parts={}), states={"count": {"counts": "KeyedState"}},
        )  # fmt: skip
        monkeypatch.setattr(beginning, "read", lambda _: content)
        monkeypatch.setattr(beginning, "place_at", lambda _: None)
        return beginning.Beginning(Begins(folder="/s", drop_state=True), plan_, 720).look()

    return look


ALONE = {"by": Grouping.GLOBAL, "par": 1}


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (plan("user"), plan("page"), "visits:default was grouped by fields(user) and would be by fields(page)"),
        (plan("user"), plan("user", "page"), "by fields(user) and would be by fields(user, page)"),
        (plan("user", "page"), plan("page", "user"), "by fields(user, page) and would be by fields(page, user)"),
        (plan("user"), plan("page", spout=Reordered), "by fields(user) and would be by fields(page)"),
        (plan("user", "page"), plan("user"), "by fields(user, page) and would be by fields(user)"),
        (plan("user"), plan(**ALONE), "by fields(user) and would be by global"),
        (plan(**ALONE), plan("user", par=1), "by global and would be by fields(user)"),
        (plan("user"), plan("user", bolt=ByUser), "count.counts was a KeyedState and would be a KeyedState(by=1)"),
        (
            plan(**ALONE),
            plan(**ALONE, more=("user",)),
            "rows were grouped by no fields and would be by fields(user)",
        ),
    ],
)
def test_other_keys_are_refused_by_name(begins, before, after, says):
    definition = Mock(shape=shape_of(before))
    with pytest.raises(UserError) as caught:
        check_states(definition, after, drop_state=True)
    assert caught.value.message.startswith("count.counts")
    assert says in caught.value.message
    assert "nothing was changed" in caught.value.message
    assert "another name" in str(caught.value.hint)
    with pytest.raises(UserError) as caught:
        begins(after, carried(before))
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (plan("user"), plan("user", par=5)),
        (plan("user"), plan("who", spout=Renamed)),
        (plan("user"), plan("user", spout=Longer)),
        (plan("user"), plan("user", spout=Reordered)),
        (plan("user"), plan("user", more=("page",))),
        (plan(by=Grouping.SHUFFLE, par=1), plan(**ALONE)),
        (plan("user"), plan("page", bolt=Other)),
    ],
)
def test_the_same_keys_by_other_names_are_taken_over(begins, before, after):
    check_states(Mock(shape=shape_of(before)), after, drop_state=True)
    begins(after, carried(before))


def test_timers_have_keys_too():
    says = r"count\.timers: visits:default was grouped by fields\(user\)"
    with pytest.raises(UserError, match=says):
        check_states(Mock(shape=shape_of(plan("user", bolt=Reminds))), plan("at", bolt=Reminds), drop_state=True)


def test_a_savepoint_that_says_nothing_of_keys_is_taken(begins):
    begins(plan("page"), {})


def windowed(kind):
    return plan("user", bolt=type("Windowed", (WindowBolt,), {"windows": kind, "on_window": print}))


@pytest.mark.parametrize(
    ("before", "after", "was", "becomes"),
    [
        (Tumbling(10), Tumbling("1 min"), "Tumbling(10.0 s)", "Tumbling(60.0 s)"),
        (Tumbling(10), Tumbling(10, offset=3), "Tumbling(10.0 s)", "Tumbling(10.0 s, offset=3.0 s)"),
        (Sliding(10, 5), Sliding(10, 2.5), "Sliding(10.0 s, 5.0 s)", "Sliding(10.0 s, 2.5 s)"),
        (Sliding(10, 5), Tumbling(10), "Sliding(10.0 s, 5.0 s)", "Tumbling(10.0 s)"),
        (Tumbling(10), Session(10), "Tumbling(10.0 s)", "Session"),
        (CountTumbling(3), CountSliding(3, 1), "CountTumbling", "CountSliding"),
        (CountTumbling(3), Global(rows=3), "CountTumbling", "Global"),
    ],
)
def test_other_windows_are_refused_by_name(begins, before, after, was, becomes):
    before, after = windowed(before), windowed(after)
    says = f"count._windows was a KeyedState(windows, {was}) and would be a KeyedState(windows, {becomes})"
    with pytest.raises(UserError) as caught:
        check_states(Mock(shape=shape_of(before)), after, drop_state=True)
    assert says in caught.value.message
    assert "(of windows the component)" in str(caught.value.hint)
    with pytest.raises(UserError) as caught:
        begins(after, carried(before))
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Tumbling(60), Tumbling("1 min", early=5)),
        (Tumbling(10, offset=3), Tumbling(10, offset=13)),
        (Sliding(10, 10), Tumbling(10)),
        (Session(5), Session(9)),
        (CountTumbling(3), CountTumbling(5)),
        (CountSliding(4, 2), CountSliding(6, 3)),
        (Global(rows=3), Global(early=5)),
    ],
)
def test_windows_that_are_kept_alike_are_taken_over(begins, before, after):
    before, after = windowed(before), windowed(after)
    check_states(Mock(shape=shape_of(before)), after, drop_state=False)
    begins(after, carried(before))


def test_windows_of_plans_and_savepoints_that_do_not_say_which_are_taken_over(begins):
    before, after = windowed(Tumbling(10)), windowed(Tumbling(60))
    older = replace(before["count"], states={"_windows": "KeyedState(windows)"})
    before = replace(before, components=tuple(older if each.name == "count" else each for each in before))
    check_states(Mock(shape=shape_of(before)), after, drop_state=False)
    begins(after, carried(before))
    with pytest.raises(UserError, match=r"was a KeyedState\(windows\) and would be a KeyedState: "):
        check_states(Mock(shape=shape_of(before)), plan("user", bolt=Named), drop_state=False)


def carried(before):
    """As a savepoint carries it."""
    return msgspec.json.decode(msgspec.json.encode(keyed_components(before)), type=dict[str, KeyedComponent])
