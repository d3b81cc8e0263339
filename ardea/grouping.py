"""How the tasks of a bolt share a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ardea.calls import left_out, wrong_calls
from ardea.context import TopologyContext
from ardea.plan import GroupingPlan


class CustomStreamGrouping:
    """A grouping of the author's own.

    Each emitting task works with a copy of its own, made before ``prepare``, so that state kept in ``self`` is never
    shared.

    Attributes:
        always: the one task that gets every row, if ``prepare`` finds that there is one; ``choose_tasks`` is then not
            asked.
    """

    always: int | None = None

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """Called before the first choice, and again when the targets have changed.

        Args:
            context: that of the emitting task.
            component: who emits.
            stream: the stream that is grouped.
            target_tasks: the reading component's task ids, ascending.
        """

    def choose_tasks(self, values: Sequence[Any]) -> Sequence[int]:
        """The tasks that get this row: none, one or several of ``target_tasks``.

        An id that is no target ends the topology as FAILED, when the row is to leave.  In an emit that wants to know
        the tasks, or is watched by a hook, it raises.
        """
        raise NotImplementedError


_CALLED = {"prepare": ("context", "component", "stream", "target_tasks"), "choose_tasks": ("values",)}


def problems_of_grouping(grouping: CustomStreamGrouping) -> Iterator[str]:
    """Why it cannot be asked, a sentence each.  One that is prepared may say the one task there."""
    base = CustomStreamGrouping
    if left_out(grouping, base, "choose_tasks") and left_out(grouping, base, "prepare") and grouping.always is None:
        yield f"{type(grouping).__qualname__} has no choose_tasks(values)"
    yield from wrong_calls(grouping, _CALLED, may_yield="choose_tasks")


class Grouping:
    """The ten groupings."""

    SHUFFLE: Final = GroupingPlan("shuffle")
    """Round robin from a random start: tasks get equally many tuples."""

    ALL: Final = GroupingPlan("all")
    """A copy to every task."""

    GLOBAL: Final = GroupingPlan("global")
    """Everything to the task with the lowest id."""

    LOWEST: Final = GLOBAL
    """Heron's name for ``GLOBAL``."""

    NONE: Final = GroupingPlan("none")
    """The author does not care; the same as ``SHUFFLE``."""

    DIRECT: Final = GroupingPlan("direct")
    """The emitter names the task (``emit(..., direct_task=)``); the stream must be declared ``direct``."""

    LOCAL_OR_SHUFFLE: Final = GroupingPlan("local_or_shuffle")
    """Shuffle over the tasks in the emitter's container, or over all if there is none."""

    LOAD_AWARE: Final = GroupingPlan("load_aware")
    """Shuffle that sends less to tasks with more waiting."""

    @staticmethod
    def fields(*names: str) -> GroupingPlan:
        """Equal values of these fields meet in one task, in any process and after any restart."""
        return GroupingPlan("fields", names)

    @staticmethod
    def partial_key(*names: str) -> GroupingPlan:
        """Each key goes to two tasks, to the one that got less from this emitter; evens out skewed keys."""
        return GroupingPlan("partial_key", names)

    @staticmethod
    def custom(grouping: CustomStreamGrouping | type[CustomStreamGrouping]) -> GroupingPlan:
        """The author's own: an object, or a class that is made without arguments."""
        return GroupingPlan("custom", custom=grouping() if isinstance(grouping, type) else grouping)
