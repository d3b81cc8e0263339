"""Spouts and bolts: the classes that an author derives from, and what describes their place in a topology."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

from ardea.collectors import BoltCollector, NotRunning, SpoutCollector, TupIds, Values
from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.plan import GroupingPlan
from ardea.tuples import ColumnBatch, Tuple
from ardea.watermarks import SourceTime, Timestamps

DEFAULT_STREAM = "default"


@dataclass(frozen=True, slots=True)
class Stream:
    """An output stream.  The rows of a ``direct`` one go to the task that each emit names (``direct_task=``)."""

    fields: Sequence[str]
    name: str = DEFAULT_STREAM
    direct: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.fields, str):
            raise UserError(f"Stream(fields={self.fields!r}): write a list, fields=[{self.fields!r}]")
        object.__setattr__(self, "fields", tuple(self.fields))


Outputs: TypeAlias = Sequence[str | Stream]


class GlobalStreamId(NamedTuple):
    """One stream of one component, as ``split["errors"]`` gives it.  ``component`` may be a name."""

    component: Spec | str
    stream: str = DEFAULT_STREAM


Source: TypeAlias = "Spec | str | GlobalStreamId"
Inputs: TypeAlias = Sequence[Source] | Mapping[Any, GroupingPlan]


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """A component of a topology; :meth:`Component.spec` makes it and documents the attributes.

    It is never changed, so that one may stand in several topologies.  ``spec["errors"]`` names another stream than the
    default one.  ``companions`` are components that come with it: that of key ``driver`` is called ``NAME_driver``.
    """

    cls: type[Component]
    name: str | None
    par: int
    inputs: Inputs
    config: Mapping[str, Any]
    tasks: int | None
    cpu: float | None
    ram: int | str | None
    disk: int | str | None
    optional_outputs: Outputs
    companions: Mapping[str, Spec] = field(default_factory=dict)

    def __getitem__(self, stream: str) -> GlobalStreamId:
        return GlobalStreamId(self, stream)

    # With __getitem__ alone Python would take a spec for an endless sequence.
    __iter__ = None


if TYPE_CHECKING:
    from builtins import classmethod as classmethod_only
else:

    class classmethod_only(classmethod):  # noqa: N801 -- a decorator
        """A class method that objects refuse: called on one it would forget what the object was made of."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            return super().__get__(None, owner) if instance is None else partial(_refuse_object, owner.__qualname__)


def _refuse_object(name: str, *_: Any, **__: Any) -> NoReturn:
    what = f"an object of {name} was to be placed in a topology: each task makes its own, by {name}(); write"
    raise UserError(f"{what} {name}.spec(...), with the arguments in config= or in a subclass")


class Component:
    """What spouts and bolts share.  The engine makes one object a task, without arguments.

    All methods are called on the task's executor thread; ``emit``, ``ack``, ``fail`` and ``finish`` raise on any other
    (see :meth:`TopologyContext.submit`).

    Attributes:
        outputs: the fields of the default stream, for example ``["word", "count"]``, or :class:`Stream` objects, or
            both.
        config: configuration that the component brings along; that of ``spec(config=)`` wins over it.
        rescalable: the author's word that changing the number of tasks loses no state, although rows are grouped by
            fields.
        fixed_parallelism: its tasks count on their number, so that ``ardea update`` rescales it only with a new file.
        logger: the standard library's, named after the component.
        watermark: in a topology whose rows have stamps, those with smaller ones have come, but for late ones: seconds
            since 1970; None before the first one, infinity once all input has ended.  The engine's to set.
    """

    outputs: Outputs = ()
    config: Mapping[str, Any] = MappingProxyType({})
    rescalable: bool = False
    fixed_parallelism: bool = False
    logger: logging.Logger = logging.getLogger("ardea")
    watermark: float | None = None

    @classmethod_only
    def spec(
        cls,  # noqa: N805
        name: str | None = None,
        par: int = 1,
        inputs: Inputs | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        tasks: int | None = None,
        cpu: float | None = None,
        ram: int | str | None = None,
        disk: int | str | None = None,
        optional_outputs: Outputs = (),
    ) -> Spec:
        """Places the component in a topology.  Everything is checked when the topology is built, all at once.

        Args:
            name: by default the attribute's in the topology class.
            par: the number of executors (Storm's parallelism hint).
            inputs: what a bolt reads: a list of specs, each shuffled; or a dict, spec -> grouping.
                ``spec["errors"]`` is a stream other than the default one; a component's name may stand for its spec.
            config: configuration for this component only; it wins over the topology's.
            tasks: the number of tasks, a process each; by default ``par``.
            cpu: cores that one task needs; default 1.0.
            ram: memory that one task needs, in bytes or like ``"512MiB"``; default 512 MiB.
            disk: disk that one task needs, likewise; default 1 GiB.
            optional_outputs: streams beyond ``outputs``, written alike.
        """
        return Spec(
            cls,
            name,
            par,
            () if inputs is None else inputs,
            MappingProxyType({}) if config is None else config,
            tasks,
            cpu,
            ram,
            disk,
            optional_outputs,
        )

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once, before anything else.

        Args:
            config: defaults, the topology's configuration and the component's, merged.
            context: what the task knows of itself and its topology.
        """

    def update(self, context: TopologyContext) -> None:
        """Called when the component, or one that it reads or feeds, has changed in a running topology."""

    def snapshot(self, number: int) -> None:
        """In a mode with snapshots: called after ``flush``, before the task's state is taken (docs/snapshots.md)."""

    def restored(self, number: int) -> None:
        """In that mode: called after ``initialize`` on a new object, whose state is that of the snapshot."""

    def committed(self, number: int) -> None:
        """In that mode: the snapshot counts, and whatever came before it is never emitted again."""

    def close(self) -> None:
        """Called last, when the topology ends or the process is told to stop; not when the process is killed.

        The context's ``topology_over`` says which it is.  After the end nothing can be emitted: such rows count as
        given up.
        """


