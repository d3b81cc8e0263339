"""What runs inside a component for each tuple of a batch; one object a node and task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ardea.errors import UserError
from ardea.trident.folds import Fold
from ardea.trident.operations import Filter, Function, Operation, OperationContext
from ardea.trident.state import QueryFunction, State, StateUpdater
from ardea.trident.tuples import Row, TridentTuple, row_of

View = Callable[[Row], TridentTuple]


class BatchRun:
    """One attempt of a batch in one task.  ``memory`` is what each processor keeps of it."""

    __slots__ = ("attempt", "memory", "txid")

    def __init__(self, txid: int, attempt: int) -> None:
        self.txid = txid
        self.attempt = attempt
        self.memory: dict[Processor, Any] = {}


class Processor(ABC):
    """Takes rows of a batch and passes rows on; ``begin``, rows, ``finish``.

    ``send`` is what reads it: other processors, or the way to other components.
    """

    send: Callable[[BatchRun, Row], None]

    def prepare(self, config: Mapping[str, Any], context: OperationContext, states: Mapping[str, State]) -> None:  # noqa: B027 -- most need only some of these
        """Called once."""

    def begin(self, run: BatchRun) -> None:  # noqa: B027
        """A batch begins."""

    @abstractmethod
    def execute(self, run: BatchRun, row: Row) -> None:
        """One row."""

    def finish(self, run: BatchRun) -> None:  # noqa: B027
        """All rows of the batch have come."""

    def cleanup(self) -> None:  # noqa: B027
        """Called last."""


def prepare(operation: Any, config: Mapping[str, Any], context: OperationContext) -> None:
    """Prepares an author's operation, if it is one that wants to be."""
    if isinstance(operation, Operation):
        operation.prepare(config, context)


def cleanup(operation: Any) -> None:
    """Cleans up after an author's operation, likewise."""
    if isinstance(operation, Operation):
        operation.cleanup()


class _Operating(Processor):
    """Runs one operation of the author's on a view of each row."""

    def __init__(self, operation: Any, view: View) -> None:
        self._operation, self._view = operation, view

    def prepare(self, config: Mapping[str, Any], context: OperationContext, states: Mapping[str, State]) -> None:  # noqa: ARG002
        prepare(self._operation, config, context)

    def cleanup(self) -> None:
        cleanup(self._operation)


class Appender:
    """A collector that appends what is emitted to a row of the input."""

    def __init__(self, send: Callable[[BatchRun, Row], None], count: int, what: str) -> None:
        self._send, self._count, self._what = send, count, what
        self.run: BatchRun
        self.row: Row = ()

    def emit(self, values: Sequence[Any]) -> None:
        """The input's row with these values behind it."""
        row = tuple(values)
        if len(row) != self._count:
            raise UserError(f"{self._what} emitted {len(row)} values where {self._count} are declared: {values!r}")
        self._send(self.run, self.row + row)


class Each(_Operating):
    """Appends what a function gives, once for each row it gives."""

    def __init__(self, operation: Any, view: View, count: int) -> None:
        super().__init__(operation, view)
        self._count = count
        self._what = f"function {_name(operation)}"

    def prepare(self, config: Mapping[str, Any], context: OperationContext, states: Mapping[str, State]) -> None:
        """Prepares what the author gave."""
        super().prepare(config, context, states)
        self._appender = Appender(self.send, self._count, self._what)

    def execute(self, run: BatchRun, row: Row) -> None:
        """One row."""
        operation = self._operation
        if isinstance(operation, Function):
            self._appender.run, self._appender.row = run, row
            operation.execute(self._view(row), self._appender)
            return
        for values in _several(operation(self._view(row)), self._what):
            self.send(run, row + row_of(values, self._count, self._what))


class Keep(_Operating):
    """A filter."""

    def execute(self, run: BatchRun, row: Row) -> None:
        """One row."""
        operation, view = self._operation, self._view(row)
        if operation.is_keep(view) if isinstance(operation, Filter) else operation(view):
            self.send(run, row)


class Map(_Operating):
    """Replaces each row by the one that a function gives."""

    def __init__(self, operation: Any, view: View, count: int) -> None:
        super().__init__(operation, view)
        self._count = count
        self._what = f"function {_name(operation)}"

    def execute(self, run: BatchRun, row: Row) -> None:
        """One row."""
        self.send(run, row_of(self._operation(self._view(row)), self._count, self._what))


class FlatMap(Map):
    """Replaces each row by all that a function gives."""

    def execute(self, run: BatchRun, row: Row) -> None:
        """One row."""
        for values in _several(self._operation(self._view(row)), self._what):
            self.send(run, row_of(values, self._count, self._what))


