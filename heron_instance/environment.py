"""What an executor works with: its task, its queues, the way out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ardea.backends.chosen import Opened
from ardea.component import Bolt, Spout
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.heron_instance.commits import Commits
from ardea.heron_instance.current_tuple import CurrentTuple
from ardea.heron_instance.instruments import Instruments
from ardea.heron_instance.messages import OutMessage
from ardea.heron_instance.observer import Observer
from ardea.heron_instance.queues import BoundedQueue
from ardea.heron_instance.snapshots import TaskSnapshots
from ardea.heron_instance.states import States
from ardea.keyed import KeyedState, prefix_of
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.protocol.flow import Window
from ardea.protocol.wire_pb2 import Header
from ardea.sinks import TwoPhaseSink, keep_rows
from ardea.snapshots.key_groups import Keys
from ardea.validation import problems_of_keys

if TYPE_CHECKING:
    from ardea.heron_instance.tracing import Tracing

Item = tuple[Header, Sequence[bytes]] | Callable[[], None]


class Stopping(BaseException):
    """Unwinds user code when the process ends; nothing of the author's catches it by accident."""


class Output(Protocol):
    """The way out, as the executor sees it."""

    @property
    def held(self) -> bool:
        """Whether something waits for credit: take no more input."""

    @property
    def held_bytes(self) -> int:
        """How much waits."""

    def put(self, message: OutMessage) -> None:
        """Hands one message to the gateway, on the lane of its kind."""

    def wait_room(self, most: int, timeout: float) -> bool:
        """Waits until at most so many bytes are held; False: not yet.

        Raises Stopping if the process ends, RollingBack if the timeline is over.
        """

    def consumed(self, header: Header, size: int) -> None:
        """The executor took a batch of so many bytes, which the credit of ``header.container`` paid for."""


@dataclass(slots=True)
class Environment:
    """All that an executor works with.

    ``over``: whether the order to exit has come, as the topology is over.  ``timeline``: in which its component works,
    what it sends being void in any other; 0: nothing is ever rolled back.
    """

    plan: PhysicalPlan
    task: TaskPlan
    life: int
    component: Spout | Bolt
    settings: Settings
    config: Mapping[str, Any]
    context: TopologyContext
    inbox: BoundedQueue[Item]
    output: Output
    window: Window
    instruments: Instruments
    clock: Callable[[], float]
    rng: np.random.Generator
    current_tuple: CurrentTuple | None = None
    tracing: Tracing | None = None
    observer: Observer = field(default_factory=Observer)
    snapshots: TaskSnapshots | None = None
    backend: Opened | None = None
    over: Callable[[], bool] = lambda: False
    states: States = field(init=False)
    commits: Commits | None = field(init=False, default=None)
    timeline: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        keys = self.keys if self.settings.remembers else None
        backend = None if keys is None or self.backend is None else self.backend()
        self.states = States(self.component, keys, self.context.now, backend)
        snapshots, self.commits = self.snapshots, None
        self.timeline = 0 if snapshots is None else snapshots.timeline.number
        if snapshots is not None and isinstance(self.component, TwoPhaseSink):
            self._keep_rows(self.component, snapshots)
        self.context.add_state = self._add_state
        if self.tracing is not None:
            self.context.continue_trace = self.tracing.continues

    def _keep_rows(self, sink: TwoPhaseSink, snapshots: TaskSnapshots) -> None:
        self.commits = snapshots.commits_of(sink, self.context.topology_id)
        intervals = self.states.intervals = self.commits.intervals

        def keep(rows: Sequence[Sequence[Any]]) -> None:
            intervals.add(rows)
            snapshots.moved()  # they are not outside before a snapshot has them

        keep_rows(sink, keep)

    def _add_state(self, state: KeyedState) -> MutableMapping[Any, Any]:
        """One that the author asks for in ``initialize``; UserError: it cannot be."""
        if problems := list(problems_of_keys(self.plan.logical[self.task.component], [state.name])):
            raise UserError("; ".join(problems))
        state.check()
        return self.states.add(state)

    @property
    def keys(self) -> Keys:
        """Those of its keyed state; where no input is grouped by fields, those of one that were."""
        component, tasks = self.plan.logical[self.task.component], self.plan.component_tasks[self.task.component]
        grouped = (len(entry.grouping.fields) for entry in component.inputs if entry.grouping.kind == "fields")
        index, fields = tasks.index(self.task.task), next(grouped, 1)
        prefix = prefix_of(component.cls) is not None
        return Keys(component.name, index, len(tasks), self.settings.key_groups, fields, prefix)


NO_THREAD = 0
"""No thread has this identifier."""
