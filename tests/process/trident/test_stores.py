"""Backing maps on real servers: their contract, and transactions through dying servers and tasks that come late."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from ardea.errors import FailedException, StateError
from ardea.testing.backing import check_backing_map
from ardea.trident import LRUMemoryMapState, MemcachedState, MemoryMap, RedisState, SqliteState
from ardea.trident.maps import CachedMap
from ardea.trident.memcached import MemcachedMap
from ardea.trident.memory import LRUMemoryMap
from tests.process.waiting import eventually

from .servers import memcached, redis_server

KINDS = ["opaque", "transactional", "non_transactional"]


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    server = redis_server(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture(scope="module")
def memory():
    server = memcached()
    yield server
    server.kill()


@pytest.fixture
def factory(request, tmp_path, redis, memory):
    """Of (backend, kind, options): a factory with a namespace of its own."""

    def make(backend, kind="opaque", **options):
        name = request.node.name
        if backend == "redis":
            return getattr(RedisState, kind)(f"redis://127.0.0.1:{redis.port}", name, **options)
        if backend == "memcached":
            name = "".join(filter(str.isalnum, name))
            return getattr(MemcachedState, kind)(f"127.0.0.1:{memory.port}", name, **options)
        return getattr(SqliteState, kind)(tmp_path / "state.sqlite", **options)

    return make


BACKENDS = ["sqlite", "redis", "memcached"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_contract_of_backing_maps(factory, backend):
    check_backing_map(factory(backend).open)


def test_the_contract_in_memory():
    check_backing_map(lambda _: MemoryMap(), outlives=False)
    check_backing_map(lambda _: CachedMap(MemoryMap(), 3), outlives=False)
    check_backing_map(lambda _: LRUMemoryMap(5000), outlives=False)


def test_a_memory_that_forgets():
    state = LRUMemoryMapState(2).make_state({}, 0, 1)
    state.begin_commit(1)
    for key in "abac":
        state.multi_update([(key,)], [lambda stored: (stored or 0) + 1])
    state.commit(1)
    assert state.multi_get([("a",), ("b",), ("c",)]) == [2, None, 1]


def plus(number, stored):
    return (stored or 0) + number


def add(state, txid, words, commit=True):
    state.begin_commit(txid)
    keys = [(word,) for word in dict.fromkeys(words)]
    updates = [partial(plus, words.count(word)) for (word,) in keys]
    values = state.multi_update(keys, updates)
    if commit:
        state.commit(txid)
    return values


def values(state, words):
    return state.multi_get([(word,) for word in words])


@pytest.mark.parametrize("cache", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_transactions_over_lives(factory, backend, kind, cache):
    """The second life repeats what the first one had begun to commit; an opaque repetition may have other words."""
    made = factory(backend, kind, cache=cache)
    first = made.make_state({}, 0, 1)
    add(first, 1, "aab")
    add(first, 2, "bc", commit=False)
    second = made.make_state({}, 0, 1)
    again = "cd" if kind == "opaque" else "bc"
    add(second, 2, again)
    add(second, 3, "ad")
    assert (
        values(second, "abcd")
        == {
            "opaque": [3, 1, 1, 2],
            "transactional": [3, 2, 1, 1],
            "non_transactional": [3, 3, 2, 1],
        }[kind]
    )
    with pytest.raises((FailedException, StateError)):
        add(first, 2, "ab")
    assert values(second, "a") == [3]
    first.close()
    second.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_grouped_and_ungrouped(factory, backend):
    from ardea.trident import SnapshottableMap

    single = SnapshottableMap(factory(backend).make_state({}, 0, 1))
    for txid in (1, 2, 2):
        single.begin_commit(txid)
        single.update(lambda stored: (stored or 0) + 5)
        single.commit(txid)
    assert single.get() == 10
    single.close()


def test_what_redis_has_acknowledged_outlives_it(tmp_path):
    server = redis_server(tmp_path)
    try:
        state = RedisState.opaque(f"redis://127.0.0.1:{server.port}", "x").make_state({}, 0, 1)
        add(state, 1, "aab")
        server.kill()
        with pytest.raises(StateError, match="cannot be read"):
            add(state, 2, "a")
        server.start()
        add(state, 2, "ab")
        assert values(state, "ab") == [3, 2]
        state.close()
    finally:
        server.kill()


@pytest.mark.parametrize("point", range(7))
def test_a_committer_frozen_anywhere_in_a_write_loses(memory, monkeypatch, point):
    """Memcached has no transactions: the old task stops before its n-th command, the new one commits other words."""
    made = MemcachedState.opaque(f"127.0.0.1:{memory.port}", f"frozen{point}")
    old = made.make_state({}, 0, 1)
    add(old, 1, "abc")
    backing: MemcachedMap = old._backing
    real, sent, woken = backing._client, [], []

    class Client:
        def __getattr__(self, name):
            call = getattr(real, name)

            def command(*args, **kwargs):
                sent.append(name)
                if len(sent) == point + 1:
                    new = made.make_state({}, 0, 1)
                    add(new, 2, "bd")
                    add(new, 3, "e")
                    woken.append(new)
                return call(*args, **kwargs)

            return command

    backing._client = Client()
    old.begin_commit(2)
    try:
        old.multi_update([(word,) for word in "abcf"], [lambda stored: (stored or 0) + 100] * 4)
        late = False
    except (FailedException, StateError):
        late = True
    if not woken:
        pytest.fail(f"a write has {len(sent)} commands only")
    new = woken[0]
    assert late
    assert values(new, "abcdef") == [1, 2, 1, 1, 1, None]
    add(new, 4, "abcdef")
    assert values(new, "abcdef") == [2, 3, 2, 2, 2, 1]
    backing._client = real
    old.close()
    new.close()


@pytest.mark.parametrize("kind", ["transactional", "opaque"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_process_that_wakes_up_after_two_batches_of_its_replacement(backend, kind, tmp_path, redis, memory, leaks):
    """SIGSTOP between its read and its write, SIGCONT after the replacement has committed two transactions."""
    place = {
        "sqlite": [str(tmp_path / "state.sqlite")],
        "redis": [f"redis://127.0.0.1:{redis.port}", f"woken-{kind}"],
        "memcached": [f"127.0.0.1:{memory.port}", f"woken-{kind}"],
    }[backend]
    command = [sys.executable, str(Path(__file__).parent / "frozen.py"), backend, kind, *place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as frozen:
        try:
            eventually(lambda: Path(f"/proc/{frozen.pid}/stat").read_text().split()[2] == "T", 20, "it stands still")
            state = getattr({"sqlite": SqliteState, "redis": RedisState, "memcached": MemcachedState}[backend], kind)(
                *place
            ).make_state({}, 0, 1)
            add(state, 2, ["a", "new"] if kind == "transactional" else ["b"])
            add(state, 3, ["b"])
            expected = [2, 2, 1] if kind == "transactional" else [1, 3, None]
            assert values(state, ["a", "b", "new"]) == expected
            frozen.send_signal(signal.SIGCONT)
            said = frozen.communicate(timeout=20)[0]
        finally:
            frozen.kill()
    assert said.startswith("refused: ")
    assert values(state, ["a", "b", "new"]) == expected
    add(state, 4, ["a", "b", "new"])
    assert values(state, ["a", "b", "new"]) == [(value or 0) + 1 for value in expected]
    state.close()
