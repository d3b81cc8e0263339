"""What a simulated cluster costs as it grows: CPU of managers and master, messages and bytes, and how these grow.

The processes' pure parts run as they are; network, clock and store are simulated, and are no part of what is told of a
manager or a master.  Python's collector of cycles does not run: one heap of thousands of processes keeps it busy as
none of its own would.
"""

from __future__ import annotations

import cProfile
import gc
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from unittest import mock

from ardea import Bolt, Grouping, Spout, Topology, Tuple
from ardea.protocol.link import kind_name
from ardea.protocol.wire_pb2 import Header
from ardea.testing import Cluster
from ardea.testing.servers import SimulatedManager, SimulatedMaster
from ardea.testing.world import World
from benchmarks.results import BenchmarkError

START_SECONDS = 5.0
AWAKE_SECONDS = 5.0
UNTIL_REST = 15.0
REST_SECONDS = 20.0
"""Of two heartbeats of a link that rests."""
RATE, RATE_SECONDS = 4, 4
DEATH_SECONDS = 10.0
END_SECONDS = 300.0


class Silent(Spout):
    """Emits only so many rows as it is told to, and finishes when it is told to."""

    outputs = ("word",)
    over = False

    def __init__(self) -> None:
        self.due = 0

    def next_tuple(self) -> None:
        if self.due:
            self.due -= 1
            self.emit([f"word {self.due}"], tup_id=self.due)
        elif self.over:
            self.finish()


