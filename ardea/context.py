"""What a component learns about itself and its topology, and the hooks that watch its task."""

from __future__ import annotations

import copy
import importlib
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Literal, NoReturn, TypeVar

import msgspec

from ardea.calls import not_made, wrong_calls
from ardea.config import Settings
from ardea.errors import UserError, printable
from ardea.keyed import KeyedState
from ardea.metrics.user import UserMetric, sanitize
from ardea.plan import GroupingPlan, PhysicalPlan, Resource
from ardea.tuples import Tuple

M = TypeVar("M", bound=UserMetric)
StreamId = tuple[str, str]
"""(component, stream)"""


class EmitInfo(msgspec.Struct, frozen=True):
    """An emit of this task.  ``out_tasks`` are the ids of those that get the row."""

    values: Sequence[Any]
    stream: str
    task: int
    out_tasks: Sequence[int]


class SpoutAckInfo(msgspec.Struct, frozen=True):
    """A completed tree.  ``latency_ms`` runs from the emit."""

    tup_id: Any
    task: int
    latency_ms: float


class SpoutFailInfo(msgspec.Struct, frozen=True):
    """A tree that failed, timed out or was lost.  ``latency_ms`` runs from the emit."""

    tup_id: Any
    task: int
    latency_ms: float


class BoltExecuteInfo(msgspec.Struct, frozen=True):
    """A tuple that was processed.  ``latency_ms`` is the time inside ``process``."""

    tup: Tuple
    task: int
    latency_ms: float


class BoltAckInfo(msgspec.Struct, frozen=True):
    """An ack by this task.  ``latency_ms`` runs from the tuple's arrival."""

    tup: Tuple
    task: int
    latency_ms: float


class BoltFailInfo(msgspec.Struct, frozen=True):
    """A fail by this task.  ``latency_ms`` runs from the tuple's arrival."""

    tup: Tuple
    task: int
    latency_ms: float


