"""Metrics managers of a simulated cluster, and what its acting master answers because of them."""

from __future__ import annotations

import msgspec

from ardea.metrics import Identity, Registry
from ardea.metrics_manager.metrics_state import MetricsState
from ardea.protocol.wire_pb2 import Ask
from ardea.scheduler.control import Status, status_in
from ardea.stream_manager.gauges import Gauges
from ardea.testing.inside import Inside
from ardea.testing.instance import SimulatedInstance
from ardea.topology_master.heard import Heard
from ardea.topology_master.verbs import Verbs
from ardea.versions import PROTOCOL

WALL = 1_000_000.0
"""Unix seconds when the simulation begins."""


class Telling:
    """Tells each second what processes have counted; the cluster passes time by :meth:`runs` only."""

    def __init__(self, cluster):
        self.cluster, self.inside = cluster, Inside(cluster)
        self.heard = Heard(cluster.time, WALL + cluster.time)
        self.plan = self.inside.master.admissions.plan
        self._managers = {number: MetricsState() for number in self.plan.containers}
        self._gauges = {}

    def runs(self, seconds):
        for _ in range(seconds):
            self.cluster.advance(1.0)
            self._tell()
            self.heard.look(self.plan, self.cluster.time)

    def _tell(self):
        now = self.cluster.time
        for place in self.plan.tasks.values():
            if isinstance(process := self.inside.process(place.name), SimulatedInstance):
                self._managers[place.container].accept(process.shell.registry.snapshot(), now)
        for number, state in self._managers.items():
            if (manager := self.inside.process(f"manager-{number}")) is not None and manager.shell.manager is not None:
                state.accept(self._read(number, manager), now)
            self.heard.summary(msgspec.msgpack.encode(state.summary(number, 1)), now)

    def _read(self, number, manager):
        if number not in self._gauges:
            registry = Registry(Identity("t", number, "stream-manager", life=1))
            self._gauges[number] = registry, Gauges(registry)
        registry, gauges = self._gauges[number]
        gauges.read(manager.shell.manager, self.cluster.time)
        return registry.snapshot()

    def asks(self, verb, **arguments):
        """The answer as it came over the wire."""
        verbs = Verbs(self.inside.master, self.heard, "token", "master", lambda: WALL + self.cluster.time)
        return verbs.answer(Ask(verb=verb, token="token", arguments=arguments), PROTOCOL, self.cluster.time)

    def status(self, verb="status", **arguments) -> Status:
        return status_in(self.asks(verb, **arguments), PROTOCOL, "t")
