"""What a simulated cluster costs as it grows: CPU of managers and master, messages and bytes, and how these grow.

The processes' pure parts run as they are; network, clock and store are simulated, and are no part of what is told of a
manager or a master.  Nothing is emitted.  Python's collector of cycles does not run: one heap of thousands of processes
keeps it busy as none of its own would.
"""

from __future__ import annotations

import gc
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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


class Silent(Spout):
    outputs = ("word",)

    def next_tuple(self) -> None:
        pass


class Idle(Bolt):
    def process(self, tup: Tuple) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Second:
    """What one costs: CPU of one manager and of the master, and what all processes send."""

    manager_ms: float
    master_ms: float
    messages: float
    kilobytes: float
    kinds: dict[str, float]  # messages of each kind


@dataclass(frozen=True, slots=True)
class ScaleResult:
    """One size.

    ``start_cpu``: seconds for the first five of time; ``awake``: after them, while each link is heard each second;
    ``rest``: once the links rest.  Slopes: of the logarithms against the size before, at rest; None for the first.
    """

    containers: int
    tasks: int
    start_cpu: float
    awake: Second
    rest: Second
    slope_manager: float | None = None
    slope_master: float | None = None


@dataclass(slots=True)
class Spent:
    """CPU seconds in the rounds of each kind of process, and what was posted."""

    seconds: dict[type, float] = field(default_factory=lambda: {SimulatedManager: 0.0, SimulatedMaster: 0.0})
    bytes: int = 0
    kinds: Counter[int] = field(default_factory=Counter)

    def a_second_of(self, cluster: Cluster, seconds: float, containers: int) -> Second:
        """On the average of so many."""
        self.seconds, self.bytes = dict.fromkeys(self.seconds, 0.0), 0
        self.kinds.clear()
        cluster.advance(seconds)
        return Second(
            1000 * self.seconds[SimulatedManager] / seconds / containers,
            1000 * self.seconds[SimulatedMaster] / seconds,
            self.kinds.total() / seconds,
            self.bytes / seconds / 1000,
            {kind_name(kind): count / seconds for kind, count in self.kinds.most_common()},
        )


def sizes(containers: Sequence[int], tasks: int) -> list[ScaleResult]:
    """One row for each size, in order."""
    found: list[ScaleResult] = []
    for count in containers:
        found.append(_measured(count, tasks, found[-1] if found else None))
    return found


def page(results: Sequence[ScaleResult]) -> str:
    """What docs/scale.md shows of them: a table, slopes over the whole range, a curve."""
    lines = [
        "| Containers | Start, CPU s | Manager, ms: awake | rest | Master, ms: awake | rest | Messages: awake | rest |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {each.containers} | {each.start_cpu:.1f} |"
        f" {each.awake.manager_ms:.2f} | {each.rest.manager_ms:.2f} | {each.awake.master_ms:.2f} |"
        f" {each.rest.master_ms:.2f} | {each.awake.messages:,.0f} | {each.rest.messages:,.0f} |"
        for each in results
    ]
    awake, rest = [each.awake.manager_ms for each in results], [each.rest.manager_ms for each in results]
    growth = results[-1].containers / results[0].containers
    slopes = [_slope(ms[-1] / ms[0], growth) for ms in (awake, rest, [each.rest.master_ms for each in results])]
    lines += [
        "",
        "Slopes, from first to last: a manager awake {:.2f}, at rest {:.2f}; the master at rest {:.2f}.".format(
            *slopes
        ),
        "",
        "```mermaid",
        "xychart-beta",
        '  title "CPU of a manager, ms a second: awake above, at rest below"',
        f"  x-axis containers [{', '.join(str(each.containers) for each in results)}]",
        f"  y-axis ms 0 --> {math.ceil(max(awake))}",
        f"  line [{', '.join(f'{ms:.2f}' for ms in awake)}]",
        f"  line [{', '.join(f'{ms:.2f}' for ms in rest)}]",
        "```",
    ]
    return "\n".join(lines)


def topology(containers: int, tasks: int) -> type[Topology]:
    """In each container one spout, and bolts that read it by a field."""
    silent = Silent.spec(par=containers, name="silent")
    idle = Idle.spec(par=containers * (tasks - 1), inputs={silent: Grouping.fields("word")}, name="idle")
    return type("Scale", (Topology,), {"silent": silent, "idle": idle})


def _measured(containers: int, tasks: int, smaller: ScaleResult | None) -> ScaleResult:
    gc.collect()
    began = time.process_time()
    with (
        uncollected(),
        accounted() as spent,
        Cluster(topology(containers, tasks), containers=containers, check=False) as cluster,
    ):
        cluster.advance(START_SECONDS)
        start = time.process_time() - began
        if cluster.state != "RUNNING":
            raise BenchmarkError(
                f"{containers} containers do not run after {START_SECONDS:g} s", hint=cluster.describe()
            )
        awake = spent.a_second_of(cluster, AWAKE_SECONDS, containers)
        cluster.advance(UNTIL_REST)
        rest = spent.a_second_of(cluster, REST_SECONDS, containers)
    if smaller is None:
        return ScaleResult(containers, tasks, start, awake, rest)
    growth = containers / smaller.containers
    return ScaleResult(
        containers,
        tasks,
        start,
        awake,
        rest,
        _slope(rest.manager_ms / smaller.rest.manager_ms, growth),
        _slope(rest.master_ms / smaller.rest.master_ms, growth),
    )


def _slope(ratio: float, growth: float) -> float:
    return math.log(ratio) / math.log(growth)


@contextmanager
def uncollected() -> Iterator[None]:
    """Cycles stay where they are."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


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
