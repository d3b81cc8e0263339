"""How tuples change tasks.  A row travels behind its transaction's id and attempt, which groupings do not see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.grouping import CustomStreamGrouping

TXID, ATTEMPT = "$txid", "$attempt"
HEAD = (TXID, ATTEMPT)
"""The fields in front of a row's own."""
UNEQUAL = "Can only do an identity grouping when source and target have same number of tasks"


class BatchGlobal(CustomStreamGrouping):
    """All rows of a batch to one task, batch after batch to another one."""

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:  # noqa: ARG002
        """Learns the targets."""
        self._targets = target_tasks
        self.always = target_tasks[0] if len(target_tasks) == 1 else None

    def choose_tasks(self, values: Sequence[Any]) -> Sequence[int]:
        """By the transaction's id."""
        return (self._targets[spokesman(values[0], len(self._targets))],)


def spokesman(txid: int, partitions: int) -> int:
    """Which partition a batch meets in."""
    return txid % partitions


class Identity(CustomStreamGrouping):
    """From each task to the one with the same index."""

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:  # noqa: ARG002
        """Finds the partner.

        Raises:
            UserError: there are more tasks on one side.
        """
        if len(context.component_tasks(component)) != len(target_tasks):
            raise UserError(
                f"{UNEQUAL}: {component} has {len(context.component_tasks(component))}, its reader {len(target_tasks)}"
            )
        self.always = target_tasks[context.this_task_index]


class WithoutHead(CustomStreamGrouping):
    """An author's grouping, which sees rows as the stream has them."""

    def __init__(self, grouping: CustomStreamGrouping) -> None:
        self._grouping = grouping

    def prepare(self, context: TopologyContext, component: str, stream: str, target_tasks: Sequence[int]) -> None:
        """The author's."""
        self._grouping.prepare(context, component, stream, target_tasks)
        self.always = self._grouping.always

    def choose_tasks(self, values: Sequence[Any]) -> Sequence[int]:
        """The author's."""
        return self._grouping.choose_tasks(values[len(HEAD) :])
