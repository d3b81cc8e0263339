"""Ready-made operations, under Storm's names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import add
from typing import Any

from ardea.protocol.extremes import greatest, least
from ardea.trident.operations import Aggregator, Collector, CombinerAggregator, Filter
from ardea.trident.tuples import TridentTuple


class Count(CombinerAggregator):
    """How many tuples."""

    def init(self, tup: TridentTuple) -> int:  # noqa: ARG002
        """One."""
        return 1

    combine = staticmethod(add)  # without Python code: it runs for each key of each batch

    def zero(self) -> int:
        """None at all."""
        return 0

    def by_group(self, keys: Iterable[Any], tuples: Iterable[TridentTuple]) -> dict[Any, Any]:  # noqa: ARG002
        """Looks at no tuple."""
        return Counter(keys)


class Sum(CombinerAggregator):
    """The sum of the one input field."""

    def init(self, tup: TridentTuple) -> Any:
        """The value."""
        return tup[0]

    combine = staticmethod(add)

    def zero(self) -> int:
        """The empty sum."""
        return 0

    def by_group(self, keys: Iterable[Any], tuples: Iterable[TridentTuple]) -> dict[Any, Any]:
        """One addition a tuple."""
        sums: dict[Any, Any] = defaultdict(int)
        for key, (value,) in zip(keys, tuples, strict=False):
            sums[key] += value
        return sums


class _Extreme(CombinerAggregator):
    better: Callable[[Any, Any], Any]

    def init(self, tup: TridentTuple) -> Any:
        """The value."""
        return tup[0]

    def combine(self, left: Any, right: Any, /) -> Any:
        """The better of two; None is no value."""
        if left is None or right is None:
            return right if left is None else left
        return self.better(left, right)

    def zero(self) -> None:
        """No value."""


class Max(_Extreme):
    """The largest value of the one input field, a NaN only if there is nothing else; None of no tuple."""

    better = staticmethod(greatest)


class Min(_Extreme):
    """The smallest value of the one input field, likewise; None of no tuple."""

    better = staticmethod(least)


class FilterNull(Filter):
    """Drops tuples with a None among the fields asked for."""

    def is_keep(self, tup: TridentTuple) -> bool:
        """Whether no value is None."""
        return all(value is not None for value in tup)


class Equals(Filter):
    """Keeps tuples whose values are all equal."""

    def is_keep(self, tup: TridentTuple) -> bool:
        """Whether they are."""
        return all(value == tup[0] for value in tup)


class Negate(Filter):
    """Keeps what another filter drops."""

    def __init__(self, other: Filter) -> None:
        self._other = other

    def is_keep(self, tup: TridentTuple) -> bool:
        """The opposite."""
        return not self._other.is_keep(tup)


class Extreme(Aggregator):
    """Emits the tuple with the smallest key, or with ``largest`` the largest; of equal ones the later one.

    ``key`` is a field or a function of the tuple.  None is no key; without any tuple nothing is emitted.
    """

    def __init__(self, key: str | Callable[[TridentTuple], Any], *, largest: bool = False) -> None:
        self._key = key if callable(key) else lambda tup: tup[key]
        self._largest = largest

    def init(self, batch_id: int, collector: Collector) -> list[tuple[Any, TridentTuple]]:  # noqa: ARG002
        """No tuple yet."""
        return []

    def aggregate(self, value: list[tuple[Any, TridentTuple]], tup: TridentTuple, collector: Collector) -> None:  # noqa: ARG002
        """Keeps it unless the one before is strictly better."""
        if (key := self._key(tup)) is None:
            return
        if not value or not (value[0][0] > key if self._largest else value[0][0] < key):
            value[:] = [(key, tup)]

    def complete(self, value: list[tuple[Any, TridentTuple]], collector: Collector) -> None:
        """Emits it."""
        for _, tup in value:
            collector.emit(tup)


class Best(Aggregator):
    """Emits the ``count`` tuples with the smallest key, smallest first; with ``reverse`` the largest, largest first.

    ``key`` is a field or a function of the tuple.  None for a key is passed over; of equal keys the earlier is kept.
    """

    def __init__(self, count: int, key: str | Callable[[TridentTuple], Any], *, reverse: bool = False) -> None:
        self._count = count
        self._key = key if callable(key) else lambda tup: tup[key]
        self._reverse = reverse

    def init(self, batch_id: int, collector: Collector) -> list[tuple[Any, Sequence[Any]]]:  # noqa: ARG002
        """No tuple yet."""
        return []

    def aggregate(self, value: list[tuple[Any, Sequence[Any]]], tup: TridentTuple, collector: Collector) -> None:  # noqa: ARG002
        """Keeps it if it is among the best so far."""
        if (key := self._key(tup)) is None:
            return
        value.append((key, tup))
        if len(value) > 2 * self._count:
            self._cut(value)

    def complete(self, value: list[tuple[Any, Sequence[Any]]], collector: Collector) -> None:
        """Emits the best."""
        self._cut(value)
        for _, tup in value:
            collector.emit(tup)

    def _cut(self, value: list[tuple[Any, Sequence[Any]]]) -> None:
        value.sort(key=lambda pair: pair[0], reverse=self._reverse)
        del value[self._count :]
