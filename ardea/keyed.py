"""State that a component declares, and the engine keeps: see docs/snapshots.md."""

from __future__ import annotations

import dataclasses
import sys
from collections import deque
from collections.abc import Callable, MutableMapping
from datetime import tzinfo
from pathlib import Path
from types import EllipsisType, NoneType
from typing import Any, Literal, NoReturn

import msgspec

from ardea.backends.types import kind_of
from ardea.errors import UserError
from ardea.units import duration

NOTHING = object()
"""Of an object that has no value of its own."""
_FIXED = (NoneType, EllipsisType, msgspec.UnsetType, tzinfo)
"""Types of objects that nobody changes, although they have no hash but that of every object."""


class State:
    """What a class declares; ``name`` is that of the attribute."""

    name = ""
    in_place = "self.{} = None"
    """How it may be changed."""

    def __init__(self, default: Any, kind: Any = None) -> None:
        """``default``: a value that cannot be changed, or a function without parameters that makes one.

        Raises:
            UserError: all keys, or all tasks, would share it.
        """
        if _can_change(default):
            raise UserError(
                f"{type(self).__name__}(default={default!r}): all would share one {type(default).__name__}",
                hint=f"give what makes a new one: default={_maker(default)}",
            )
        self.make: Callable[[], Any] = default if callable(default) else lambda: default
        self.type = kind
        declared = sys._getframe(2)
        self.place = f"{Path(declared.f_code.co_filename).name}:{declared.f_lineno}"
        self._names: set[str] = set()

    @property
    def kind(self) -> str:
        """What kind of state it is, for processes without the author's class."""
        return type(self).__name__

    def look(self, component: object, given: object) -> None:
        """Whether the component still has a value of which snapshots know; ``given``: what the engine gave it.

        Raises:
            UserError: the author's code has put another object in its place, or none.
        """
        found = self.of(component)
        if not self._fits(found, given):
            what = "deleted" if found is NOTHING else f"assigned a {type(found).__name__}"
            raise UserError(
                f"{type(component).__name__}.{self.name}, declared at {self.place}, was {what}: "
                "no snapshot would have it",
                hint=f"Change it in place: {self.in_place.format(self.name, self.name)}.",
            )

    def _fits(self, found: object, given: object) -> bool:
        return found is given

    def check(self) -> None:
        """Raises UserError: there can be no such state."""
        if len(self._names) > 1:
            raise UserError(
                f"declaration, at {self.place}, has the names {' and '.join(sorted(self._names))}: each needs its own"
            )
        if self.type is not None:
            kind_of(self.type, self.place)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self._names.add(name)

    def __get__(self, component: object, owner: type | None = None) -> Any:
        """The component's own value hides this, once there is one: it is read and written as any attribute."""
        return self if component is None else self._not_running(component)

    def of(self, component: object) -> Any:
        """The component's own value; ``NOTHING``: it has none.

        Without ``vars``, by which Python makes a dictionary of an object's attributes, and has the old way from then
        on: each ``self.rows`` of the author's code takes longer.
        """
        try:
            found = object.__getattribute__(component, self.name)
        except UserError:  # by the method above
            return NOTHING
        return NOTHING if found is self else found  # which a dataclass gives each object

    def _give(self, component: object, value: Any) -> None:
        """Likewise.

        Raises:
            UserError: the author's code has assigned something before, which nobody would see again.
        """
        if self.of(component) is not NOTHING:
            raise UserError(
                f"{type(component).__name__}.{self.name}, declared at {self.place}, was assigned before initialize(), "
                "where nobody would see it again",
                hint="State is there from initialize() on; default= says what it begins with.",
            )
        object.__setattr__(component, self.name, value)

    def _not_running(self, component: object) -> NoReturn:
        raise UserError(
            f"{type(component).__name__}.{self.name} was used on a component that is not running in a topology",
            hint="State is there from initialize() on; ardea.testing runs a topology in one process.",
        )