class Peek(_Operating):
    """Shows each row to a function."""

    def execute(self, run: BatchRun, row: Row) -> None:
        """One row."""
        self._operation(self._view(row))
        self.send(run, row)


class Project(Processor):
    """Keeps some fields; of all fields, passes everything on as it is."""

    def __init__(self, view: View) -> None:
        self._view = view

    def execute(self, run: BatchRun, row: Row) -> None:
        """One row."""
        self.send(run, tuple(self._view(row)))


class Merge(Processor):
    """Passes on what comes from several streams."""

    def execute(self, run: BatchRun, row: Row) -> None:
        """One row."""
        self.send(run, row)


class Aggregate(Processor):
    """Folds the rows of a batch.

    ``alone``: who speaks for a batch of which no task has a row: of (txid, partition, partitions) whether it is this
    one; None: every task speaks for its partition.
    """

    def __init__(self, fold: Fold, alone: Callable[[int, int, int], bool] | None = None) -> None:
        self._fold, self._alone = fold, alone

    def prepare(self, config: Mapping[str, Any], context: OperationContext, states: Mapping[str, State]) -> None:  # noqa: ARG002
        """Prepares what the author gave."""
        self._fold.prepare(config, context)
        self._partition, self._partitions = context.partition_index, context.num_partitions

    def cleanup(self) -> None:
        """Cleans that up."""
        self._fold.cleanup()

    def begin(self, run: BatchRun) -> None:
        """The batch begins."""
        if self._alone is None or self._alone(run.txid, self._partition, self._partitions):
            self._start(run)

    def execute(self, run: BatchRun, row: Row) -> None:
        """One row."""
        kept = run.memory.get(self) or self._start(run)
        kept[0] = self._fold.step(kept[0], row, kept[1])

    def finish(self, run: BatchRun) -> None:
        """The batch is complete."""
        if self in run.memory:
            self._fold.end(*run.memory.pop(self))

    def _start(self, run: BatchRun) -> list[Any]:
        """[value, emit], which stay together while the batch runs."""
        emit = partial(self.send, run)
        run.memory[self] = kept = [self._fold.start(run.txid, emit), emit]
        return kept


class _Collecting(Processor):
    """Keeps the rows of a batch for its end, which needs a state."""

    def __init__(self, operation: Any, view: View, state: str, count: int) -> None:
        self._operation, self._view, self._state_id, self._count = operation, view, state, count
        self._state: Any = None

    def prepare(self, config: Mapping[str, Any], context: OperationContext, states: Mapping[str, State]) -> None:
        prepare(self._operation, config, context)
        self._state = states[self._state_id]
        self._appender = Appender(self.send, self._count, type(self._operation).__name__)

    def cleanup(self) -> None:
        cleanup(self._operation)

    def begin(self, run: BatchRun) -> None:
        run.memory[self] = []

    def execute(self, run: BatchRun, row: Row) -> None:
        run.memory[self].append(row)


class Persist(_Collecting):
    """Updates a state with all rows of a batch at once, in the commit phase."""

    _operation: StateUpdater

    def finish(self, run: BatchRun) -> None:
        """The batch is complete."""
        rows = run.memory.pop(self)
        self._appender.run, self._appender.row = run, ()
        self._state.begin_commit(run.txid)  # of an empty part too: a former attempt may have had more
        if rows:
            self._operation.update_state(self._state, [self._view(row) for row in rows], self._appender)
        self._state.commit(run.txid)


class Query(_Collecting):
    """Asks a state about all rows of a batch at once, and appends the answers."""

    _operation: QueryFunction

    def finish(self, run: BatchRun) -> None:
        """The batch is complete."""
        rows = run.memory.pop(self)
        if not rows:
            return
        views = [self._view(row) for row in rows]
        answers = self._operation.batch_retrieve(self._state, views)
        if len(answers) != len(rows):
            raise UserError(
                f"Results size is different than argument size: {len(answers)} vs {len(rows)}"
                f" ({type(self._operation).__name__}.batch_retrieve)"
            )
        self._appender.run = run
        for row, view, answer in zip(rows, views, answers, strict=True):
            self._appender.row = row
            self._operation.execute(view, answer, self._appender)


def _several(values: Any, what: str) -> Iterable[Any]:
    if values is None:
        return ()
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise UserError(f"{what} returned {values!r}, which is no list of rows", hint="Return a list, or yield rows.")
    return values


def _name(operation: Any) -> str:
    return str(getattr(operation, "__qualname__", type(operation).__name__))
