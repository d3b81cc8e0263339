"""What only ZooKeeper can do wrong, on one server: damage, credentials, lost answers, expired sessions."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from ardea.errors import Conflict, ExitCode, StateError
from ardea.state import Check, Create, Delete, Set, Term, Unavailable, Versioned, open_state
from ardea.state.address import Address
from ardea.state.envelope import Node, seal
from ardea.state.zookeeper import ZooKeeperState
from tests.process.ports import free_ports
from tests.process.state.ensemble import Ensemble
from tests.process.state.relay import Lose, Relay
from tests.process.waiting import eventually
from tests.sizes import size

pytestmark = pytest.mark.zookeeper

A, B = "/topologies/wc-1", "/pplans/wc-1"


@pytest.fixture
def state(connect, server):
    return connect(server)


@pytest.fixture
def other(connect, server):
    return connect(server)


@contextmanager
def raw(ensemble, **options):
    """Kazoo's own client, as any other program would use it."""
    client = KazooClient(ensemble.hosts, **options)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def expire(state, ensemble):
    """Ends the session from elsewhere: what the servers do after its timeout."""
    with raw(ensemble, client_id=state.session.client().client_id):
        pass


# --- contents -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("contents", "says"),
    [
        (b"", "not written by Ardea"),
        (b'{"topology": "somebody else\'s"}', "not written by Ardea"),
        (seal(Node(b"data", 1))[:-1], "3 bytes of data where 4"),
        (seal(Node(b"data", 1))[:-1] + b"A", "checksum"),
        (b"ardea-state 2 whatever\n", "format 2, this Ardea reads up to 1"),
    ],
)
def test_damage_names_the_znode_and_the_way_out(state, server, root, contents, says):
    state.create(A, b"data")
    with raw(server) as client:
        client.set(root + A, contents)
    for act in (lambda: state.get(A), lambda: state.set(A, b"", 2), lambda: state.delete(A, 2)):
        with pytest.raises(StateError, match=says) as caught:
            act()
        assert f"{root}{A} in ZooKeeper at {server.hosts}" in caught.value.message
        assert caught.value.hint
    assert state.exists(A)
    assert state.children("/topologies") == ("wc-1",)
    state.delete(A)
    assert state.create(A, b"again") == 1


def test_a_copy_that_is_put_back_by_hand_is_read_again(state, server, root):
    state.create(A, b"data")
    with raw(server) as client:
        copy, _ = client.get(root + A)
        client.set(root + A, b"damaged")
        client.set(root + A, copy)
    assert state.get(A) == Versioned(b"data", 3)
    assert state.set(A, b"on", 3) == 4


def test_foreign_znodes_disturb_nobody(state, server, root):
    state.create("/t/wc-1/deep", b"")
    with raw(server) as client:
        for path in ("/t/.foreign", "/t/a b", "/t/empty", "/foreign"):
            client.create(root + path, b"")
    assert state.children("/t") == ("empty", "wc-1")
    state.delete("/t/empty")
    state.delete("/t/wc-1/deep")
    assert state.children("/t") == ()


def test_one_damaged_node_holds_up_no_other_watch(state, server, root, poll_until):
    seen = []
    state.create(A, b"")
    state.create(B, b"fine")
    with raw(server) as client:
        client.set(root + A, b"damaged")
        state.watch(A, seen.append)
        state.watch(B, seen.append)

        def fails():
            try:
                state.poll()
            except StateError as error:
                return root + A in error.message
            return False

        eventually(fails, what="the damage is told")
        eventually(lambda: fails() and seen == [Versioned(b"fine", 1)], what="the other watch tells")
        client.set(root + A, seal(Node(b"repaired", 3)))
    eventually(lambda: not fails() and seen[1:] == [Versioned(b"repaired", 3)], what="the repair is told")


def test_reading_writes_nothing(state, server):
    """Others may write meanwhile: sessions of earlier tests expire."""
    state.exists(A)  # the session is made
    session, _ = state.session.client().client_id

    def written():
        return [each.kind for each in server.servers[0].transactions() if each.session == session]

    before = written()
    assert len(before) == 1, "the session itself"
    seen = []
    state.watch(A, seen.append)
    eventually(lambda: (state.poll(), seen)[1], what="the watch tells")
    assert not state.exists(A)
    assert state.children("/topologies") == ()
    assert written() == before


def test_what_one_transaction_cannot_hold_is_refused_before_it_is_sent(state):
    with pytest.raises(StateError, match=r"1,2\d\d,\d{3} bytes in one transaction.*nothing was changed"):
        state.transaction([Create(A, b"x" * 600_000), Create(B, b"x" * 600_000)])
    assert not state.exists(A)


def test_zookeeper_itself_keeps_children_away_from_data(state, server, root):
    state.create("/t/a/node", b"")
    with raw(server) as client:
        client.create(f"{root}/t/a/allowed", b"")
        with pytest.raises(NoAuthError):
            client.create(f"{root}/t/a/node/child", b"")


