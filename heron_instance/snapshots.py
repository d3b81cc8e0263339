"""The snapshots of one life of a task: what the master orders, what the store holds, and what is reported of both.

The gateway notes the newest order, and the store's own thread what it has written; both past the input queue, which
may stand still.  The executor looks at them between two slices of work, and in every wait for room.
"""

from __future__ import annotations

import contextlib
import gc
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xxhash import xxh3_64_intdigest

from ardea.backends.contract import ScratchError
from ardea.errors import StateError, UserError, printable
from ardea.heron_instance.commits import Commits
from ardea.heron_instance.intervals import Intervals, Storage, is_rows
from ardea.heron_instance.snapshot_figures import SnapshotFigures
from ardea.heron_instance.states import States
from ardea.heron_instance.timeline import Timeline
from ardea.plan.physical import TaskPlan
from ardea.protocol.wire_pb2 import Order, SnapshotOrder, SnapshotReport, StateFile
from ardea.sinks import TwoPhaseSink
from ardea.snapshots.manifest import File, Part, decode_manifest, manifest_name, state_name
from ardea.snapshots.marks import Mark
from ardea.snapshots.rows_file import HEAD, mark_of
from ardea.snapshots.state_file import Content

MOST_DELTAS = 50
"""After one base."""


class RollingBack(BaseException):
    """Unwinds user code when its timeline is over; nothing of the author's catches it by accident."""


@dataclass(frozen=True, slots=True)
class Writing:
    """A file that is under way; ``after``: those that its state needs besides, in order."""

    report: SnapshotReport
    name: str
    content: Content
    states: States
    after: tuple[StateFile, ...]


