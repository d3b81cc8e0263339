"""Traces: which rows are sampled, which spans there are and whose children; and that without them nothing differs."""

from __future__ import annotations

import subprocess
import sys
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, get_current_span

from ardea import Bolt, Grouping, Spout, TopologyBuilder
from ardea.errors import FailedException
from ardea.heron_instance.tracing import MOST_OPEN, Tracing
from ardea.kafka.record import Record
from ardea.protocol.checked import MOST_TRACED, MalformedError, checked
from ardea.protocol.ids import column
from ardea.protocol.wire_pb2 import ROWS, VERDICTS, Header
from tests.unit.heron_instance.bench import Bench


class Lines(Spout):
    outputs = ("line",)

    def next_tuple(self):
        for number, line in self.lines:
            self.emit([line], tup_id=number)
        self.lines = []

    def ack(self, tup_id):
        self.heard.append(tup_id)


class Batches(Lines):
    def next_tuple(self):
        if self.lines:
            numbers, lines = zip(*self.lines, strict=True)
            self.emit_batch(pa.record_batch({"line": pa.array(lines)}), tup_ids=np.array(numbers))
        self.lines = []


class Split(Bolt):
    outputs = ("word",)

    def process(self, tup):
        self.current.append(get_current_span().get_span_context().span_id)
        self.told.append(tup.traceparent)
        self.callers.append(sys._getframe(1).f_code.co_name)
        for word in tup[0].split():
            self.emit([word])


class Held(Split):
    """Emits for a line once the next one has come, anchored to the former."""

    auto_ack = False
    held = None

    def process(self, tup):
        if self.held is not None:
            self.emit([self.held[0]], anchors=[self.held])
        self.held = tup


class Columns(Bolt):
    outputs = ("word",)

    def process_columns(self, columns):
        self.emit_batch(pa.record_batch({"word": columns.batch.column(0)}))


class Whole(Bolt):
    outputs = ("word",)

    def process_batch(self, rows):
        for row in rows:
            self.emit([row[0]], anchors=[row])


class Count(Bolt):
    def process(self, tup):
        if tup[0] == "bad":
            raise FailedException("no such word")
        if tup[0] == "worse":
            raise ValueError("this word")


class Traced:
    """Benches of a spout, a bolt and a bolt, with messages carried by hand; one clock, in nanoseconds."""

    def __init__(self, share=1.0, split=Split, lines=Lines):
        builder = TopologyBuilder("Words")
        builder.add_spout("lines", lines)
        builder.add_bolt("split", split, inputs={"lines": Grouping.SHUFFLE})
        builder.add_bolt("count", Count, inputs={"split": Grouping.SHUFFLE})
        topology = builder.build()
        self.benches = {
            name: Bench(topology, name, source)
            for name, source in (("lines", None), ("split", "lines"), ("count", "split"))
        }
        self.component = {name: bench.component for name, bench in self.benches.items()}
        self.component["lines"].lines, self.component["lines"].heard = [], []
        self.component["split"].current, self.component["split"].callers = [], []
        self.component["split"].told = []
        self.exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.ticks = count(1)
        if share is not None:
            for bench in self.benches.values():
                env = bench.executor.env
                tracer, rng = provider.get_tracer("ardea"), np.random.default_rng(7)
                env.tracing = Tracing(tracer, share, env.task, env.instruments, rng, lambda: next(self.ticks))

    def emits(self, *lines):
        self.component["lines"].lines = list(enumerate(lines))
        return self.turn("lines")

    def turn(self, name):
        """The headers and frames of rows that leave."""
        bench = self.benches[name]
        bench.turn()
        while name != "lines" and bench.executor.runner.busy:  # a slice of time has passed
            bench.turn()
        bench.executor.runner.emitted.send()
        messages = [(m.header, m.frames) for m in bench.output.messages if m.header.kind == ROWS]
        bench.output.messages.clear()
        return messages

    def carry(self, messages, name):
        """To the task of a bolt, by their bytes, and what it emits."""
        for header, frames in messages:
            content = [header.SerializeToString(), *frames]
            self.benches[name].executor.handle((checked(content), frames))
        return self.turn(name)

    def through(self, *lines):
        """All the way; returns the roots that the spout has begun."""
        began = self.emits(*lines)
        self.carry(self.carry(began, "split"), "count")
        return np.concatenate([column(frames[-2]) for _, frames in began])

    def judge(self, *, acked=(), failed=(), timed_out=(), lost=()):
        frames = [np.array(each, dtype=np.uint64).tobytes() for each in (acked, failed, timed_out, lost)]
        self.benches["lines"].executor.handle((Header(kind=VERDICTS), frames))

    @property
    def spans(self):
        return self.exporter.get_finished_spans()

    def named(self, name):
        return [span for span in self.spans if span.name == name]

    def only(self, name):
        (span,) = self.named(name)
        return span

    def unsampled(self, name):
        return self.benches[name].instruments.unsampled.value


