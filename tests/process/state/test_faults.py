"""Three servers, of which some or all fail while a state manager works."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from ardea.errors import StateError
from ardea.state import Create, Set, Term, Unavailable, Versioned
from tests.process.waiting import eventually
from tests.sizes import size

pytestmark = [pytest.mark.zookeeper, pytest.mark.alone]

ID = "wc-00000001"
A, PLAN = f"/topologies/{ID}", f"/pplans/{ID}"


class Counter:
    """A master that writes all the time: each write is a transaction under its term, and none may be lost."""

    def __init__(self, state):
        self.term = Term.take(state, ID, "counter")
        self.term.transaction([Create(PLAN, b"0")])
        self.count = 0
        self.failure = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        try:
            while not self._stop.is_set():
                self.count += 1
                (version,) = self.term.transaction([Set(PLAN, b"%d" % self.count, self.count)])
                assert version == self.count + 1
        except BaseException as error:
            self.failure = error

    def advances(self, by=20):
        goal = self.count + by
        eventually(lambda: self.failure or self.count >= goal, 30, f"{goal} writes")
        assert self.failure is None, repr(self.failure)

    @contextmanager
    def running(self):
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()
        assert self.failure is None, repr(self.failure)


@pytest.mark.thorough
@pytest.mark.soak
def test_whichever_server_is_killed_writes_and_reads_go_on(three, connect):
    state, reader = connect(three), connect(three)
    counter = Counter(state)
    with counter.running():
        for _ in range(size(1, 20)):
            for server in three.servers:
                counter.advances()
                server.kill()
                counter.advances()
                assert int(reader.get(PLAN).data) > 0
                three.start()
    assert reader.get(PLAN) == Versioned(b"%d" % counter.count, counter.count + 1)


@pytest.mark.soak
def test_the_leader_is_killed_during_versioned_writes(three, connect):
    state, reader = connect(three, patience=30.0), connect(three)  # the servers elect another one
    counter = Counter(state)
    with counter.running():
        for _ in range(size(2, 50)):
            counter.advances()
            three.leader.kill()
            counter.advances()
            three.start()
    assert reader.get(PLAN) == Versioned(b"%d" % counter.count, counter.count + 1)


@pytest.mark.thorough
def test_a_frozen_leader_is_replaced_and_comes_back_as_a_follower(three, connect):
    # What is slow here is the servers' election, and the attempts to connect to one that says nothing.
    state, reader = connect(three, patience=30.0), connect(three)
    counter = Counter(state)
    lease = state.lease(A, b"")
    with counter.running():
        former = three.leader
        former.freeze()
        others = [server for server in three.servers if server is not former]
        eventually(lambda: any(s.mode == "leader" for s in others), 30, "another leads")
        counter.advances()
        former.resume()
        eventually(lambda: former.mode == "follower", 30, "the former leader follows")
        counter.advances()
    assert reader.get(PLAN) == Versioned(b"%d" % counter.count, counter.count + 1)
    assert lease.held


@pytest.mark.thorough
def test_all_servers_are_killed_and_come_back_with_everything(three, connect):
    state = connect(three, timeout=30.0, patience=1.0)
    seen = []
    for number in range(20):
        state.create(f"/topologies/wc-{number}", b"%d" % number)
    lease = state.lease(A, b"me")
    state.watch(A, seen.append)
    eventually(lambda: (state.poll(), seen)[1], what="the watch tells")
    for server in three.servers:
        server.kill()
    for act in (lambda: state.get(A), lambda: state.set(A, b"", 1), lambda: state.children("/topologies")):
        with pytest.raises(Unavailable, match="no ZooKeeper server answers"):
            act()
    state.poll()
    three.start()
    eventually(lambda: state.session.connected, what="the connection is back")
    assert lease.held, "the servers count the timeout anew"
    assert state.children("/topologies") == tuple(sorted([ID, *(f"wc-{n}" for n in range(20))]))
    for number in range(20):
        assert state.get(f"/topologies/wc-{number}") == Versioned(b"%d" % number, 1)
    assert state.set(A, b"still me", 1) == 2
    eventually(lambda: (state.poll(), seen[1:] == [Versioned(b"still me", 2)])[1], what="the watch tells the change")


@pytest.mark.thorough
def test_two_of_three_gone_is_an_outage_and_not_a_fork(three, connect):
    state = connect(three, patience=2.0)
    state.create(A, b"0")
    for server in three.servers[1:]:
        server.kill()
    with pytest.raises(StateError):
        eventually(lambda: state.set(A, b"1", 1) and False, 30)
    three.start()
    eventually(lambda: state.session.connected, what="the connection is back")
    held = state.get(A)
    assert held.version in (1, 2)
    assert state.set(A, b"2", held.version) == held.version + 1
