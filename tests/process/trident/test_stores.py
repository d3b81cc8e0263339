"""Backing maps on real servers: their contract, Storm's tables, how often a batch asks them, and transactions
through dying servers and tasks that come late.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from itertools import takewhile
from pathlib import Path

import pytest
from redis import Redis

from ardea.errors import FailedException, StateError, UserError
from ardea.testing import Cluster
from ardea.testing.backing import check_backing_map
from ardea.trident import (
    Count,
    FixedBatchSpout,
    LRUMemoryMapState,
    MemcachedState,
    MemoryMap,
    RedisState,
    SqliteState,
    TridentTopology,
)
from ardea.trident.maps import CachedMap
from ardea.trident.memcached import MemcachedMap
from ardea.trident.memory import LRUMemoryMap
from tests.machine import patient
from tests.process.waiting import eventually
from tests.unit.trident import test_maps

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
    check_backing_map(lambda partition: factory(backend).open(partition, 2))


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_who_only_asks_takes_nothing_over(factory, backend, kind):
    """As another topology does with ``new_static_state``, with a number of tasks of its own."""
    made = factory(backend, kind, cache=9)
    owner = made.make_state({}, 0, 1)
    add(owner, 1, "aab")
    readers = [made.make_reader({}, index, 3) for index in range(3)]
    assert [values(reader, "abc") for reader in readers] == [[2, 1, None]] * 3
    assert add(owner, 2, "ac") == [3, 1]
    assert [values(reader, "abc") for reader in readers] == [[3, 1, 1]] * 3
    with pytest.raises(FailedException):
        add(readers[0], 3, "a")
    assert add(owner, 3, "a") == [4]
    for state in (owner, *readers):
        state.close()


TABLES = {
    "opaque": ["test_opaque_map", "test_a_removal_is_repeated_from_what_was_there", "test_a_snapshot_is_one_key"],
    "transactional": ["test_transactional_map", "test_the_published_transactional_example"],
}
"""Storm's, and the published ones, of unit tests that look for a ``MemoryMap``."""


@pytest.mark.parametrize(("kind", "table"), [(kind, table) for kind in TABLES for table in TABLES[kind]])
@pytest.mark.parametrize("backend", BACKENDS)
def test_storms_tables(factory, monkeypatch, backend, kind, table):
    opened = []

    def backing():
        opened.append(factory(backend, kind).open(0, 1))
        return opened[-1]

    monkeypatch.setattr(test_maps, "MemoryMap", backing)
    getattr(test_maps, table)()
    [one] = opened
    one.close()


SENTENCES = [
    "the cow jumped over the moon",
    "the man went to the store and bought some candy",
    "four score and seven years ago",
    "how many apples can you eat",
]


def test_the_published_memcached_example(memory):
    """An analysis of Trident's states has it, to show that the author has nothing else to do."""
    spout = FixedBatchSpout(["sentence"], [[sentence] for sentence in SENTENCES * 10], 3)
    server = f"127.0.0.1:{memory.port}"
    topology = TridentTopology("words")
    (
        topology.new_stream("spout1", spout)
        .each("sentence", lambda tup: tup[0].split(), "word")
        .group_by("word")
        .persistent_aggregate(MemcachedState.opaque(server, "published"), Count(), "count")
        .parallelism_hint(6)
    )
    assert topology.plan()["b-0"].tasks == 6
    with Cluster(topology, containers=2) as cluster:
        cluster.run_until(lambda: cluster.over)
        assert cluster.state == "SUCCEEDED"
    plain = Counter(word for sentence in SENTENCES * 10 for word in sentence.split())
    found = MemcachedState.opaque(server, "published").get([(word,) for word in plain])
    assert dict(zip(plain, found, strict=True)) == plain


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_with_another_number_of_partitions_all_former_tasks_are_replaced(factory, kind, number):
    """By the first one that asks: keys of all former partitions may be in its own."""
    made = factory("redis", kind)
    frozen = [made.make_state({}, index, 2) for index in (0, 1)]
    for former in frozen:
        add(former, 1, "a")
    before = dict(made.items())
    last = made.make_state({}, number - 1, number)
    values(last, "a")
    for former in frozen:
        with pytest.raises(FailedException, match="belongs to another process now"):
            add(former, 2, "ab")
    assert dict(made.items()) == before
    add(last, 2, "b")
    assert values(last, "b") == [1]
    for state in (*frozen, last):
        state.close()