class Spout(Component):
    """Where tuples come from.

    ``replayable = False`` says that it cannot go back, as one that listens on a socket: with ``EFFECTIVELY_ONCE`` it
    needs no state, and its rows since the last snapshot are lost with a rollback.

    ``timestamps`` says which field of its rows has the time of what they are about (docs/time.md).

    **Replaying.**  A row emitted with a ``tup_id`` is the root of a tree.  The executor keeps it until the tree is
    acked, and emits it again, with the same ``tup_id``, when it failed, timed out or was lost, waiting a little longer
    each time (0, 0.1 ... 30 s).  ``topology.max.tuple.replays`` bounds that.  A class that overrides :meth:`fail`
    decides for itself instead.  With ``EFFECTIVELY_ONCE`` a spout goes back by its state (docs/snapshots.md).

    **Pausing.**  ``next_tuple`` is not called while ``topology.max.spout.pending`` trees (or
    ``topology.max.spout.pending.bytes``) are open, while readers have no room, or while the topology is inactive;
    ``idle``, ``ack`` and ``fail`` are.
    """

    replayable: bool = True
    timestamps: Timestamps | None = None

    _time: SourceTime | None = None
    _has_partitions = False  # it says itself of which one each row is
    _collector: SpoutCollector = NotRunning()

    def next_tuple(self) -> None:
        """Emits the next row, some rows, or none.  Should return soon: acks and fails wait meanwhile."""
        raise NotImplementedError

    def ack(self, tup_id: Any) -> None:
        """The tree of that row is complete.  May emit, pending full or not."""

    def ack_batch(self, tup_ids: TupIds) -> None:
        """The trees of those rows are complete; the default calls :meth:`ack` for each.

        Ids that went to :meth:`emit_batch` as a range or an array of integers come as a NumPy array.
        """
        for tup_id in tup_ids:
            self.ack(tup_id)

    def fail(self, tup_id: Any) -> bool | None:  # noqa: ARG002
        """The tree of that row failed, timed out or was lost.

        The default leaves it to the executor to emit the row again.  A class that overrides it decides: returning True
        says that the row was or will be emitted again, under whatever id; anything else gives it up, is counted, and
        lets the topology end FAILED.  May emit, pending full or not.
        """
        return None

    def describe_tup_id(self, tup_id: Any) -> str:
        """What logs and errors call a row of this id; by default ``tup_id`` and the id as Python shows it."""
        return f"tup_id {tup_id!r}"

    def idle(self) -> None:
        """Called now and then while ``next_tuple`` is not, so that connections can be kept alive.  May emit."""

    def activate(self) -> None:
        """Called after ``initialize`` and whenever the topology is activated."""

    def deactivate(self) -> None:
        """Called when the topology is deactivated: ``next_tuple`` pauses until ``activate``."""

    def emit(
        self,
        values: Values,
        tup_id: Any = None,
        stream: str = DEFAULT_STREAM,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a row, which leaves with others.

        The row is copied; a list, dict or object in it must not be changed afterwards.

        A row with another number of values than the stream has fields, with a value that cannot be sent, or larger than
        ``topology.max.tuple.bytes`` is found as it leaves: it is given up, logged and counted, and the topology ends
        FAILED (docs/instance.md).

        Args:
            values: one for each field of the stream.
            tup_id: what ``ack`` and ``fail`` are called with; None: the row is not tracked.
            stream: one that the class declares.
            direct_task: the receiving task's id, for a direct stream and for no other.  One that does not read the
                stream gets nothing, and the row counts as processed, as in Storm.
            need_task_ids: return the ids of the tasks that get the row, which costs a little.

        Raises:
            UserError: undeclared stream; a direct stream without ``direct_task``, or another with it; an id that is no
                integer; wrong thread; or more open trees than a task can have.
        """
        return self._collector.emit(values, tup_id, stream, direct_task, need_task_ids)

    def emit_many(
        self,
        rows: Iterable[Values],
        tup_ids: Iterable[Any] | None = None,
        stream: str = DEFAULT_STREAM,
        direct_task: int | None = None,
        need_task_counts: bool = False,
    ) -> Mapping[int, int] | None:
        """Emits each row as :meth:`emit` does, at a fraction of the cost; docs/guide.md says of which iterables.

        Args:
            rows: any iterable, read once; if it raises, the rows before that are emitted.
            tup_ids: one for each row, None for those that are not tracked; None: no row is.
            stream: as for :meth:`emit`.
            direct_task: the task that gets all of them, as for :meth:`emit`.
            need_task_counts: return task -> how many of the rows it gets, without tasks that get none.

        Raises:
            UserError: as :meth:`emit`, as soon as there is a row; or fewer ids than rows.  Both have a length, which is
                not the same: no row is emitted.  Otherwise those before the first without an id are.
        """
        return self._collector.emit_many(rows, tup_ids, stream, direct_task, need_task_counts)

    def emit_batch(self, batch: Any, tup_ids: TupIds | None = None, stream: str = DEFAULT_STREAM) -> None:
        """Emits the rows of an Arrow record batch, which travels as columns.

        Args:
            batch: a ``pyarrow.RecordBatch``; its columns are the stream's fields, in order.  A reader gets the same
                tuples as of single rows.
            tup_ids: one for each row, None for those that are not tracked; None: no row is.  A range or an array of
                integers costs least.
            stream: one that the class declares, and not a direct one.

        Raises:
            UserError: undeclared or direct stream, wrong number of columns or ids, or wrong thread.
            ConfigError: pyarrow is not installed.
        """
        self._collector.emit_batch(batch, tup_ids, stream)

    def finish(self) -> None:
        """Says that there is nothing new for now; ``next_tuple`` is not called any more.

        A spout with the default ``fail`` stays finished, and replays by itself what fails.  For a class that overrides
        ``fail``, a delivered fail ends the rest: ``next_tuple`` is called again until it calls ``finish`` again.  When
        all spouts have finished, all trees have verdicts and all bolts rest, the topology ends.

        Raises:
            UserError: wrong thread.
        """
        self._collector.finish()


class Bolt(Component):
    """What reads tuples, and may emit others.

    Each emit is anchored to the tuple being processed; that tuple is acked when ``process`` returns and failed when it
    raises (:class:`ardea.FailedException` fails it without an error report).  The three attributes turn that off, for
    joins and aggregations: a tuple may be held, anchored to, and acked or failed much later.

    Attributes:
        auto_anchor: anchor what is emitted in ``process`` to its tuple, unless ``anchors=`` says otherwise.
        auto_ack: ack the tuple when ``process`` returns.
        auto_fail: fail the tuple when ``process`` raises; if False, an exception ends the task.
        column_types: what :meth:`process_columns` wants: field -> Arrow type, as an object or by name (``"int32"``).
    """

    auto_anchor: bool = True
    auto_ack: bool = True
    auto_fail: bool = True
    column_types: Mapping[str, Any] = MappingProxyType({})
    _collector: BoltCollector = NotRunning()

    def process(self, tup: Tuple) -> None:
        """One tuple."""
        raise NotImplementedError

    def process_batch(self, rows: Sequence[Tuple]) -> None:
        """Tuples of one stream of one component that arrived together, in order; the default processes each.

        A class that overrides it needs no ``process``.  The attributes then hold for the whole batch: an emit without
        ``anchors=`` is anchored to all its tuples, and all are acked or failed together.  At most
        ``topology.executor.batch.rows`` tuples.
        """
        for tup in rows:
            self.process(tup)

    def process_columns(self, columns: ColumnBatch) -> None:
        """Rows of one stream of one component that arrived together, as Arrow columns.

        A class that overrides it gets all its input so, and needs neither ``process`` nor ``process_batch``.  The
        attributes hold for the whole batch, as there; docs/columns.md.
        """
        raise NotImplementedError

    def process_tick(self, tup: Tuple) -> None:
        """A tick, each ``topology.tick.tuple.freq.secs`` while the bolt has input to expect."""

    def on_timer(self, name: str, key: Any, at: float) -> None:
        """A timer is due that the bolt has set; called between rows (:class:`ardea.Timers`).

        Args:
            name: as it was set.
            key: likewise.
            at: when it was to be called, in seconds since 1970.
        """

    def flush(self) -> None:
        """Nothing comes for now: emit, and ack or fail, what is held.

        Called each time that all that feeds this task rests, before each snapshot, and after ``end_of_input``.
        """

    def end_of_input(self) -> None:
        """Nothing will come any more: emit final results, untracked.  Called once, before the last ``flush``."""

    def emit(
        self,
        values: Values,
        stream: str = DEFAULT_STREAM,
        anchors: Sequence[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Emits a row; what :meth:`Spout.emit` says of it holds here, too, and such a row fails its anchors.

        Args:
            values: one for each field of the stream.
            stream: one that the class declares.
            anchors: the tuples whose trees the row joins; None: with ``auto_anchor`` the tuple being processed, else
                none.  An empty list: none.
            direct_task: as for :meth:`Spout.emit`.
            need_task_ids: return the ids of the tasks that get the row, which costs a little.

        Raises:
            UserError: undeclared stream; a direct stream without ``direct_task``, or another with it; an anchor that is
                acked or failed already; or wrong thread.
        """
        return self._collector.emit(values, stream, anchors, direct_task, need_task_ids)

    def emit_many(
        self,
        rows: Iterable[Values],
        stream: str = DEFAULT_STREAM,
        anchors: Sequence[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_counts: bool = False,
        *,
        head: tuple[Any, ...] = (),
    ) -> Mapping[int, int] | None:
        """Emits each row as :meth:`emit` does, at a fraction of the cost; docs/guide.md says of which iterables.

        Args:
            rows: any iterable, read once; if it raises, the rows before that are emitted.
            stream: as for :meth:`emit`.
            anchors: those of each row, as for :meth:`emit`.
            direct_task: the task that gets all of them, as for :meth:`emit`.
            need_task_counts: return task -> how many of the rows it gets, without tasks that get none.
            head: the first values of each row, which ``rows`` leave out, and which travel once.

        Raises:
            UserError: as :meth:`emit`, as soon as there is a row.
            EncodingError: with ``head`` and ``need_task_counts``, one of the rows has no key to route by.
        """
        return self._collector.emit_many(rows, stream, anchors, direct_task, need_task_counts, head=head)

    def emit_batch(self, batch: Any, stream: str = DEFAULT_STREAM, anchors: Any = None) -> None:
        """Emits the rows of an Arrow record batch, which travels as columns.

        Args:
            batch: a ``pyarrow.RecordBatch``; its columns are the stream's fields, in order.
            stream: one that the class declares, and not a direct one.
            anchors: whose trees each row joins.  None: with ``auto_anchor`` those of the row at the same place of the
                batch being processed, which must have as many rows (in ``process``: those of the tuple).  An array of
                row numbers of that batch, or an Arrow list array of such: those of that row, of these rows.  A
                mapping, :class:`ColumnBatch` -> numbers: the same of batches that are held.  ``()``: none.

        Raises:
            UserError: undeclared or direct stream, wrong number of columns or anchors, an anchor that is acked or
                failed already, or wrong thread.
            ConfigError: pyarrow is not installed.
        """
        self._collector.emit_batch(batch, stream, anchors)

    def ack_batch(self, columns: ColumnBatch, rows: Any = None) -> None:
        """Some rows, by their numbers, or all (None) are done with; second acks are ignored and counted.

        Raises:
            UserError: wrong thread, or no numbers of rows of the batch.
        """
        self._collector.ack_batch(columns, rows)

    def fail_batch(self, columns: ColumnBatch, rows: Any = None) -> None:
        """The trees of some rows, by their numbers, or of all (None) fail at once; errors as for :meth:`ack_batch`."""
        self._collector.fail_batch(columns, rows)

    def ack(self, tup: Tuple) -> None:
        """The tuple is done with.  A second ack of one tuple is ignored and counted.  UserError: wrong thread."""
        self._collector.ack(tup)

    def fail(self, tup: Tuple) -> None:
        """The trees of the tuple fail at once.  UserError: wrong thread."""
        self._collector.fail(tup)

    def reset_timeout(self, tup: Tuple) -> None:
        """The trees of a tuple that is held have ``topology.message.timeout.secs`` again from now on.

        It goes with the next flush.  Of a tuple that is acked or failed, or not tracked, nothing happens.  UserError:
        wrong thread.
        """
        self._collector.reset_timeout(tup)


def install(component: Component, name: str, collector: SpoutCollector | BoltCollector) -> None:
    """Puts a component to work: the engine's to call, before ``initialize``."""
    component.logger = logging.getLogger(name)
    component._collector = collector  # type: ignore[attr-defined]


def overrides(cls: type, method: str) -> bool:
    """Whether an author's class has its own ``method`` (``fail``, ``ack``, ``idle``, ``process_batch``, ``flush``)."""
    base = Spout if issubclass(cls, Spout) else Bolt
    return getattr(cls, method) is not getattr(base, method)
