"""A simulated cluster's side of `ardea update`: what the verb asks for, and the scheduler that follows the plan."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from typing import Any

from ardea.config_check import stored
from ardea.plan.change import UpdateProgress, UpdateRequest
from ardea.plan.physical import PhysicalPlan
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler.next_definition import wanted
from ardea.state import Unavailable
from ardea.testing.components import Buildable
from ardea.testing.processes import Processes
from ardea.testing.servers import SimulatedMaster
from ardea.testing.world import MASTER, World


class Updating:
    """Of one cluster; topologies are kept by the location that a definition names."""

    def __init__(self, world: World, processes: Processes, topology: Buildable) -> None:
        self._world, self._processes = world, processes
        self._files = {world.definition.location: topology}
        self._numbers = itertools.count(1)  # of requests
        self._dice = random.Random(f"scheduler of {world.timeline.seed}")
        world.store.switched = self._follow_soon

    def request(
        self,
        topology: Buildable | None,
        *,
        parallelism: Mapping[str, int],
        config: Mapping[str, Any],
        patience: float,
    ) -> UpdateRequest:
        """What the verb would ask for now."""
        present = self._world.store.definition
        location = present.location
        if topology is not None:
            location = f"topology {len(self._files)}"
            self._files[location] = topology
            config = {"topology.name": self._world.plan.logical.name, **config}
        config = {**present.config, **stored(config, "the overrides")}
        plan = self._files[location].plan(config)
        rebuilt = location != present.location or config != present.config
        next_ = wanted(present, plan, parallelism=parallelism, location=location, config=config, rebuilt=rebuilt)
        return UpdateRequest(f"request {next(self._numbers)}", next_, present.epoch, patience)

    def ask(self, request: UpdateRequest) -> UpdateProgress | None:
        """How far it is; None: no master can write it now."""
        process = self._world.processes.get(MASTER)
        if not isinstance(process, SimulatedMaster):
            return None
        try:
            process.master.update(request, self._world.timeline.now)
        except Unavailable:
            return None
        return process.master.updates.progress(request.id)

    def _follow_soon(self) -> None:
        """The scheduler sees the new plan a little later."""
        timeline = self._world.timeline
        timeline.at(timeline.now + self._dice.uniform(0, 0.5), self._follow)

    def _follow(self) -> None:
        world, definition = self._world, self._world.store.definition
        logical = definition.rescaled(self._files[definition.location].plan(definition.config))
        world.definition = definition
        world.plan = PhysicalPlan.build(logical, packing_from_bytes(definition.packing), definition.epoch)
        self._processes.follow()
