"""A task takes its state behind all that it has emitted, and passes the barrier after that."""

from __future__ import annotations

import pytest

from ardea import Bolt, Spout, Topology
from ardea.heron_instance.snapshots import RollingBack, TaskSnapshots
from ardea.keyed import TaskState
from ardea.protocol.wire_pb2 import BARRIER, ENDED, MARKER, ROWS, Header, Order, SnapshotOrder
from ardea.testing import CollectBolt
from tests.unit.heron_instance.bench import Bench


class Numbers(Spout):
    outputs = ["n"]
    position = TaskState(default=0)

    def next_tuple(self):
        self.emit([self.position])
        self.position += 1


class Pass(Bolt):
    outputs = ["n"]
    passed = TaskState(default=0)

    def process(self, tup):
        self.passed += 1
        self.emit([tup["n"]])

    def flush(self):
        self.emit([-1])

    def snapshot(self, number):
        self.heard = number


class Chain(Topology):
    numbers = Numbers.spec()
    passes = Pass.spec(inputs=[numbers])
    kept = CollectBolt.spec(inputs=[passes, numbers])


class Store:
    def __init__(self):
        self.written = []

    def write(self, file, content, done):
        self.written.append(content)


def bench_of(name, source=None):
    """That task, in timeline 1, in which it works."""
    bench = Bench(Chain, name, source)
    bench.store, env = Store(), bench.executor.env
    env.snapshots = TaskSnapshots(env.task, 1, bench.store)
    env.snapshots.ordered(
        Order(term=1, version=1, snapshots=SnapshotOrder(timeline=1, lives={env.task.task: 1}, committed=4))
    )
    env.snapshots.look()
    env.snapshots.timeline.restored()
    return bench


@pytest.mark.parametrize(("name", "source"), [("numbers", None), ("passes", "numbers")])
def test_the_barrier_comes_after_all_rows_that_led_to_the_state(name, source):
    bench = bench_of(name, source)
    component, parts = bench.component, bench.executor.runner._parts
    component.emit([7])
    parts.snapshot(9, bench.executor.runner.emitted)
    component.emit([8])
    bench.executor.runner.emitted.send()
    said = [(m.header.kind, m.header.target or m.header.snapshot) for m in bench.output.messages]
    barrier = said.index((BARRIER, 9))
    after = [frame for m in bench.output.messages[barrier:] if m.header.kind == ROWS for frame in m.frames[:1]]
    assert [row for frame in after for row in bench.codec.decode(frame)][:1] == [(8,)]
    assert (7,) not in [row for frame in after for row in bench.codec.decode(frame)]
    assert len(bench.store.written) == 1


def test_what_a_bolt_flushes_is_ahead_of_its_barrier_and_it_hears_the_number():
    bench = bench_of("passes", "numbers")
    bench.executor.runner._parts.snapshot(9, bench.executor.runner.emitted)
    kinds = [m.header.kind for m in bench.output.messages]
    assert kinds == [ROWS, BARRIER]
    assert bench.left() == [(-1,)]
    assert bench.component.heard == 9


def test_rows_that_cannot_be_read_end_the_timeline_for_the_task_and_are_reported_as_lost():
    bench = bench_of("passes", "numbers")
    snapshots = bench.executor.env.snapshots
    header = Header(kind=ROWS, source=bench.spout, rows=1, timeline=1)
    with pytest.raises(RollingBack):
        bench.executor.handle((header, [b"no rows"]))
    assert (snapshots.report.lost, snapshots.timeline.works) == (True, False)
    assert "goes back to its last snapshot" in bench.executor.error


def test_the_last_state_is_taken_ahead_of_the_end_marker_and_the_component_closes_when_it_counts():
    bench = bench_of("passes", "numbers")
    component, parts = bench.component, bench.executor.runner._parts
    component.snapshot = lambda number: component.emit([-number])
    bench.executor.lifecycle.initialized = True
    parts.end(bench.executor.runner.emitted, 9)
    (marker,) = (m.header for m in bench.output.messages if m.header.kind == MARKER)
    kinds = [m.header.kind for m in bench.output.messages]
    assert (marker.end, marker.snapshot, ROWS in kinds) == (True, 9, True)
    assert max(at for at, kind in enumerate(kinds) if kind == ROWS) < kinds.index(MARKER)
    assert (len(bench.store.written), bench.executor.lifecycle.closed) == (1, False)
    assert bench.executor.reporter.state != ENDED
    parts.over(bench.executor.runner.emitted)
    assert (bench.executor.lifecycle.closed, bench.executor.reporter.state) == (True, ENDED)