class KeyedState(State):
    """A value for each key of the bolt's fields grouping, a mapping without an order: ``self.counts[word] += 1``.

    Two fields or more: the key is a tuple of them.  A missing key reads as the default.  Values may be changed in
    place within the call that has read them: ``self.seen[user].append(page)``.
    """

    needs_keys = True
    """Whether it says nothing where several tasks get rows without a key."""

    in_place = "self.{}.clear(), self.{}.update(...)"

    def __init__(
        self,
        *,
        default: Any = None,
        type: Any = None,  # noqa: A002 -- what authors call it
        ttl: float | str | None = None,
        time: Literal["processing", "event"] = "processing",
        by: int | None = None,
    ) -> None:
        """Declares it.

        Args:
            default: what a missing key reads as: a value, or a function without parameters that makes one.
            type: of the values: a ``msgspec.Struct``, a dataclass, a TypedDict, a plain type, or a union of such; None:
                any value of docs/keys.md.  A field that is new, and has a default, reads what was stored without it.
            ttl: seconds after which a value that was not written again is gone, or a text such as ``1 h``.  They count
                from the snapshot after the write, and a value may stay for an eighth longer.
            time: by which clock they do; ``processing``: the machine's; ``event``: the task's watermark (docs/time.md).
            by: rows are grouped by so many first fields of each fields grouping; inputs may name different numbers of
                fields.  Keys are the values of those, or tuples that begin with them.

        Raises:
            UserError: all keys would share the default, ``ttl`` is no time, or there is no such clock.
        """
        super().__init__(default, type)
        self.by, self.time = by, checked_time(self, time)
        if ttl is None and time == "event":
            raise UserError("KeyedState(time='event'): time= says by which clock ttl= goes, and there is no ttl=")
        try:
            self.ttl = None if ttl is None else duration(ttl)
        except ValueError as error:
            raise UserError(f"KeyedState(ttl={ttl!r}): ttl takes {error}") from None

    @property
    def kind(self) -> str:
        """With ``by=``, since keys are looked up by it."""
        return super().kind if self.by is None else f"{super().kind}(by={self.by})"

    def attach(self, component: object, table: MutableMapping[Any, Any]) -> None:
        """Gives the component its table."""
        self._give(component, table)


class TaskState(State):
    """One value of one task: ``self.position = 3``."""

    def __init__(self, *, default: Any = None, type: Any = None) -> None:  # noqa: A002
        """As of a :class:`KeyedState`."""
        super().__init__(default, type)

    def attach(self, component: object) -> None:
        """Gives the component the default."""
        self._give(component, self.make())

    def _fits(self, found: object, given: object) -> bool:  # noqa: ARG002 -- it may be assigned
        return found is not NOTHING


class ListState(State):
    """A list of one task: ``self.open.append(file)``.

    When the number of tasks changes, its items are shared out again: with ``split`` in order, each to one task; with
    ``all`` each task gets the items of all tasks, and takes what is its own, as a source does with partitions.
    """

    in_place = "self.{}[:] = ..."

    def __init__(self, *, share: Literal["split", "all"] = "split", type: Any = None) -> None:  # noqa: A002
        """It begins empty; ``type``: of its items, as of a :class:`KeyedState`."""
        super().__init__(list, type)
        self.share = share

    def attach(self, component: object) -> None:
        """Gives the component an empty list."""
        self._give(component, [])

    def _fits(self, found: object, given: object) -> bool:  # noqa: ARG002 -- another list may be assigned
        return isinstance(found, list)


def keyed_of(cls: type) -> list[KeyedState]:
    """Those of the states that have keys."""
    return [state for state in states_of(cls) if isinstance(state, KeyedState)]


def prefix_of(cls: type) -> int | None:
    """How many first fields of a grouping its keys go by; None: all of them."""
    return next((state.by for state in keyed_of(cls) if state.by is not None), None)


def states_of(cls: type) -> list[State]:
    """What a class and its bases declare, by name."""
    names = sorted({name for base in cls.__mro__ for name, value in vars(base).items() if isinstance(value, State)})
    states = {name: value for name in names if isinstance(value := getattr(cls, name), State)}
    for name, state in states.items():
        if not state.name:  # it was put on the class after that was made
            state.__set_name__(cls, name)
    return list(states.values())


def _can_change(value: Any) -> bool:
    """Whether it, or anything in it, can be changed in place."""
    if isinstance(value, list | dict | set | bytearray):
        return True
    if isinstance(value, tuple | frozenset):
        return any(map(_can_change, value))
    if isinstance(value, msgspec.Struct):
        return not value.__struct_config__.frozen or any(map(_can_change, msgspec.structs.astuple(value)))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = (getattr(value, field.name) for field in dataclasses.fields(value))
        return not type(value).__dataclass_params__.frozen or any(map(_can_change, parts))  # type: ignore[attr-defined]
    if callable(value) or isinstance(value, _FIXED) or type(value) is object:
        return False
    try:
        hash(value)
    except Exception:  # what can be changed has none; and it may be of the author's class
        return True
    kind: Any = type(value)
    return kind.__hash__ is object.__hash__  # one of its own goes by the content, which then stays


def _maker(shared: Any) -> str:
    """What makes another one, as an author would write it."""
    kind, written = type(shared).__name__, repr(shared)
    if isinstance(shared, list | dict | set | bytearray | deque) and not shared:
        return kind
    return f"lambda: {kind}(...)" if written.startswith("<") else f"lambda: {written}"


def checked_time(state: State, time: Any) -> Any:
    """``time`` as it is.

    Raises:
        UserError: it names no clock.
    """
    if time not in ("processing", "event"):
        raise UserError(
            f"{type(state).__name__}(time={time!r}): there is no such time",
            hint="time='processing' is the clock of the machine, time='event' the watermark.",
        )
    return time