@pytest.mark.parametrize("cache", [0, 9])
@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (3, 2)])
def test_what_an_attempt_wrote_is_undone_though_keys_have_changed_their_partitions(factory, before, after, cache):
    """The last partition had begun to commit; in the repeat, another task has one of its keys, and nobody the other."""
    made = factory("redis", cache=cache)
    opened = [made.make_state({}, before - 1, before)]
    add(opened[0], 1, ["kept", "gone"])
    add(opened[0], 2, ["kept", "gone", "new"], commit=False)
    for _ in range(2):  # the second time in their next lives
        tasks = [made.make_state({}, index, after) for index in range(after)]
        opened += tasks
        values(tasks[-1], ["gone"])  # a query, which a cache remembers
        for task in tasks:
            task.begin_commit(2)
        add(tasks[-1], 2, ["kept"] * 5, commit=False)
        for task in tasks:
            task.commit(2)
        assert dict(made.items()) == {("kept",): 6, ("gone",): 1, ("new",): None}
    add(tasks[-1], 3, ["gone"])
    assert values(tasks[0], ["gone"]) == [2]
    for state in opened:
        state.close()


@pytest.mark.parametrize("number", [1, 3])
def test_memcached_refuses_another_number_of_partitions(factory, number):
    """It knows of no other partition whose task may be in the middle of a write."""
    made = factory("memcached")
    first = made.make_state({}, 0, 2)
    add(first, 1, "a")
    with pytest.raises(UserError, match=f"is divided into 2 partitions, and {number} tasks") as refused:
        made.make_state({}, 0, number)
    assert "parallelism_hint(2)" in refused.value.hint
    add(first, 2, "a")
    assert made.get([("a",)]) == [2]
    first.close()


MANY = [f"word{number}" for number in range(500)]
"""The keys of a batch; each batch asks for each once."""


def test_a_batch_asks_redis_twice(factory, redis):
    """As the server sees it: what a script does within it costs no way there and back."""
    state = factory("redis").make_state({}, 0, 1)
    add(state, 1, MANY)  # the first one takes the partition over, and brings the script
    with Redis(port=redis.port) as client, client.monitor() as monitor:
        assert add(state, 2, MANY) == [2] * len(MANY)
        state._backing._client.echo("over")
        seen = takewhile(lambda each: each["command"] != "ECHO over", monitor.listen())
        asked = [each["command"].split()[0] for each in seen if each["client_type"] != "lua"]
    assert asked == ["HMGET", "EVALSHA"]
    state.close()


def test_a_batch_asks_memcached_once_and_tells_it_each_value(factory, memory):
    """Reads are one command; a comparison and a value are a command each, and two are the record's."""
    state = factory("memcached").make_state({}, 0, 1)
    add(state, 1, MANY)
    client = state._backing._client
    sent, before = Sent(client), client.stats()
    assert add(state, 2, MANY) == [2] * len(MANY)
    asked, after = Counter(sent.commands), client.stats()
    assert asked == {"stats": 1, "gets": 2, "cas": len(MANY) + 1}
    grown = {name: after[name] - before[name] for name in (b"cmd_get", b"cmd_set", b"cas_hits", b"cas_misses")}
    assert grown == {b"cmd_get": len(MANY) + 1, b"cmd_set": len(MANY) + 1, b"cas_hits": len(MANY) + 1, b"cas_misses": 0}
    state.close()


class Sent:
    """Sees what a client of Memcached sends; ``commands``: their names."""

    def __init__(self, client):
        self.commands, self._socket, client.sock = [], client.sock, self

    def sendall(self, data):
        self.commands.append(data.split()[0].decode())
        self._socket.sendall(data)

    def __getattr__(self, name):
        return getattr(self._socket, name)


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
            said = frozen.communicate(timeout=patient(20))[0]
        finally:
            frozen.kill()
    assert said.startswith("refused: ")
    assert values(state, ["a", "b", "new"]) == expected
    add(state, 4, ["a", "b", "new"])
    assert values(state, ["a", "b", "new"]) == [(value or 0) + 1 for value in expected]
    state.close()
