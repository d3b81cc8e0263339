"""Which tasks hold spouts back, and since when.  Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ardea.health import Trouble
from ardea.metrics import Stall
from ardea.metrics.samples import FIELDS
from ardea.plan.physical import PhysicalPlan
from ardea.topology_master.lately import Row

LEAST = 0.01
"""The share of a sample's time from which on a task holds spouts back."""
ALL = 0.9
"""From which on it does all the time."""
STANDS_STILL = 60.0
"""Seconds without a tuple, while spouts wait all the time, after which that is a trouble."""
_EXECUTED, _CAPACITY, _QUEUED = map(FIELDS.index, ("executed", "capacity", "queued_bytes"))


class Stalls:
    """Of one topology; ``present``: as of the last look, who does so for longest first."""

    def __init__(self) -> None:
        self.present: list[Stall] = []
        self._looked = math.nan

    def look(self, initiates: Mapping[str, float], rows: Mapping[str, Row], plan: PhysicalPlan, at: float) -> None:
        """What is so since the look before.

        Args:
            initiates: the share of that time, by the name of a task.
            rows: of tasks.
            plan: the present one.
            at: Unix seconds.
        """
        former, begun = {stall.task: stall for stall in self.present}, self._looked
        self._looked = at
        self.present = []
        for place in plan.tasks.values():
            if (share := initiates.get(place.name, 0.0)) < LEAST or math.isnan(begun):
                continue
            row, known = rows[place.name], former.get(place.name)
            idle = begun if share >= ALL and row[_EXECUTED] == 0.0 else None
            if idle is not None and known is not None and known.idle_since is not None:
                idle = known.idle_since
            stall = Stall(
                task=place.name,
                component=place.component,
                spouts=_spouts(plan, place.component),
                since=begun if known is None else known.since,
                share=round(share, 3),
                capacity=None if math.isnan(row[_CAPACITY]) else round(row[_CAPACITY], 3),
                queued_bytes=None if math.isnan(row[_QUEUED]) else int(row[_QUEUED]),
                idle_since=idle,
            )
            self.present.append(stall)
        self.present.sort(key=lambda stall: (stall.since, -stall.share, stall.task))

    def troubles(self) -> Iterator[Trouble]:
        """Those for which the topology stands still."""
        for stall in self.present:
            if stall.idle_since is not None and self._looked - stall.idle_since >= STANDS_STILL:
                why = f"it has processed nothing, and holds {' and '.join(stall.spouts)} back all the time"
                yield Trouble(stall.task, stall.idle_since, why)


def _spouts(plan: PhysicalPlan, component: str) -> list[str]:
    upstream = plan.logical.upstream(component)
    return [spout.name for spout in plan.logical.spouts if spout.name in upstream]
