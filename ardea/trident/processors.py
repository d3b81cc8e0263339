"""What runs inside a component for each tuple of a batch; one object a node and task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ardea.errors import UserError
from ardea.trident.folds import Fold
from ardea.trident.operations import Author, Filter, Function, Operation, OperationContext
from ardea.trident.state import QueryFunction, State, StateUpdater
from ardea.trident.tuples import Row, Rows, TridentTuple

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

    ``send`` is what reads it: other processors, or the way to other components.  Lists of rows are never changed by who
    gets them, nor passed on empty.
    """

    send: Callable[[BatchRun, Rows], None]

    def prepare(self, config: Mapping[str, Any], context: OperationContext, states: Mapping[str, State]) -> None:  # noqa: B027 -- most need only some of these
        """Called once."""

    def begin(self, run: BatchRun) -> None:  # noqa: B027
        """A batch begins."""

    @abstractmethod
    def execute(self, run: BatchRun, rows: Rows) -> None:
        """Some rows."""

    def entrance(self, parent: int) -> Callable[[BatchRun, Rows], None]:  # noqa: ARG002
        """What takes the rows of the parent with this number, from 0."""
        return self.execute

    def finish(self, run: BatchRun) -> None:  # noqa: B027
        """All rows of the batch have come."""

    def cleanup(self) -> None:  # noqa: B027
        """Called last."""

    def pass_on(self, run: BatchRun, rows: Rows) -> None:
        """Sends rows, if there are any."""
        if rows:
            self.send(run, rows)


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
    """A batch collector that appends what is emitted to a row of the input."""

    def __init__(self, count: int, what: str) -> None:
        self._count, self._what = count, what
        self._rows: Rows = []
        self.row: Row = ()

    def emit(self, values: Sequence[Any]) -> None:
        """The input's row with these values behind it."""
        row = tuple(values)
        if len(row) != self._count:
            raise UserError(f"{self._what} emitted {len(row)} values where {self._count} are declared: {values!r}")
        self._rows.append(self.row + row)

    def emit_rows(self, rows: Sequence[Sequence[Any]]) -> None:
        """The same for each of them."""
        if set(map(len, rows)) <= {self._count}:
            head = self.row
            self._rows += [(*head, *row) for row in rows] if head else map(tuple, rows)
        else:
            for row in rows:
                self.emit(row)

    def take(self) -> Rows:
        """What was emitted since the last call."""
        rows, self._rows = self._rows, []
        return rows


class Each(_Operating):
    """Appends what a function gives, once for each row it gives."""

    def __init__(self, operation: Any, view: View, count: int) -> None:
        super().__init__(operation, view)
        self._count = count
        self._author = Author(operation)
        self._appender = Appender(count, f"function {self._author.name}")

    def execute(self, run: BatchRun, rows: Rows) -> None:
        """Some rows."""
        operation, view, count, author = self._operation, self._view, self._count, self._author
        if isinstance(operation, Function):
            appender = self._appender
            appender.take()  # rows of an attempt that failed
            for row in rows:
                appender.row = row
                operation.execute(view(row), appender)
            self.pass_on(run, appender.take())
        elif count == 1:
            self.pass_on(run, [(*row, value) for row in rows for value in several(operation(view(row)), author)])
        else:
            found = ((row, values) for row in rows for values in several(operation(view(row)), author))
            self.pass_on(run, [row + row_of(values, count, author) for row, values in found])


class Keep(_Operating):
    """A filter."""

    def execute(self, run: BatchRun, rows: Rows) -> None:
        """Some rows."""
        operation, view = self._operation, self._view
        keep = operation.is_keep if isinstance(operation, Filter) else operation
        self.pass_on(run, [row for row in rows if keep(view(row))])


class Map(_Operating):
    """Replaces each row by the one that a function gives."""

    def __init__(self, operation: Any, view: View, count: int) -> None:
        super().__init__(operation, view)
        self._count = count
        self._author = Author(operation)

    def execute(self, run: BatchRun, rows: Rows) -> None:
        """Some rows."""
        operation, view, count, author = self._operation, self._view, self._count, self._author
        self.send(run, [row_of(operation(view(row)), count, author) for row in rows])


class FlatMap(Map):
    """Replaces each row by all that a function gives."""

    def execute(self, run: BatchRun, rows: Rows) -> None:
        """Some rows."""
        operation, view, count, author = self._operation, self._view, self._count, self._author
        found = (values for row in rows for values in several(operation(view(row)), author))
        self.pass_on(run, [row_of(values, count, author) for values in found])


