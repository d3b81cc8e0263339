"""States in a Redis server (``ardea[redis]``).

A partition belongs to the last task that opened it.  Each write is one script, which looks at the owner and stores
all values or none: a process that was frozen, replaced and wakes up late writes nothing.  With another number of
partitions the first task replaces all former owners at once, as keys have changed their partitions.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any, Self

from ardea.errors import ConfigError, FailedException, StateError
from ardea.protocol.keys import encode_key
from ardea.trident.kinds import NON_TRANSACTIONAL, OPAQUE, TRANSACTIONAL, Entries, Kind, MapStateFactory, Wrap
from ardea.trident.state import BackingMap, Key

PATIENCE = 10.0
"""Seconds to wait for the server."""

# KEYS: the owners, the ids that former partitions' last transaction wrote, what the names of those of one begin with.
# ARGV: how many partitions there are, which one this is, its new owner's token.
_OWN = """
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    local place, noted = string.gsub(field, ':txid$', '')
    if field ~= 'former' and string.find(field, ARGV[1] .. '/', 1, true) ~= 1 then
        local txid, last = tonumber(redis.call('HGET', KEYS[1], field)), KEYS[3] .. place
        if noted == 1 then
            local known = tonumber(redis.call('HGET', KEYS[1], 'former') or -1)
            if txid > known then
                redis.call('DEL', KEYS[2])
                redis.call('HSET', KEYS[1], 'former', txid)
            end
            if txid >= known then redis.call('SUNIONSTORE', KEYS[2], KEYS[2], last) end
            redis.call('DEL', last)
        end
        redis.call('HDEL', KEYS[1], field)
    end
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
"""
# KEYS: the entries, the owners, the ids that the partition's last transaction wrote, those of former partitions.
# ARGV: the partition, its owner's token, the transaction ("": none), then id and value of each entry.
_PUT = """
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
local noting = ARGV[3] ~= ''
if noting and redis.call('HGET', KEYS[2], ARGV[1] .. ':txid') ~= ARGV[3] then
    redis.call('DEL', KEYS[3])
    redis.call('HSET', KEYS[2], ARGV[1] .. ':txid', ARGV[3])
end
local former = redis.call('EXISTS', KEYS[4]) == 1
for i = 4, #ARGV, 2 do
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    if noting then redis.call('SADD', KEYS[3], ARGV[i]) end
    if former then redis.call('SREM', KEYS[4], ARGV[i]) end
end
return 1
"""
# KEYS: the entries, the owners, the ids of former partitions.  ARGV: the partition, its token, id and value of each.
_UNDO = """
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 0 end
for i = 3, #ARGV, 2 do
    if redis.call('SREM', KEYS[3], ARGV[i]) == 1 then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
