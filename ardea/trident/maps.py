"""The three ways to store a value so that a transaction which comes again counts once; exact, and without I/O.

A transaction is applied between ``begin_commit`` and ``commit``.  Within it a key may be updated several times: each
update sees the one before.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from operator import is_not, itemgetter
from typing import Any, NamedTuple, TypeAlias

from ardea.errors import StateError, UserError, printable
from ardea.trident.keys import as_keys
from ardea.trident.state import BackingMap, Combine, Key, MapState, Snapshottable, Update

Change: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], list[Any]]
"""From what a batch has for some keys, and the values that are there (None: none), to the new values; in step."""


class TransactionalValue(NamedTuple):
    """A value, and the transaction that wrote it."""

    txid: int
    value: Any


class OpaqueValue(NamedTuple):
    """A value, the transaction that wrote it, and the value before that transaction."""

    txid: int
    current: Any
    previous: Any

    def get(self, txid: int | None) -> Any:
        """What transaction ``txid`` starts from.

        Raises:
            StateError: a later transaction has been stored.
        """
        if txid is None or self.txid < txid:
            return self.current
        if self.txid == txid:
            return self.previous
        raise _behind(txid, self.txid)

    def undone(self) -> OpaqueValue:
        """As its transaction found it, should that not write it again."""
        return self._replace(current=self.previous)

    def update(self, txid: int, value: Any) -> OpaqueValue:
        """With the value that ``txid`` gives it."""
        return OpaqueValue(txid, value, self.get(txid))


class NonTransactionalMap(MapState):
    """Values as they are: a transaction that comes again counts again."""

    def __init__(self, backing: BackingMap) -> None:
        self._backing = backing

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """What is stored."""
        return self._backing.multi_get(as_keys(keys))

    def multi_update(self, keys: Sequence[Key], updates: Sequence[Update]) -> list[Any]:
        """Reads and writes."""
        keys = as_keys(keys)
        values = _updated(updates, self._backing.multi_get(keys))
        self._backing.multi_put(keys, values)
        return values

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """Sets each key."""
        self._backing.multi_put(as_keys(keys), list(values))

    def close(self) -> None:
        """Closes the backing map."""
        self._backing.close()


class _Versioned(MapState):
    """Keeps what the present transaction has written."""

    def __init__(self, backing: BackingMap) -> None:
        self._backing = backing
        self._txid: int | None = None
        self._written: dict[Key, Any] = {}

    def begin_commit(self, txid: int) -> None:
        """Updates belong to ``txid`` from now on."""
        self._txid = txid
        self._written.clear()

    def commit(self, txid: int) -> None:  # noqa: ARG002
        """Updates are stored already."""
        self._txid = None
        self._written.clear()

    def close(self) -> None:
        """Closes the backing map."""
        self._backing.close()

    def multi_update(self, keys: Sequence[Key], updates: Sequence[Update]) -> list[Any]:
        """Updates each key."""
        return self._change(as_keys(keys), updates, _updated)

    def multi_combine(self, keys: Sequence[Key], parts: Sequence[Any], combine: Combine) -> list[Any]:
        """Combines each key's value with its part."""
        return self._change(as_keys(keys), parts, partial(_combined, combine))

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """Sets each key."""
        self._change(as_keys(keys), values, lambda values, _: list(values))

    @abstractmethod
    def _change(self, keys: Sequence[Key], parts: Sequence[Any], change: Change) -> list[Any]:
        """Reads, changes and writes, a column at a time; returns the new values."""

    def _stored(self, keys: Sequence[Key]) -> list[Any]:
        if not self._written:
            return self._backing.multi_get(keys)
        missing = [key for key in keys if key not in self._written]
        found = dict(zip(missing, self._backing.multi_get(missing), strict=True)) if missing else {}
        return [self._written[key] if key in self._written else found[key] for key in keys]

    def _store(self, changed: dict[Key, Any]) -> None:
        if changed:
            self._backing.multi_put(list(changed), list(changed.values()))
            self._written.update(changed)

    @property
    def txid(self) -> int:
        """The present transaction."""
        if self._txid is None:
            raise UserError("a state was updated outside of a transaction", hint="call begin_commit(txid) first")
        return self._txid


class TransactionalMap(_Versioned):
    """For sources whose transactions always have the same tuples: what a transaction wrote before, stands."""

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """The stored values."""
        return [None if stored is None else stored.value for stored in self._stored(as_keys(keys))]

    def _change(self, keys: Sequence[Key], parts: Sequence[Any], change: Change) -> list[Any]:
        """Passes over keys that this transaction wrote in a former attempt."""
        txid, written, stored = self.txid, self._written, self._stored(keys)
        if late := [each.txid for each in stored if each is not None and each.txid > txid]:
            raise _behind(txid, late[0])
        due = [n for n, each in enumerate(stored) if each is None or each.txid < txid or keys[n] in written]
        values = [None if each is None else each.value for each in stored]
        changed = change([parts[n] for n in due], [values[n] for n in due])
        for n, value in zip(due, changed, strict=True):
            values[n] = value
        self._store({keys[n]: TransactionalValue(txid, values[n]) for n in due})
        return values