def parents(traced):
    """Name -> the name of its parent."""
    names = {span.context.span_id: span.name for span in traced.spans}
    return {span.name: names.get(span.parent.span_id) if span.parent else None for span in traced.spans}


def test_a_tree_from_emit_to_ack():
    traced = Traced()
    traced.judge(acked=traced.through("one"))
    assert parents(traced) == {
        "lines tree": None,
        "lines emit": "lines tree",
        "split queue": "lines tree",
        "split process": "lines tree",
        "count queue": "split process",
        "count process": "split process",
        "lines ack": "lines tree",
    }
    assert len({span.context.trace_id for span in traced.spans}) == 1
    order = ["lines emit", "split queue", "split process", "count queue", "count process", "lines ack"]
    assert [span.name for span in sorted(traced.spans, key=lambda s: s.end_time)] == [*order, "lines tree"]
    tree = traced.only("lines tree")
    assert tree.attributes == {"ardea.task": "lines-0", "ardea.stream": "default", "ardea.verdict": "acked"}
    assert tree.status.status_code is StatusCode.UNSET
    assert tree.start_time == traced.only("lines emit").start_time
    assert traced.only("split queue").end_time == traced.only("split process").start_time
    assert traced.component["lines"].heard == [0]


def test_rows_of_one_flush_are_children_of_their_own_tuples():
    traced = Traced()
    traced.through("a b", "c", "d e f")
    by_trace = {}
    for span in traced.named("split process"):
        by_trace[span.context.trace_id] = span.context.span_id
    children = [(s.context.trace_id, s.parent.span_id) for s in traced.named("count process")]
    assert len(by_trace) == 3
    assert all(by_trace[trace] == parent for trace, parent in children)
    assert sorted([trace for trace, _ in children].count(trace) for trace in by_trace) == [1, 2, 3]


@pytest.mark.parametrize("split", [Columns, Whole])
def test_whole_batches(split):
    traced = Traced(split=split)
    traced.through("a", "b")
    assert {s.parent.span_id for s in traced.named("count process")} == {
        s.context.span_id for s in traced.named("split process")
    }
    assert len(traced.named("split process")) == len(traced.named("split queue")) == 2


def test_a_row_anchored_to_a_held_tuple_is_that_tuples():
    traced = Traced(split=Held)
    traced.through("first", "second")
    (child,) = traced.named("count process")
    first = min(traced.named("split process"), key=lambda s: s.start_time)
    assert (child.context.trace_id, child.parent.span_id) == (first.context.trace_id, first.context.span_id)


def test_a_share_is_sampled_and_nothing_else_has_spans():
    traced = Traced(share=0.1)
    lines = [f"line{number}" for number in range(400)]
    began = traced.emits(*lines)
    sampled = sum(len(header.traces) for header, _ in began)
    assert 20 <= sampled <= 60
    assert len(traced.named("lines emit")) == sampled
    traced.carry(traced.carry(began, "split"), "count")
    assert len(traced.named("split process")) == len(traced.named("count process")) == sampled
    current = traced.component["split"].current
    assert len(current) == 400
    assert sum(map(bool, current)) == sampled


def test_a_current_span_is_the_process_span():
    traced = Traced()
    traced.through("one")
    assert traced.component["split"].current == [traced.only("split process").context.span_id]


def test_what_leaves_the_topology_can_go_on_with_the_trace():
    traced = Traced()
    traced.through("one")
    context = traced.only("split process").context
    (told,) = traced.component["split"].told
    assert told == f"00-{context.trace_id:032x}-{context.span_id:016x}-01"
    assert Record("v").traced(told).arguments("t")["headers"] == [("traceparent", told)]
    assert Record("v", headers=[("a", b"b")]).traced(told).headers == [("a", b"b"), ("traceparent", told)]
    own = Record("v", headers=[("traceparent", "mine")])
    assert own.traced(told) is own
    assert "headers" not in Record("v").traced(None).arguments("t")


OUTSIDE = f"00-{7:032x}-{9:016x}-01"


@pytest.mark.parametrize("lines", [Lines, Batches])
def test_a_row_goes_on_with_a_trace_from_outside_whatever_the_share(lines):
    traced = Traced(share=0.0, lines=lines)
    traced.benches["lines"].executor.env.tracing.continues(1, OUTSIDE)
    traced.judge(acked=traced.through("one", "two three", "four"))
    tree = traced.only("lines tree")
    assert (tree.context.trace_id, tree.parent.span_id) == (7, 9)
    assert len(traced.named("count process")) == 2
    assert {span.context.trace_id for span in traced.spans} == {7}
    traced.through("one", "two")
    assert len(traced.named("lines emit")) == 1, "the next row of this id is another one"


