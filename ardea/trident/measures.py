"""What the master batch coordinator tells of its batches, as metrics of its task."""

from __future__ import annotations

from ardea.context import TopologyContext
from ardea.metrics import TRIDENT_BATCH, TRIDENT_LATENCY, AssignableMetric, CountMetric, MeanReducer, ReducedMetric
from ardea.trident.transactions import LIVES, Step


class Measures:
    """``trident-...`` metrics; times are those of the task's clock."""

    def __init__(self, context: TopologyContext) -> None:
        register = context.register_metric
        self._committed = register("trident-batches-committed", CountMetric())
        self._failed = register("trident-batches-failed", CountMetric())
        self._skipped = register("trident-batches-skipped", CountMetric())
        self._txid = register(TRIDENT_BATCH, AssignableMetric())
        self._attempts = register("trident-batch-attempts", AssignableMetric())
        self._latency = register(TRIDENT_LATENCY, ReducedMetric(MeanReducer()))
        self._began: dict[int, float] = {}

    def began(self, step: Step, now: float) -> None:
        """An attempt begins."""
        self._began[step.txid] = now

    def committed(self, step: Step, now: float) -> None:
        """It is committed: its id, how many attempts it took in this life, and how long the last one took."""
        self._committed.incr()
        self._txid.update(step.txid)
        self._attempts.update(step.attempt % LIVES + 1)
        self._latency.update((now - self._began.pop(step.txid)) * 1000)

    def failed(self) -> None:
        """An attempt failed."""
        self._failed.incr()

    def skipped(self) -> None:
        """A batch is committed without its tuples."""
        self._skipped.incr()