class OpaqueMap(_Versioned):
    """For every repeatable source: what a transaction wrote in a former attempt, is undone first.

    Keys that only the former attempt wrote are set back when this one commits.
    """

    def __init__(self, backing: BackingMap) -> None:
        super().__init__(backing)
        self._last: tuple[int, set[Key]] | None = None  # the last transaction of this life, and its keys

    def begin_commit(self, txid: int) -> None:
        """Finds out what a former attempt wrote."""
        super().begin_commit(txid)
        if self._last is None:
            self._last = txid, set(as_keys(self._backing.keys_of(txid)))
        elif self._last[0] != txid:
            self._last = txid, set()

    def commit(self, txid: int) -> None:
        """Sets back what only a former attempt wrote."""
        assert self._last is not None
        if len(self._last[1]) > len(self._written):  # which is a part of it
            stale = [key for key in self._last[1] if key not in self._written]
            found = zip(stale, self._backing.multi_get(stale), strict=True)
            self._store({k: v.undone() for k, v in found if v is not None and v.txid == txid})
        super().commit(txid)

    def _store(self, changed: dict[Key, Any]) -> None:
        if self._last is not None:
            self._last[1].update(changed)  # before the write, which may fail behind its effect
        super()._store(changed)

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """The values as this transaction sees them; outside of one, the latest."""
        keys = as_keys(keys)
        pairs = zip(keys, self._stored(keys), strict=True)
        return [None if stored is None else self._seen(key, stored) for key, stored in pairs]

    def _change(self, keys: Sequence[Key], parts: Sequence[Any], change: Change) -> list[Any]:
        """Begins with the values before this transaction, or with what it has made of them."""
        txid, written, stored = self.txid, self._written, self._stored(keys)
        before = seen = _before(txid, stored)
        if written:
            seen = [None if each is None else self._seen(key, each) for key, each in zip(keys, stored, strict=True)]
        values = change(parts, seen)
        # As OpaqueValue(...) of each, without a call of Python's.
        new = map(tuple.__new__, repeat(OpaqueValue), zip(repeat(txid), values, before, strict=False))
        self._store(dict(zip(keys, new, strict=True)))
        return values

    def multi_remove(self, keys: Sequence[Key]) -> None:
        """Forgets the values, which a repeated transaction sees again."""
        self.multi_put(keys, [None] * len(keys))

    def _seen(self, key: Key, stored: OpaqueValue) -> Any:
        return stored.current if key in self._written else stored.get(self._txid)


class CachedMap(BackingMap):
    """Keeps the ``capacity`` values used last in memory, in front of a map that nobody else writes to."""

    def __init__(self, backing: BackingMap, capacity: int) -> None:
        self._backing, self._capacity = backing, capacity
        self._cache: OrderedDict[Key, Any] = OrderedDict()

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """From memory, or one read of all that is missing."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._cache]
        found = dict(zip(missing, self._backing.multi_get(missing), strict=True)) if missing else {}
        values = [self._cache[key] if key in self._cache else found[key] for key in keys]
        self._remember(dict(zip(keys, values, strict=True)))
        return values

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """To the map first; a write that fails may have had its effect, so that what it wrote is read again."""
        for key in keys:
            self._cache.pop(key, None)
        self._backing.multi_put(keys, values)
        self._remember(dict(zip(keys, values, strict=True)))

    def keys_of(self, txid: int) -> list[Key]:
        """The map's, which may set back what another number of partitions has left: that is read again."""
        self._cache.clear()
        return self._backing.keys_of(txid)

    def close(self) -> None:
        """Closes the map behind it."""
        self._backing.close()

    def _remember(self, values: dict[Key, Any]) -> None:
        for key, value in values.items():
            self._cache[key] = value
            self._cache.move_to_end(key)
        while len(self._cache) > self._capacity:
            self._cache.popitem(last=False)


class SnapshottableMap(Snapshottable):
    """A map state of which one key is used."""

    KEY: Key = ("$GLOBAL$",)

    def __init__(self, delegate: MapState) -> None:
        self._delegate = delegate

    def get(self) -> Any:
        """The value."""
        return self._delegate.multi_get([self.KEY])[0]

    def update(self, update: Update) -> Any:
        """Updates it."""
        return self._delegate.multi_update([self.KEY], [update])[0]

    def set(self, value: Any) -> None:
        """Sets it, as the map's ``multi_put``."""
        self._delegate.multi_put([self.KEY], [value])

    def begin_commit(self, txid: int) -> None:
        """The map's."""
        self._delegate.begin_commit(txid)

    def commit(self, txid: int) -> None:
        """The map's."""
        self._delegate.commit(txid)

    def close(self) -> None:
        """The map's."""
        self._delegate.close()


_TXID, _CURRENT = itemgetter(0), itemgetter(1)
_FIXED = frozenset({int, float, str, bytes, bool, type(None)})


def _before(txid: int, stored: Sequence[Any]) -> list[Any]:
    if all(map(is_not, stored, repeat(None))) and max(map(_TXID, stored), default=0) < txid:  # mostly, and much faster
        return list(map(_CURRENT, stored))
    return [None if each is None else each.get(txid) for each in stored]


def _updated(updates: Sequence[Update], seen: Sequence[Any]) -> list[Any]:
    return [update(value) for update, value in zip(updates, _own(seen), strict=True)]


def _combined(combine: Combine, parts: Sequence[Any], seen: Sequence[Any]) -> list[Any]:
    seen = _own(seen)
    if all(map(is_not, seen, repeat(None))):
        return list(map(combine, seen, parts))
    return [part if value is None else combine(value, part) for part, value in zip(parts, seen, strict=True)]


def _own(values: Sequence[Any]) -> Sequence[Any]:
    """Values that an author may change in place, while those that are stored stay."""
    if set(map(type, values)) <= _FIXED:
        return values
    return [value if type(value) in _FIXED else _copied(value) for value in values]


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise UserError(
            f"a stored value of type {type(value).__name__} cannot be copied: {printable(error)}; its batch fails",
            hint="a reducer or combiner gets a copy of what is stored: give the class a __deepcopy__",
        ) from error


def _behind(txid: int, stored: int) -> StateError:
    return StateError(
        f"Current batch ({txid}) is behind state's batch: {stored}; this attempt fails",
        hint="if it does so for ever, topology or stream were renamed, or their memory purged: use a new state",
    )
