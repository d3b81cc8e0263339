"""Which tasks get each row: the sender's side of the ten groupings, a batch at a time.

Routers are pure but for what they count and the generator they are given.  They speak of a target by its *place*
among the reading component's task ids in ascending order; :meth:`Router.route_one` gives task ids.
"""

from __future__ import annotations

import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ardea.errors import EncodingError, TopologyError
from ardea.plan.logical import GroupingPlan, StreamPlan
from ardea.protocol.column_keys import ColumnKeys
from ardea.protocol.columns import ColumnRows
from ardea.protocol.headed import HeadedRows
from ardea.protocol.ids import U64
from ardea.protocol.keys import KeyCache, encode_key, partition
from ardea.snapshots.key_groups import group_of, owners

Places = NDArray[np.intp]
Row = Sequence[Any]
T = TypeVar("T")

FULL_WEIGHT = 100
CLOSE_TO_LEAST = 0.05
WIDEN_ABOVE = 0.8  # Storm's topology.localityaware.higher.bound and ...lower.bound
NARROW_BELOW = 0.2


@dataclass(frozen=True, slots=True)
class Routed:
    """``targets[i]`` gets row ``rows[i]``; without ``rows`` every row, in order, has exactly one target.

    ``rows`` ascends; a row may be in it any number of times, or not at all.
    """

    targets: Places
    rows: Places | None = None


class Router(ABC):
    """Sends rows to places among ``targets`` (task ids, ascending).

    ``fixed`` is the place of all rows if it is always the same; nobody needs to call :meth:`route` then.
    ``asks_author``: an author's code chooses, and may raise.
    """

    fixed: int | None = None
    asks_author = False

    def __init__(self, targets: tuple[int, ...]) -> None:
        self.targets = targets

    @abstractmethod
    def route(self, rows: Sequence[Row]) -> Routed:
        """The places of a batch, of rows or :class:`ColumnRows`.  It counts as sent: routing it again may give others.

        Raises:
            EncodingError: a value cannot be part of a key.
            TopologyError: a custom grouping chose what is no target.
        """

    def refresh(self, loads: Mapping[int, float]) -> None:  # noqa: B027 -- most routers need not know
        """How full the ways to the tasks are, once a second: task id -> 0 to 1 (missing: 0)."""

    def shares(self, rows: Sequence[Row]) -> Iterator[tuple[int, Places]]:
        """(place, the numbers of its rows, ascending) for each place that gets any; errors as for :meth:`route`."""
        if self.fixed is not None:
            yield self.fixed, np.arange(len(rows), dtype=np.intp)
            return
        routed = self.route(rows)
        for place in np.unique(routed.targets).tolist():
            picked = np.flatnonzero(routed.targets == place)
            yield place, picked if routed.rows is None else routed.rows[picked]

    def route_one(self, values: Row) -> tuple[int, ...]:
        """The task ids of one row; errors as for :meth:`route`."""
        return tuple([self.targets[place] for place in self.route([values]).targets.tolist()])


@dataclass(frozen=True, slots=True)
class Emitter:
    """What a router knows of the task that emits.

    ``local``: the tasks of its container; ``rng``: where shuffles begin; ``context``: for a custom grouping.
    ``key_groups``: how many there are where state moves by them, None: a key goes by its hash alone.
    """

    component: str
    local: frozenset[int]
    rng: np.random.Generator
    context: Any
    key_groups: int | None = None


def make_router(
    grouping: GroupingPlan,
    stream: StreamPlan,
    targets: tuple[int, ...],
    emitter: Emitter,
) -> Router:
    """The router of one emitting task for one reading component.

    Args:
        grouping: how the reader shares the stream.
        stream: where rows are emitted.
        targets: the reader's task ids, ascending.
        emitter: the task that emits.
    """
    kind, fields, rng = grouping.kind, stream.fields, emitter.rng
    origin = f"component {emitter.component}, stream {stream.name}"
    near = np.array([place for place, task in enumerate(targets) if task in emitter.local], dtype=np.intp)
    everywhere = np.arange(len(targets), dtype=np.intp)
    key = grouping.fields or fields[:1]  # Storm's partial key without fields takes the first value
    # The emitter names the tasks of a direct stream.
    if not targets or kind == "direct" or (kind == "partial_key" and not key):
        return NowhereRouter(targets)
    if kind == "custom":
        chooser = copy.deepcopy(grouping.custom)
        chooser.prepare(emitter.context, emitter.component, stream.name, targets)
        if chooser.always in targets:
            return FixedRouter(targets, targets.index(chooser.always))
        return CustomRouter(targets, chooser, origin)
    if kind == "global" or len(targets) == 1:
        return FixedRouter(targets, 0)
    if kind == "fields":
        keys = functools.partial(_Keys, key, fields, origin)
        groups = emitter.key_groups
        return FieldsRouter(targets, keys) if groups is None else GroupsRouter(targets, keys, groups)
    if kind == "partial_key":
        return PartialKeyRouter(targets, key, fields, origin)
    if kind == "all":
        return AllRouter(targets)
    if kind == "load_aware":
        return LoadAwareRouter(targets, near, rng)
    chosen = near if kind == "local_or_shuffle" and len(near) else everywhere
    return ShuffleRouter(targets, chosen, rng) if len(chosen) > 1 else FixedRouter(targets, int(chosen[0]))


