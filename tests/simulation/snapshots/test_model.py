"""Whatever dies, freezes, lags or comes twice: each committed snapshot is the state of exactly the rows it covers."""

from __future__ import annotations

import pytest

from tests.simulation.snapshots.model import World


def scheduled(seed):
    """Faults for a while, then none: all rows must come to be in a snapshot that counts."""
    world = World(seed)
    faults = world.rng.choice((0.002, 0.005, 0.01))
    for _ in range(40):
        world.run(100, faults)
        world.zombies_act()
    world.heal()
    for _ in range(1000):
        if world.over:
            return world
        world.run(100, faults=0.0)
    raise AssertionError(f"seed {seed}: stuck in {world.master.snapshots.phase}")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_schedules(first):
    for seed in range(first, first + 50):
        scheduled(seed)
