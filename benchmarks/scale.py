"""What a simulated cluster costs as it grows: CPU of managers and master, messages and bytes, and how these grow.

The processes' pure parts run as they are; network, clock and store are simulated, and are no part of what is told of a
manager or a master.  Nothing is emitted.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest import mock

from ardea import Bolt, Grouping, Spout, Topology, Tuple
from ardea.testing import Cluster
from ardea.testing.servers import SimulatedManager, SimulatedMaster
from ardea.testing.world import World
from benchmarks.results import BenchmarkError

START_SECONDS = 5.0
STEADY_SECONDS = 5.0


class Silent(Spout):
    outputs = ("word",)

    def next_tuple(self) -> None:
        pass


class Idle(Bolt):
    def process(self, tup: Tuple) -> None:
        pass


@dataclass(frozen=True, slots=True)
class ScaleResult:
    """One size.  ``start_cpu``: seconds for the first five of time; the rest is of a steady second.

    ``slope_manager`` and ``slope_master``: of the logarithms, against the size before; None for the first.
    """

    containers: int
    tasks: int
    start_cpu: float
    manager_ms: float
    master_ms: float
    messages: float
    kilobytes: float
    slope_manager: float | None = None
    slope_master: float | None = None


@dataclass(slots=True)
class Spent:
    """CPU seconds in the rounds of each kind of process, and what was posted."""

    seconds: dict[type, float] = field(default_factory=lambda: {SimulatedManager: 0.0, SimulatedMaster: 0.0})
    messages: int = 0
    bytes: int = 0

    def clear(self) -> None:
        """From now on."""
        self.seconds = dict.fromkeys(self.seconds, 0.0)
        self.messages = self.bytes = 0


def sizes(containers: Sequence[int], tasks: int) -> list[ScaleResult]:
    """One row for each size, in order."""
    found: list[ScaleResult] = []
    for count in containers:
        found.append(_measured(count, tasks, found[-1] if found else None))
    return found


def topology(containers: int, tasks: int) -> type[Topology]:
    """In each container one spout, and bolts that read it by a field."""
    silent = Silent.spec(par=containers, name="silent")
    idle = Idle.spec(par=containers * (tasks - 1), inputs={silent: Grouping.fields("word")}, name="idle")
    return type("Scale", (Topology,), {"silent": silent, "idle": idle})


def _measured(containers: int, tasks: int, smaller: ScaleResult | None) -> ScaleResult:
    began = time.process_time()
    with (
        accounted() as spent,
        Cluster(topology(containers, tasks), containers=containers, check=False) as cluster,
    ):
        cluster.advance(START_SECONDS)
        start = time.process_time() - began
        spent.clear()
        cluster.advance(STEADY_SECONDS)
        if cluster.state != "RUNNING":
            raise BenchmarkError(
                f"{containers} containers do not run after {START_SECONDS:g} s", hint=cluster.describe()
            )
    manager = 1000 * spent.seconds[SimulatedManager] / STEADY_SECONDS / containers
    master = 1000 * spent.seconds[SimulatedMaster] / STEADY_SECONDS
    return ScaleResult(
        containers,
        tasks,
        start,
        manager,
        master,
        spent.messages / STEADY_SECONDS,
        spent.bytes / STEADY_SECONDS / 1000,
        smaller and _slope(manager / smaller.manager_ms, containers / smaller.containers),
        smaller and _slope(master / smaller.master_ms, containers / smaller.containers),
    )


def _slope(ratio: float, growth: float) -> float:
    return math.log(ratio) / math.log(growth)


@contextmanager
def accounted() -> Iterator[Spent]:
    """Counts while it lasts."""
    spent = Spent()

    def timed(kind: type, run: Callable[[object], None]) -> Callable[[object], None]:
        def wrapped(process: object) -> None:
            began = time.thread_time()
            run(process)
            spent.seconds[kind] += time.thread_time() - began

        return wrapped

    post = World.post

    def counted(world: World, sender: object, target: str, holder: str, lane: object, message: Sequence[bytes]) -> None:
        began = time.thread_time()
        spent.messages += 1
        spent.bytes += sum(map(len, message))
        post(world, sender, target, holder, lane, message)
        if (kind := type(sender)) in spent.seconds:
            spent.seconds[kind] -= time.thread_time() - began  # the network is not the process's

    with (
        mock.patch.object(World, "post", counted),
        mock.patch.object(SimulatedManager, "_run", timed(SimulatedManager, SimulatedManager._run)),
        mock.patch.object(SimulatedMaster, "_run", timed(SimulatedMaster, SimulatedMaster._run)),
    ):
        yield spent
