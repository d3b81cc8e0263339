"""What has come for a bolt, and in what order it is processed: by its timeline, and by the barriers in it.

In a mode without snapshots everything is processed as it comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from ardea.heron_instance.alignment import Aligned, Alignment
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.snapshots import TaskSnapshots
from ardea.heron_instance.timeline import Fate
from ardea.protocol.wire_pb2 import BARRIER, Header

MOST_ASIDE = 64 << 20
"""Bytes; with more, a task asks to abandon the snapshot."""


class Arrived(msgspec.Struct, frozen=True):
    """``size`` in bytes; ``counted``: its credit has been given back, as it was set aside."""

    header: Header
    frames: Sequence[bytes]
    size: int
    counted: bool = False


class Arrivals:
    """Of one executor."""

    def __init__(self, env: Environment, upstream: Iterable[int]) -> None:
        self._env = env
        self._alignment: Alignment[Arrived] = Alignment(upstream, self._put_aside)
        self._aligns: float | None = None  # since when it does
        self._early: deque[Arrived] = deque()  # of a timeline whose state is not back yet
        self._in_order: deque[Arrived] = deque()  # where there are no snapshots

    def put(self, header: Header, frames: Sequence[bytes]) -> None:
        """A batch, marker or barrier."""
        self._put(Arrived(header, frames, sum(map(len, frames))))

    def next(self) -> Arrived | Aligned | None:
        """What is to be processed next; None: nothing yet."""
        snapshots = self._env.snapshots
        if snapshots is None:
            return self._in_order.popleft() if self._in_order else None
        arrived = self._alignment.next()
        if isinstance(arrived, Arrived):
            if arrived.counted:
                self._wait_aside(arrived, -1)
        else:
            self._time(snapshots, arrived)
        return arrived

    def _time(self, snapshots: TaskSnapshots, aligned: Aligned | None) -> None:
        """How long barriers have been awaited."""
        now = self._env.clock()
        if self._alignment.number and self._aligns is None:
            self._aligns = now
        if aligned is not None:
            snapshots.aligned(0.0 if self._aligns is None else now - self._aligns, aligned.bytes_aside)
        if not self._alignment.number:
            self._aligns = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to process before more comes."""
        return not self._in_order and self._alignment.idle

    def ended(self, source: int) -> None:
        """Nothing comes of that task any more."""
        self._alignment.ended(source)

    def look(self, snapshots: TaskSnapshots) -> None:
        """Whether the snapshot that it aligns for is still wanted, and what is set aside for it not too much."""
        alignment = self._alignment
        alignment.abandoned(snapshots.timeline.abandoned)
        if alignment.bytes_aside > MOST_ASIDE:
            what = f"{alignment.bytes_aside:,} bytes are set aside, and not all barriers have come"
            snapshots.give_up(alignment.number, what, too_much=True)

    def go_on(self) -> None:
        """The state is back: what waited for that is looked at."""
        early, self._early = self._early, deque()
        for arrived in early:
            self._put(arrived)

    def take_over(self, former: Arrivals) -> None:
        """What has come ahead of the timeline that begins; all else is over."""
        self._early.extend(former._early)
        self._env.window.aside_rows = self._env.window.aside_bytes = 0
        for arrived in former._alignment.empty():
            self._count(arrived)

    def _put(self, arrived: Arrived) -> None:
        header, snapshots = arrived.header, self._env.snapshots
        if snapshots is None:
            self._in_order.append(arrived)
            return
        fate = snapshots.timeline.fate(header.timeline)
        if fate is Fate.TAKEN:
            barrier = header.snapshot if header.kind == BARRIER else 0
            self._alignment.put(header.source, arrived, arrived.size, barrier=barrier)
        elif fate is Fate.WAITS:
            self._early.append(arrived)
        else:
            self._count(arrived)

    def _put_aside(self, arrived: Arrived) -> Arrived:
        self._count(arrived)
        self._wait_aside(arrived, 1)
        return Arrived(arrived.header, arrived.frames, arrived.size, counted=True)

    def _wait_aside(self, arrived: Arrived, sign: int) -> None:
        """They count for the watermark, so that spouts pause while a barrier is awaited."""
        window = self._env.window
        window.aside_rows += sign * arrived.header.rows
        window.aside_bytes += sign * arrived.size

    def _count(self, arrived: Arrived) -> None:
        """Gives back the credit of a batch."""
        if arrived.header.rows and not arrived.counted:
            self._env.output.consumed(arrived.header, arrived.size)
