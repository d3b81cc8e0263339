"""What an executor has a runner for: the part of its work that spouts and bolts do differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from ardea.component import Bolt
from ardea.heron_instance import reporter
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.lifecycle import Lifecycle
from ardea.heron_instance.long_calls import UserCode
from ardea.heron_instance.output import TaskOutput
from ardea.heron_instance.reporter import Reporter
from ardea.heron_instance.sending import Emitted, Sending
from ardea.protocol.wire_pb2 import Header, Order


@dataclass(frozen=True, slots=True)
class Parts:
    """Those of an executor that its runner works with."""

    env: Environment
    lifecycle: Lifecycle
    user_code: UserCode
    task_output: TaskOutput
    reporter: Reporter
    sending: Sending

    def snapshot(self, number: int, emitted: Emitted) -> None:
        """Takes the task's state, behind all that led to it and ahead of the barrier."""
        if isinstance(self.env.component, Bolt):
            with self.user_code:
                self.env.component.flush()
        self._take(number, emitted)
        self.reporter.barrier(number)

    def _take(self, number: int, emitted: Emitted) -> None:
        env = self.env
        assert env.snapshots is not None
        with self.user_code:
            env.component.snapshot(number)
        emitted.send()
        env.snapshots.take(number, env.states)
        self.reporter.taken(number)

    def end(self, emitted: Emitted, final: int = 0) -> None:
        """Sends all there is, passes the end on and closes the component.

        ``final``: the state is the last snapshot's; the component is closed once that counts, by :meth:`over`.
        """
        if final:
            self._take(final, emitted)
        emitted.send()
        self.reporter.end(final)
        if final:
            self.reporter.report()
        else:
            self.over(emitted)

    def take_again(self, emitted: Emitted) -> None:
        """The last snapshot was abandoned after this task had ended: its state is that of the next one as well."""
        snapshots = self.env.snapshots
        if snapshots is not None and snapshots.timeline.begun and not self.lifecycle.closed:
            self._take(snapshots.timeline.begun, emitted)

    def over(self, emitted: Emitted) -> None:
        """Nothing is left to do."""
        self.reporter.markers.closed = True
        self.lifecycle.close(over=True)
        emitted.flush_rows()
        self.reporter.report()


class Runner(reporter.Rows, Protocol):
    """Runs the component of one task, whose rows are ``emitted``; made of :class:`Parts`."""

    @property
    def emitted(self) -> Emitted:
        """What the component has emitted."""

    @property
    def waits_for_room(self) -> bool:
        """Whether nothing may be taken from the input queue now."""

    @property
    def busy(self) -> bool:
        """Whether work taken from the input queue is unfinished."""

    def take_over(self, former: Self) -> None:
        """The one of the former timeline is over; what has come ahead of the next one is not."""

    def begun(self) -> None:
        """The component is initialised, and may have task hooks, past which every call goes from now on."""

    def over(self) -> None:
        """The last snapshot counts."""

    def activated(self, *, active: bool) -> None:
        """The task is active from now on, or not any more."""

    def replanned(self) -> None:
        """The environment has another plan."""

    def ordered(self, order: Order) -> None:
        """To hold or to resume."""

    def received(self, header: Header, frames: Sequence[bytes]) -> None:
        """A message that only one kind of task knows."""

    def manager_reborn(self) -> None:
        """The stream manager has a new life."""

    def advance(self, now: float) -> float:
        """Does what is due; returns when there is more to do (``now``: at once)."""

    def hurry(self) -> None:
        """The turn ends with the present call of user code."""

    def waited(self, seconds: float) -> None:
        """There was nothing to do, or it was not allowed, for so long."""
