"""What a stream manager exports, read from its state once a second."""

from __future__ import annotations

from ardea.metrics.registry import Registry
from ardea.stream_manager.manager import StreamManager

SUMS = (
    "ardea_stmgr_backpressure_events_total",
    "ardea_ack_tree_evictions_total",
    "ardea_ack_tree_lost_total",
    "ardea_ack_tree_late_total",
)
"""Counters that are there, at 0, before a task has counted anything."""


class Gauges:
    """Copies counters into the registry; nothing in the hot path knows of it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._destinations: frozenset[int] = frozenset()
        for name in SUMS:
            registry.counter(name)
        self._known: dict[tuple[object, ...], float] = {}  # what each part of a counter had counted

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
                self._follow("ardea_stmgr_bytes_total", size, direction=direction, peer=peer)
                self._follow("ardea_stmgr_frames_total", count, direction=direction, peer=peer)
            self._follow("ardea_stmgr_resends_total", numbers.resent, peer=peer)
            self._follow("ardea_stmgr_reconnects_total", numbers.reconnects, peer=peer)
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
        for consumer in consumers:
            self._follow("ardea_stmgr_backpressure_events_total", consumer.pauses, consumer.task)
            if consumer.pauses:
                name = manager.members.instances[consumer.task].name
                self._follow("ardea_stmgr_backpressure_seconds_total", consumer.seconds_paused(now), initiator=name)

    def _trees(self, manager: StreamManager) -> None:
        totals = {task: ledger.statistics() for task, ledger in manager.verdicts.ledgers().items()}
        self._registry.gauge("ardea_ack_tree_entries").value = sum(t.pending for t in totals.values())
        for task, counted in totals.items():
            self._follow("ardea_ack_tree_evictions_total", counted.timed_out, task)
            self._follow("ardea_ack_tree_lost_total", counted.lost, task)
            self._follow("ardea_ack_tree_late_total", counted.late, task)

    def _follow(self, name: str, total: float, part: object = None, /, **labels: object) -> None:
        """A counter goes on by what a part of it has counted since the last read.

        What was counted of a part that an update removes stays.  When it comes back, its own count begins again.
        """
        key = (name, part, *labels.values())
        before, self._known[key] = self._known.get(key, 0), total
        self._registry.counter(name, **labels).value += total - before if total >= before else total