@pytest.mark.soak
def test_nodes_below_one_folder_come_and_go_under_many_hands(connect, server):
    failures = []

    def churn(number):
        try:
            with connect(server) as mine:
                for _ in range(size(30, 1000)):
                    mine.create(f"/t/shared/{number}/x", b"")
                    mine.delete(f"/t/shared/{number}/x")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=churn, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert connect(server).children("/t") == ()


# --- credentials ----------------------------------------------------------------------------------------------


def test_a_credential_keeps_others_out_and_stays_out_of_logs(connect, server, caplog):
    caplog.set_level(logging.DEBUG)
    mine, stranger = connect(server, "wc:s3cr3t"), connect(server)
    mine.create(A, b"data")
    lease = mine.lease(B, b"")
    for act in (
        lambda: stranger.get(A),
        lambda: stranger.create("/topologies/wc-2", b""),
        lambda: stranger.children("/topologies"),
        lambda: connect(server, "wc:guess").get(A),
    ):
        with pytest.raises(StateError, match="does not allow it; nothing was changed") as caught:
            act()
        assert "ARDEA_ZOOKEEPER_AUTH" in (caught.value.hint or "")
    assert connect(server, "wc:s3cr3t").get(A).data == b"data"
    assert lease.held
    assert "s3cr3t" not in caplog.text + repr(mine.session.address)


# --- transactions whose connection is lost --------------------------------------------------------------------


@pytest.fixture
def relayed(server, root):
    """A state manager behind a relay, and the relay."""
    with Relay(server.servers[0].port) as relay, ZooKeeperState(Address(f"127.0.0.1:{relay.port}", root)) as state:
        yield state, relay


@pytest.mark.parametrize("lost", list(Lose))
def test_a_write_whose_connection_is_lost_happens_once(relayed, other, lost):
    state, relay = relayed
    for path in (A, B):
        state.create(path, b"0")
    relay.lose(lost, lost)
    sent = relay.transactions
    assert state.transaction([Set(A, b"1", 1), Delete(B)], checks=[Check(A, 1)]) == (2, 0)
    assert relay.transactions - sent == 3
    assert other.get(A) == Versioned(b"1", 2)
    assert not other.exists(B)
    relay.lose(lost)
    assert state.create(B, b"again") == 1
    relay.lose(lost)
    state.delete(B)


def test_a_write_whose_answer_is_lost_is_ours_though_another_came_after_it(relayed, other):
    state, relay = relayed
    state.create(A, b"0")
    relay.lose(Lose.ANSWER, meanwhile=lambda: other.set(A, b"theirs", 2))
    assert state.set(A, b"1", 1) == 2
    assert other.get(A) == Versioned(b"theirs", 3)


def test_a_write_whose_request_is_lost_is_not_ours_when_another_came_before_it(relayed, other):
    state, relay = relayed
    state.create(A, b"0")
    relay.lose(Lose.REQUEST, meanwhile=lambda: other.set(A, b"1", 1))  # the same data
    with pytest.raises(Conflict, match="version 2, not 1"):
        state.set(A, b"1", 1)
    assert other.get(A) == Versioned(b"1", 2)


def test_a_lease_whose_answer_is_lost_is_held(relayed, other):
    state, relay = relayed
    state.create(B, b"")
    relay.lose(Lose.ANSWER)
    lease = state.lease(A, b"me")
    assert lease.held
    relay.lose(Lose.ANSWER)
    lease.release()
    assert not other.exists(A)


def test_an_answer_lost_with_the_session_is_not_guessed(relayed, server):
    state, relay = relayed
    state.create(A, b"0")
    relay.lose(Lose.ANSWER, meanwhile=lambda: expire(state, server))
    with pytest.raises(StateError, match="may or may not be in force"):
        state.set(A, b"1", 1)
    assert state.set(A, b"2", 2) == 3


@pytest.mark.soak
@settings(max_examples=size(15, 500), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.sampled_from([None, *Lose]), max_size=3), min_size=1, max_size=5))
def test_every_increment_counts_once_whatever_is_lost(relayed, other, plans):
    state, relay = relayed
    path = "/counters/wc-1"
    if state.exists(path):
        state.delete(path)
    state.create(path, b"0")
    for number, plan in enumerate(plans, 1):
        relay.lose(*plan)
        assert state.set(path, b"%d" % number, number) == number + 1
    relay.lose()
    assert other.get(path) == Versioned(b"%d" % len(plans), len(plans) + 1)


def test_a_watch_survives_a_lost_connection(relayed, other, poll_until):
    state, relay = relayed
    seen = []
    state.watch(A, seen.append)
    poll_until(state, lambda: seen == [None])
    relay.cut()
    other.create(A, b"1")
    poll_until(state, lambda: seen == [None, Versioned(b"1", 1)])
    relay.cut()
    other.set(A, b"2", 1)
    poll_until(state, lambda: seen[2:] == [Versioned(b"2", 2)])


