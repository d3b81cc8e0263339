"""Spans of a sampled share of tuple trees (docs/tracing.md): where sampled rows stand, and what becomes of them.

Nothing of this is made while the share is 0.  It is called for batches, and from ``process`` for sampled tuples only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
    use_span,
)

from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.input_batch import InputBatch, Int
from ardea.heron_instance.instruments import Instruments
from ardea.heron_instance.trees import Row, Trees, plain
from ardea.plan.physical import TaskPlan
from ardea.protocol.checked import MOST_TRACED
from ardea.protocol.ids import U64
from ardea.protocol.wire_pb2 import Header
from ardea.tuples import Tuple

T = TypeVar("T")
MOST_OPEN = 1000
"""Sampled trees: of a spout task those that are open, of a bolt task those of which it knows the roots."""
Anchors = Callable[[int], Sequence[tuple[InputBatch, int]]]
"""The tuples that a row of a flush is anchored to."""
_TRACEPARENT = re.compile("00-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})")
_LOW = (1 << 64) - 1
_VERDICTS = ("acked", "failed", "timed out", "lost")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


@dataclass(slots=True)
class Arrived:
    """A sampled tuple of a batch: the span that emitted it, when it left, and its own span from the call on."""

    parent: SpanContext
    sent: int
    process: SpanContext | None = None

    @property
    def traceparent(self) -> str | None:
        """W3C's, of its own span."""
        span = self.process
        return None if span is None else f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"


@dataclass(frozen=True, slots=True)
class Heard:
    """A sampled tree with its verdict, while the author hears of it."""

    tree: Span
    ack: Span
    verdict: str


