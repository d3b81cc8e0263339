"""Thousands of fault schedules, on all cores: which seeds fail, and the fewest faults that each takes."""

from __future__ import annotations

import functools
import gc
import itertools
import logging
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

from ardea.testing import Cluster
from ardea.testing.kit import Targets

AT_ONCE = 50


def targets(topology, containers):
    """Every process, container and link of it, and the links to the state."""
    with Cluster(topology, containers=containers) as cluster:
        names = cluster.names
        managers = [name for name in names if name.startswith("manager-")]
        inside = [(f"manager-{task.container}", task.name) for task in cluster.plan.tasks.values()]
        wholes = [f"container-{number}" for number in (0, *cluster.plan.containers)]
    upwards = [*itertools.product(managers, ["master", "state"]), ("master", "state")]
    return Targets([*names, *wholes], [*itertools.combinations(managers, 2), *upwards, *inside])


def failing(seeds, schedule_of, run):
    """The seeds of which ``run(seed, containers, schedule)`` raises; what they take is printed."""
    chunks = [seeds[at : at + AT_ONCE] for at in range(0, len(seeds), AT_ONCE)]
    found, tried = [], functools.partial(_failures, schedule_of, run)
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"), _rarely_collected) as pool:
        for done, failed in enumerate(pool.map(tried, chunks), 1):
            found += failed
            if done % 100 == 0:
                print(f"{done * AT_ONCE:,} seeds, {len(found)} failed", flush=True)
    for seed, wrong, faults in found:
        print(f"seed {seed}: {wrong}", *faults, sep="\n    ")
    return [seed for seed, _, _ in found]


def _failure(run, seed, containers, schedule):
    """What is wrong with the run; None: nothing."""
    try:
        run(seed, containers, schedule)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _rarely_collected():
    """Each run leaves a cluster that refers to itself; to look for it twenty times a run costs an eighth."""
    gc.freeze()
    gc.set_threshold(100_000)


def _failures(schedule_of, run, seeds):
    """(seed, what is wrong, the faults that it takes) of each seed that fails."""
    logging.disable(logging.CRITICAL)
    found = []
    for seed in seeds:
        containers, schedule = schedule_of(seed)
        wrong = _failure(run, seed, containers, schedule)
        if wrong is not None:
            fewest = schedule.shrunk(
                lambda fewer, seed=seed, containers=containers: _failure(run, seed, containers, fewer) is not None
            )
            found.append((seed, wrong, fewest.faults))
    return found
