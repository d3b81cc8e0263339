"""A master writes only while its term runs, on every state manager."""

from __future__ import annotations

import pytest

from ardea.errors import Conflict, NotFound
from ardea.state import Create, Delete, Fenced, Set, Term, paths

ID = "wc-00000001"
PLAN = paths.physical_plan(ID)


def test_terms_rise_by_one(state, other):
    assert [Term.take(manager, ID, "host:1").number for manager in (state, other, state)] == [1, 2, 3]
    assert other.get(paths.term(ID)).data == b"host:1"


def test_a_term_is_above_one_that_the_state_has_lost(state, other):
    assert Term.take(state, ID, "first", above=6).number == 7
    assert state.get(paths.term(ID)).version == 7
    assert Term.take(other, ID, "next", above=9).number == 10
    assert Term.take(state, ID, "last", above=3).number == 11


def test_a_master_writes_until_the_next_one_takes_its_term(state, other):
    old = Term.take(state, ID, "old")
    assert old.transaction([Create(PLAN, b"1")]) == (1,)
    new = Term.take(other, ID, "new")
    with pytest.raises(Fenced, match=r"term 1 .* is over; nothing was changed"):
        old.transaction([Set(PLAN, b"2", 1)])
    assert new.transaction([Set(PLAN, b"3", 1)]) == (2,)
    assert state.get(PLAN).data == b"3"


def test_a_master_whose_topology_was_removed_is_fenced(state, other):
    term = Term.take(state, ID, "master")
    other.delete(paths.term(ID))
    with pytest.raises(Fenced):
        term.transaction([Create(PLAN, b"")])
    assert not state.exists(PLAN)


def test_a_conflict_within_the_term_is_no_fence(state):
    term = Term.take(state, ID, "master")
    with pytest.raises(NotFound):
        term.transaction([Delete(PLAN)])
    state.create(PLAN, b"")
    with pytest.raises(Conflict) as caught:
        term.transaction([Set(PLAN, b"", 7)])
    assert not isinstance(caught.value, Fenced)


@pytest.mark.parametrize("there", [False, True])
def test_masters_that_take_their_terms_at_once_get_different_ones(state, other, monkeypatch, there):
    if there:
        Term.take(state, ID, "former")
    get, taken = state.get, []

    def get_and_be_overtaken(path):
        try:
            return get(path)
        finally:
            if not taken:
                taken.append(Term.take(other, ID, "faster").number)

    monkeypatch.setattr(state, "get", get_and_be_overtaken)
    assert Term.take(state, ID, "slower").number == taken[0] + 1