class NowhereRouter(Router):
    """No target gets anything: there is none, or the emitter names it."""

    def route(self, rows: Sequence[Row]) -> Routed:  # noqa: ARG002
        """No pairs of row and place."""
        nothing = np.empty(0, dtype=np.intp)
        return Routed(nothing, nothing)


class FixedRouter(Router):
    """Everything to one place."""

    def __init__(self, targets: tuple[int, ...], place: int) -> None:
        super().__init__(targets)
        self.fixed = place

    def route(self, rows: Sequence[Row]) -> Routed:
        """The same place for each row."""
        return Routed(np.full(len(rows), self.fixed, dtype=np.intp))


class AllRouter(Router):
    """Every row to every place."""

    def route(self, rows: Sequence[Row]) -> Routed:
        """Each row with each place."""
        n = len(self.targets)
        return Routed(
            np.tile(np.arange(n, dtype=np.intp), len(rows)), np.repeat(np.arange(len(rows), dtype=np.intp), n)
        )


class ShuffleRouter(Router):
    """Round robin over ``places`` in random order, from batch to batch: exactly even."""

    def __init__(self, targets: tuple[int, ...], places: Places, rng: np.random.Generator) -> None:
        super().__init__(targets)
        self._ring = rng.permutation(places)
        self._next = 0

    def route(self, rows: Sequence[Row]) -> Routed:
        """Goes on from where the last batch ended."""
        start, end = self._next, self._next + len(rows)
        self._next = end % len(self._ring)
        return Routed(self._ring[np.arange(start, end) % len(self._ring)])


class LoadAwareRouter(ShuffleRouter):
    """Round robin over a ring in which each place has a share by its weight, which falls ten times as fast as it grows.

    Keeps to the places of the emitter's container, ``near``, until these are busy on average.
    """

    def __init__(self, targets: tuple[int, ...], near: Places, rng: np.random.Generator) -> None:
        self._rng = rng
        self._near = near
        self._everywhere = np.arange(len(targets), dtype=np.intp)
        self._scope = near if len(near) else self._everywhere
        self._weights = np.full(len(targets), FULL_WEIGHT)
        super().__init__(targets, self._shares(), rng)

    def refresh(self, loads: Mapping[int, float]) -> None:
        """Adapts the shares; see :meth:`Router.refresh`."""
        load = np.array([loads.get(task, 0.0) for task in self.targets])
        self._rescope(load)
        least = load[self._scope].min()
        relaxed = load <= least + CLOSE_TO_LEAST
        change = np.where(relaxed, 1, -10)
        self._weights[self._scope] = (self._weights + change).clip(0, FULL_WEIGHT)[self._scope]
        self._ring = self._rng.permutation(self._shares())
        self._next %= len(self._ring)

    def _rescope(self, load: NDArray[np.float64]) -> None:
        if not len(self._near):
            return
        busy = load[self._near].mean()
        if self._scope is self._near and busy > WIDEN_ABOVE:
            self._scope = self._everywhere
        elif self._scope is self._everywhere and busy < NARROW_BELOW:
            self._scope = self._near
        else:
            return
        self._weights[:] = FULL_WEIGHT

    def _shares(self) -> Places:
        """Each place of the scope as often as its weight says; what rounding leaves goes to the largest remainders."""
        capacity = max(1000, 5 * len(self._weights))
        exact = self._weights[self._scope] * capacity / self._weights[self._scope].sum()
        counts = exact.astype(np.intp)
        missing = capacity - int(counts.sum())
        counts[np.argsort(counts - exact, kind="stable")[:missing]] += 1
        return np.repeat(self._scope, counts)


class FieldsRouter(Router):
    """Equal keys to the same place."""

    def __init__(self, targets: tuple[int, ...], keys: Callable[[Callable[[int], int]], _Keys[int]]) -> None:
        super().__init__(targets)
        n = len(targets)
        self._keys = keys(lambda hashed: partition(hashed, n))

    def route(self, rows: Sequence[Row]) -> Routed:
        """By the key alone, however the rows are cut into batches."""
        if isinstance(rows, ColumnRows):
            return Routed((self._keys.hashes(rows) % np.uint64(len(self.targets))).astype(np.intp))
        return Routed(np.fromiter(self._keys.of(rows), np.intp, len(rows)))


