"""What metrics managers have told a master, and what it makes of that."""

from __future__ import annotations

from ardea.metrics import Overview
from ardea.plan.physical import PhysicalPlan
from ardea.topology_master.health import HealthWatch
from ardea.topology_master.history import History
from ardea.topology_master.lately import Lately
from ardea.topology_master.stalls import Stalls


class Heard:
    """Of one master: ``overview`` of all counts, ``health``, ``lately``, its ``history`` and ``stalls``."""

    def __init__(self, now: float, wall: float) -> None:
        """``now`` in steady seconds; ``wall``: the same moment in Unix seconds."""
        self.overview, self.health = Overview(), HealthWatch()
        self.lately, self.history, self.stalls = Lately(), History(now, wall), Stalls()
        self._shift = wall - now

    def summary(self, body: bytes, now: float) -> None:
        """One of a metrics manager.

        Raises:
            msgspec.DecodeError, UnicodeDecodeError: it is none.
        """
        self.health.heard(self.overview.accept(body, now), now)

    def look(self, plan: PhysicalPlan, now: float) -> None:
        """Takes a sample, if it is time for one."""
        if self.history.due(now):
            rows = self.lately.look(self.overview.counts(), plan, now)
            self.history.add(now, rows)
            self.stalls.look(self.lately.initiates, rows, plan, round(now + self._shift, 3))
