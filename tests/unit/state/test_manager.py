"""The suite that every state manager passes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ardea.errors import Conflict, NotFound
from ardea.state import Check, Create, Delete, Set, Versioned
from tests.sizes import share

A, B = "/topologies/wc-1", "/pplans/wc-1"


def test_a_created_node_has_version_one_and_each_write_adds_one(state, other):
    assert state.create(A, b"one") == 1
    assert other.get(A) == Versioned(b"one", 1)
    assert other.set(A, b"two", 1) == 2
    assert state.get(A) == Versioned(b"two", 2)


@pytest.mark.parametrize("version", [1, 2, 2001])
def test_a_node_that_was_lost_gets_its_version_back(state, other, version):
    assert state.transaction([Create(A, b"", 3), Create(B, b"whole", version)]) == (3, version)
    assert other.get(B) == Versioned(b"whole", version)
    assert other.set(B, b"next", version) == version + 1
    assert state.transaction([Set(A, b"higher", 3, rise=4), Set(B, b"last", version + 1)]) == (7, version + 2)
    assert (other.get(A), other.get(B)) == (Versioned(b"higher", 7), Versioned(b"last", version + 2))


def test_a_node_created_again_starts_at_one(state):
    state.create(A, b"")
    state.set(A, b"", 1)
    state.delete(A)
    assert state.create(A, b"") == 1


@pytest.mark.parametrize("data", [b"", b"\n", bytes(range(256)), b"x" * 1_000_000])
def test_any_bytes_come_back(state, other, data):
    state.create(A, data)
    assert other.get(A).data == data


def test_what_is_not_there_is_not_found(state):
    for act in (state.get, state.delete, lambda p: state.set(p, b"", 1), lambda p: state.delete(p, 1)):
        with pytest.raises(NotFound, match=A):
            act(A)
    assert not state.exists(A)
    assert state.children("/topologies") == ()


def test_create_refuses_what_exists(state, other):
    state.create(A, b"mine")
    with pytest.raises(Conflict, match=rf"{A} exists, at version 1"):
        other.create(A, b"theirs")
    assert state.get(A) == Versioned(b"mine", 1)


def test_a_lost_write_names_path_and_versions(state, other):
    state.create(A, b"")
    other.set(A, b"theirs", 1)
    for act in (lambda: state.set(A, b"mine", 1), lambda: state.delete(A, 1)):
        with pytest.raises(Conflict, match=rf"{A} is at version 2, not 1"):
            act()
    assert state.get(A) == Versioned(b"theirs", 2)
    state.delete(A, 2)
    assert not other.exists(A)


def test_children_are_nodes_and_what_leads_to_them(state, other):
    for path in ("/t/b", "/t/a", "/t/c/deep/er", "/u/x"):
        state.create(path, b"")
    assert other.children("/t") == ("a", "b", "c")
    assert other.children("/t/c") == ("deep",)
    assert other.children("/t/a") == ()
    state.delete("/t/c/deep/er")
    assert other.children("/t") == ("a", "b")


def test_a_node_has_data_or_children(state):
    state.create("/t/a/b", b"")
    for path in ("/t/a", "/t/a/b/c"):
        with pytest.raises(Conflict, match="data or children"):
            state.create(path, b"")
    with pytest.raises(Conflict, match="data or children"):
        state.transaction([Create("/t/x/y", b""), Create("/t/x", b"")])
    with pytest.raises(Conflict, match="data or children"):
        state.transaction([Create("/t/x", b""), Create("/t/x/y", b"")])
    assert state.children("/t") == ("a",)
    state.delete("/t/a/b")
    assert state.create("/t/a", b"") == 1


@pytest.mark.parametrize(
    "path", ["", "t/a", "/", "/t/", "/t//a", "/t/../a", "/t/.hidden", "/t/a b", "/t/a.node", "/t/" + "a" * 201]
)
def test_a_malformed_path_is_refused(state, path):
    for act in (state.get, lambda p: state.create(p, b""), state.children, lambda p: state.watch(p, print)):
        with pytest.raises(ValueError, match="not a state path"):
            act(path)


def test_a_node_does_not_lie_at_a_kind(state):
    with pytest.raises(ValueError, match="/kind/id"):
        state.create("/topologies", b"")


def test_a_transaction_does_everything(state, other):
    state.create(A, b"old")
    state.create("/gone/wc-1", b"")
    versions = state.transaction([Set(A, b"new", 1), Create(B, b"plan"), Delete("/gone/wc-1")], checks=[Check(A, 1)])
    assert versions == (2, 1, 0)
    assert other.get(A) == Versioned(b"new", 2)
    assert other.get(B) == Versioned(b"plan", 1)
    assert not other.exists("/gone/wc-1")


@pytest.mark.parametrize(
    ("write", "check", "error"),
    [
        (Set(B, b"", 7), None, Conflict),
        (Set("/none/wc-1", b"", 1), None, NotFound),
        (Create(B, b""), None, Conflict),
        (Delete(B, 7), None, Conflict),
        (Delete("/none/wc-1"), None, NotFound),
        (Set(B, b"", 1), Check(A, 7), Conflict),
        (Set(B, b"", 1), Check("/none/wc-1", 1), NotFound),
    ],
)
def test_a_transaction_that_is_refused_changes_nothing(state, write, check, error):
    state.create(A, b"a")
    state.create(B, b"b")
    with pytest.raises(error):
        state.transaction([Set(A, b"changed", 1), write], checks=[check] if check else [])
    assert state.get(A) == Versioned(b"a", 1)
    assert state.get(B) == Versioned(b"b", 1)


def test_a_transaction_of_checks_alone_only_checks(state):
    state.create(A, b"")
    assert state.transaction([], checks=[Check(A, 1)]) == ()
    with pytest.raises(Conflict):
        state.transaction([], checks=[Check(A, 2)])


def test_a_transaction_stays_within_one_topology_and_writes_a_path_once(state):
    with pytest.raises(ValueError, match="one topology"):
        state.transaction([Create(A, b""), Create("/topologies/wc-2", b"")])
    with pytest.raises(ValueError, match="once"):
        state.transaction([Create(A, b""), Create(A, b"")])


def test_a_lease_is_there_until_it_is_released(state, other):
    with state.lease(A, b"me") as lease:
        assert lease.held
        assert other.get(A) == Versioned(b"me", 1)
        assert other.children("/topologies") == ("wc-1",)
    assert not lease.held
    assert not other.exists(A)
    assert other.children("/topologies") == ()
    lease.release()
    other.create(A, b"a plain node")


def test_one_holds_a_lease_and_the_next_gets_it_afterwards(state, other):
    first = state.lease(A, b"first")
    for manager in (state, other):
        with pytest.raises(Conflict, match=A):
            manager.lease(A, b"second")
    first.release()
    second = other.lease(A, b"second")
    first.release()
    assert second.held
    assert state.get(A).data == b"second"


def test_a_lease_is_not_taken_where_a_node_is(state):
    state.create(A, b"")
    with pytest.raises(Conflict):
        state.lease(A, b"")


def test_the_data_of_a_lease_changes_like_any_other(state, other):
    lease = state.lease(A, b"1")
    assert state.set(A, b"2", 1) == 2
    assert lease.held
    assert other.get(A) == Versioned(b"2", 2)
    lease.release()
    assert not other.exists(A)
    with pytest.raises(NotFound):
        state.set(A, b"3", 2)


def test_a_lease_that_somebody_deletes_is_lost(state, other):
    other.create(B, b"")
    lost = state.lease(A, b"old")
    other.delete(A)
    assert not lost.held
    again = other.lease(A, b"new")
    lost.release()
    assert again.held
    assert state.get(A).data == b"new"


def test_close_releases_leases_and_can_be_repeated(backend, other):
    state = backend.connect()
    lease = state.lease(A, b"")
    state.close()
    state.close()
    assert not lease.held
    assert not other.exists(A)


def test_a_watch_tells_what_is_there_and_then_each_change(state, other, poll_until):
    seen = []
    state.watch(A, seen.append)
    poll_until(state, lambda: seen == [None])
    other.create(A, b"1")
    poll_until(state, lambda: seen == [None, Versioned(b"1", 1)])
    other.set(A, b"2", 1)
    poll_until(state, lambda: seen[2:] == [Versioned(b"2", 2)])
    other.delete(A)
    poll_until(state, lambda: seen[3:] == [None])
    state.poll()
    assert len(seen) == 4


def test_a_watch_tells_the_last_of_several_changes(state, other, poll_until):
    seen = []
    other.create(A, b"1")
    state.watch(A, seen.append)
    poll_until(state, lambda: bool(seen))
    for version in range(1, 10):
        other.set(A, b"next", version)
    poll_until(state, lambda: seen[-1] == Versioned(b"next", 10))


def test_a_watch_sees_a_lease_come_and_go(state, other, poll_until):
    seen = []
    state.watch(A, seen.append)
    lease = other.lease(A, b"me")
    poll_until(state, lambda: seen[-1:] == [Versioned(b"me", 1)])
    lease.release()
    poll_until(state, lambda: seen[-1] is None)


def test_a_cancelled_watch_is_silent_even_within_one_poll(state, other, poll_until):
    seen = []
    second = state.watch(B, lambda now: seen.append("second"))
    first = state.watch(A, lambda now: (seen.append("first"), second.cancel(), third.cancel(), first.cancel()))
    third = state.watch(B, lambda now: seen.append("third"))
    poll_until(state, lambda: "first" in seen)
    other.create(A, b"")
    other.create(B, b"")
    state.poll()
    assert seen == ["second", "first"]


def test_close_ends_watches(backend, state, poll_until):
    seen, watcher = [], backend.connect()
    watcher.watch(A, seen.append)
    poll_until(watcher, lambda: seen == [None])
    watcher.close()
    state.create(A, b"")
    watcher.poll()
    assert seen == [None]


PATHS = st.sampled_from(["/t/a", "/u/a", "/u/a/x", "/v/a/y/z"])
DATA = st.binary(max_size=8)
VERSIONS = st.integers(1, 3)
WRITES = st.one_of(
    st.builds(Create, PATHS, DATA),
    st.builds(Set, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, st.none() | VERSIONS),
)
TRANSACTIONS = st.tuples(
    st.lists(WRITES, min_size=1, max_size=3, unique_by=lambda w: w.path),
    st.lists(st.builds(Check, PATHS, VERSIONS), max_size=1),
)


def apply_to_model(model, writes, checks):
    """The new model, or None where the transaction must be refused."""
    if any(c.path not in model or model[c.path].version != c.version for c in checks):
        return None
    new, written = dict(model), {w.path for w in writes}
    for write in writes:
        old = model.get(write.path)
        if isinstance(write, Create):
            near = {*model, *written} - {write.path}
            if old or any(p.startswith(write.path + "/") or write.path.startswith(p + "/") for p in near):
                return None
            new[write.path] = Versioned(write.data, 1)
        elif old is None or write.version not in (None, old.version):
            return None
        elif isinstance(write, Set):
            new[write.path] = Versioned(write.data, old.version + 1)
        else:
            del new[write.path]
    return new


@settings(max_examples=share(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TRANSACTIONS, max_size=12))
def test_any_history_equals_a_dictionary(backend, history):
    managers = [backend.fresh(), backend.connect()]
    model = {}
    for number, (writes, checks) in enumerate(history):
        writer, reader = managers[number % 2], managers[(number + 1) % 2]
        new = apply_to_model(model, writes, checks)
        if new is None:
            with pytest.raises((Conflict, NotFound)):
                writer.transaction(writes, checks=checks)
        else:
            versions = writer.transaction(writes, checks=checks)
            assert versions == tuple(new[w.path].version if w.path in new else 0 for w in writes)
            model = new
        for path in ("/t/a", "/u/a", "/u/a/x", "/v/a/y/z"):
            assert reader.exists(path) == (path in model)
            assert path not in model or reader.get(path) == model[path]
        for kind in ("t", "u", "v"):
            assert reader.children(f"/{kind}") == (("a",) if any(p.startswith(f"/{kind}/") for p in model) else ())
