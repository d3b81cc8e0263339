"""Keyed state in memory: what has changed since the last barrier lies over what was there before.

    the author's table, a dict  ->  the frozen layer, until it is stored and merged  ->  the base

The author's thread changes the table, and merges; another one reads layer and base while it stores them, and nothing
is merged meanwhile.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any, NoReturn

from ardea.backends import batches
from ardea.backends.bases import PlainBase
from ardea.backends.contract import Base
from ardea.backends.values import SCALARS, Packed, Values
from ardea.errors import EncodingError, UserError
from ardea.protocol.dict_keys import AS_THEY_ARE, are_keys, as_key, finds_all, is_key
from ardea.protocol.keys import KeyCache
from ardea.snapshots.key_groups import Keys, group_of
from ardea.snapshots.pieces import Kind
from ardea.snapshots.state_file import Piece, unreadable, unstorable

SLICE = 1000
"""Keys in a piece of a file, at least, and those that are merged at a time, at most."""
ABSENT: Any = object()

Rows = list[tuple[Any, ...]]
MadeOf = Callable[[Rows], Iterable[tuple[Kind, Rows]]]


class Layer:
    """Changes: values by key, and keys that are gone; ``written``: by then, in seconds since 1970."""

    def __init__(self, puts: dict[Any, Any], gone: set[Any], written: float = 0.0) -> None:
        self.puts, self.gone, self.written = puts, gone, written

    def over(self, older: Layer) -> Layer:
        """Both, this one later."""
        puts = {key: value for key, value in older.puts.items() if key not in self.gone}
        return Layer({**puts, **self.puts}, (older.gone - self.puts.keys()) | self.gone, self.written)


class Lower:
    """What lies below an author's table; ``keys``: whose they are, None: nobody asks, and there are no snapshots.

    ``clock``: seconds since 1970, of a state whose values have a time to live; 0: there is no time yet.
    """

    def __init__(
        self,
        name: str,
        keys: Keys | None,
        values: Values | None = None,
        base: Base | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.name, self.keys, self.values = name, keys, values or Values()
        self.base: Base = PlainBase(keys) if base is None else base
        self.now: Callable[[], float] = clock or (lambda: 0.0)
        self.layer: Layer | None = None
        self.stale = False  # whether values have an age that no file says
        self._ages, self._ageless = clock is not None, False
        self._merging: Iterator[bool] | None = None
        self._known: KeyCache[int] | None = None

    def get(self, key: Any) -> Any:
        """ABSENT: it is not there."""
        layer = self.layer
        if layer is not None:
            found = layer.puts.get(key, ABSENT)
            if found is not ABSENT or key in layer.gone:
                return ABSENT if self.base.expired(layer.written) else found
        return self.base.get(key, ABSENT)

    def those_there(self, keys: Iterable[Any]) -> list[Any]:
        """Keys of which there is something, though its time may be over."""
        puts, base = {} if self.layer is None else self.layer.puts, self.base
        if not puts and type(base) is PlainBase and not base:
            return []
        return [key for key in keys if key in puts or key in base]

    def __iter__(self) -> Iterator[Any]:
        layer, base = self.layer, self.base
        if layer is None:
            yield from base
            return
        if not base.expired(layer.written):
            yield from layer.puts
        for key in base:
            if key not in layer.puts and key not in layer.gone:
                yield key

    def __len__(self) -> int:
        layer, base = self.layer, self.base
        if layer is None:
            return len(base)
        puts = 0 if base.expired(layer.written) else len(layer.puts)
        return len(base) + puts - sum(key in base for key in itertools.chain(layer.puts, layer.gone))

    def check(self, found: list[Any]) -> None:
        """Whether all these keys, each once, are the task's; those that are known are not hashed again.

        Raises:
            UserError: one is another task's, or can be nobody's.
        """
        keys = self.keys
        if keys is None:
            return
        if not keys.prefix and (keys.fields == 1 or all(type(key) is tuple for key in found)):
            if self._known is None:
                self._known = KeyCache(lambda hashed: group_of(hashed, keys.groups), single=keys.fields == 1)
            try:
                if all(map(keys.owned.__contains__, self._known.find_all(lambda: found))):
                    return
            except EncodingError:
                pass  # named below
        for key in found:
            keys.check(self.name, key)

    # --- snapshots --------------------------------------------------------------------------------------------

    def freeze(self, fresh: Layer) -> None:
        """Lays changes over all; those of before are merged, or were not stored."""
        if self._merging is not None:
            while not self.settle():
                pass
        if (older := self.layer) is not None:
            if self.base.expired(older.written):  # below it may be what was written at no time
                older = Layer({}, older.gone | older.puts.keys())
            fresh = fresh.over(older)
        if self._ageless and fresh.written:
            self.base.prune()
            self.stale, self._ageless = True, False
        self.layer = fresh

    def pieces(self, *, full: bool) -> Iterator[Piece]:
        """The layer, or with ``full`` everything, by key group; to be read before :meth:`stored`.

        Raises:
            UserError: a key is another task's.
        """
        layer = self.layer or Layer({}, set())
        puts, gone, base = layer.puts, layer.gone, self.base
        if not base.expired(layer.written):
            yield from self._pieces(self._by_group(puts.items()), _put, layer.written)
        if not full:
            yield from self._pieces(self._by_group((key,) for key in gone), _gone, layer.written)
            return
        for written, chunks in itertools.groupby(base.chunks(), lambda chunk: chunk.written):
            below = (
                (group, [row for row in rows if row[0] not in puts and row[0] not in gone]) for _, group, rows in chunks
            )
            yield from self._pieces(below, _put, written)

    def _by_group(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Rows]]:
        assert self.keys is not None
        owned = self.keys.owned
        groups: list[Rows] = [[] for _ in owned]
        for row in rows:
            groups[self.keys.check(self.name, row[0]) - owned.start].append(row)
        yield from zip(owned, groups, strict=True)

    def _pieces(self, groups: Iterable[tuple[int, Rows]], made_of: MadeOf, written: float) -> Iterator[Piece]:
        """``groups``: in their order; of one there may be several parts, one after the other."""
        rows: Rows = []
        first = last = 0
        for group, found in (each for each in groups if each[1]):
            if rows and (group < last or len(rows) >= SLICE):  # a base in parts begins again with its first group
                yield from self._pieces_of(rows, made_of, range(first, last + 1), written)
                rows = []
            first, last = first if rows else group, group
            rows += found
        if rows:
            yield from self._pieces_of(rows, made_of, range(first, last + 1), written)

    def _pieces_of(self, rows: Rows, made_of: MadeOf, groups: range, written: float) -> Iterator[Piece]:
        return (Piece(self.name, kind, groups, some, written) for kind, some in made_of(rows))

    def stored(self) -> None:
        """The layer lies in the store, and so does all below it that was :attr:`stale`: it may be merged."""
        self.stale = False
        if self.layer is not None:
            self._merging = self._merge(self.layer)

    def settle(self) -> bool:
        """Merges a little; True: nothing is left to merge."""
        if self._merging is not None and next(self._merging, None) is None:
            self.layer = self._merging = None
        return self._merging is None

    def _merge(self, layer: Layer) -> Iterator[bool]:
        self.base.prune()
        self._ageless = self._ageless or (self._ages and not layer.written)
        for piece in self._slices(layer.puts.items()):
            self.base.add(piece, layer.written)
            yield True
        for gone in self._slices(layer.gone):
            self.base.remove(gone)
            yield True

    def _slices(self, rows: Iterable[Any]) -> Iterator[list[Any]]:
        rows, most = iter(rows), min(SLICE, self.base.slice)
        while some := list(itertools.islice(rows, most)):
            yield some

    def load(self, piece: Piece) -> None:
        """What :meth:`pieces` has given, in that order, of this task or another one: its own keys of that.

        Raises:
            UserError: a value is none of the state's type.
        """
        assert self.keys is not None
        owned = self.keys.owned
        rows: Iterable[tuple[Any, ...]] = piece.rows
        if not are_keys([row[0] for row in piece.rows]):  # tuples within a key arrive as lists
            rows = ((as_key(row[0]), *row[1:]) for row in rows)
        if piece.groups.start < owned.start or piece.groups.stop > owned.stop:
            rows = (row for row in rows if self.keys.group(row[0]) in owned)
        written = piece.written or self.now()
        if self._ages and not piece.written:
            self.stale, self._ageless = self.stale or written != 0.0, self._ageless or written == 0.0
        if piece.kind is Kind.GONE or self.base.expired(written):
            self.base.remove(row[0] for row in rows)
        elif piece.kind is Kind.PACKED:
            self.base.add(((key, self._loaded(key, Packed(value))) for key, value in rows), written)
        elif not self.values.typed:
            self.base.add(rows, written)
        else:
            self.base.add(((key, self._loaded(key, value)) for key, value in rows), written)

    def _loaded(self, key: Any, kept: Any) -> Any:
        try:
            return self.values.loaded(kept)
        except EncodingError as error:
            assert self.keys is not None
            raise unreadable(self.keys.component, self.name, f" at {key!r}", error) from error


class KeyedTable(dict[Any, Any]):
    """One task's part of a keyed state, as its author sees it: a mapping without an order.

    A missing key reads as the default.  By that it is stored only if the default could be changed in place.
    Odd keys, which a dict does not find again, such as a NaN, are written as they are: they are looked for among the
    keys that were written since the last look, and put right, as soon as one is asked for.
    """

    # Neither reading nor writing by [] may be overridden: they are the fast path.
    def __init__(self, make: Callable[[], Any], lower: Lower, *, normal: bool = False) -> None:
        """``normal``: all keys come in the form in which a dict finds them: nobody looks for others."""
        super().__init__()
        self._make, self.lower, self.normal = make, lower, normal
        self._gone: set[Any] = set()  # deleted since the last barrier; who writes them again does not remove them here
        self._odd = False  # whether an odd key, or any NaN, was ever asked for
        self._looked = 0  # how many of the keys here were looked at; those that were written since are the last

    def freeze(self) -> None:
        """What has changed since the last barrier lies in the layer below from now on.

        Raises:
            UserError: a value cannot be stored; nothing has changed.
        """
        self.put_right()
        changed, scalars, kept = dict.items(self), self.lower.values.scalars, self.lower.values.kept
        try:
            puts = {key: value if type(value) in scalars else kept(value) for key, value in changed}
        except EncodingError as error:
            raise self._unstorable(changed) from error
        self._lay_down(puts)

    def age(self) -> None:
        """Where there are no snapshots: what was written until now has an age from now on."""
        self.put_right()
        self._lay_down(dict(dict.items(self)))
        self.lower.stored()

    def _lay_down(self, puts: dict[Any, Any]) -> None:
        self.lower.freeze(Layer(puts, self._gone - puts.keys(), self.lower.now()))
        dict.clear(self)
        self._looked, self._gone = 0, set()

    def _unstorable(self, changed: Iterable[tuple[Any, Any]]) -> UserError:
        for key, value in changed:
            if refused := self.lower.values.refusal(value):
                return unstorable(self.lower.name, f" at {key!r}", *refused)
        raise AssertionError("every value can be stored")

    def put_right(self) -> None:
        """The engine's: keys that were written as they are get the form in which a dict finds them."""
        if self.normal:
            return
        fresh = dict.__len__(self) - self._looked
        keys = list(itertools.islice(dict.__reversed__(self), fresh)) if fresh else []
        if not are_keys(keys) and not all(map(is_key, keys)):  # the first is quick, and right of most
            found = list(map(as_key, keys))
            values = [dict.pop(self, key) for key in keys]
            dict.update(self, zip(reversed(found), reversed(values), strict=True))  # of equal ones the last
        self._looked = dict.__len__(self)

    def _found_as(self, key: Any) -> Any:
        """The key as a dict finds it, and any that was written already."""
        if self.normal or (finds_all(key) and not self._odd):
            return key
        self._odd = True
        self.put_right()
        return as_key(key)

    def _below(self, key: Any) -> Any:
        return ABSENT if key in self._gone else self.lower.get(key)

    def __missing__(self, key: Any) -> Any:
        if type(key) not in AS_THEY_ARE and not self.normal and not finds_all(key):
            key = self._found_as(key)
            if dict.__contains__(self, key):
                return dict.__getitem__(self, key)
        lower = self.lower
        found = ABSENT if key in self._gone else lower.get(key)
        kind = type(found)
        if kind in SCALARS:
            return found
        if found is ABSENT:
            if lower.keys is not None:
                lower.keys.check(lower.name, key)
            value = self._make()
            if type(value) in SCALARS:
                return value
        else:
            value = lower.values.value(found) if kind is Packed else found
        self[key] = value
        return value

    def __delitem__(self, key: Any) -> None:
        key = self._found_as(key)
        if key not in self:
            raise KeyError(key)
        self.put_right()
        dict.pop(self, key, None)
        self._looked = dict.__len__(self)
        if self.lower.get(key) is not ABSENT:
            self._gone.add(key)

    def __contains__(self, key: object) -> bool:
        key = self._found_as(key)
        if dict.__contains__(self, key) or self._below(key) is not ABSENT:
            return True
        if not self.normal and self.lower.keys is not None:
            self.lower.keys.check(self.lower.name, key)
        return False

    def __iter__(self) -> Iterator[Any]:
        self.put_right()
        changed = set(dict.__iter__(self))
        yield from filter(partial(dict.__contains__, self), changed)  # who reads them may delete some
        for key in self.lower:
            if key not in changed and key not in self._gone:
                yield key

    def __len__(self) -> int:
        self.put_right()
        lower = self.lower
        fresh = sum(lower.get(key) is ABSENT for key in dict.keys(self))
        gone = sum(not dict.__contains__(self, key) and lower.get(key) is not ABSENT for key in self._gone)
        return len(lower) + fresh - gone

    def __eq__(self, other: object) -> bool:
        return dict(self.items()) == (dict(other.items()) if isinstance(other, Mapping) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None
    __reversed__ = None  # type: ignore[assignment]

    def __or__(self, other: Any) -> dict[Any, Any]:
        return {**self.copy(), **other}

    def __ror__(self, other: Any) -> dict[Any, Any]:
        return {**other, **self.copy()}

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def __reduce__(self) -> NoReturn:
        raise TypeError("the state of a task cannot be pickled")

    def get(self, key: Any, default: Any = None) -> Any:
        """As of a dict, and nothing is stored by it."""
        key = self._found_as(key)
        return self[key] if key in self else default  # noqa: SIM401

    def copy(self) -> dict[Any, Any]:
        """A dict of all of it."""
        return dict(self.items())

    keys, items, values = MutableMapping.keys, MutableMapping.items, MutableMapping.values  # type: ignore[assignment]
    popitem = MutableMapping.popitem

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As of a dict."""
        key = self._found_as(key)
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: Any, *default: Any) -> Any:
        """As of a dict."""
        key = self._found_as(key)
        if key not in self:
            if default:
                return default[0]
            raise KeyError(key)
        value = self[key]
        del self[key]
        return value

    def take_many(self, keys: Sequence[Any]) -> list[Any]:
        """The engine's: the values of keys that are there and in their normal form, each once; they are removed."""
        self.put_right()
        values = list(map(partial(dict.pop, self), keys, itertools.repeat(ABSENT)))
        self._looked = dict.__len__(self)
        if below := self.lower.those_there(keys):
            for place in [place for place, value in enumerate(values) if value is ABSENT]:
                values[place] = self[keys[place]]
                dict.pop(self, keys[place], None)
            self._gone.update(below)
        return values

    # --- many rows at once ------------------------------------------------------------------------------------

    def get_many(self, keys: Any) -> Any:
        """The value of each row's key, as by ``[]``: a list, or for Arrow keys an Arrow array.

        Args:
            keys: one a row: a list; an Arrow array; or, of several fields, a tuple with an Arrow array of each.

        Raises:
            UserError: a key is another task's; or keys came as Arrow, which has no type for the values.
        """
        return batches.get_many(self, keys)

    def put_many(self, keys: Any, values: Any) -> None:
        """The value of each row for its key; of several rows with one key the last.

        Args:
            keys: as for :meth:`get_many`.
            values: one a row, a list or an Arrow array.

        Raises:
            UserError: a key is another task's, or there are not as many values as keys.
        """
        batches.put_many(self, keys, values)

    def fold(self, keys: Any, values: Any, fn: batches.Fold) -> dict[Any, Any]:
        """Adds rows to what is there; returns the new value of each of their keys, in the order in which these come.

        Args:
            keys: as for :meth:`get_many`.
            values: one a row, a list or an Arrow array; None for ``count``: all rows count.
            fn: ``sum``, ``count``, ``min`` or ``max`` of the values that are not null; or a function, called once for
                each key with what is there and the values of its rows, which returns what is to be there.

        Raises:
            UserError: as for :meth:`put_many`, or ``fn`` is none of these.
        """
        return batches.fold(self, keys, values, fn)

    def clear(self) -> None:
        """As of a dict."""
        for key in list(self):
            del self[key]


def _put(rows: Rows) -> Iterator[tuple[Kind, Rows]]:
    packed = [row for row in rows if type(row[1]) is Packed]
    if len(packed) < len(rows):
        yield Kind.PUT, [row for row in rows if type(row[1]) is not Packed]
    if packed:
        yield Kind.PACKED, packed


def _gone(rows: Rows) -> Iterator[tuple[Kind, Rows]]:
    yield Kind.GONE, rows