class Idle(Bolt):
    def process(self, tup: Tuple) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a second, or of what happened once: CPU of one manager and of the master, and what all processes sent."""

    manager_ms: float
    master_ms: float
    messages: float
    kilobytes: float
    kinds: Mapping[str, float]  # messages of each kind


@dataclass(frozen=True, slots=True)
class ScaleResult:
    """One size.

    ``start_cpu``: seconds for the first five of time, the simulation's own part with them.

    ========== =====================================================================================================
    ``start``  the same five
    ``awake``  a second after them, while each link is heard each second
    ``rest``   a second, once the links rest
    ``rate``   a second in which each spout emits four rows
    ``update`` one that adds a bolt's task for each four containers, from the request until it is done
    ``death``  ten seconds of rest in which a manager is killed, comes back and is met
    ``end``    from the spouts' `finish()` until the topology has succeeded
    ========== =====================================================================================================

    Slopes: of the logarithms against the size before, at rest; None for the first.
    """

    containers: int
    tasks: int
    start_cpu: float
    costs: Mapping[str, Cost]
    slope_manager: float | None = None
    slope_master: float | None = None


@dataclass(slots=True)
class Spent:
    """CPU seconds in the rounds of each kind of process, and what was posted."""

    containers: int = 1
    seconds: dict[type, float] = field(default_factory=lambda: dict.fromkeys((SimulatedManager, SimulatedMaster), 0.0))
    bytes: int = 0
    kinds: Counter[int] = field(default_factory=Counter)

    def of(self, happens: Callable[[], object], seconds: float = 1.0) -> Cost:
        """What it costs, divided by so many seconds."""
        self.seconds, self.bytes = dict.fromkeys(self.seconds, 0.0), 0
        self.kinds.clear()
        happens()
        return Cost(
            1000 * self.seconds[SimulatedManager] / seconds / self.containers,
            1000 * self.seconds[SimulatedMaster] / seconds,
            self.kinds.total() / seconds,
            self.bytes / seconds / 1000,
            {kind_name(kind): count / seconds for kind, count in self.kinds.most_common()},
        )


def sizes(containers: Sequence[int], tasks: int, profile: cProfile.Profile | None = None) -> list[ScaleResult]:
    """One row for each size, in order; ``profile`` looks at managers and master, and makes them slower."""
    found: list[ScaleResult] = []
    for count in containers:
        with accounted(count, profile) as spent:
            found.append(_measured(count, tasks, spent, found[-1] if found else None))
    return found


def topology(containers: int, tasks: int) -> type[Topology]:
    """In each container one spout, and bolts that read it by a field."""
    silent = Silent.spec(par=containers, name="silent")
    idle = Idle.spec(par=containers * (tasks - 1), inputs={silent: Grouping.fields("word")}, name="idle")
    return type("Scale", (Topology,), {"silent": silent, "idle": idle})


def slope(ratio: float, growth: float) -> float:
    """The exponent: 1 where the cost grows as the size does."""
    return math.log(ratio) / math.log(growth)


def _measured(containers: int, tasks: int, spent: Spent, smaller: ScaleResult | None) -> ScaleResult:
    gc.collect()
    began = time.process_time()
    with uncollected(), Cluster(topology(containers, tasks), containers=containers, check=False) as cluster:
        costs = {"start": spent.of(lambda: cluster.advance(START_SECONDS))}
        start = time.process_time() - began
        if cluster.state != "RUNNING":
            raise BenchmarkError(
                f"{containers} containers do not run after {START_SECONDS:g} s", hint=cluster.describe()
            )
        costs["awake"] = spent.of(lambda: cluster.advance(AWAKE_SECONDS), AWAKE_SECONDS)
        cluster.advance(UNTIL_REST)
        costs["rest"] = spent.of(lambda: cluster.advance(REST_SECONDS), REST_SECONDS)
        _emit(cluster, containers, 1)
        costs["rate"] = spent.of(lambda: _emit(cluster, containers, RATE_SECONDS), RATE_SECONDS)
        costs["update"] = spent.of(lambda: _update(cluster, containers, tasks))
        cluster.advance(UNTIL_REST)
        costs["death"] = spent.of(lambda: _death(cluster))
        costs["end"] = spent.of(lambda: _end(cluster, containers))
    if smaller is None:
        return ScaleResult(containers, tasks, start, costs)
    growth, before, now = containers / smaller.containers, smaller.costs["rest"], costs["rest"]
    return ScaleResult(
        containers,
        tasks,
        start,
        costs,
        slope(now.manager_ms / before.manager_ms, growth),
        slope(now.master_ms / before.master_ms, growth),
    )


def _emit(cluster: Cluster, containers: int, seconds: int) -> None:
    """So many rows of each spout, each second."""
    for _ in range(seconds):
        for number in range(containers):
            cluster.task(f"silent-{number}", Silent).due += RATE
        cluster.advance(1.0)


def _update(cluster: Cluster, containers: int, tasks: int) -> None:
    progress = cluster.updated(
        cluster.update_request(parallelism={"idle": containers * (tasks - 1) + max(1, containers // 4)})
    )
    if progress.step != "done":
        raise BenchmarkError(f"the update is {progress.step}: {progress.reason}", hint=cluster.describe())


def _death(cluster: Cluster) -> None:
    cluster.kill("manager-1")
    cluster.advance(DEATH_SECONDS)


def _end(cluster: Cluster, containers: int) -> None:
    for number in range(containers):
        cluster.task(f"silent-{number}", Silent).over = True
    cluster.run_until(lambda: cluster.over, END_SECONDS)
    if cluster.state != "SUCCEEDED":
        raise BenchmarkError(f"the topology is {cluster.state}: {cluster.reason}")


@contextmanager
def uncollected() -> Iterator[None]:
    """Cycles stay where they are."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def accounted(containers: int, profile: cProfile.Profile | None) -> Iterator[Spent]:
    """Counts while it lasts."""
    spent = Spent(containers)

    def timed(kind: type, run: Callable[[object], None]) -> Callable[[object], None]:
        def wrapped(process: object) -> None:
            began = time.thread_time()
            with profile or nullcontext():
                run(process)
            spent.seconds[kind] += time.thread_time() - began

        return wrapped

    post = World.post

    def counted(world: World, sender: object, target: str, holder: str, lane: object, message: Sequence[bytes]) -> None:
        began = time.thread_time()
        spent.kinds[Header.FromString(message[0]).kind] += 1
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