class TaskHook:
    """Told what a task does, on the task's executor thread; each call does nothing unless overridden.

    Added by :meth:`TopologyContext.add_task_hook` in ``initialize``, or for all tasks by
    ``topology.auto.task.hooks``.  What a hook raises counts as raised by what it is told of: inside ``process`` it
    fails the tuple, elsewhere it ends the process.
    """

    def prepare(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Called once, when the hook is added."""

    def cleanup(self) -> None:
        """Called after the component's ``close``."""

    def emit(self, info: EmitInfo) -> None:
        """The task has emitted."""

    def spout_ack(self, info: SpoutAckInfo) -> None:
        """A tree of this spout is complete."""

    def spout_fail(self, info: SpoutFailInfo) -> None:
        """A tree of this spout has failed."""

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        """This bolt has processed a tuple."""

    def bolt_ack(self, info: BoltAckInfo) -> None:
        """This bolt has acked a tuple."""

    def bolt_fail(self, info: BoltFailInfo) -> None:
        """This bolt has failed a tuple."""


_TOLD = ("emit", "spout_ack", "spout_fail", "bolt_execute", "bolt_ack", "bolt_fail")
_CALLED = {"prepare": ("config", "context"), "cleanup": (), **dict.fromkeys(_TOLD, ("info",))}


def hook_class(name: str) -> type[TaskHook]:
    """The class that ``module:Class`` names in ``topology.auto.task.hooks``.

    Raises:
        UserError: there is no such module or class, the module cannot be imported, or it is no TaskHook that can be
            made and called.
    """
    module_name, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the module is an author's, and runs here
        why = f"{type(error).__name__}: {printable(error)}"
        raise UserError(f"task hook {name!r} cannot be found: {why}", hint="Write module:Class.") from error
    if not isinstance(found, type) or not issubclass(found, TaskHook):
        raise UserError(f"task hook {name!r} is no class derived from TaskHook")
    if wrong := [*wrong_calls(found, _CALLED), *not_made(found)]:
        raise UserError(f"task hook {name!r}: {wrong[0]}")
    return found


def _exported(where: str, name: Any, metric: Any) -> str:
    """The name that a metric is exported under; UserError: it is none, or that is no name."""
    if not isinstance(name, str):
        raise UserError(f"{where}: the name of a metric is a text, not {name!r}")
    if not isinstance(metric, UserMetric):
        what, kind = ("the class", metric) if isinstance(metric, type) else ("an object of", type(metric))
        raise UserError(
            f"{where}: register_metric({name!r}, ...) got {what} {kind.__qualname__}",
            hint="Give a CountMetric(), MultiCountMetric(), AssignableMetric() or ReducedMetric(...).",
        )
    return sanitize(name)


def _no_executor(_context: TopologyContext, _function: Callable[[], object]) -> None:
    raise UserError("submit() was called outside of a running topology", hint="Call it from initialize() or later.")


def _no_states(state: KeyedState) -> NoReturn:
    raise UserError(f"keyed_state({state.name!r}) was called outside of a running topology")


class TopologyContext:
    """A task's view of its topology.

    ``this_...`` is about the task itself.  ``state_address`` is that of the topology's state manager (docs/state.md),
    empty in ``ardea.testing``, and ``state_credential`` what opens it, if that is not the environment's; for components
    with ``topology.state.access``.  ``task_data`` is a dict of the author's, empty at first, for what the component and
    its hooks share.  ``rolling_back``: ``close()`` is called because all go back to a snapshot; another object of the
    class goes on in this process, with the same ``task_data``.  ``topology_over``: ``close()`` is called because the
    topology has ended, or was killed; else the process is only told to stop, and another one takes its place, as with
    ``ardea restart`` and after most updates: what that one will need has to stay.  ``clock()`` gives steady seconds and
    ``now()`` those since 1970; both are simulated in ``ardea.testing``.  ``continue_trace(tup_id, traceparent)``: the
    row that is emitted next with this id goes on with a trace from outside; None: nothing is traced (docs/tracing.md).
    """

    def __init__(
        self,
        plan: PhysicalPlan,
        task_id: int,
        config: Mapping[str, Any],
        *,
        topology_id: str | None = None,
        state_address: str = "",
        state_credential: str = "",
        submit: Callable[[TopologyContext, Callable[[], object]], None] = _no_executor,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """The engine's to call.

        Args:
            plan: where every task is.
            task_id: whose context this is; KeyError if the plan has no such task.
            config: the merged configuration that ``initialize`` gets.
            topology_id: name and unique id; by default the name.
            state_address: of the state manager; empty where there is none.
            state_credential: ``user:password``; empty: that of the environment.
            submit: runs a function on the executor thread, as long as the context's component is not closed.
            clock: see the attribute.
            now: see the attribute.
        """
        self._plan = plan
        self._task = plan.tasks[task_id]
        self._component = plan.logical[self._task.component]
        self._submit = submit
        self.clock = clock
        self.now = now
        self._hooks: list[TaskHook] = []
        self._hooks_taken = False
        self._metrics: dict[str, UserMetric] = {}
        self._exported: set[str] = set()  # under which names
        self.config = config
        self.topology_id = plan.logical.name if topology_id is None else topology_id
        self.state_address = state_address
        self.state_credential = state_credential
        self.task_data: dict[str, Any] = {}
        self.rolling_back = self.topology_over = False
        self.add_state: Callable[[KeyedState], MutableMapping[Any, Any]] = _no_states
        self.continue_trace: Callable[[Any, str], None] | None = None

    def replanned(self, plan: PhysicalPlan) -> None:
        """The engine's to call: the topology has changed."""
        self._plan = plan
        self._task = plan.tasks[self._task.task]
        self._component = plan.logical[self._task.component]

    # This task.

    @property
    def this_task_id(self) -> int:
        """The task's id: from 1, unique in the topology."""
        return self._task.task

    @property
    def this_task_index(self) -> int:
        """The task's place among its component's, from 0."""
        return self._plan.component_tasks[self._task.component].index(self._task.task)

    @property
    def plan_epoch(self) -> int:
        """Which plan of the topology the task works by: an update makes the next one."""
        return self._plan.epoch

    @property
    def this_component_id(self) -> str:
        """The component's name."""
        return self._task.component

    @property
    def this_worker_tasks(self) -> tuple[int, ...]:
        """The ids of all tasks in the same container, ascending."""
        return tuple(task.task for task in self._plan.tasks_in(self._task.container))

    @property
    def this_streams(self) -> tuple[str, ...]:
        """The streams that the component declares."""
        return self.component_streams(self._task.component)

    def this_output_fields(self, stream: str = "default") -> tuple[str, ...]:
        """The fields of one of the component's streams; KeyError if it does not declare it."""
        return self.component_output_fields(self._task.component, stream)

    @property
    def this_output_fields_for_streams(self) -> dict[str, tuple[str, ...]]:
        """The fields of each of the component's streams."""
        return {stream: self.this_output_fields(stream) for stream in self.this_streams}

    @property
    def this_input_fields(self) -> dict[StreamId, tuple[str, ...]]:
        """(component, stream) -> fields, for all that the component reads."""
        return {source: self.component_output_fields(*source) for source in self.this_sources}

    @property
    def this_sources(self) -> dict[StreamId, GroupingPlan]:
        """(component, stream) -> grouping, for all that the component reads."""
        return self.sources(self._task.component)

    @property
    def this_targets(self) -> dict[str, dict[str, GroupingPlan]]:
        """Stream -> reading component -> grouping, for all who read the component."""
        return self.targets(self._task.component)

    @property
    def resource(self) -> Resource:
        """What the task was given: cores, bytes of memory and of disk."""
        return self._component.resource

    # The topology.

    @property
    def component_ids(self) -> tuple[str, ...]:
        """The names of all components, sorted."""
        return tuple(component.name for component in self._plan.logical)

    @property
    def task_to_component(self) -> dict[int, str]:
        """Task id -> component, for all tasks."""
        return {task: place.component for task, place in self._plan.tasks.items()}

    @property
    def max_topology_message_timeout(self) -> float:
        """The longest time, in seconds, after which a tuple of this topology fails."""
        return Settings.of(self.config).message_timeout

    def component_id(self, task: int) -> str:
        """The component that a task belongs to; KeyError if there is no such task."""
        return self._plan.tasks[task].component

    def component_tasks(self, component: str) -> tuple[int, ...]:
        """A component's task ids, ascending; KeyError if there is no such component."""
        return self._plan.component_tasks[component]

    def component_streams(self, component: str) -> tuple[str, ...]:
        """The streams that a component declares; KeyError if there is no such component."""
        return tuple(stream.name for stream in self._plan.logical[component].streams)

    def component_output_fields(self, component: str, stream: str = "default") -> tuple[str, ...]:
        """The fields of a stream; KeyError if there is no such component or stream."""
        return self._plan.logical[component].stream(stream).fields

    def sources(self, component: str) -> dict[StreamId, GroupingPlan]:
        """(component, stream) -> grouping, for all that a component reads."""
        return {(entry.component, entry.stream): entry.grouping for entry in self._plan.logical[component].inputs}

    def targets(self, component: str) -> dict[str, dict[str, GroupingPlan]]:
        """Stream -> reading component -> grouping, for all who read a component."""
        readers = {
            stream: {reader.name: grouping for reader, grouping in self._plan.logical.consumers(component, stream)}
            for stream in self.component_streams(component)
        }
        return {stream: found for stream, found in readers.items() if found}

    # What the task can ask for.

    def add_task_hook(self, hook: TaskHook) -> None:
        """Prepares the hook, which hears of all that follows ``initialize``.

        Raises:
            UserError: ``initialize`` is over, or one of its methods cannot be called.
        """
        if self._hooks_taken:
            raise UserError(
                "add_task_hook() was called too late: the component runs",
                hint="Call it in initialize(), in every life of the task.",
            )
        if wrong := [*wrong_calls(hook, _CALLED)]:
            raise UserError(f"add_task_hook(): {wrong[0]}")
        hook.prepare(self.config, self)
        self._hooks.append(hook)

    @property
    def hooks(self) -> tuple[TaskHook, ...]:
        """The hooks, in the order they were added, which is the order they are called in."""
        return tuple(self._hooks)

    def take_hooks(self) -> tuple[TaskHook, ...]:
        """The engine's to call, as the component begins: no other is added."""
        self._hooks_taken = True
        return self.hooks

    def renewed(self) -> TopologyContext:
        """The engine's to call, for another object of the component in the same process.

        Hooks, metrics and what it submits are its own; task data is that of all of them.
        """
        other = copy.copy(self)
        other._hooks, other._metrics, other._exported = [], {}, set()
        other._hooks_taken = other.rolling_back = False
        return other

    def keyed_state(
        self,
        name: str,
        *,
        default: Any = None,
        type: Any = None,  # noqa: A002
        ttl: float | str | None = None,
        time: Literal["processing", "event"] = "processing",
    ) -> Any:
        """A keyed state whose name is known at run time only; to be called in ``initialize``, in every life.

        Args:
            name: of this component's only.
            default: see :class:`ardea.KeyedState`.
            type: see there.
            ttl: see there.
            time: see there.

        Returns:
            the mapping, which an attribute may keep.

        Raises:
            UserError: another state has the name; the component can have no keyed state; or ``initialize`` is over.
        """
        state = KeyedState(default=default, type=type, ttl=ttl, time=time)
        state.name = name
        return self.add_state(state)

    def register_metric(self, name: str, metric: M, bucket_secs: float | None = None) -> M:  # noqa: ARG002
        """Exports a metric of the author's under this name, and returns it.

        ``bucket_secs`` is Storm's and ignored: ``heron.metrics.export.interval.sec`` says how often all metrics are
        collected.

        Raises:
            UserError: the name is no text, or is exported as that of another metric of this task is; or it is no
                metric.
        """
        where = f"component {self.this_component_id!r}"
        if (exported := _exported(where, name, metric)) in self._exported:
            raise UserError(
                f"{where} registers two metrics named {exported!r}",
                hint="Give each metric a name of its own; characters other than letters, digits, '_', '.', ':', '/'"
                " and '-' count as '_'.",
            )
        self._exported.add(exported)
        self._metrics[name] = metric
        return metric

    @property
    def metrics(self) -> Mapping[str, UserMetric]:
        """The metrics registered so far, by name."""
        return self._metrics

    def submit(self, function: Callable[[], object]) -> None:
        """Runs ``function`` on the executor thread, soon and between calls of the component.

        The way for threads of the author's own to emit, ack and fail: from any other thread these raise.  After
        ``close`` nothing runs any more.
        """
        self._submit(self, function)

    def to_json(self) -> str:
        """The task, its streams and readers, and the tasks of the topology, as one JSON object."""
        inputs = [
            {"component": component, "stream": stream, "grouping": grouping.describe()}
            for (component, stream), grouping in self.this_sources.items()
        ]
        outputs = {
            stream: {
                "fields": self.this_output_fields(stream),
                "targets": {c: g.describe() for c, g in self.this_targets.get(stream, {}).items()},
            }
            for stream in self.this_streams
        }
        body = {
            "topology_id": self.topology_id,
            "task_id": self.this_task_id,
            "task_index": self.this_task_index,
            "component_id": self.this_component_id,
            "inputs": inputs,
            "outputs": outputs,
            "worker_tasks": self.this_worker_tasks,
            "task_to_component": self.task_to_component,
        }
        return msgspec.json.encode(body).decode()
