"""How full the way to each task is, for the groupings that care (``load_aware``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ardea.plan.physical import PhysicalPlan
from ardea.protocol.flow import Channel
from ardea.protocol.wire_pb2 import Load


class Loads:
    """Which local tasks choose by load, and among which."""

    def __init__(self, container: int) -> None:
        self._container = container
        self._choices: dict[int, list[int]] = {}

    def planned(self, plan: PhysicalPlan) -> None:
        """A plan from the master."""
        self._choices.clear()
        for task in plan.tasks_in(self._container):
            readers = {
                reader.name
                for stream in plan.logical[task.component].streams
                for reader, grouping in plan.logical.consumers(task.component, stream.name)
                if grouping.kind == "load_aware"
            }
            if readers:
                self._choices[task.task] = sorted(t for reader in readers for t in plan.component_tasks[reader])

    def of(self, channels: Mapping[int, Channel[Any]]) -> Iterator[tuple[int, list[Load]]]:
        """(local task, the load of each task that it may choose); 1: all that may be on the way is, or more waits."""
        for task, targets in self._choices.items():
            yield task, [Load(task=target, load=_load(channels[target])) for target in targets]


def _load(channel: Channel[Any]) -> float:
    if channel.held or not channel.open:
        return 1.0
    return min(1.0, max(channel.inflight_rows / channel.window_rows, channel.inflight_bytes / channel.window_bytes))
