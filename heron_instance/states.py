"""The states of one component object: made empty, filled from files of a snapshot, and written into one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from ardea.backends.bases import MemoryBackend, base_in_memory
from ardea.backends.contract import Backend, Base
from ardea.backends.memory import KeyedTable, Lower
from ardea.backends.timers import TimerTable, are_timers
from ardea.backends.values import Values, values_of
from ardea.component import Component
from ardea.errors import EncodingError, UserError
from ardea.heron_instance.ages import Ages
from ardea.heron_instance.intervals import Intervals
from ardea.keyed import KeyedState, ListState, State, TaskState, states_of
from ardea.protocol.scalars import type_name
from ardea.snapshots.key_groups import Keys, PairKeys, owned_by
from ardea.snapshots.pieces import HEAD, WATERMARK, Kind
from ardea.snapshots.state_file import Piece, decode_state, encode_piece, unreadable, unstorable
from ardea.timers import Timers
from ardea.watermarks import NO_EVENT_TIME
from ardea.windows.bolt import WindowState

_TOO_LATE = "Call context.keyed_state() in initialize(), in every life of the task."
_LEFT_BY: dict[Kind, type[State]] = {Kind.ONE: TaskState, Kind.ITEMS: ListState}
"""The kinds of pieces that are of no keyed state."""


class Time(Protocol):
    """A task's watermark, and what it follows from."""

    def saved(self) -> list[Any]:
        """For a file."""

    def restore(self, former: Sequence[list[Any]], own: Sequence[list[Any]]) -> None:
        """What was saved of each of some former tasks; ``own``: of this one, or of all where their number changed."""


