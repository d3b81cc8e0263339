"""What is kept of the rows of a window: a value that each row is added to (docs/windows.md)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ardea.errors import UserError
from ardea.protocol.extremes import greatest, least
from ardea.protocol.groups import aggregated
from ardea.tuples import Tuple, TupleBatch

Table = MutableMapping[Any, Any]


class Groups(NamedTuple):
    """Which group each row is in, of so many."""

    places: NDArray[np.intp]
    total: int

    def aggregated(self, column: Any, by: str) -> list[Any]:
        """One of Arrow's aggregations of each group; None where it has nothing but nulls."""
        return aggregated(self.places, self.total, column, by)


class Fold:
    """An author's own derives from this: ``zero()``, ``add(value, row)``, and where windows are put together ``merge``.

    Values are kept as those of a state are: numbers, texts, lists, dicts and the like.
    """

    fields: tuple[str, ...] = ()  # that it reads, each of which every input has to have

    def zero(self) -> Any:
        """The value of no rows; one that may be changed in place."""
        return None

    def add(self, value: Any, row: Tuple) -> Any:
        """The value with one more row."""
        raise NotImplementedError

    def merge(self, a: Any, b: Any) -> Any:
        """One value of two, of which the rows of ``a`` have the smaller stamps; ``a`` may be changed and given back.

        ``b`` may be given back, and is not to be changed.
        """
        raise NotImplementedError

    def result(self, value: Any) -> Any:
        """What ``on_window`` gets; by default the value."""
        return value

    @property
    def merges(self) -> bool:
        """Whether it can put values together."""
        return type(self).merge is not Fold.merge

    # --- the engine's -----------------------------------------------------------------------------------------

    def copied(self, value: Any) -> Any:
        """What :meth:`merge` may change, while the value stays."""
        return copy.deepcopy(value)

    def items(self, rows: TupleBatch) -> Sequence[Any]:
        """What of each row is added."""
        return rows

    @property
    def keeps_values(self) -> bool:
        """Whether :meth:`items` are values, which can be kept until the row leaves."""
        return type(self).items is not Fold.items

    def put(self, value: Any, item: Any) -> Any:
        """Adds one of :meth:`items`."""
        return self.add(value, item)

    @property
    def of_columns(self) -> bool:
        """Whether it has :meth:`parts`."""
        return type(self).parts is not Fold.parts

    def parts(self, columns: Any, groups: Groups) -> list[Any]:
        """The value of each group of rows of a record batch, each of which has a row; to be merged."""
        raise NotImplementedError

    def put_all(self, table: Table, keys: Iterable[Any], items: Iterable[Any]) -> None:
        """Adds each item to the value of its key."""
        put = self.put
        for key, item in zip(keys, items, strict=True):
            table[key] = put(table[key], item)


class Rows(Fold):
    """All of them, as they come: a list with the values of each."""

    def zero(self) -> list[Any]:
        return []

    def merge(self, a: list[Any], b: list[Any]) -> list[Any]:
        return a + b

    def copied(self, value: Any) -> Any:
        return value

    def result(self, value: list[Any]) -> list[tuple[Any, ...]]:
        """Those that a snapshot has kept are lists."""
        return list(map(tuple, value))

    def items(self, rows: TupleBatch) -> Sequence[Any]:
        return rows.rows

    def put(self, value: list[Any], item: Any) -> list[Any]:
        value.append(item)
        return value

    def put_all(self, table: Table, keys: Iterable[Any], items: Iterable[Any]) -> None:
        for key, item in zip(keys, items, strict=True):
            table[key].append(item)


class Count(Fold):
    """How many rows there are."""

    def zero(self) -> int:
        return 0

    def merge(self, a: int, b: int) -> int:
        return a + b

    def copied(self, value: Any) -> Any:
        return value

    def items(self, rows: TupleBatch) -> Sequence[Any]:
        return rows.rows

    def put(self, value: int, item: Any) -> int:  # noqa: ARG002
        return value + 1

    def parts(self, columns: Any, groups: Groups) -> list[Any]:  # noqa: ARG002
        counts: list[Any] = np.bincount(groups.places, minlength=groups.total).tolist()
        return counts

    def put_all(self, table: Table, keys: Iterable[Any], items: Iterable[Any]) -> None:  # noqa: ARG002
        for key in keys:
            table[key] += 1