class GroupsRouter(Router):
    """Keys of one group to the same place, which owns a range of groups."""

    def __init__(
        self, targets: tuple[int, ...], keys: Callable[[Callable[[int], int]], _Keys[int]], groups: int
    ) -> None:
        super().__init__(targets)
        self._owners = np.array(owners(len(targets), groups), dtype=np.intp)
        by_group = self._owners.tolist()
        self._keys = keys(lambda hashed: by_group[group_of(hashed, groups)])

    def route(self, rows: Sequence[Row]) -> Routed:
        """By the key alone, however the rows are cut into batches."""
        if isinstance(rows, ColumnRows):
            return Routed(self._owners[self._keys.hashes(rows) % np.uint64(len(self._owners))])
        return Routed(np.fromiter(self._keys.of(rows), np.intp, len(rows)))


class PartialKeyRouter(Router):
    """Each key has two places, the same in every emitter; a row goes to the one that got less from this emitter."""

    def __init__(self, targets: tuple[int, ...], key: tuple[str, ...], fields: tuple[str, ...], origin: str) -> None:
        super().__init__(targets)
        self._keys = _Keys(key, fields, origin, self._candidates)
        self._sent = [0] * len(targets)

    def route(self, rows: Sequence[Row]) -> Routed:
        """On a tie the first candidate; one row after another, since each choice counts for the next."""
        sent = self._sent
        places = []
        if isinstance(rows, ColumnRows):
            candidates = list(map(self._candidates, self._keys.hashes(rows).tolist()))
        else:
            candidates = self._keys.of(rows)
        for first, second in candidates:
            place = second if sent[second] < sent[first] else first
            sent[place] += 1
            places.append(place)
        return Routed(np.array(places, dtype=np.intp))

    def _candidates(self, hashed: int) -> tuple[int, int]:
        n = len(self.targets)
        first = partition(hashed, n)
        return first, (first + 1 + partition(hashed // n, n - 1)) % n


class CustomRouter(Router):
    """Where the author's object says: ``choose_tasks(values)`` gives task ids."""

    asks_author = True

    def __init__(self, targets: tuple[int, ...], chooser: Any, origin: str) -> None:
        super().__init__(targets)
        self._chooser = chooser
        self._origin = origin
        self._places = {task: place for place, task in enumerate(targets)}

    def route(self, rows: Sequence[Row]) -> Routed:
        """What the author's object chooses, in its order."""
        choose = self._chooser.choose_tasks
        chosen: list[int] = []
        counts = []
        for values in rows:
            tasks = choose(values)
            try:
                places = [self._places[task] for task in tasks]
            except (KeyError, TypeError):
                raise self._wrong(tasks) from None
            chosen.extend(places)
            counts.append(len(places))
        return Routed(np.array(chosen, dtype=np.intp), np.repeat(np.arange(len(rows), dtype=np.intp), counts))

    def _wrong(self, tasks: Any) -> TopologyError:
        problem = (
            f"{self._origin}: the grouping {type(self._chooser).__qualname__} chose {tasks!r}, which is not a list "
            f"of its targets {self.targets}; the rows were not sent"
        )
        return TopologyError([problem], hint="Return ids out of the target_tasks that prepare() got.")


class _Keys(Generic[T]):
    """What ``place`` makes of the hash of each row's key."""

    def __init__(self, key: tuple[str, ...], fields: tuple[str, ...], origin: str, place: Callable[[int], T]) -> None:
        self._fields = {name: fields.index(name) for name in key}
        self._select = itemgetter(*self._fields.values())
        self._cache: KeyCache[T] = KeyCache(place, single=len(self._fields) == 1)
        self._of_columns = ColumnKeys()
        self._origin = origin

    def of(self, rows: Sequence[Row]) -> list[T]:
        select, values = self._select, rows
        if isinstance(rows, HeadedRows) and (ahead := len(rows.head)) <= min(self._fields.values()):
            select, values = itemgetter(*(index - ahead for index in self._fields.values())), rows.body
        try:
            return self._cache.find_all(lambda: map(select, values))
        except EncodingError as error:
            raise self._located(rows, error) from error

    def hashes(self, rows: ColumnRows) -> U64:
        """Of each row's key."""
        try:
            return self._of_columns.hashes([rows.batch.column(index) for index in self._fields.values()])
        except EncodingError as error:
            raise self._located(rows, error) from error

    def _located(self, rows: Sequence[Row], error: EncodingError) -> EncodingError:
        for row in rows:
            for name, index in self._fields.items():
                try:
                    encode_key([row[index]])
                except EncodingError as found:
                    return EncodingError(f"{self._origin}, field {name}: {found.message}", hint=found.hint)
        return error