class States:
    """Of one object, whose task has these keys; None: there are no snapshots, and nobody asks.

    ``now``: seconds since 1970.  ``timers``: the component's, if it declares some.  ``intervals``: the rows that a
    two-phase sink keeps; None: the object is none.  ``backend``: None, or nobody has keys: what has keys is in memory.
    ``time``: None where rows have no stamps.
    """

    def __init__(
        self,
        component: Component,
        keys: Keys | None = None,
        now: Callable[[], float] = time.time,
        backend: Backend | None = None,
    ) -> None:
        self.intervals: Intervals | None = None
        self._component, self._keys = component, keys
        self._backend = backend or MemoryBackend(Path())
        self.timers: TimerTable | None = None
        self.time: Time | None = None
        self._ages = Ages(component, now)
        self._tables: dict[str, tuple[KeyedTable, Lower]] = {}
        self._single: dict[str, TaskState] = {}
        self._lists: dict[str, ListState] = {}
        self._former: dict[str, dict[int, list[Any]]] = {}  # lists of former tasks, by their index
        self._values: dict[str, Values] = {}
        self._frozen: list[bytes] = []  # those without keys, as they were at the last barrier
        self._unknown: dict[str, list[Piece]] | None = {}  # until initialize() has said which states there are
        self._dropped = False  # whether files hold what nobody has any more
        for state in states_of(type(component)):
            self._values[state.name] = values_of(state.type, state.place)
            if isinstance(state, KeyedState):
                state.attach(component, self._table(state))
            elif isinstance(state, TaskState):
                state.attach(component)
                self._single[state.name] = state
            elif isinstance(state, ListState):
                state.attach(component)
                self._lists[state.name] = state
            elif isinstance(state, Timers):
                timer_keys = None if keys is None else PairKeys.of(keys)
                lower = Lower(state.name, timer_keys, base=self._base(state.name, timer_keys))
                self.timers = TimerTable(lower)
                state.attach(component, self.timers)
                self._tables[state.name] = self.timers.table, lower

    def _table(self, state: KeyedState) -> KeyedTable:
        ttl, clock, keys = state.ttl, self._ages.clock(state), self._keys
        of_windows = isinstance(state, WindowState)
        if keys is not None and of_windows:
            keys = PairKeys.of(keys)
        base = self._base(state.name, keys, ttl, clock.now)
        lower = Lower(state.name, keys, self._values[state.name], base, None if ttl is None else clock.stamp)
        table = KeyedTable(state.make, lower, normal=of_windows)
        if self._keys is None:
            self._ages.add(state, table)
        self._tables[state.name] = table, lower
        return table

    def _base(
        self, name: str, keys: Keys | None, ttl: float | None = None, now: Callable[[], float] = time.time
    ) -> Base:
        return base_in_memory(None, ttl, now) if keys is None else self._backend.base(name, keys, ttl, now)

    def add(self, state: KeyedState) -> KeyedTable:
        """A keyed state that the class does not declare, with what the snapshot holds of it.

        Raises:
            UserError: there is one of that name; ``initialize`` has returned; or nothing has the time it goes by.
        """
        if self._unknown is None:
            raise UserError(f"keyed_state({state.name!r}) was called too late: the component runs", hint=_TOO_LATE)
        if state.name in self._values:
            raise UserError(f"the component has two states named {state.name!r}", hint="Give each a name of its own.")
        if state.time == "event" and self.time is None:
            raise UserError(f"keyed_state({state.name!r}) goes by event time, and {NO_EVENT_TIME}")
        self._values[state.name] = values_of(state.type, state.place)
        table = self._table(state)
        for piece in self._unknown.pop(state.name, ()):
            table.lower.load(piece)
        return table

    def complete(self) -> None:
        """``initialize`` has returned: what nobody has asked for is dropped."""
        self._dropped = self._dropped or bool(self._unknown)
        self._unknown = None

    def freeze(self) -> None:
        """What there is belongs to a snapshot, what comes from now on to the next.

        Raises:
            UserError: a value cannot be stored.
        """
        self._ages.look()
        self._look_for_others()
        self._frozen = [encode_piece(self._one(name)) for name in self._single]
        self._frozen += [encode_piece(self._items(name)) for name in self._lists]
        if self.time is not None:
            items = [(item,) for item in self.time.saved()]
            self._frozen.append(encode_piece(Piece(WATERMARK, Kind.ITEMS, range(0), items)))
        for table, _ in self._tables.values():
            table.freeze()

    @property
    def stale(self) -> bool:
        """Whether files hold what nobody has any more, or do not say the age that values have: a base does."""
        return self._dropped or any(lower.stale for _, lower in self._tables.values())

    def _look_for_others(self) -> None:
        """Raises UserError: the author's code has put something in the place of a state."""
        for state in states_of(type(self._component)):
            table = self.timers if isinstance(state, Timers) else self._tables.get(state.name, (None,))[0]
            state.look(self._component, table)

    def pieces(self, *, full: bool) -> Iterator[bytes]:
        """A file of what :meth:`freeze` has left: all of it, or what has changed since what was last :meth:`stored`.

        It may be read by another thread, until :meth:`stored` or the next :meth:`freeze` is called.

        Raises:
            UserError: a key or a value cannot be stored.
        """
        yield HEAD
        yield from self._frozen
        for _, lower in self._tables.values():
            yield from map(encode_piece, lower.pieces(full=full))

    def stored(self) -> None:
        """The file that was written last lies in the store: a base, if these were stale."""
        self._dropped = False
        for _, lower in self._tables.values():
            lower.stored()

    def settle(self) -> bool:
        """A little of the work that storing has left; True: none of it is left."""
        return all(lower.settle() for _, lower in self._tables.values())

    def close(self) -> None:
        """Nobody uses them any more."""
        self._backend.close()

    def age(self) -> None:
        """Where there are no snapshots: values grow older, by which they are gone in time."""
        self._ages.age()

    @property
    def bound(self) -> bool:
        """Whether there is a value that is that of the task's index, and no other task's."""
        return any(getattr(self._component, name) != state.make() for name, state in self._single.items())

    def of_as_many(self, tasks: int) -> bool:
        """Whether so many tasks divide the keys among them now."""
        return self._keys is not None and self._keys.tasks == tasks

    def inherits(self, index: int) -> bool:
        """Whether rows that the task of that index has taken are this one's to write outside, each being one task's."""
        return self._keys is not None and index % self._keys.tasks == self._keys.index

    def needs(self, index: int, tasks: int) -> bool:
        """Whether the task that was ``index`` of so many may have had keys or items that are this one's."""
        keys = self._keys
        if keys is None:
            return False
        if any(state.share == "all" or tasks != keys.tasks for state in self._lists.values()):
            return True
        if not self._tables and self._unknown is None:
            return False
        theirs = owned_by(index, tasks, keys.groups)
        return theirs.start < keys.owned.stop and keys.owned.start < theirs.stop

    def load(self, content: bytes, file: str, index: int = 0, *, own: bool = True) -> None:
        """A base or a delta, in their order; states that the component does not know wait for :meth:`add`.

        The task that wrote it was ``index``; ``own``: as this one is.  At last comes :meth:`loaded`.

        Raises:
            StateError: it cannot be read.
            UserError: a value in it is none of its state's type, or the state was of another kind.
        """
        for piece in decode_state(content, file, None if self._keys is None else self._keys.owned):
            if piece.state in self._values and (
                wrong := _of_another_kind(getattr(type(self._component), piece.state), piece)
            ):
                raise self._unreadable(piece.state, EncodingError(wrong))
            if piece.state in self._tables:
                self._tables[piece.state][1].load(piece)
            elif own and piece.state in self._single:
                setattr(self._component, piece.state, *self._read(piece))
            elif piece.state == WATERMARK:
                self._former.setdefault(WATERMARK, {})[index] = [item for (item,) in piece.rows]
            elif piece.state in self._lists:
                self._former.setdefault(piece.state, {})[index] = self._read(piece)
            elif self._unknown is not None and piece.groups and piece.state not in self._values:
                self._unknown.setdefault(piece.state, []).append(piece)
            elif piece.state not in self._values:
                self._dropped = True

    def loaded(self, tasks: int) -> None:
        """All files that are needed of so many former tasks: items of lists are shared out."""
        keys, former, self._former = self._keys, self._former, {}
        times = former.pop(WATERMARK, None)
        if times and self.time is not None:
            everyone = [*times.values()]
            own = everyone if keys is None or keys.tasks != tasks else [times.get(keys.index, [])]
            self.time.restore(everyone, own)
            self._ages.look()
        for name, lists in former.items():
            items = [item for _, part in sorted(lists.items()) for item in part]
            if self._lists[name].share == "split" and keys is not None:
                if keys.tasks == tasks:
                    items = lists.get(keys.index, [])
                else:
                    cut = [place * len(items) // keys.tasks for place in (keys.index, keys.index + 1)]
                    items = items[slice(*cut)]
            setattr(self._component, name, items)

    def _items(self, name: str) -> Piece:
        return self._piece(name, Kind.ITEMS, getattr(self._component, name))

    def _one(self, name: str) -> Piece:
        return self._piece(name, Kind.ONE, [getattr(self._component, name)])

    def _piece(self, name: str, kind: Kind, values: list[Any]) -> Piece:
        rows, plain = [], self._values[name].plain
        for value in values:
            try:
                rows.append((plain(value),))
            except EncodingError as error:
                refused = self._values[name].refusal(value) or (type_name(value), error.message)
                raise unstorable(name, "", *refused) from error
        return Piece(name, kind, range(0), rows)

    def _read(self, piece: Piece) -> list[Any]:
        try:
            return [self._values[piece.state].of_plain(plain) for (plain,) in piece.rows]
        except EncodingError as error:
            raise self._unreadable(piece.state, error) from error

    def _unreadable(self, name: str, error: EncodingError) -> UserError:
        component = type(self._component).__name__ if self._keys is None else self._keys.component
        return unreadable(component, name, "", error)


def _of_another_kind(declared: State, piece: Piece) -> str:
    """How another kind of state has left it, such as one that only ``initialize`` had made; empty: none has."""
    was = _LEFT_BY.get(piece.kind, KeyedState)
    fits = are_timers(piece.rows) if isinstance(declared, Timers) else isinstance(declared, was)
    return "" if fits else f"it was a {was.__name__}, and is a {declared.kind}"