class Tracing:
    """Of one task, in one of its lives.  ``clock``: nanoseconds since 1970."""

    def __init__(
        self,
        tracer: Tracer,
        share: float,
        task: TaskPlan,
        instruments: Instruments,
        rng: np.random.Generator,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """``share``: of so many of 1 trees that a spout begins there are spans."""
        self._tracer = tracer
        self._share = share
        self._task = task
        self._unsampled = instruments.unsampled
        self._rng = rng
        self._clock = clock
        self._flush_began = 0
        self._emits: list[Span] = []  # of the present flush
        self._open: dict[int, Span] = {}  # root -> span of the tree
        self._parents: dict[Any, SpanContext] = {}  # of rows to come, by their ids, oldest first
        self._roots: dict[int, None] = {}  # of sampled tuples that have come, oldest first

    # --- rows that leave --------------------------------------------------------------------------------------

    def flushes(self) -> None:
        """A spout's flush begins, and with it the spans of what it samples."""
        self._flush_began = self._clock()

    def continues(self, tup_id: Any, traceparent: str) -> None:
        """The row that a spout emits next with this id is a child of that span, if that is sampled."""
        found = _TRACEPARENT.fullmatch(traceparent)
        if found is None or not int(found["flags"], 16) & TraceFlags.SAMPLED:
            return
        parent = SpanContext(int(found["trace"], 16), int(found["span"], 16), is_remote=True, trace_flags=_SAMPLED)
        if parent.is_valid:
            self._parents[tup_id] = parent
            if len(self._parents) > MOST_OPEN:
                del self._parents[next(iter(self._parents))]
                self._unsampled.value += 1

    def opened(self, buffer: StreamBuffer, trees: Trees) -> None:
        """A spout has begun these trees: some of them are sampled, and all that go on with a trace."""
        rows = np.arange(len(trees.roots)) if trees.counts is None else np.flatnonzero(trees.counts)
        parents = self._parents_of(buffer) if self._parents else {}
        sampled = self._rng.random(len(rows)) < self._share
        picked = np.flatnonzero(sampled | np.isin(rows, list(parents)) if parents else sampled)
        room = MOST_OPEN - len(self._open)
        self._unsampled.value += max(0, len(picked) - room)
        picked = picked[:room]
        if not len(picked):
            return
        stream, began = buffer.plan.name, self._flush_began
        trees.traces = {}
        for root, row in zip(trees.roots[picked].tolist(), rows[picked].tolist(), strict=True):
            tree = self._open[root] = self._span("tree", parents.get(row), began, SpanKind.PRODUCER, stream)
            self._emits.append(self._span("emit", tree.get_span_context(), self._flush_began))
            trees.traces[row] = tree.get_span_context()

    def _parents_of(self, buffer: StreamBuffer) -> dict[int, SpanContext]:
        """The rows that go on with a trace."""
        ids = buffer.rows.marks if buffer.columns is None else plain(buffer.columns.origin.ids)
        found = {}
        for row, mark in enumerate(ids):
            tup_id = mark.tup_id if type(mark) is Row else mark
            if isinstance(tup_id, Hashable) and (parent := self._parents.pop(tup_id, None)) is not None:
                found[row] = parent
        return found

    def left(self) -> None:
        """All batches of a spout's buffer have left."""
        now = self._clock()
        while self._emits:
            self._emits.pop().end(now)

    def anchored(self, trees: Trees, anchors: Anchors) -> None:
        """A bolt's rows are in these trees: those anchored to a sampled tuple go on with its trace."""
        if not self._roots:
            return
        known = np.fromiter(self._roots, np.uint64, len(self._roots))
        sampled = np.flatnonzero(np.isin(trees.roots, known))
        if not len(sampled):
            return
        if trees.counts is not None:
            sampled = np.unique(np.repeat(np.arange(len(trees.counts)), trees.counts)[sampled])
        trees.traces = {}
        for row in sampled.tolist():
            for batch, index in anchors(row):
                arrived = batch.traces.get(index)
                if arrived is not None and arrived.process is not None:
                    trees.traces[row] = arrived.process
                    break

    def write(self, header: Header, picked: Int | None, traces: Mapping[int, SpanContext]) -> None:
        """The sampled ones among a batch's rows, which are ``picked`` of a buffer's (None: all)."""
        if picked is None:
            places = [(row, row) for row in traces]
        else:
            known = np.fromiter(traces, np.intp, len(traces))
            places = [(place, int(picked[place])) for place in np.flatnonzero(np.isin(picked, known)).tolist()]
        self._unsampled.value += max(0, len(places) - MOST_TRACED)
        now = self._clock()
        for place, row in places[:MOST_TRACED]:
            context = traces[row]
            high, low = context.trace_id >> 64, context.trace_id & _LOW
            header.traces.add(row=place, trace_high=high, trace_low=low, span=context.span_id, sent=now)

    # --- a spout's verdicts -----------------------------------------------------------------------------------

    def judged(self, verdicts: Sequence[U64]) -> list[Heard]:
        """The sampled trees among those that the author is about to hear of; then :meth:`told`."""
        if not self._open:
            return []
        known, now, heard = np.fromiter(self._open, np.uint64, len(self._open)), self._clock(), []
        for verdict, roots in zip(_VERDICTS, verdicts, strict=True):
            for root in known[np.isin(known, roots)].tolist():
                tree = self._open.pop(root)
                heard.append(Heard(tree, self._span("ack", tree.get_span_context(), now), verdict))
        return heard

    def told(self, heard: Sequence[Heard]) -> None:
        """The author has heard of them."""
        now = self._clock()
        for each in heard:
            each.ack.end(now)
            each.tree.set_attribute("ardea.verdict", each.verdict)
            if each.verdict != _VERDICTS[0]:
                each.tree.set_status(Status(StatusCode.ERROR, each.verdict))
            each.tree.end(now)

    def lost(self) -> None:
        """All open trees of a spout are lost."""
        none = np.empty(0, dtype=np.uint64)
        self.told(self.judged([none, none, none, np.fromiter(self._open, np.uint64, len(self._open))]))

    # --- a bolt's tuples --------------------------------------------------------------------------------------

    def arrived(self, batch: InputBatch) -> None:
        """Notes the sampled tuples of a batch; of one with rows that did not fit, their places are not known."""
        if len(batch.rows) != batch.header.rows:
            self._unsampled.value += len(batch.header.traces)
            return
        traces: dict[int, Arrived] = {}
        for each in batch.header.traces:
            trace = each.trace_high << 64 | each.trace_low
            traces[each.row] = Arrived(SpanContext(trace, each.span, is_remote=True, trace_flags=_SAMPLED), each.sent)
        batch.traces = traces
        if batch.tracked:
            roots, _ = batch.roots_of(np.fromiter(traces, np.intp, len(traces)))
            self._roots.update(dict.fromkeys(roots.tolist()))
        for _ in range(len(self._roots) - MOST_OPEN):
            del self._roots[next(iter(self._roots))]

    def process(self, process: Callable[[Tuple], None], batch: InputBatch) -> Callable[[Tuple], None]:
        """A ``process`` for a batch with sampled tuples: those have spans, and theirs is the current one."""
        traces = batch.traces

        def traced(tup: Tuple) -> None:
            if tup._index not in traces:
                process(tup)
                return
            with (
                self.processing(batch, tup._index, tup._index + 1) as spans,
                use_span(spans[0], record_exception=False, set_status_on_exception=False),
            ):
                process(tup)

        return traced

    def calling(self, call: Callable[[T], None], batch: InputBatch, start: int, end: int) -> Callable[[T], None]:
        """A ``process_batch`` or ``process_columns`` for rows of which some are sampled."""

        def traced(rows: T) -> None:
            with self.processing(batch, start, end):
                call(rows)

        return traced

    @contextmanager
    def processing(self, batch: InputBatch, start: int, end: int) -> Iterator[list[Span]]:
        """The author's code is called for these rows: the spans of those that are sampled."""
        now, spans = self._clock(), []
        for index, each in batch.traces.items():
            if start <= index < end:
                began = min(each.sent, now)
                self._span("queue", each.parent, began, SpanKind.CONSUMER, batch.stream).end(now)
                span = self._span("process", each.parent, now, SpanKind.CONSUMER, batch.stream)
                each.process = span.get_span_context()
                spans.append(span)
        try:
            yield spans
        except Exception as error:
            for span in spans:
                span.record_exception(error)
                span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
        finally:
            now = self._clock()
            for span in spans:
                span.end(now)

    def _span(
        self,
        what: str,
        parent: SpanContext | None,
        began: int,
        kind: SpanKind = SpanKind.INTERNAL,
        stream: str | None = None,
    ) -> Span:
        context = Context() if parent is None else set_span_in_context(NonRecordingSpan(parent), Context())
        attributes = {"ardea.task": self._task.name} | ({} if stream is None else {"ardea.stream": stream})
        name = f"{self._task.component} {what}"
        return self._tracer.start_span(name, context, kind, attributes, start_time=began)
