"""An instance's counters: plain numbers that the executor adds to."""

from __future__ import annotations

from collections.abc import Callable

from ardea.metrics.registry import Counter, Registry
from ardea.watermarks import StampCounts
from ardea.windows.open_windows import WindowCounts


class Verdicts:
    """What became of a spout's trees, beside those acked or failed, and how many are open."""

    def __init__(self, registry: Registry) -> None:
        self.timed_out = registry.counter("ardea_instance_tuples_timed_out_total")
        self.lost = registry.counter("ardea_instance_tuples_lost_total")
        self.given_up = registry.counter("ardea_instance_tuples_given_up_total")
        self.dead_letters = registry.counter("ardea_instance_dead_letters_total")
        self.late = registry.counter("ardea_instance_late_acks_total")
        self.complete = registry.histogram("ardea_spout_complete_latency_seconds")
        self.pending = registry.gauge("ardea_spout_pending_tuples")


class Spent:
    """Seconds of an executor, by what it did with them.

    All but waits is ``busy``.  ``under_way``: seconds of the work that has begun and not ended.  A task that is stuck
    is busy by them.
    """

    def __init__(self, registry: Registry) -> None:
        self.busy = registry.counter("ardea_instance_busy_seconds_total")
        self.busy.read = self._busy_by_now
        self.under_way: Callable[[], float] = lambda: 0.0
        self._told = 0.0
        self.idle = registry.counter("ardea_instance_idle_seconds_total")
        self.backpressured = registry.counter("ardea_instance_backpressured_seconds_total")
        self.emit_blocked = registry.counter("ardea_instance_emit_blocked_seconds_total")

    def _busy_by_now(self) -> float:
        # Work may end between the two readings: a counter never falls.
        self._told = max(self._told, self.busy.value + self.under_way())
        return self._told


class Instruments:
    """Declared once, read by the metrics snapshot."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.verdicts = Verdicts(registry)
        self.spent = Spent(registry)
        self.acked = registry.counter("ardea_instance_tuples_acked_total")
        self.failed = registry.counter("ardea_instance_tuples_failed_total")
        self.double_acks = registry.counter("ardea_instance_double_acks_total")
        self.execute = registry.histogram("ardea_instance_execute_duration_seconds")
        self.next_tuple = registry.histogram("ardea_spout_next_tuple_duration_seconds")
        self.spans_dropped = registry.counter("ardea_instance_trace_spans_dropped_total")
        self.unsampled = registry.counter("ardea_instance_trace_rows_unsampled_total")
        self.stamps = StampCounts()
        self.windows = WindowCounts()
        self.malformed = 0  # messages whose rows cannot be read
        self._executed: dict[tuple[str, str], Counter] = {}

    def executed(self, component: str, stream: str) -> Counter:
        """Tuples processed, by where they came from."""
        counter = self._executed.get((component, stream))
        if counter is None:
            counter = self._executed[component, stream] = self.registry.counter(
                "ardea_instance_tuples_executed_total", source_component=component, stream=stream
            )
        return counter

    def exception(self, error: BaseException) -> None:
        """An exception of user code."""
        self.registry.counter("ardea_user_exceptions_total", exception=type(error).__name__).value += 1