@pytest.mark.parametrize(
    "text", ["", "nonsense", OUTSIDE[:-1] + "0", "ff" + OUTSIDE[2:], f"00-{0:032x}-{9:016x}-01", OUTSIDE + "-more"]
)
def test_what_is_no_sampled_trace_is_passed_over(text):
    traced = Traced(share=0.0)
    traced.benches["lines"].executor.env.tracing.continues(0, text)
    traced.through("one")
    assert not traced.spans


def test_traces_of_rows_that_never_come_are_bounded():
    traced = Traced(share=0.0)
    for number in range(MOST_OPEN + 5):
        traced.benches["lines"].executor.env.tracing.continues(("gone", number), OUTSIDE)
    assert traced.unsampled("lines") == 5
    traced.component["lines"].lines = [([], "an id that cannot be a key")]
    traced.turn("lines")
    assert not traced.spans


@pytest.mark.parametrize("verdict", ["failed", "timed_out", "lost"])
def test_broken_trees_are_errors(verdict):
    traced = Traced()
    traced.judge(**{verdict: traced.through("one")})
    tree = traced.only("lines tree")
    assert tree.attributes["ardea.verdict"] == verdict.replace("_", " ")
    assert tree.status.status_code is StatusCode.ERROR


def test_a_manager_with_a_new_life_ends_all_open_trees():
    traced = Traced()
    traced.through("one", "two")
    traced.benches["lines"].executor.manager_reborn()
    assert [span.attributes["ardea.verdict"] for span in traced.named("lines tree")] == ["lost", "lost"]


@pytest.mark.parametrize(("word", "error"), [("bad", "FailedException"), ("worse", "ValueError")])
def test_a_process_that_raises_is_an_error(word, error):
    traced = Traced()
    traced.through(f"good {word} good")
    broken = [s for s in traced.named("count process") if s.status.status_code is StatusCode.ERROR]
    assert [span.status.description for span in broken] == [error]
    assert len(traced.named("count process")) == 3


def test_open_trees_are_bounded():
    traced = Traced()
    traced.emits(*map(str, range(MOST_OPEN + 500)))
    assert traced.unsampled("lines") == 500
    traced.benches["lines"].executor.manager_reborn()
    assert len(traced.named("lines tree")) == MOST_OPEN


def test_sampled_rows_of_a_message_are_bounded():
    traced = Traced()
    traced.benches["split"].executor.dispatch.paces.update(dict.fromkeys(range(10), 10000))
    left = traced.carry(traced.emits(" ".join("x" * (MOST_TRACED + 50))), "split")
    assert [len(header.traces) for header, _ in left] == [MOST_TRACED]
    assert traced.unsampled("split") == 50


def test_traces_that_are_none_are_dropped_with_their_message():
    header, frames = Traced().emits("one")[0]
    for spoil in ({"row": 1}, {"span": 0}, {"trace_high": 0, "trace_low": 0}):
        broken = Header.FromString(header.SerializeToString())
        for name, value in spoil.items():
            setattr(broken.traces[0], name, value)
        with pytest.raises(MalformedError):
            checked([broken.SerializeToString(), *frames])
    assert checked([header.SerializeToString(), *frames]).traces


# --- off -------------------------------------------------------------------------------------------------------


def test_without_tracing_the_closures_are_those_without_tracing():
    off, on = Traced(share=None), Traced()
    for traced in (off, on):
        traced.through("a", "b")
        traced.through("c", "d")
    # process is called by the loop over the tuples itself, once the first calls of a life are over.
    assert off.component["split"].callers[-2:] == ["run", "run"]
    assert on.component["split"].callers[-2:] == ["traced", "traced"]
    # emit is the one that appends to a list, traced or not.
    for name in ("lines", "split"):
        emits = [traced.component[name].emit for traced in (off, on)]
        assert [each.__qualname__.split(".")[-3:] for each in emits] == [["plain_emit", "<locals>", "emit"]] * 2
        assert emits[0].__code__ is emits[1].__code__
    assert not off.spans
    assert set(off.component["split"].told) == {None}


def test_without_tracing_headers_have_no_field_more():
    traced = Traced(share=None)
    assert not any(header.traces for header, _ in traced.emits("a", "b"))


def test_a_traced_batch_in_a_task_that_does_not_trace_is_processed_as_any_other():
    traced = Traced()
    began = traced.emits("a")
    traced.benches["split"].executor.env.tracing = None
    left = traced.carry(began, "split")
    assert [len(header.traces) for header, _ in left] == [0]
    assert not traced.named("split process")


def test_a_task_without_tracing_does_not_load_opentelemetry():
    script = "import sys, ardea.heron_instance.process; print([m for m in sys.modules if 'opentelemetry' in m])"
    ended = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "[]\n"
