"""When the state no longer has the topology: was it removed, or has the state lost all that it held?"""

from __future__ import annotations

import pytest

from ardea.errors import Conflict
from ardea.scheduler.keeper_lease import FORGOTTEN, KeeperLease
from ardea.state import FileState, Unavailable, paths, records
from ardea.state.records import SchedulerLocation

ID = "wc-1"


class Forgetful(FileState):
    """Servers that have lost everything when a test says so, or do not answer."""

    gone = away = False

    def lost(self) -> bool:
        if self.away:
            raise Unavailable("nobody answers")
        former, self.gone = self.gone, False
        return former


@pytest.fixture
def state(tmp_path):
    with Forgetful(tmp_path) as state:
        state.create(paths.topology(ID), b"known")
        yield state


@pytest.fixture
def keeper(state):
    """Its lease, and how often the topology was put back."""
    lease = KeeperLease(state, ID)

    def put_back():
        lease.attempts += 1
        state.create(paths.topology(ID), b"put back")

    lease.attempts = 0
    lease.begin(put_back)
    look(state, lease)
    return lease


def look(state, lease):
    state.poll()
    lease.renew()


def test_a_topology_that_was_removed_ends(state, keeper):
    state.delete(paths.topology(ID))
    look(state, keeper)
    assert (keeper.ended, keeper.attempts) == (FORGOTTEN, 0)


def test_one_that_the_servers_have_lost_is_put_back_once(state, keeper):
    for _ in range(2):
        keeper.attempts = 0
        state.delete(paths.topology(ID))
        state.gone = True
        look(state, keeper)
        assert (keeper.ended, keeper.attempts) == ("", 1)
        look(state, keeper)
        assert (keeper.ended, keeper.attempts) == ("", 1)
        assert state.get(paths.topology(ID)).data == b"put back"


def test_a_loss_before_it_began_is_none(state):
    state.gone = True
    lease = KeeperLease(state, ID)
    lease.begin(lambda: pytest.fail("nothing is to be put back"))
    look(state, lease)
    state.delete(paths.topology(ID))
    look(state, lease)
    assert lease.ended == FORGOTTEN


def test_while_nobody_answers_it_does_not_end(state, keeper):
    state.delete(paths.topology(ID))
    state.away = True
    look(state, keeper)
    assert keeper.ended == ""
    state.away, state.gone = False, True
    look(state, keeper)
    assert (keeper.ended, keeper.attempts) == ("", 1)


def test_a_loss_is_remembered_until_the_topology_is_put_back(state):
    attempts = []

    def put_back():
        attempts.append(1)
        if len(attempts) < 3:
            raise Unavailable("nobody answers")
        state.create(paths.topology(ID), b"put back")

    lease = KeeperLease(state, ID)
    lease.begin(put_back)
    state.delete(paths.topology(ID))
    state.gone = True
    for _ in range(4):
        look(state, lease)
    assert (lease.ended, len(attempts)) == ("", 3)


def test_a_name_that_another_has_taken_meanwhile_ends_it(state):
    def put_back():
        raise Conflict("the name wc is taken: wc-2 has it")

    lease = KeeperLease(state, ID)
    lease.begin(put_back)
    state.delete(paths.topology(ID))
    state.gone = True
    look(state, lease)
    assert lease.ended == "the name wc is taken: wc-2 has it"


def test_a_lost_lease_is_taken_again_and_anothers_ends_it(state, keeper):
    state.delete(paths.scheduler(ID))
    look(state, keeper)
    assert state.exists(paths.scheduler(ID))
    assert keeper.ended == ""
    state.delete(paths.scheduler(ID))
    other = records.encode(SchedulerLocation(scheduler="local", host="elsewhere", pid=1))
    state.create(paths.scheduler(ID), other)
    look(state, keeper)
    assert keeper.ended == "the state names another keeper of its processes"
