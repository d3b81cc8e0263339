"""What managers see of a topology, on every state manager."""

from __future__ import annotations

import msgspec
import pytest

from ardea.state import MasterWatch, paths, records
from ardea.state.records import ExecutionState, MasterLocation, RunState

ID = "wc-00000001"
MASTER, END = paths.master(ID), paths.execution_state(ID)
WAITING = MasterLocation(host="h", port=1, term=0, pid=1)
ACTING = msgspec.structs.replace(WAITING, term=1)


@pytest.fixture
def master_watch(other):
    return MasterWatch(other, ID)


def sees(master_watch, deadline, condition):
    deadline(lambda: condition(master_watch.look()), "the news come")


def test_a_master_is_seen_when_it_acts_and_until_it_is_gone(state, master_watch, deadline):
    assert master_watch.look().master is None
    lease = state.lease(MASTER, records.encode(WAITING))
    state.create(END, records.encode(ExecutionState(RunState.SUCCEEDED)))
    sees(master_watch, deadline, lambda s: s.final)  # so that the master's node has been seen, too
    assert master_watch.look().master is None
    state.set(MASTER, records.encode(ACTING), 1)
    sees(master_watch, deadline, lambda s: s.master == ACTING)
    lease.release()
    sees(master_watch, deadline, lambda s: s.master is None)


def test_what_cannot_be_read_leaves_what_was_known(state, master_watch, deadline):
    with state.lease(MASTER, records.encode(ACTING)):
        sees(master_watch, deadline, lambda s: s.master == ACTING)
        state.set(MASTER, b"foreign", 1)
        state.create(END, records.encode(ExecutionState(RunState.FAILED)))
        sees(master_watch, deadline, lambda s: s.final)
        assert master_watch.look().master == ACTING
    master_watch.close()
