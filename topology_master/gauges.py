"""What a topology master exports: of its process from the start, of the master once it acts."""

from __future__ import annotations

import logging

from ardea.metrics import Identity, Registry, observe_process
from ardea.plan.names import TOPOLOGY_MASTER
from ardea.state.records import RunState
from ardea.topology_master.coordination import Coordination
from ardea.topology_master.master import Master
from ardea.topology_master.snapshot_figures import Cause, Reason
from ardea.topology_master.snapshots import Phase

log = logging.getLogger(TOPOLOGY_MASTER)


class Gauges:
    """Copies what has changed into a registry, once a second."""

    def __init__(self, identity: Identity) -> None:
        self._registry = Registry(identity)
        observe_process(self._registry)
        self._lag = self._registry.histogram("ardea_process_loop_lag_seconds")
        self._registry.gauge("ardea_tm_leader").value = 0
        self._malformed = 0
        self._peers: frozenset[int] = frozenset()
        self._sinks: set[str] = set()  # components that have had rows to write outside

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
        links = {container.link.key: container.link for container in admissions.members}
        for gone in self._peers - links.keys():
            registry.remove_gauge("ardea_tm_heartbeat_age_seconds", peer=f"manager-{gone}")
        self._peers = frozenset(links)
        for number, link in links.items():
            registry.gauge("ardea_tm_heartbeat_age_seconds", peer=f"manager-{number}").value = now - link.last_heard
        if master.coordination is not None:
            self._snapshots(master.coordination, now)

    def _snapshots(self, coordination: Coordination, now: float) -> None:
        """Each series is there from the start, so that ``increase()`` sees the first of its events."""
        figures, record, registry = coordination.figures, coordination.snapshots.record, self._registry
        for phase in Phase:
            here = phase is coordination.snapshots.phase
            registry.gauge("ardea_tm_snapshot_state", state=phase.name).value = int(here)
        registry.gauge("ardea_tm_timeline").value = record.timeline
        registry.gauge("ardea_tm_snapshot_number").value = record.committed
        registry.gauge("ardea_tm_snapshot_age_seconds").value = figures.age(now)
        registry.gauge("ardea_tm_snapshot_interval_seconds").value = coordination.interval
        registry.gauge("ardea_tm_snapshots_abandoned_in_a_row").value = figures.abandoned
        registry.counter("ardea_tm_snapshots_committed_total").value = figures.commits
        registry.counter("ardea_tm_snapshot_written_bytes_total").value = figures.written
        registry.counter("ardea_tm_rollback_seconds_total").value = figures.down_by(now)
        for reason in Reason:
            registry.counter("ardea_tm_snapshots_abandoned_total", reason=reason).value = figures.abandonments[reason]
        for cause in Cause:
            registry.counter("ardea_tm_rollbacks_total", cause=cause).value = figures.rollbacks[cause]
        unwritten = coordination.unwritten(now)
        self._sinks |= unwritten.keys()
        for component in self._sinks:
            count, age = unwritten.get(component, (0, 0.0))
            registry.gauge("ardea_tm_sink_waiting_intervals", component=component).value = count
            registry.gauge("ardea_tm_sink_waiting_seconds", component=component).value = age
        if (last := figures.last) is not None:
            registry.gauge("ardea_tm_snapshot_duration_seconds").value = last.seconds
            registry.gauge("ardea_tm_snapshot_bytes").value = last.bytes

    def snapshot(self) -> bytes:
        """For the metrics manager."""
        return self._registry.snapshot()