class TaskSnapshots:
    """``report`` is what the master is to know."""

    def __init__(self, task: TaskPlan, life: int, storage: Storage) -> None:
        self.timeline = Timeline(task.task, life)
        self.report = SnapshotReport()
        self.figures = SnapshotFigures()
        self._task, self._life = task, life
        self._storage = storage
        self._aligned = 0.0, 0  # seconds, bytes
        self._newest: tuple[SnapshotOrder, int] | None = None
        self._files: tuple[StateFile, ...] = ()  # that hold the state as it was when the last one was stored
        self._writing: Writing | None = None
        self._done: deque[tuple[Writing, Exception | None]] = deque()

    # --- from other threads -----------------------------------------------------------------------------------

    def ordered(self, order: Order) -> None:
        """From the gateway."""
        version = order.term << 32 | order.version
        if self._newest is None or version > self._newest[1]:
            self._newest = order.snapshots, version

    @property
    def overdue(self) -> bool:
        """Whether the timeline in which the task works is known to be over."""
        return self._newest is not None and 0 < self.timeline.number < self._newest[0].timeline

    # --- from the executor ------------------------------------------------------------------------------------

    def look(self) -> None:
        """What has been ordered and stored since the last time."""
        if self._newest is not None:
            self.timeline.ordered(*self._newest)
        while self._done:
            writing, error = self._done[0]
            intervals = writing.states.intervals
            if intervals is not None and writing is self._writing and intervals.writing(writing.report.number):
                return
            self._done.popleft()
            if writing is self._writing:
                self._writing = None
                self._written(writing, error)

    def _written(self, writing: Writing, error: Exception | None) -> None:
        report, content = writing.report, writing.content
        if isinstance(error, UserError):
            raise error
        if isinstance(error, ScratchError) and self.timeline.works:  # else the object, and its backend, was closed
            raise error
        if error is not None:
            self.give_up(report.number, f"{writing.name} cannot be stored: {error}")
            return
        writing.states.stored()
        self._files = (*writing.after, StateFile(name=writing.name, checksum=content.checksum, bytes=content.bytes))
        intervals = writing.states.intervals
        rows = [] if intervals is None else intervals.files(report.number)
        if rows is None:
            assert intervals is not None
            self.give_up(report.number, intervals.error)
            return
        said = self.report
        del said.files[:]
        said.files.extend((*self._files, *rows))
        said.number, said.aligned, said.aside, said.bound = report.number, report.aligned, report.aside, report.bound

    @property
    def state_bytes(self) -> int:
        """Of the files that the state needs, as it was stored last."""
        return sum(file.bytes for file in self._files)

    def moved(self) -> None:
        """The task has done something that no row has told it to."""
        self.report.moved = self.timeline.taken

    def broke(self, why: str, row: int = 0) -> None:
        """The author's code has raised, at the row of that hash: nothing leaves the task before it is rolled back."""
        self.timeline.ended()
        self.report.broken, self.report.blamed = printable(why, most=2000), row

    def lost(self, why: str) -> None:
        """A batch of the timeline could not be read: all of it has to come again."""
        self.broke(why)
        self.report.lost = True

    def give_up(self, number: int, why: str, *, too_much: bool = False) -> None:
        """The task asks to abandon that snapshot; ``too_much`` is set aside, else it cannot be stored."""
        self.report.gives_up, self.report.why, self.report.too_much = number, why, too_much

    def cannot_read(self, why: str) -> None:
        """The state is not back yet, and will be read again."""
        self.report.waits = printable(f"cannot read its state: {why}; it tries again", most=2000)

    def cannot_begin(self, why: str) -> None:
        """The component could not begin with the state: another object does, with the state read again."""
        self.timeline.left()
        self.report = SnapshotReport(waits=printable(f"cannot begin: it {why}; it tries again", most=2000))

    def unwritten(self, intervals: int, oldest: int, why: str) -> None:
        """So many intervals of a sink count and are not outside; ``why``: what has been raised."""
        self.report.unwritten, self.report.oldest, self.report.kept = intervals, oldest, why

    def cannot_use(self, why: str) -> None:
        """The code and the state do not fit: the master decides what becomes of the topology."""
        self.timeline.left()
        self.report = SnapshotReport(timeline=self.timeline.wanted, unreadable=printable(why, most=2000))

    def aligned(self, seconds: float, aside: int) -> None:
        """Barriers were awaited for so long, with so many bytes set aside, for the snapshot that is taken next."""
        self._aligned = seconds, aside
        self.figures.align = seconds

    def take(self, number: int, states: States) -> None:
        """Takes the state, and has it written; not while the file before is being written.

        Raises:
            UserError: a value cannot be stored.
        """
        self.timeline.took(number)
        if self._writing is not None:
            self.give_up(number, f"{self._writing.name} is still being written")
            return
        began = self.figures.clock()
        states.freeze()
        if states.intervals is not None:
            states.intervals.freeze(number)
        self.figures.freeze = self.figures.clock() - began
        after = () if states.stale or needs_base(self._files) else self._files
        seconds, aside = self._aligned
        writing = self._writing = Writing(
            SnapshotReport(
                timeline=self.timeline.number, number=number, aligned=seconds, aside=aside, bound=states.bound
            ),
            state_name(self.timeline.number, number, f"{self._task.task}-{self._life}.{'delta' if after else 'base'}"),
            Content(states.pieces(full=not after)),
            states,
            after,
        )

        def done(error: Exception | None) -> None:
            self.figures.write = self.figures.clock() - began
            self._done.append((writing, error))

        self._storage.write(writing.name, writing.content, done)

    def commits_of(self, sink: TwoPhaseSink, topology: str) -> Commits:
        """What an object of a sink needs; the topology's id is part of its marks."""
        task = self._task
        owner = Mark(topology, task.component, task.index, 0)
        intervals = Intervals(owner, f"{task.task}-{self._life}", self._storage)
        return Commits(sink, intervals, self._storage)

    def put_back(self, states: States) -> int:
        """Fills empty states with what the ordered timeline begins from; returns its snapshot, 0: nothing.

        Raises:
            StateError: what the store holds is damaged, or gone.
            OSError: it cannot be read at present.
        """
        number, began = self.timeline.snapshot, self.figures.clock()
        with _without_collections():
            self._files = self._load(number, states) if number else ()
        self.figures.restore = self.figures.clock() - began
        self._writing = None
        self.timeline.restored()
        if states.intervals is not None:
            states.intervals.begin(self.timeline.number, number)
        self.report = SnapshotReport(timeline=self.timeline.number, bound=states.bound)
        return number

    def _load(self, number: int, states: States) -> tuple[StateFile, ...]:
        """Returns the files that deltas may follow: its own, where it needed no others."""
        manifest = decode_manifest(self._read(manifest_name(number)), number)
        parts = manifest.of(self._task.component)
        if [part.index for part in parts] != list(range(len(parts))):
            raise StateError(f"snapshot {manifest_name(number)} does not have all tasks of {self._task.component}")
        own = tuple(part for part in parts if part.index == self._task.index)
        others = tuple(part for part in parts if part not in own and states.needs(part.index, len(parts)))
        for part in (*others, *own):
            self._load_part(number, part, states)
        for part in parts:
            self._load_rows(number, part, states, len(parts))
        states.loaded(len(parts))
        if not own or not states.of_as_many(len(parts)) or not manifest.timeline:
            return ()  # what lies there holds keys of others, or not all of this one's, or a savepoint's
        return tuple(_state_file(file) for file in own[0].files if not is_rows(file.name))

    def _load_part(self, number: int, part: Part, states: States) -> None:
        for file in part.files:
            if not is_rows(file.name):
                content = self._checked(number, file)
                states.load(content, file.name, part.index, own=part.index == self._task.index)

    def _load_rows(self, number: int, part: Part, states: States, tasks: int) -> None:
        """Of a sink with so many former tasks: those that may not be outside, of each owner all at one task.

        The head of a file names the task that has taken its rows; of files that others keep no more is read.  Where the
        number of tasks is the same, each task keeps the files that it has.
        """
        as_many = states.of_as_many(tasks)
        for file in part.files if not as_many or states.inherits(part.index) else ():
            if not is_rows(file.name):
                continue
            if states.intervals is None:
                raise StateError(
                    f"snapshot {manifest_name(number)} has rows of {part.component} that are to be written outside, and"
                    f" {part.component} is no TwoPhaseSink any more",
                    hint="Start the topology as it was, let it write them, and change it then.",
                )
            if as_many or states.inherits(mark_of(self._read(file.name, HEAD), file.name).task):
                mark = mark_of(self._checked(number, file), file.name)
                states.intervals.restored(_state_file(file), mark)

    def _checked(self, number: int, file: File) -> bytes:
        content = self._read(file.name)
        self.figures.restored += len(content)
        if xxh3_64_intdigest(content) != file.checksum:
            raise StateError(
                f"{file.name} of snapshot {manifest_name(number)} is damaged: it holds {len(content):,} bytes with "
                f"another checksum than was written, of {file.bytes:,} bytes"
            )
        return content

    def _read(self, file: str, most: int | None = None) -> bytes:
        try:
            return self._storage.read(file, most)
        except FileNotFoundError as error:
            raise StateError(f"{file} is missing in the store of snapshots") from error


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """Of garbage: each would look at all the keys that have been read so far, and find none."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _state_file(file: File) -> StateFile:
    return StateFile(name=file.name, checksum=file.checksum, bytes=file.bytes)


def needs_base(files: Sequence[StateFile]) -> bool:
    """Whether what follows these is all of the state, since it would take too long to read them."""
    if not files or len(files) > MOST_DELTAS:
        return True
    base, *deltas = files
    return 2 * sum(delta.bytes for delta in deltas) > base.bytes
