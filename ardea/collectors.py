"""What the engine installs in spouts and bolts, so that their ``emit``, ``ack`` and ``fail`` reach it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

from ardea.errors import UserError
from ardea.tuples import ColumnBatch, Tuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

Values: TypeAlias = Sequence[Any]
TupIds: TypeAlias = "Sequence[Any] | NDArray[Any]"


class SpoutCollector(Protocol):
    """What the engine installs in a spout."""

    def emit(
        self, values: Values, tup_id: Any, stream: str, direct_task: int | None, need_task_ids: bool
    ) -> list[int] | None:
        """See :meth:`Spout.emit`."""
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

    def emit_rows(self, rows: Sequence[Values], stream: str, head: tuple[Any, ...]) -> Mapping[int, int]:
        """See :meth:`Bolt.emit_rows`."""
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