return 1
"""


class RedisMap(BackingMap):
    """One partition.  The server is first asked when a value is: a task starts without it.

    Args:
        url: like ``redis://127.0.0.1:6379/0``.
        namespace: what all keys begin with.
        partition: whose writes these are.
        partitions: how many there are.
        wrap: makes the stored value of its fields.
        owns: it takes the partition over; False: it only reads.
    """

    def __init__(
        self, url: str, namespace: str, partition: int, partitions: int, wrap: Wrap, *, owns: bool = True
    ) -> None:
        self._client, self._errors = _connect(url)
        self._url, self._partition, self._partitions = url, partition, partitions
        self._place = f"{partitions}/{partition}"
        head = f"{{{namespace}}}"  # braces: a cluster keeps them on one node
        self._entries, self._owners, self._former = f"{head}:entries", f"{head}:owners", f"{head}:former"
        self._lasts = f"{head}:last:"
        self._coding = Entries(wrap)
        self._put = self._client.register_script(_PUT)
        self._token = "" if owns else secrets.token_hex(8)  # which no partition knows

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """One command."""
        if not keys:
            return []
        found = self._ask("read", lambda: self._client.hmget(self._entries, [encode_key(key) for key in keys]))
        return [None if data is None else self._coding.decode(data)[1] for data in found]

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """One script."""
        txid = max((getattr(value, "txid", -1) for value in values), default=-1)
        arguments: list[Any] = [self._place, self._own(), "" if txid < 0 else txid]
        for key, value in zip(keys, values, strict=True):
            arguments += (encode_key(key), self._coding.encode(key, value))
        self._write(self._put, [self._entries, self._owners, self._lasts + self._place, self._former], arguments)

    def keys_of(self, txid: int) -> list[Key]:
        """What the script has noted."""
        arguments: list[Any] = [self._place, self._own()]
        for id_, key, value in self._noted("former", self._former, txid):
            arguments += (id_, self._coding.encode(key, value.undone()))
        if len(arguments) > 2:
            undo = self._client.register_script(_UNDO)
            self._write(undo, [self._entries, self._owners, self._former], arguments)
        return [key for _, key, _ in self._noted(f"{self._place}:txid", self._lasts + self._place, txid)]

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def _noted(self, field: str, name: str, txid: int) -> list[tuple[bytes, Key, Any]]:
        """Id, key and value of what that transaction wrote, as far as the set of this name has it."""
        if self._ask("read", lambda: self._client.hget(self._owners, field)) != b"%d" % txid:
            return []
        ids = sorted(self._ask("read", lambda: self._client.smembers(name)))
        found = self._ask("read", lambda: self._client.hmget(self._entries, ids)) if ids else []
        return [(id_, *self._coding.decode(data)) for id_, data in zip(ids, found, strict=True) if data is not None]

    def _write(self, script: Any, keys: Sequence[str], arguments: Sequence[Any]) -> None:
        if not self._ask("written", lambda: script(keys=keys, args=arguments)):
            raise FailedException(
                f"partition {self._partition} at {self._url} belongs to another process now; this attempt fails and"
                " nothing of it was stored"
            )

    def _own(self) -> str:
        """Takes the partition over, once in a life; every read comes behind it."""
        if not self._token:
            token = secrets.token_hex(8)
            own = self._client.register_script(_OWN)
            try:
                own(keys=[self._owners, self._former, self._lasts], args=[self._partitions, self._place, token])
            except self._errors as error:
                raise self._refused("written", error) from error
            self._token = token
        return self._token

    def _ask(self, what: str, call: Any) -> Any:
        self._own()
        try:
            return call()
        except self._errors as error:
            raise self._refused(what, error) from error

    def _refused(self, what: str, error: Exception) -> StateError:
        return StateError(
            f"the state at {self._url} cannot be {what}: {error}; this attempt fails and will be repeated",
            hint="see that the server runs and can be reached from all tasks",
        )


class RedisState(MapStateFactory):
    """A map state in Redis; made by one of the three class methods.

    It outlives what the server outlives: with ``appendonly yes`` and ``appendfsync always`` its death, too.
    """

    def __init__(self, kind: Kind, url: str, namespace: str, cache: int) -> None:
        super().__init__(kind, cache, f"{url}, {namespace}")
        self._url, self._namespace = url, namespace

    @classmethod
    def opaque(cls, url: str, namespace: str, *, cache: int = 0) -> Self:
        """Exact for transactional and for opaque spouts; ``cache``: values kept in each task."""
        return cls(OPAQUE, url, namespace, cache)

    @classmethod
    def transactional(cls, url: str, namespace: str, *, cache: int = 0) -> Self:
        """Exact for transactional spouts; stores a value less."""
        return cls(TRANSACTIONAL, url, namespace, cache)

    @classmethod
    def non_transactional(cls, url: str, namespace: str, *, cache: int = 0) -> Self:
        """What comes again counts again."""
        return cls(NON_TRANSACTIONAL, url, namespace, cache)

    def open(self, partition: int, partitions: int) -> RedisMap:
        """One partition."""
        return RedisMap(self._url, self._namespace, partition, partitions, self._kind.wrap)

    def reader(self, partition: int, partitions: int) -> RedisMap:
        """Sees what its owners have written at the time of each read."""
        return RedisMap(self._url, self._namespace, partition, partitions, self._kind.wrap, owns=False)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """(key, present value) of all partitions, read while others may write."""
        client, _ = _connect(self._url)
        coding = Entries(self._kind.present)
        try:
            for _, data in client.hscan_iter(f"{{{self._namespace}}}:entries", count=1000):
                yield coding.decode(data)
        finally:
            client.close()


def _connect(url: str) -> tuple[Any, type[Exception]]:
    try:
        import redis
    except ImportError as error:
        raise ConfigError("a RedisState needs the package redis", hint="pip install 'ardea[redis]'") from error
    client = redis.Redis.from_url(url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)
    return client, redis.RedisError
