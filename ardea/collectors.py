"""What the engine installs in spouts and bolts, so that their ``emit``, ``ack`` and ``fail`` reach it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

from ardea.errors import UserError
from ardea.tuples import ColumnBatch, Tuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

Values: TypeAlias = Sequence[Any]
TupIds: TypeAlias = "Sequence[Any] | NDArray[Any]"


class RowIds:
    """The ids of the rows of one :meth:`Spout.emit_many`, taken from ``left`` as far as the rows go."""

    NONE = object()

    def __init__(self, rows: Iterable[Values], tup_ids: Iterable[Any] | None, name: str) -> None:
        """Raises UserError: both have a length, and not the same.  ``name``: the task's."""
        given: tuple[Any, Any] = rows, tup_ids
        known = [len(each) for each in given if isinstance(each, Sized)]
        if len(known) == 2 and known[0] != known[1]:
            raise UserError(f"{name}: emit_many got {known[1]} tup_ids for {known[0]} rows; none is emitted")
        self.left = None if tup_ids is None else iter(tup_ids)
        self._name = name

    def next(self) -> Any:
        """Of one row; raises UserError: there is none."""
        if self.left is None:
            return None
        tup_id = next(self.left, self.NONE)
        self.check(tup_id is self.NONE)
        return tup_id

    def take(self, rows: int) -> list[Any]:
        """Of so many rows, or of fewer."""
        return [None] * rows if self.left is None else list(islice(self.left, rows))

    def check(self, missing: int) -> None:
        """Raises UserError if so many rows have none, unless that is 0."""
        if missing:
            raise UserError(
                f"{self._name}: emit_many got fewer tup_ids than rows; the rows that have one are emitted",
                hint="Give None in place of an id where a row is not tracked.",
            )


class SpoutCollector(Protocol):
    """What the engine installs in a spout."""

    def emit(
        self, values: Values, tup_id: Any, stream: str, direct_task: int | None, need_task_ids: bool
    ) -> list[int] | None:
        """See :meth:`Spout.emit`."""
        ...

    def emit_many(
        self,
        rows: Iterable[Values],
        tup_ids: Iterable[Any] | None,
        stream: str,
        direct_task: int | None,
        need_task_counts: bool,
    ) -> Mapping[int, int] | None:
        """See :meth:`Spout.emit_many`."""
        ...

    def emit_batch(self, batch: Any, tup_ids: TupIds | None, stream: str) -> None:
        """See :meth:`Spout.emit_batch`."""
        ...

    def finish(self) -> None:
        """See :meth:`Spout.finish`."""
        ...

    def reopen(self) -> None:
        """Takes that back: an update may have brought the task something to read."""
        ...


class BoltCollector(Protocol):
    """What the engine installs in a bolt."""

    def emit(
        self,
        values: Values,
        stream: str,
        anchors: Sequence[Tuple] | None,
        direct_task: int | None,
        need_task_ids: bool,
    ) -> list[int] | None:
        """See :meth:`Bolt.emit`."""
        ...

    def emit_many(
        self,
        rows: Iterable[Values],
        stream: str,
        anchors: Sequence[Tuple] | None,
        direct_task: int | None,
        need_task_counts: bool,
        *,
        head: tuple[Any, ...],
    ) -> Mapping[int, int] | None:
        """See :meth:`Bolt.emit_many`."""
        ...

    def emit_batch(self, batch: Any, stream: str, anchors: Any) -> None:
        """See :meth:`Bolt.emit_batch`."""
        ...

    def ack(self, tup: Tuple) -> None:
        """See :meth:`Bolt.ack`."""
        ...

    def fail(self, tup: Tuple) -> None:
        """See :meth:`Bolt.fail`."""
        ...

    def ack_batch(self, columns: ColumnBatch, rows: Any) -> None:
        """See :meth:`Bolt.ack_batch`."""
        ...

    def fail_batch(self, columns: ColumnBatch, rows: Any) -> None:
        """See :meth:`Bolt.fail_batch`."""
        ...

    def reset_timeout(self, tup: Tuple) -> None:
        """See :meth:`Bolt.reset_timeout`."""
        ...


class NotRunning:
    """The collector of a component that no engine runs."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # as help() and others ask of every object
            raise AttributeError(name)
        raise UserError(
            f"{name}() was called on a component that is not running in a topology",
            hint="Emit, ack, fail and finish work from initialize() on; ardea.testing runs a topology in one process.",
        )