def test_the_silence_of_the_servers_is_how_long_ago_they_answered(relayed, poll_until, deadline):
    state, relay = relayed
    state.watch(A, lambda _: None)
    poll_until(state, lambda: state.silence < 0.9)
    relay.refuse()
    deadline(lambda: state.poll() or state.silence > 2, "nobody answers", seconds=10)
    relay.admit()
    poll_until(state, lambda: state.silence < 0.9)


# --- sessions -------------------------------------------------------------------------------------------------


def test_an_expired_session_voids_its_leases_and_tells_their_owner(state, other, server, poll_until, caplog):
    seen = []
    lease = state.lease(A, b"me")
    state.watch(A, seen.append)
    poll_until(state, lambda: seen == [Versioned(b"me", 1)])
    assert lease.expires_in > 0
    expire(state, server)
    poll_until(state, lambda: seen[1:] == [None])
    assert lease.expires_in == 0
    assert not lease.held
    assert "leases that this process held are void" in caplog.text
    with other.lease(A, b"another") as theirs:
        lease.release()
        assert theirs.held
    again = state.lease(A, b"me again")
    poll_until(state, lambda: again.expires_in > 0)
    assert again.held
    assert not lease.held


def test_a_term_taken_before_the_session_expired_still_counts(state, server):
    term = Term.take(state, "wc-00000001", "me")
    expire(state, server)
    assert term.transaction([Create("/pplans/wc-00000001", b"")]) == (1,)


HOLDER = """
import sys, threading
from ardea.state.address import Address
from ardea.state.zookeeper import ZooKeeperState
state = ZooKeeperState(Address(sys.argv[1], sys.argv[2]), timeout=4.0)
lease = state.lease("/tmasters/wc-1", b"me")
print("held", flush=True)
threading.Event().wait()
"""


def test_a_lease_goes_with_its_process(state, server, root, run_python):
    holder = run_python(HOLDER, server.hosts, root)
    assert holder.stdout.readline() == "held\n"
    assert state.get("/tmasters/wc-1").data == b"me"
    with pytest.raises(Conflict, match="exists"):
        state.lease("/tmasters/wc-1", b"")
    holder.kill()
    eventually(lambda: not state.exists("/tmasters/wc-1"), what="the session times out")
    assert state.lease("/tmasters/wc-1", b"").held


def test_the_timeout_is_the_one_that_the_servers_have_set(connect, server):
    state = connect(server, timeout=100.0)
    lease = state.lease(A, b"")
    assert state.session.timeout == 60.0
    assert 20 < lease.expires_in <= 40  # of a session of 60 s; a busy machine takes some of it


# --- no answer ------------------------------------------------------------------------------------------------


def test_a_lease_of_somebody_cut_off_runs_out_before_it_can_be_anothers(tmp_path, connect):
    with Ensemble(tmp_path / "zk") as ensemble:
        (server,) = ensemble.servers
        state = connect(ensemble, timeout=9.0)
        lease = state.lease(A, b"")
        for _ in range(3):
            eventually(lambda: (state.poll(), lease.expires_in > 5.5)[1], what="polling keeps it fresh")
            eventually(lambda: lease.expires_in <= 5.5, what="it would run out without")
        server.freeze()
        eventually(lambda: (state.poll(), lease.expires_in == 0)[1], 7, "it runs out")
        server.resume()
        eventually(lambda: (state.poll(), lease.expires_in > 0)[1], what="the session was still there")
        assert lease.held
        server.kill()
        eventually(lambda: (state.poll(), lease.expires_in == 0)[1], 7, "it runs out again")
        state.close()


def test_without_servers_a_call_waits_once_and_the_next_ones_fail_at_once():
    hosts = ",".join(f"127.0.0.1:{port}" for port in free_ports(3))
    now = [0.0]
    with ZooKeeperState(Address(hosts, "/x"), patience=2.0) as state:
        with pytest.raises(Unavailable, match="no ZooKeeper server answers at") as caught:
            state.create(A, b"")
        assert hosts in caught.value.message
        assert "nothing was changed" in caught.value.message
        assert caught.value.exit_code == ExitCode.UNREACHABLE
        began = state.session._clock()
        with pytest.raises(Unavailable):
            state.get(A)
        assert state.session._clock() - began < 1.9, "it waits once more"
        state.watch(A, now.append)
        state.poll()
        assert now == [0.0]


def test_files_do_not_pay_for_zookeeper(tmp_path):
    script = (
        "import sys; from ardea.state import open_state; s = open_state(sys.argv[1]); s.create('/t/a', b'');"
        "assert not {'kazoo', 'tenacity'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "state")], check=True)


def test_an_address_opens_it(server, root):
    with open_state(f"ZooKeeper://{server.hosts}{root}") as state:
        assert state.create(A, b"") == 1
