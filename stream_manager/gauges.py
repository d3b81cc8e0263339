"""What a stream manager exports, read from its state once a second."""

from __future__ import annotations

from ardea.metrics.registry import Registry
from ardea.stream_manager.manager import StreamManager


class Gauges:
    """Copies counters into the registry; nothing in the hot path knows of it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._destinations: frozenset[int] = frozenset()

    def read(self, manager: StreamManager, now: float) -> None:
        """Takes over what changed."""
        registry, members, channels = self._registry, manager.members, manager.rows.channels
        links = {
            **{f"manager-{n}": link for n, link in members.peers.items()},
            **{link.name: link for link in members.instances.values()},
        }
        for peer, link in links.items():
            numbers = link.statistics
            for direction, size, count in (
                ("out", numbers.sent_bytes, numbers.sent),
                ("in", numbers.received_bytes, numbers.received),
            ):
                registry.counter("ardea_stmgr_bytes_total", direction=direction, peer=peer).value = size
                registry.counter("ardea_stmgr_frames_total", direction=direction, peer=peer).value = count
            registry.counter("ardea_stmgr_resends_total", peer=peer).value = numbers.resent
            registry.counter("ardea_stmgr_reconnects_total", peer=peer).value = numbers.reconnects
        up = sum(link.up for link in members.peers.values())
        registry.gauge("ardea_stmgr_links", state="up").value = up
        registry.gauge("ardea_stmgr_links", state="down").value = len(members.peers) - up
        registry.gauge("ardea_stmgr_connections", peer_kind="instance").value = sum(
            link.up for link in members.instances.values()
        )
        registry.gauge("ardea_stmgr_connections", peer_kind="manager").value = up
        registry.counter("ardea_stmgr_tuples_dropped_total", reason="stale").value = manager.statistics.dropped_stale
        registry.counter("ardea_stmgr_acks_dropped_total").value = members.dropped_acks
        for gone in self._destinations - channels.keys():
            registry.remove_gauge("ardea_stmgr_held_bytes", destination=gone)
            registry.remove_gauge("ardea_stmgr_credit_bytes", destination=gone)
        self._destinations = frozenset(channels)
        for task, channel in channels.items():
            registry.gauge("ardea_stmgr_held_bytes", destination=task).value = channel.held_bytes
            registry.gauge("ardea_stmgr_credit_bytes", destination=task).value = channel.room_bytes
        batches = registry.histogram("ardea_stmgr_batch_tuples")
        batches.buckets[:], batches.sum = manager.statistics.sizes, manager.statistics.rows
        self._pressure(manager, now)
        self._trees(manager)

    def _pressure(self, manager: StreamManager, now: float) -> None:
        registry = self._registry
        consumers = manager.inputs.consumers.values()
        registry.gauge("ardea_stmgr_backpressure_active").value = int(any(c.pausing for c in consumers))
        registry.counter("ardea_stmgr_backpressure_events_total").value = sum(c.pauses for c in consumers)
        for consumer in consumers:
            if consumer.pauses:
                name = manager.members.instances[consumer.task].name
                counter = registry.counter("ardea_stmgr_backpressure_seconds_total", initiator=name)
                counter.value = consumer.seconds_paused(now)

    def _trees(self, manager: StreamManager) -> None:
        registry = self._registry
        totals = [ledger.statistics() for ledger in manager.verdicts.ledgers().values()]
        registry.gauge("ardea_ack_tree_entries").value = sum(t.pending for t in totals)
        registry.counter("ardea_ack_tree_evictions_total").value = sum(t.timed_out for t in totals)
        registry.counter("ardea_ack_tree_lost_total").value = sum(t.lost for t in totals)
        registry.counter("ardea_ack_tree_late_total").value = sum(t.late for t in totals)
