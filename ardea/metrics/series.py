"""Every series that Ardea exports, declared once; docs/metrics.md is this table in prose.

A series carries the labels of its scope first, then its own.  Counters end in ``_total`` and only grow, units
are base units (seconds, bytes), latencies are histograms, so that sums over tasks and containers mean something.
"""

from __future__ import annotations

import enum
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate


class Kind(enum.StrEnum):
    """Prometheus's types."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Scope(enum.Enum):
    """Whose numbers a series holds; the value is the labels which tell them apart."""

    TASK = ("topology", "topology_id", "container", "component", "task")
    CONTAINER = ("topology", "topology_id", "container")
    PROCESS = ("topology", "topology_id", "container", "process", "component", "task")


SECONDS = tuple(float(f"{digit}e{power}") for power in range(-6, 2) for digit in (1, 2, 5))
"""1 µs, 2 µs, 5 µs … 50 s: three buckets a decade."""

TUPLES = tuple(float(1 << power) for power in range(17))
"""1, 2, 4 … 65536."""


@dataclass(frozen=True, slots=True)
class Series:
    """One row.  ``buckets`` are the upper bounds (inclusive) of a histogram, without infinity."""

    name: str
    kind: Kind
    scope: Scope
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def all_labels(self) -> tuple[str, ...]:
        """The scope's labels, then the series' own."""
        return (*self.scope.value, *self.labels)


def _counter(scope: Scope, name: str, text: str, *labels: str) -> Series:
    return Series(name, Kind.COUNTER, scope, text, labels)


def _gauge(scope: Scope, name: str, text: str, *labels: str) -> Series:
    return Series(name, Kind.GAUGE, scope, text, labels)


def _histogram(scope: Scope, name: str, text: str, buckets: tuple[float, ...] = SECONDS) -> Series:
    return Series(name, Kind.HISTOGRAM, scope, text, (), buckets)


_T, _C, _P = Scope.TASK, Scope.CONTAINER, Scope.PROCESS

SERIES: dict[str, Series] = {
    series.name: series
    for series in (
        _counter(_T, "ardea_instance_tuples_emitted_total", "Tuples emitted by user code.", "stream"),
        _counter(
            _T,
            "ardea_instance_tuples_executed_total",
            "Tuples that a bolt has processed.",
            "source_component",
            "stream",
        ),
        _counter(_T, "ardea_instance_tuples_acked_total", "Spout: trees completed. Bolt: tuples acked."),
        _counter(_T, "ardea_instance_tuples_failed_total", "Spout: trees failed by a bolt. Bolt: tuples failed."),
        _counter(_T, "ardea_instance_tuples_timed_out_total", "Trees of a spout that met the message timeout."),
        _counter(_T, "ardea_instance_tuples_lost_total", "Trees of a spout that a death of a process broke."),
        _counter(_T, "ardea_instance_tuples_given_up_total", "Trees of a spout that will not be sent again."),
        _counter(_T, "ardea_instance_dead_letters_total", "Rows that failed more often than they may."),
        _counter(_T, "ardea_instance_late_acks_total", "Verdicts for trees that were settled already."),
        _counter(_T, "ardea_instance_double_acks_total", "Second acks or fails of one tuple, ignored."),
        _histogram(_T, "ardea_instance_execute_duration_seconds", "Time in user code, a tuple processed."),
        _histogram(_T, "ardea_spout_next_tuple_duration_seconds", "Time in user code, a call of next_tuple."),
        _histogram(_T, "ardea_spout_complete_latency_seconds", "From a spout's emit to the ack of its tree."),
        _gauge(_T, "ardea_spout_pending_tuples", "Open trees and rows waiting to be sent again."),
        _counter(_T, "ardea_instance_busy_seconds_total", "Executor time but for waits: user code, codecs, restoring."),
        _counter(_T, "ardea_instance_idle_seconds_total", "Executor time with nothing to do."),
        _counter(
            _T,
            "ardea_instance_backpressured_seconds_total",
            "Executor time with input, waiting for credit, for pending trees or for the end of a pause.",
        ),
        _counter(
            _T,
            "ardea_instance_emit_blocked_seconds_total",
            "Time that emits waited inside one call for credit; a part of the busy time.",
        ),
        _counter(_T, "ardea_instance_trace_spans_dropped_total", "Spans that no collector has taken."),
        _counter(
            _T,
            "ardea_instance_trace_rows_unsampled_total",
            "Sampled trees, and rows of them, that a bound kept out of their trace.",
        ),
        _gauge(_T, "ardea_queue_depth", "Messages in a queue between gateway and executor.", "queue"),
        _gauge(
            _T,
            "ardea_queue_capacity",
            "Bytes which that queue may hold at present: it follows what its reader can take.",
            "queue",
        ),
        _gauge(_T, "ardea_queue_bytes", "Bytes in that queue.", "queue"),
        _gauge(_T, "ardea_instance_held_bytes", "Encoded rows that wait for credit in an instance."),
        _gauge(
            _T,
            "ardea_watermark_lag_seconds",
            "The machine's clock less the task's watermark; none before the first one, nor after the end.",
        ),
        _counter(
            _T,
            "ardea_spout_stamps_total",
            "Rows of a spout with timestamps that were late, ahead of the clock, or without a stamp.",
            "fault",
        ),
        _counter(_T, "ardea_windows_fired_total", "Windows seen: early, on time, or late.", "firing"),
        _counter(
            _T,
            "ardea_windows_rows_refused_total",
            "Rows that are in no window, as they are late, or have no stamp.",
            "why",
        ),
        _gauge(
            _T,
            "ardea_instance_snapshot_seconds",
            "Of the last snapshot: align, freeze and write; of the last rollback: restore.",
            "step",
        ),
        _gauge(_T, "ardea_instance_snapshot_aside_bytes", "Set aside now, until all barriers are here."),
        _gauge(_T, "ardea_instance_state_bytes", "Files in the store that the task's state needs."),
        _counter(_T, "ardea_instance_state_restored_bytes_total", "Files that were read to put back the task's state."),
        _counter(_T, "ardea_user_exceptions_total", "Exceptions raised by user code, by type.", "exception"),
        _counter(_T, "ardea_user_counts_total", "CountMetric and MultiCountMetric of user code.", "metric", "key"),
        _gauge(_T, "ardea_user_value", "AssignableMetric and ReducedMetric of user code.", "metric"),
        _counter(_C, "ardea_stmgr_bytes_total", "Bytes through a link.", "direction", "peer"),
        _counter(_C, "ardea_stmgr_frames_total", "Messages through a link.", "direction", "peer"),
        _histogram(
            _C,
            "ardea_stmgr_batch_tuples",
            "Tuples in a batch from an instance of the container, as it leaves for its task.",
            TUPLES,
        ),
        _gauge(_C, "ardea_stmgr_connections", "Processes connected.", "peer_kind"),
        _gauge(_C, "ardea_stmgr_links", "Links to other stream managers.", "state"),
        _counter(
            _C, "ardea_stmgr_reconnects_total", "Times a peer was heard again, silent before or in a new life.", "peer"
        ),
        _counter(
            _C, "ardea_stmgr_resends_total", "Messages sent again: lost with a connection, or ahead of a hello.", "peer"
        ),
        _counter(_C, "ardea_stmgr_tuples_dropped_total", "Tuples that a stream manager threw away.", "reason"),
        _counter(
            _C,
            "ardea_stmgr_acks_dropped_total",
            "Acks, fails and losses that could not be sent within the message timeout; their trees time out.",
        ),
        _gauge(_C, "ardea_stmgr_held_bytes", "Bytes that wait for credit, by destination task.", "destination"),
        _gauge(_C, "ardea_stmgr_credit_bytes", "Bytes that may be sent, by destination task.", "destination"),
        _gauge(_C, "ardea_stmgr_backpressure_active", "1 while a task of this container pauses spouts."),
        _counter(
            _C,
            "ardea_stmgr_backpressure_seconds_total",
            "Time that a task paused spouts; initiator is component-index.",
            "initiator",
        ),
        _counter(_C, "ardea_stmgr_backpressure_events_total", "Pauses begun."),
        _gauge(_C, "ardea_ack_tree_entries", "Open trees of the spouts in this container."),
        _counter(_C, "ardea_ack_tree_evictions_total", "Trees settled by the message timeout."),
        _counter(_C, "ardea_ack_tree_lost_total", "Trees settled as lost."),
        _counter(_C, "ardea_ack_tree_late_total", "Inits, acks and fails for trees that were not open."),
        _gauge(_C, "ardea_tm_containers", "Containers.", "state"),
        _gauge(_C, "ardea_tm_leader", "1 of the acting master, 0 of one that stands by."),
        _gauge(
            _C,
            "ardea_tm_topology_state",
            "1 for the state that the topology is in, by its acting master; 0 for each other state.",
            "state",
        ),
        _gauge(_C, "ardea_tm_plan_version", "Epoch of the physical plan."),
        _gauge(_C, "ardea_tm_heartbeat_age_seconds", "Since a stream manager's last heartbeat.", "peer"),
        _gauge(
            _C,
            "ardea_tm_snapshot_state",
            "1 for the state that the coordinator of snapshots is in; 0 for each other state.",
            "state",
        ),
        _gauge(_C, "ardea_tm_timeline", "Number of the timeline that runs."),
        _gauge(_C, "ardea_tm_snapshot_number", "The last committed snapshot."),
        _gauge(
            _C,
            "ardea_tm_snapshot_age_seconds",
            "Since a snapshot was committed, or since this master began if none was.",
        ),
        _gauge(_C, "ardea_tm_snapshot_interval_seconds", "Between two snapshots, as configured."),
        _gauge(
            _C, "ardea_tm_snapshot_duration_seconds", "Of the last committed snapshot: from its begin to the commit."
        ),
        _gauge(_C, "ardea_tm_snapshot_bytes", "All files that the last committed snapshot needs."),
        _counter(_C, "ardea_tm_snapshot_written_bytes_total", "Files that snapshots have added, at their commit."),
        _counter(_C, "ardea_tm_snapshots_committed_total", "Snapshots committed."),
        _counter(_C, "ardea_tm_snapshots_abandoned_total", "Snapshots abandoned.", "reason"),
        _gauge(_C, "ardea_tm_snapshots_abandoned_in_a_row", "Snapshots abandoned since the last commit."),
        _counter(_C, "ardea_tm_rollbacks_total", "Timelines that have ended.", "cause"),
        _counter(
            _C, "ardea_tm_rollback_seconds_total", "Time from the end of a timeline until all tasks have their state."
        ),
        _gauge(
            _C,
            "ardea_tm_sink_waiting_intervals",
            "Intervals of a two-phase sink that count and are not outside.",
            "component",
        ),
        _gauge(
            _C,
            "ardea_tm_sink_waiting_seconds",
            "Since the snapshot of the oldest of them was committed; 0: none waits.",
            "component",
        ),
        _histogram(_C, "ardea_metrics_manager_flush_duration_seconds", "Time to collect and hand to all sinks."),
        _counter(_C, "ardea_metrics_manager_snapshots_total", "Snapshots received.", "result"),
        _counter(_C, "ardea_metrics_manager_sink_errors_total", "Failures to open or write a sink.", "sink"),
        _counter(_C, "ardea_metrics_manager_sink_dropped_total", "Batches a slow or failing sink missed.", "sink"),
        _gauge(
            _C,
            "ardea_process_life",
            "Counts the starts of a process in place, from 1, also of one that has never reported.",
            "process",
        ),
        _gauge(_C, "ardea_state_silence_seconds", "Since the state manager last answered; 0 for local files."),
        _gauge(_C, "ardea_build_info", "Always 1; the labels say what runs.", "version", "python"),
        _counter(_P, "ardea_process_cpu_seconds_total", "User and system time."),
        _gauge(_P, "ardea_process_resident_memory_bytes", "Resident memory (macOS: its peak)."),
        _gauge(_P, "ardea_process_threads", "Threads, native ones included (macOS: Python's only)."),
        _gauge(_P, "ardea_process_open_fds", "Open file descriptors."),
        _counter(_P, "ardea_process_gc_collections_total", "Runs of Python's collector.", "generation"),
        _histogram(_P, "ardea_process_loop_lag_seconds", "How late the I/O loop came to a timer."),
        _counter(
            _P,
            "ardea_process_malformed_messages_total",
            "Messages dropped: they cannot be read, or are not their sender's to send.",
        ),
    )
}


def quantile(bounds: tuple[float, ...], buckets: tuple[float, ...], q: float) -> float | None:
    """Estimates a quantile as Prometheus's ``histogram_quantile`` does: linear within the bucket.

    Args:
        bounds: upper bounds of all buckets but the last, which is open.
        buckets: how many fell into each, not cumulative; one more than bounds.
        q: 0 to 1.

    Returns:
        In the unit of the bounds; the highest bound for what lies beyond it; None when nothing was observed.
    """
    if not any(buckets):
        return None
    sums = list(accumulate(buckets))
    rank = q * sums[-1]
    here = bisect_left(sums, rank) if rank > 0 else bisect_right(sums, 0.0)
    if here >= len(bounds):
        return bounds[-1]
    lower, seen = (bounds[here - 1], sums[here - 1]) if here else (0.0, 0.0)
    return lower + (bounds[here] - lower) * (rank - seen) / buckets[here]
