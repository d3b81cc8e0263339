"""Items of lists are shared out again when the number of tasks changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea import Spout
from ardea.errors import UserError
from ardea.heron_instance.states import States
from ardea.keyed import KeyedState, ListState
from ardea.snapshots.key_groups import Keys


class Reads(Spout):
    outputs = ["row"]
    open = ListState()
    positions = ListState(share="all")

    def next_tuple(self): ...


def made(index, tasks):
    spout = Reads()
    return spout, States(spout, Keys("reads", index, tasks, 720, 1))


def file(spout, states, *, full=True):
    states.freeze()
    return b"".join(states.pieces(full=full))


def shared(files, tasks):
    """What each of so many tasks has after it has read the files of all former ones that it needs."""
    for index in range(tasks):
        spout, states = made(index, tasks)
        for former, content in enumerate(files):
            if former == index or states.needs(former, len(files)):
                states.load(content, "f", former, own=former == index)
        states.loaded(len(files))
        yield spout


@given(st.lists(st.lists(st.integers()), min_size=1, max_size=5), st.integers(1, 5))
def test_each_item_has_one_task_in_order_and_evenly(lists, tasks):
    files = []
    for index, items in enumerate(lists):
        spout, states = made(index, len(lists))
        spout.open.extend(items)
        files.append(file(spout, states))
    found = [spout.open for spout in shared(files, tasks)]
    assert [item for each in found for item in each] == [item for each in lists for item in each]
    if tasks == len(lists):
        assert found == lists, "nobody's items move where the number stays"
    else:
        assert max(map(len, found)) - min(map(len, found)) <= 1


@given(st.lists(st.lists(st.tuples(st.text(), st.integers())), min_size=1, max_size=4), st.integers(1, 4))
def test_positions_of_all_are_with_everybody(lists, tasks):
    files = []
    for index, items in enumerate(lists):
        spout, states = made(index, len(lists))
        spout.positions.extend(items)
        files.append(file(spout, states))
    everything = [list(item) for each in lists for item in each]
    assert [spout.positions for spout in shared(files, tasks)] == [everything] * tasks


def test_the_last_file_says_what_a_list_holds_and_it_is_as_it_was_at_the_barrier():
    spout, states = made(0, 1)
    spout.open.extend(["a", ["b"]])
    first = file(spout, states)
    spout.open[1].append("c")
    spout.open.pop(0)
    second = file(spout, states, full=False)
    spout.open.clear()
    again, put_back = made(0, 1)
    for content in (first, second):
        put_back.load(content, "f", 0)
    put_back.loaded(1)
    assert again.open == [["b", "c"]]


def test_what_cannot_be_stored_is_named_with_its_list():
    spout, states = made(0, 1)
    spout.open.append(object())
    with pytest.raises(UserError, match="state 'open' holds a object, which cannot be stored"):
        states.freeze()


def test_a_task_without_lists_reads_no_file_more():
    class Count(Spout):
        outputs = ["row"]
        counts = KeyedState(default=0)

    states = States(Count(), Keys("count", 0, 2, 720, 1))
    assert [states.needs(index, 2) for index in range(2)] == [True, False]


def test_on_an_object_that_no_topology_runs_it_says_so():
    with pytest.raises(UserError, match=r"Reads\.open was used on a component that is not running"):
        Reads().open.append(1)
    assert isinstance(Reads.open, ListState)