class Peek(_Operating):
    """Shows each row to a function."""

    def execute(self, run: BatchRun, rows: Rows) -> None:
        """Some rows."""
        for row in rows:
            self._operation(self._view(row))
        self.send(run, rows)


class Project(Processor):
    """Keeps some fields."""

    def __init__(self, view: View) -> None:
        self._view = view

    def execute(self, run: BatchRun, rows: Rows) -> None:
        """Some rows."""
        self.send(run, [tuple(self._view(row)) for row in rows])


class Pass(Processor):
    """Passes everything on: what several streams merge in, or what a repartition ends in."""

    def execute(self, run: BatchRun, rows: Rows) -> None:
        """Some rows."""
        self.send(run, rows)


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
            self._start(run)  # rows that it emits leave with those that follow, when all of the task has begun

    def execute(self, run: BatchRun, rows: Rows) -> None:
        """Some rows."""
        kept = run.memory.get(self) or self._start(run)
        kept[0] = self._fold.step(kept[0], rows, kept[1])
        out = kept[1][:]
        kept[1].clear()
        self.pass_on(run, out)

    def finish(self, run: BatchRun) -> None:
        """The batch is complete."""
        if self in run.memory:
            value, out = run.memory.pop(self)
            self._fold.end(value, out)
            self.pass_on(run, out)

    def _start(self, run: BatchRun) -> list[Any]:
        """[value, rows to send], which stay together while the batch runs."""
        out: Rows = []
        run.memory[self] = kept = [self._fold.start(run.txid, out), out]
        return kept


class _Collecting(Processor):
    """Keeps the rows of a batch for its end, which needs a state."""

    def __init__(self, operation: Any, view: View, state: str, count: int) -> None:
        self._operation, self._view, self._state_id = operation, view, state
        self._state: Any = None
        self._appender = Appender(count, type(operation).__name__)

    def prepare(self, config: Mapping[str, Any], context: OperationContext, states: Mapping[str, State]) -> None:
        prepare(self._operation, config, context)
        self._state = states[self._state_id]

    def cleanup(self) -> None:
        cleanup(self._operation)

    def begin(self, run: BatchRun) -> None:
        run.memory[self] = []

    def execute(self, run: BatchRun, rows: Rows) -> None:
        run.memory[self].extend(rows)


class Persist(_Collecting):
    """Updates a state with all rows of a batch at once, in the commit phase."""

    _operation: StateUpdater

    def finish(self, run: BatchRun) -> None:
        """The batch is complete."""
        rows = run.memory.pop(self)
        self._appender.take()  # rows of an attempt that failed
        self._state.begin_commit(run.txid)  # of an empty part too: a former attempt may have had more
        if rows or self._operation.updates_always:
            self._operation.update_state(self._state, list(map(self._view, rows)), self._appender)
        self._state.commit(run.txid)
        self.pass_on(run, self._appender.take())


class Query(_Collecting):
    """Asks a state about all rows of a batch at once, and appends the answers."""

    _operation: QueryFunction

    def finish(self, run: BatchRun) -> None:
        """The batch is complete."""
        rows = run.memory.pop(self)
        if not rows:
            return
        views = list(map(self._view, rows))
        answers = self._operation.batch_retrieve(self._state, views)
        if len(answers) != len(rows):
            raise UserError(
                f"Results size is different than argument size: {len(answers)} vs {len(rows)}"
                f" ({type(self._operation).__name__}.batch_retrieve)"
            )
        self._appender.take()  # rows of an attempt that failed
        for row, view, answer in zip(rows, views, answers, strict=True):
            self._appender.row = row
            self._operation.execute(view, answer, self._appender)
        self.pass_on(run, self._appender.take())


def row_of(values: Any, count: int, author: Author) -> Row:
    """The row that a user function gave: with one field, any value; with several, a sequence of so many.

    Raises:
        UserError: the number is wrong.
    """
    if count == 1:
        return (values,)
    row = tuple(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else (values,)
    if len(row) != count:
        raise author.error(f"gave {len(row)} values where {count} are declared: {values!r}")
    return row


def several(values: Any, author: Author) -> Iterable[Any]:
    """The rows that a function gave; None: none.

    Raises:
        UserError: it gave something else.
    """
    if type(values) is list:
        return values
    if values is None:
        return ()
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        raise author.error(f"returned {values!r}, which is no list of rows", hint="Return a list, or yield rows.")
    return values
