"""States that a component asks for in `initialize`, and keys that begin with those of a grouping."""

from __future__ import annotations

import pytest

from ardea import Bolt, KeyedState, ListState, TaskState, Timers, UserError
from ardea.heron_instance.states import States
from ardea.keyed import prefix_of
from ardea.snapshots.key_groups import Keys, owned_by

ALL = Keys("count", 0, 1, 720, 1)


class Count(Bolt):
    counts = KeyedState(default=0)


def named(name, default=0):
    state = KeyedState(default=default)
    state.name = name
    return state


def file(states):
    states.freeze()
    return b"".join(states.pieces(full=True))


def test_what_a_snapshot_holds_of_a_state_is_there_when_it_is_asked_for():
    states = States(Count(), ALL)
    table = states.add(named("errors"))
    states.complete()
    table.update({"a": 1, "b": 2, "c": [3]})
    base = file(states)
    states.stored()
    del table["b"]
    table["c"].append(4)
    states.freeze()
    delta = b"".join(states.pieces(full=False))
    again = States(Count(), ALL)
    for content in (base, delta):
        again.load(content, "f")
    again.loaded(1)
    found = again.add(named("errors"))
    assert found == {"a": 1, "c": [3, 4]}
    assert file(again) == file(states)


class Bare(Bolt):
    """It declares no state."""


def bare(index, tasks):
    return States(Bare(), Keys("count", index, tasks, 720, 1))


def test_among_more_tasks_the_keys_of_a_state_that_is_asked_for_go_with_their_groups():
    """Files are read before `initialize` has asked for it."""
    files = []
    for index in range(2):
        states = bare(index, 2)
        table = states.add(named("errors"))
        table.update({key: key for key in range(100) if ALL.group(key) in owned_by(index, 2, 720)})
        files.append(file(states))
    found = []
    for index in range(4):
        states = bare(index, 4)
        for former in range(2):
            if states.needs(former, 2):
                states.load(files[former], "f", former, own=former == index)
        states.loaded(2)
        found += states.add(named("errors"))
        states.complete()
    assert sorted(found) == [*range(100)]


def test_what_nobody_asks_for_is_dropped():
    states = States(Count(), ALL)
    states.add(named("errors"))["a"] = 1
    again = States(Count(), ALL)
    again.load(file(states), "f")
    again.complete()
    with pytest.raises(UserError, match=r"keyed_state\('errors'\) was called too late"):
        again.add(named("errors"))


class One(Bolt):
    seen = TaskState(default=0)


class Several(Bolt):
    seen = ListState()


class Timed(Bolt):
    seen = Timers()


@pytest.mark.parametrize(("bolt", "kind"), [(One, "TaskState"), (Several, "ListState"), (Timed, "Timers")])
@pytest.mark.parametrize("keys", [["w1", "w2"], [("w1", 1), ("w2", 2)], [("w1", "x"), ("w2", "y")]], ids=repr)
def test_what_was_asked_for_and_is_now_declared_as_another_kind_is_refused(bolt, kind, keys):
    states = States(Count(), ALL)
    states.add(named("seen")).update(dict.fromkeys(keys, 1))
    base = file(states)
    with pytest.raises(UserError) as caught:
        States(bolt(), ALL).load(base, "f")
    assert (
        caught.value.message == "count: what the snapshot holds of state 'seen' cannot be read: it was a KeyedState, "
        f"and is a {kind}"
    )
    assert "needs another name" in caught.value.hint


def test_timers_are_read_as_timers():
    """Of each type of key, and those that are gone."""
    bolt = Timed()
    states = States(bolt, ALL)
    for key in ("w1", ("w1", 1), 5, 1.5, None):
        bolt.seen.set(key, 7)
    base = file(states)
    states.stored()
    bolt.seen.cancel(5)
    states.freeze()
    delta = b"".join(states.pieces(full=False))
    again = Timed()
    found = States(again, ALL)
    found.load(base, "f")
    found.load(delta, "f")
    found.loaded(1)
    assert [again.seen.get(key) for key in ("w1", ("w1", 1), 5, 1.5, None)] == [7.0, 7.0, None, 7.0, 7.0]


def test_a_name_is_that_of_one_state():
    states = States(Count(), ALL)
    with pytest.raises(UserError, match="two states named 'counts'"):
        states.add(named("counts"))


class ByUser(Bolt):
    users = KeyedState(default=0, by=1)
    pages = KeyedState(default=0, by=1)


def test_with_by_the_first_fields_say_whose_a_key_is():
    assert (prefix_of(ByUser), prefix_of(Count)) == (1, None)
    one, two = (Keys("count", 0, 1, 720, fields, prefix=True) for fields in (1, 2))
    assert one.group("ann") == one.group(("ann", "home")) == one.group(("ann",)) == ALL.group("ann")
    assert two.group(("ann", 1, "x")) == two.group(("ann", 1)) == Keys("count", 0, 1, 720, 2).group(("ann", 1))


def test_with_by_many_rows_at_once_are_checked_too():
    keys = Keys("count", 0, 2, 720, 1, prefix=True)
    bolt = ByUser()
    States(bolt, keys)
    users = {keys.group(user) in owned_by(0, 2, 720): user for user in "abcdefgh"}
    bolt.pages.put_many([(users[True], "home")], [1])
    with pytest.raises(UserError, match="is one of count-1"):
        bolt.pages.put_many([(users[False], "home")], [1])
