"""Whose lease a master may remove: that of its own former life, and nobody else's."""

from __future__ import annotations

import msgspec
import pytest

from ardea.state import Term, paths, records
from ardea.state.records import MasterLocation
from ardea.topology_master.standby import Standby
from tests.process.waiting import eventually

pytestmark = [pytest.mark.zookeeper, pytest.mark.alone]

ID = "wc-00000001"
MASTER = paths.master(ID)
END = paths.execution_state(ID)
SECOND = MasterLocation(host="h", port=2, term=0, pid=2, holder="supervisor/topology-master", life=2)


@pytest.fixture(autouse=True)
def known(connect, server):
    """The topology, of which one can be the master."""
    connect(server).create(END, b"")


def hold(state, *, acts=True, **differs):
    """Takes the lease as the first life does, with these differences, and acts; its session stays."""
    location = msgspec.structs.replace(SECOND, **{"port": 1, "life": 1, **differs})
    lease = state.lease(MASTER, records.encode(location))
    if acts:
        term = Term.take(state, ID, "first").number
        state.set(MASTER, records.encode(msgspec.structs.replace(location, term=term)), 1)
    return lease


def port(state):
    return records.decode(state.get(MASTER).data, MasterLocation, MASTER).port


def test_the_lease_of_the_former_life_is_taken_although_its_session_lasts(connect, server):
    first, second = connect(server), connect(server)
    hold(first)
    standby = Standby(second, ID, SECOND)
    lease = eventually(standby.attempt, 5)
    assert (lease.held, port(second)) == (True, 2)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "differs",
    [{"holder": "another/topology-master"}, {"holder": ""}, {"life": 2}, {"life": 3}, {"acts": False}],
    ids=["another supervisor", "no supervisor", "same life", "later life", "no term yet"],
)
def test_any_other_lease_is_waited_for(connect, server, differs):
    first, second = connect(server), connect(server)
    lease = hold(first, **differs)
    standby = Standby(second, ID, SECOND)
    looks = [standby.attempt() for _ in range(200)]
    assert (looks, port(second)) == ([None] * 200, 1)
    lease.release()
    assert eventually(standby.attempt, 5).held


def test_nobody_is_the_master_of_what_the_state_does_not_know(connect, server):
    """It has lost it, and somebody makes it known again, or it has ended: a lease would be one of nothing."""
    state, other = connect(server), connect(server)
    other.delete(END)
    standby = Standby(state, ID, SECOND)
    looks = [standby.attempt() for _ in range(20)]
    assert (looks, standby.unknown, other.exists(MASTER)) == ([None] * 20, True, False)
    other.create(END, b"")
    assert eventually(standby.attempt, 5).held
    assert not standby.unknown


@pytest.mark.thorough
def test_a_master_that_came_meanwhile_keeps_a_lease_of_the_same_version(connect, server, monkeypatch):
    """The former life's is gone, another's is there, between the look and the removal."""
    first, second, other = connect(server), connect(server), connect(server)
    hold(first)
    standby, remove = Standby(second, ID, SECOND), second.transaction

    def too_late(writes, *, checks=()):
        monkeypatch.setattr(second, "transaction", remove)
        first.close()
        hold(other, holder="supervisor/topology-master-2", port=3)
        return remove(writes, checks=checks)

    monkeypatch.setattr(second, "transaction", too_late)
    eventually(lambda: standby.attempt() or other.session.started, 5)
    assert port(second) == 3
