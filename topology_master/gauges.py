"""What a topology master exports: of its process from the start, of the master once it acts."""

from __future__ import annotations

import logging

from ardea.metrics import Identity, Registry, observe_process
from ardea.plan.names import TOPOLOGY_MASTER
from ardea.state.records import RunState
from ardea.topology_master.master import Master

log = logging.getLogger(TOPOLOGY_MASTER)


class Gauges:
    """Copies what has changed into a registry, once a second."""

    def __init__(self, identity: Identity) -> None:
        self._registry = Registry(identity)
        observe_process(self._registry)
        self._lag = self._registry.histogram("ardea_process_loop_lag_seconds")
        self._registry.gauge("ardea_tm_leader").value = 0
        self._malformed = 0

    def late(self, seconds: float) -> None:
        """How late the loop came to its timer."""
        self._lag.observe(seconds)

    def read(self, master: Master, malformed: int, now: float) -> None:
        """``malformed``: how many messages were dropped since the start."""
        admissions, registry = master.admissions, self._registry
        if malformed > self._malformed:
            log.warning("dropped messages that cannot be read", extra={"count": malformed - self._malformed})
            self._malformed = malformed
        missing = len(admissions.missing)
        registry.gauge("ardea_tm_containers", state="missing").value = missing
        registry.gauge("ardea_tm_containers", state="registered").value = len(admissions.plan.containers) - missing
        registry.counter("ardea_process_malformed_messages_total").value = malformed
        registry.gauge("ardea_tm_leader").value = 1
        for state in RunState:
            registry.gauge("ardea_tm_topology_state", state=state.value).value = int(state is master.execution.state)
        registry.gauge("ardea_tm_plan_version").value = admissions.plan.epoch
        for number, container in admissions.containers.items():
            age = registry.gauge("ardea_tm_heartbeat_age_seconds", peer=f"manager-{number}")
            age.value = now - container.link.last_heard

    def snapshot(self) -> bytes:
        """For the metrics manager."""
        return self._registry.snapshot()
