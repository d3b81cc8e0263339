"""A topology from its start to its end, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ardea.testing.cluster import NOTHING, Cluster, Fault
from ardea.testing.components import Buildable
from ardea.testing.record import Emitted, Received, Record

LONGEST = 3600.0


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a topology.  ``time`` is in simulated seconds; ``record`` has everything, by component."""

    state: str
    reason: str
    time: float
    record: Record

    @property
    def emitted(self) -> Mapping[str, list[Emitted]]:
        """All rows that each component emitted."""
        return self.record.emitted

    @property
    def received(self) -> Mapping[str, list[Received]]:
        """All tuples that each bolt processed."""
        return self.record.received

    @property
    def acked(self) -> Mapping[str, list[Any]]:
        """The ``tup_id`` of each completed tree, by spout."""
        return self.record.acked

    @property
    def failed(self) -> Mapping[str, list[Any]]:
        """The ``tup_id`` of each tree that a bolt failed, by spout; see ``record`` for timed out and lost ones."""
        return self.record.failed

    def tuples(self, component: str, stream: str = "default") -> list[tuple[Any, ...]]:
        """The values of all rows that a component emitted on a stream."""
        return self.record.tuples(component, stream)

    def inputs(self, component: str) -> list[tuple[Any, ...]]:
        """The values of all tuples that a bolt processed."""
        return self.record.inputs(component)


def run(
    topology: Buildable,
    *,
    containers: int = 1,
    config: Mapping[str, Any] = NOTHING,
    seed: int = 0,
    until: float | None = None,
    cost: Mapping[str, float] = NOTHING,
    active: bool = True,
    check: bool = True,
    faults: Iterable[Fault] = (),
) -> Result:
    """Runs a topology on simulated time and returns all that happened.

    ``until``: stop after so many simulated seconds; None: when the topology has ended.  The rest is as for
    :class:`Cluster`.

    Raises:
        TopologyError: the topology cannot run.
        TimeoutError: without ``until``, it has not ended after an hour: it is unbounded, or hangs.
        InvariantError: the engine did what it must not do.
    """
    with Cluster(
        topology,
        containers=containers,
        config=config,
        seed=seed,
        cost=cost,
        active=active,
        check=check,
        faults=faults,
    ) as cluster:
        if until is None:
            cluster.run_until(lambda: cluster.over, LONGEST)
        else:
            cluster.advance(until)
        return Result(cluster.state, cluster.reason, cluster.time, cluster.record)
