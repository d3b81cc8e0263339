"""Spouts and bolts for tests, and what a test runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ardea.component import Bolt, Spout
from ardea.context import TopologyContext
from ardea.keyed import ListState
from ardea.plan.logical import LogicalPlan
from ardea.tuples import Tuple


class Buildable(Protocol):
    """A class derived from :class:`ardea.Topology`, or a :class:`ardea.TopologyBuilder`."""

    def plan(self, overrides: Mapping[str, Any] = ..., /) -> LogicalPlan:
        """The validated plan."""


class RowsSpout(Spout):
    """Emits fixed rows, then finishes; :meth:`of` makes a class of it.

    The tasks share the rows in turn.  Each row's ``tup_id`` is its place among them; a task that is started again
    begins at its first row again, or with snapshots where the last one was taken.
    """

    rows: Sequence[Sequence[Any]] = ()
    tracked: bool = True
    positions = ListState(share="all")  # of each share: [which, of how many, the next place]

    @classmethod
    def of(cls, fields: Sequence[str], rows: Sequence[Sequence[Any]], *, tracked: bool = True) -> type[RowsSpout]:
        """A spout class for these rows; ``tracked=False`` emits them without ``tup_id``."""
        return type("RowsSpout", (cls,), {"outputs": list(fields), "rows": rows, "tracked": tracked})

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ARG002
        """Finds this task's share.  There stay as many shares as there were tasks at first."""
        index, tasks = context.this_task_index, len(context.component_tasks(context.this_component_id))
        known = self.positions or [[index, tasks, index]]
        self.positions[:] = [share for share in known if share[0] % tasks == index]

    def next_tuple(self) -> None:
        """The next row."""
        for share in self.positions:
            _, step, place = share
            if place < len(self.rows):
                share[2] = place + step
                self.emit(self.rows[place], tup_id=place if self.tracked else None)
                return
        self.finish()


class FeederSpout(Spout):
    """Emits what the test feeds it: ``cluster.task("words-0", FeederSpout).feed(["a"], tup_id=1)``.

    What was fed lives in the task, and dies with it.
    """

    def __init__(self) -> None:
        self._fed: deque[tuple[Sequence[Any], Any, str]] = deque()
        self._ended = False

    @classmethod
    def of(cls, *fields: str) -> type[FeederSpout]:
        """A feeder whose default stream has these fields."""
        return type("FeederSpout", (cls,), {"outputs": list(fields)})

    def feed(self, values: Sequence[Any], tup_id: Any = None, stream: str = "default") -> None:
        """Emits that row next time."""
        self._fed.append((values, tup_id, stream))

    def end(self) -> None:
        """Finishes behind what was fed."""
        self._ended = True

    def next_tuple(self) -> None:
        """What was fed first."""
        if self._fed:
            values, tup_id, stream = self._fed.popleft()
            self.emit(values, tup_id=tup_id, stream=stream)
        elif self._ended:
            self.finish()


class CollectBolt(Bolt):
    """Acks all it gets; the record keeps what that was."""

    def process(self, tup: Tuple) -> None:
        """Nothing more."""


class AckEveryOther(Bolt):
    """Acks each second tuple of its life, beginning with the first, and forgets the others."""

    auto_ack = False

    def __init__(self) -> None:
        self._count = 0

    def process(self, tup: Tuple) -> None:
        """Acks, or does not."""
        self._count += 1
        if self._count % 2:
            self.ack(tup)
