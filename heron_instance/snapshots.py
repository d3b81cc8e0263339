"""The snapshots of one life of a task: what the master orders, what the store holds, and what is reported of both.

The gateway notes the newest order, and the store's own thread what it has written; both past the input queue, which
may stand still.  The executor looks at them between two slices of work, and in every wait for room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from xxhash import xxh3_64_intdigest

from ardea.errors import StateError, printable
from ardea.heron_instance.states import States
from ardea.heron_instance.timeline import Timeline
from ardea.protocol.wire_pb2 import Order, SnapshotOrder, SnapshotReport
from ardea.snapshots.manifest import decode_manifest, manifest_name


class Storage(Protocol):
    """The store of snapshots."""

    def write(self, file: str, content: bytes, done: Callable[[str], None]) -> None:
        """Begins to write it; ``done`` is called with an error, or an empty text, from any thread."""

    def read(self, file: str) -> bytes:
        """Waits for it; raises FileNotFoundError, or OSError if it may be there another time."""


class RollingBack(BaseException):
    """Unwinds user code when its timeline is over; nothing of the author's catches it by accident."""


class TaskSnapshots:
    """``report`` is what the master is to know."""

    def __init__(self, task: int, life: int, storage: Storage) -> None:
        self.timeline = Timeline(task, life)
        self.report = SnapshotReport()
        self._task, self._life = task, life
        self._storage = storage
        self._aligned = 0.0, 0  # seconds, bytes
        self._newest: tuple[SnapshotOrder, int] | None = None
        self._stored: deque[tuple[SnapshotReport, str]] = deque()

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
        while self._stored:
            done, error = self._stored.popleft()
            if done.timeline != self.timeline.number:
                continue
            if error:
                self.give_up(done.number, error)
            else:
                self.report.MergeFrom(done)

    def moved(self) -> None:
        """The task has done something that no row has told it to."""
        self.report.moved = self.timeline.taken

    def broke(self, why: str) -> None:
        """The author's code has raised: nothing leaves the task before it is rolled back."""
        self.timeline.ended()
        self.report.broken = printable(why, most=2000)

    def lost(self) -> None:
        """A batch of the timeline could not be used: all of it has to come again."""
        self.timeline.ended()
        self.report.lost = True

    def give_up(self, number: int, why: str) -> None:
        """The task asks to abandon that snapshot."""
        self.report.gives_up, self.report.why = number, why

    def aligned(self, seconds: float, aside: int) -> None:
        """Barriers were awaited for so long, with so many bytes set aside, for the snapshot that is taken next."""
        self._aligned = seconds, aside

    def take(self, number: int, states: States) -> None:
        """Takes the state, and has it written."""
        timeline, content = self.timeline.number, states.content()
        self.timeline.took(number)
        file = f"t{timeline}/{manifest_name(number).removesuffix('.manifest')}/{self._task}-{self._life}.state"
        checksum = xxh3_64_intdigest(content)
        seconds, aside = self._aligned
        done = SnapshotReport(
            timeline=timeline,
            number=number,
            file=file,
            checksum=checksum,
            bytes=len(content),
            aligned=seconds,
            aside=aside,
        )
        self._storage.write(file, content, lambda error: self._stored.append((done, error)))

    def put_back(self, states: States) -> int:
        """Fills empty states with what the ordered timeline begins from; returns its snapshot, 0: nothing.

        Raises:
            StateError: what the store holds is damaged, or gone.
            OSError: it cannot be read at present.
        """
        number = self.timeline.snapshot
        if number:
            self._load(number, states)
        self.timeline.restored()
        self.report = SnapshotReport(timeline=self.timeline.number)
        return number

    def _load(self, number: int, states: States) -> None:
        manifest = decode_manifest(self._read(manifest_name(number)), number)
        file = manifest.files.get(self._task)
        if file is None:
            raise StateError(f"snapshot {manifest_name(number)} has no file of task {self._task}")
        content = self._read(file.name)
        if xxh3_64_intdigest(content) != file.checksum:
            raise StateError(
                f"{file.name} of snapshot {manifest_name(number)} is damaged: it holds {len(content):,} bytes with "
                f"another checksum than was written, of {file.bytes:,} bytes"
            )
        states.load(content, file.name)

    def _read(self, file: str) -> bytes:
        try:
            return self._storage.read(file)
        except FileNotFoundError as error:
            raise StateError(f"{file} is missing in the store of snapshots") from error
