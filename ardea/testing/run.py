"""A topology from its start to its end, in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ardea.component import Bolt, Spec
from ardea.errors import UserError
from ardea.grouping import Grouping
from ardea.testing.cluster import NOTHING, Cluster, Fault
from ardea.testing.components import Buildable, CollectBolt, RowsSpout
from ardea.testing.record import Emitted, Received, Record
from ardea.topology import TopologyBuilder
from ardea.windows.partial import PartialWindows

LONGEST = 3600.0
Row = Sequence[Any] | Mapping[str, Any]


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
    raise_errors: bool = False,
) -> Result:
    """Runs a topology on simulated time and returns all that happened.

    ``until``: stop after so many simulated seconds; None: when the topology has ended.  ``raise_errors``: raise the
    first exception of the author's code, whether it would fail a tuple, end a process, or take the topology back to its
    last snapshot.  The rest is as for :class:`Cluster`.

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
        cluster.raise_errors = raise_errors
        if until is None:
            cluster.run_until(lambda: cluster.over, LONGEST)
        else:
            cluster.advance(until)
        result = Result(cluster.state, cluster.reason, cluster.time, cluster.record)
    if raise_errors and (error := result.record.first_error) is not None:  # of a close()
        raise error
    return result


def run_bolt(
    bolt: type[Bolt], rows: Iterable[Row], *, fields: Sequence[str] = (), config: Mapping[str, Any] = NOTHING
) -> list[tuple[Any, ...]]:
    """Has one task of a bolt process these rows, and then hear that nothing more comes; returns what it emitted.

    Args:
        bolt: its class.
        rows: dicts of values by field, or sequences of values.
        fields: the names of the values; not needed for dicts.
        config: the component's.

    Raises:
        UserError: the names of the fields are not known, or differ from row to row; a row of the bolt cannot be sent.
        TimeoutError: a row has failed again and again for an hour of simulated time.
        Exception: whatever the bolt raises.
    """
    given = list(rows)
    names = list(fields) or (list(given[0]) if given and isinstance(given[0], Mapping) else [])
    if not names:
        raise UserError("run_bolt needs the names of the rows' fields", hint='rows as dicts, or fields=["word"]')
    for row in given:
        if isinstance(row, Mapping) and row.keys() != set(names):
            raise UserError(f"run_bolt: a row has the fields {', '.join(row)}, the first one {', '.join(names)}")
    values = [[row[name] for name in names] if isinstance(row, Mapping) else list(row) for row in given]
    builder = TopologyBuilder("run_bolt")
    source = builder.add_spout("rows", RowsSpout.of(names, values))
    tested = builder.add_bolt("bolt", bolt, inputs=[source], config=config)
    if not issubclass(bolt, PartialWindows):  # which its windows alone may read
        _add_reader(builder, tested)
    result = run(builder, raise_errors=True)
    if result.state != "SUCCEEDED":
        raise UserError(f"run_bolt: {bolt.__name__} has ended as {result.state}: {result.reason}")
    return result.tuples("bolt")


def _add_reader(builder: TopologyBuilder, tested: Spec) -> None:
    """Of all its streams: what nobody reads is not encoded."""
    streams = builder.plan()["bolt"].streams
    inputs = {tested[each.name]: Grouping.DIRECT if each.direct else Grouping.SHUFFLE for each in streams}
    if inputs:
        builder.add_bolt("reader", CollectBolt, inputs=inputs)
