"""Spans on their way to a collector: OpenTelemetry's exporter, behind a bounded queue whose losses are counted."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from ardea.heron_instance.instruments import Instruments
from ardea.heron_instance.tracing import Tracing
from ardea.metrics.registry import Counter
from ardea.plan.physical import TaskPlan

MOST_WAITING = 2048
"""Spans that are being exported or wait for it."""
CLOSE_WITHIN = 2.0


class Spans:
    """The spans of one process."""

    def __init__(
        self, service: str, task: str, share: float, dropped: Counter, exporter: SpanExporter | None = None
    ) -> None:
        """``service`` and ``task`` are the resource's, unless the environment says otherwise.

        ``share``: of so many of 1 trees that a spout begins.  ``exporter``: unless it is given, the one that the
        environment's variables of OTLP describe.

        Raises:
            ValueError: these cannot be read.
        """
        named = Resource({"service.name": service, "service.instance.id": task}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(sampler=ALWAYS_ON, resource=named, shutdown_on_exit=False)
        waiting = _Waiting(dropped)
        exported = _Exported(OTLPSpanExporter() if exporter is None else exporter, waiting)
        queue = BatchSpanProcessor(exported, MOST_WAITING, max_export_batch_size=MOST_WAITING // 4)
        self._provider.add_span_processor(_Admitted(queue, waiting))
        self._share = share

    def tracing(self, task: TaskPlan, instruments: Instruments) -> Tracing:
        """For an executor of the process."""
        tracer, rng = self._provider.get_tracer("ardea"), np.random.default_rng()
        return Tracing(tracer, self._share, task, instruments, rng)

    def serve_author(self) -> None:
        """Spans that the author's code makes go the same way, unless it has a way of its own."""
        trace.set_tracer_provider(self._provider)

    def close(self) -> None:
        """Sends what waits, as far as two seconds suffice."""
        closing = threading.Thread(target=self._provider.shutdown, name="spans", daemon=True)
        closing.start()
        closing.join(CLOSE_WITHIN)


class _Waiting:
    """How many spans are on their way, which OpenTelemetry's queue does not say, nor what it drops."""

    def __init__(self, dropped: Counter) -> None:
        self._dropped = dropped
        self._lock = threading.Lock()
        self._count = 0

    def admits(self) -> bool:
        """Whether there is room for one more."""
        with self._lock:
            room = self._count < MOST_WAITING
            self._count += room
            self._dropped.value += not room
            return room

    def settled(self, spans: int, *, lost: bool) -> None:
        """So many have left."""
        with self._lock:
            self._count -= spans
            self._dropped.value += spans if lost else 0


class _Admitted(SpanProcessor):
    """Ahead of the queue."""

    def __init__(self, queue: SpanProcessor, waiting: _Waiting) -> None:
        self._queue = queue
        self._waiting = waiting

    def on_end(self, span: ReadableSpan) -> None:
        if self._waiting.admits():
            self._queue.on_end(span)

    def shutdown(self) -> None:
        self._queue.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._queue.force_flush(timeout_millis)


class _Exported(SpanExporter):
    """After the queue."""

    def __init__(self, exporter: SpanExporter, waiting: _Waiting) -> None:
        self._exporter = exporter
        self._waiting = waiting

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        lost = True
        try:
            result = self._exporter.export(spans)
            lost = result is not SpanExportResult.SUCCESS
            return result
        finally:
            self._waiting.settled(len(spans), lost=lost)

    def shutdown(self) -> None:
        self._exporter.shutdown()
