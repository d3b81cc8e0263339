"""One partition of a state in Memcached; the server is a dict."""

from __future__ import annotations

import msgspec
import pytest

from ardea import FailedException
from ardea.trident import memcached
from ardea.trident.kinds import NON_TRANSACTIONAL, TRANSACTIONAL
from ardea.trident.maps import TransactionalValue
from ardea.trident.memcached import MemcachedMap


class Server:
    """Key -> (value, version), of which the version is a number."""

    def __init__(self):
        self.values = {}

    def get(self, key, default=None):
        return self.values.get(key, (default, None))[0]

    def gets(self, key):
        return self.values.get(key, (None, None))

    def gets_many(self, keys):
        return {key: self.values[key] for key in keys if key in self.values}

    def add(self, key, value, *, noreply):
        return self.cas(key, value, None, noreply=noreply)

    def cas(self, key, value, version, *, noreply):
        present = self.gets(key)[1]
        if present != version:
            return False
        self.values[key] = value, (present or 0) + 1
        return True


KEYS = A, B = [("a",)], [("b",)]


@pytest.fixture
def server(monkeypatch):
    server = Server()
    monkeypatch.setattr(memcached, "_connect", lambda _: (server, (OSError,)))
    return server


@pytest.fixture
def take_over(server):
    """Each task that has the partition, in turn."""
    return lambda kind=TRANSACTIONAL: MemcachedMap("here", "space", 0, 1, kind.wrap)


def test_keys_that_are_only_asked_for_leave_nothing_in_memory(take_over):
    partition = take_over()
    for number in range(100):
        assert partition.multi_get([(f"user-{number}",)]) == [None]
    assert len(partition._versions) <= 1


def test_what_is_written_need_not_have_been_read_last(take_over):
    partition = take_over()
    for txid in (1, 2):
        for keys in KEYS:
            partition.multi_get(keys)
        partition.multi_put(A, [TransactionalValue(txid, "x")])
    assert partition.multi_get(A) == [TransactionalValue(2, "x")]


def test_who_was_replaced_after_it_has_read_writes_nothing(take_over):
    former, present = take_over(), take_over()
    for keys in KEYS:
        assert former.multi_get(keys) == [None]
    present.multi_put(B, [TransactionalValue(1, "x")])
    for keys in KEYS:
        with pytest.raises(FailedException, match="is written by another process"):
            former.multi_put(keys, [TransactionalValue(1, "y")])
    assert present.multi_get(A + B) == [None, TransactionalValue(1, "x")]


@pytest.mark.parametrize(
    ("kind", "value", "named"),
    [(NON_TRANSACTIONAL, ("x",), [B]), (TRANSACTIONAL, TransactionalValue(1, "x"), [A, B])],
    ids=["without transactions", "of one transaction"],
)
def test_the_record_names_the_keys_of_the_present_write(take_over, server, kind, value, named):
    """All of one transaction; without transactions it would have every key so far, and grow too large."""
    partition = take_over(kind)
    for keys in KEYS:
        partition.multi_put(keys, [value])
    record = msgspec.json.decode(server.values["space:owner:0"][0])
    assert record["ids"] == [partition._id(key) for keys in named for key in keys]
