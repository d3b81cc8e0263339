"""The end of a pod in peace: what Kubernetes and the pre-stop hooks of its containers do."""

from __future__ import annotations

from collections.abc import Callable

from ardea.stream_manager.departure import LOOK
from ardea.testing.servers import SimulatedManager
from ardea.testing.world import World, manager_name


class Eviction:
    """Of one container, by a time at the latest; ``end`` ends it."""

    def __init__(self, world: World, container: int, until: float, end: Callable[[], None]) -> None:
        self._world, self._container, self._until, self._end = world, container, until, end
        self._holder = world.supervisors.holder(container)

    def look(self) -> None:
        """The manager asks the master, as often as it is started anew."""
        timeline, manager = self._world.timeline, self._world.processes.get(manager_name(self._container))
        if self._gone:
            return
        if timeline.now >= self._until:
            self._end()
            return
        if isinstance(manager, SimulatedManager) and not manager.shell.departs:
            manager.depart(self._left)
        timeline.at(min(self._until, timeline.now + LOOK), self.look)

    def _left(self) -> None:
        if not self._gone:
            self._end()

    @property
    def _gone(self) -> bool:
        return self._world.supervisors.holder(self._container) != self._holder