class OfField(Fold):
    """One that reads a field, and passes over rows that have None there."""

    def __init__(self, field: str) -> None:
        """Raises UserError: ``field`` is not the name of one."""
        if not isinstance(field, str) or not field:
            raise UserError(f"{type(self).__name__}({field!r}): it takes the name of a field")
        self.field = field
        self.fields = (field,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.field!r})"

    def items(self, rows: TupleBatch) -> Sequence[Any]:
        place = rows.fields.index(self.field)
        return [row[place] for row in rows.rows]

    def put(self, value: Any, item: Any) -> Any:
        return value if item is None else self.step(value, item)

    def step(self, value: Any, item: Any) -> Any:
        """Adds a value of the field that is not None."""
        raise NotImplementedError

    def copied(self, value: Any) -> Any:
        return value

    def merge(self, a: Any, b: Any) -> Any:
        return b if a is None else a if b is None else self.both(a, b)

    def both(self, a: Any, b: Any) -> Any:
        """Neither is None."""
        return self.step(a, b)

    aggregation = ""  # Arrow's

    @property
    def of_columns(self) -> bool:
        return bool(self.aggregation)

    def parts(self, columns: Any, groups: Groups) -> list[Any]:
        return groups.aggregated(columns.column(self.field), self.aggregation)


class Sum(OfField):
    """Of the values of a field; 0 where there are none."""

    aggregation = "sum"

    def zero(self) -> Any:
        return 0

    def step(self, value: Any, item: Any) -> Any:
        return value + item

    def put_all(self, table: Table, keys: Iterable[Any], items: Iterable[Any]) -> None:
        for key, item in zip(keys, items, strict=True):
            table[key] += 0 if item is None else item


class Min(OfField):
    """The least value of a field, a NaN only if there is nothing else; None where there is none."""

    aggregation = "min"

    def step(self, value: Any, item: Any) -> Any:
        return item if value is None else least(value, item)


class Max(OfField):
    """The greatest value of a field, a NaN only if there is nothing else; None where there is none."""

    aggregation = "max"

    def step(self, value: Any, item: Any) -> Any:
        return item if value is None else greatest(value, item)


class First(OfField):
    """The value of a field in the row that came first; of windows that are put together, in the earlier one."""

    aggregation = "first"

    def step(self, value: Any, item: Any) -> Any:
        return item if value is None else value


class Last(OfField):
    """The value of a field in the row that came last; of windows that are put together, in the later one."""

    aggregation = "last"

    def step(self, value: Any, item: Any) -> Any:  # noqa: ARG002
        return item


class Mean(OfField):
    """Of the values of a field; None where there are none."""

    aggregation = "sum"

    def zero(self) -> Any:
        return (0, 0)

    def step(self, value: Any, item: Any) -> Any:
        total, count = value
        return total + item, count + 1

    def both(self, a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] + b[1]

    def parts(self, columns: Any, groups: Groups) -> list[Any]:
        counts = groups.aggregated(columns.column(self.field), "count")
        return [(total or 0, count or 0) for total, count in zip(super().parts(columns, groups), counts, strict=True)]

    def result(self, value: Any) -> float | None:
        total, count = value
        return total / count if count else None


class Folds(Fold):
    """Several at once, by name; the result is a dict: ``Folds(orders=Count(), amount=Sum("amount"))``."""

    def __init__(self, **folds: Fold) -> None:
        """Raises UserError: there is none, or one is none."""
        if not folds or not all(isinstance(fold, Fold) for fold in folds.values()):
            raise UserError(f"Folds({_shown(folds)}): it takes folds by name, such as orders=Count()")
        self._names, self._folds = tuple(folds), tuple(folds.values())
        self.fields = tuple(dict.fromkeys(name for fold in self._folds for name in fold.fields))

    def __repr__(self) -> str:
        return f"Folds({_shown(dict(zip(self._names, self._folds, strict=True)))})"

    @property
    def merges(self) -> bool:
        return all(fold.merges for fold in self._folds)

    def zero(self) -> Any:
        return [fold.zero() for fold in self._folds]

    def copied(self, value: Any) -> Any:
        return [fold.copied(one) for fold, one in zip(self._folds, value, strict=True)]

    def merge(self, a: Any, b: Any) -> Any:
        each = zip(self._folds, a, b, strict=True)
        return [fold.copied(y) if (merged := fold.merge(x, y)) is y else merged for fold, x, y in each]

    def result(self, value: Any) -> dict[str, Any]:
        return {name: fold.result(one) for name, fold, one in zip(self._names, self._folds, value, strict=True)}

    def items(self, rows: TupleBatch) -> Sequence[Any]:
        return list(zip(*[fold.items(rows) for fold in self._folds], strict=True))

    @property
    def keeps_values(self) -> bool:
        return all(fold.keeps_values for fold in self._folds)

    @property
    def of_columns(self) -> bool:
        return all(fold.of_columns for fold in self._folds)

    def parts(self, columns: Any, groups: Groups) -> list[Any]:
        return list(map(list, zip(*[fold.parts(columns, groups) for fold in self._folds], strict=True)))

    def put(self, value: Any, item: Any) -> Any:
        return [fold.put(one, each) for fold, one, each in zip(self._folds, value, item, strict=True)]


def _shown(folds: dict[str, Any]) -> str:
    return ", ".join(f"{name}={fold!r}" for name, fold in folds.items())
