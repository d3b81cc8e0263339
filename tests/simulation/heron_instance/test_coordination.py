"""What a batch coordinator needs: direct rows to every task behind the data, and names that begin with ``$``."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea import Bolt, GlobalStreamId, Grouping, Spout, Stream, Topology, TopologyBuilder
from ardea.errors import UserError
from ardea.testing import CollectBolt, run
from tests.sizes import share

MASTER, FIRST, LAST = "$mastercoord-bg0", "$spoutcoord-b-0", "b-1"
OUTPUTS = [Stream(["tx", "key"]), Stream(["tx", "count"], "$coord-bg0", direct=True)]
COORD, BATCH = "$coord-bg0", "$batch"
SIZES = [0, 1, 50, 0, 3, 1000, 0, 0, 2]
"""Rows of each batch."""


class Tells:
    """Tells every task of the next component how many rows of the batch it was sent."""

    def send(self, tx, key, **options):
        for task in self.emit([tx, key], need_task_ids=True, **options):
            self.sent[tx, task] += 1

    def tell(self, tx, **options):
        for task in self.targets:
            self.emit([tx, self.sent[tx, task]], stream=COORD, direct_task=task, **options)


class Master(Tells, Spout):
    """Begins a batch when the former is acked; the last call of all finishes."""

    outputs = [Stream(["tx", "key"], BATCH), OUTPUTS[1]]

    def initialize(self, config, context):
        self.sent = Counter()
        self.targets = context.component_tasks(FIRST)
        self.tx, self.open = 0, 0

    def next_tuple(self):
        if self.open:
            return
        if self.tx == len(SIZES):
            self.finish()
            return
        for key in range(SIZES[self.tx]):
            self.send(self.tx, key, tup_id=(self.tx, key), stream=BATCH)
        self.tell(self.tx, tup_id=(self.tx, "coord"))
        self.open = SIZES[self.tx] + len(self.targets)
        self.tx += 1

    def ack(self, tup_id):
        self.open -= 1


class Counting(Bolt):
    """Counts the data of each source; a coordination row must find as many as it says."""

    def initialize(self, config, context):
        self.got = Counter()

    def process(self, tup):
        if tup.stream == COORD:
            assert self.got[tup.task, tup["tx"]] == tup["count"], f"{tup.as_dict()} after {self.got}"
            self.done(tup)
        else:
            self.got[tup.task, tup["tx"]] += 1
            self.data(tup)

    def data(self, tup):
        pass

    def done(self, tup):
        pass


class Middle(Tells, Counting):
    outputs = OUTPUTS

    def initialize(self, config, context):
        super().initialize(config, context)
        self.sent = Counter()
        self.targets = context.component_tasks(LAST)

    def data(self, tup):
        self.send(tup["tx"], tup["key"])

    def done(self, tup):
        self.tell(tup["tx"])


def batches():
    builder = TopologyBuilder("$batches")
    master = builder.add_spout(MASTER, Master)
    inputs = {master[BATCH]: Grouping.fields("key"), master[COORD]: Grouping.DIRECT}
    middle = builder.add_bolt(FIRST, Middle, 2, inputs)
    inputs = {middle: Grouping.fields("key"), GlobalStreamId(FIRST, COORD): Grouping.DIRECT}
    builder.add_bolt(LAST, Counting, 3, inputs)
    return builder


@pytest.mark.sampled(9)
@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("containers", [1, 2, 3])
def test_coordination_rows_reach_every_task_behind_its_data(containers, rows):
    """Empty batches too, over two hops; the names of spout, bolt, streams and topology begin with ``$``."""
    result = run(batches(), containers=containers, config={"topology.executor.batch.rows": rows}, seed=rows)
    assert (result.state, result.record.errors) == ("SUCCEEDED", [])
    assert not result.failed[MASTER], "some task saw its coordination row too early"
    for component, tasks, sources in ((FIRST, 2, 1), (LAST, 3, 2)):
        coords = [r for r in result.received[component] if r.stream == COORD]
        assert len(coords) == len(SIZES) * tasks * sources
        for pair in {(r.task, r.source) for r in coords}:
            told = [r.values[0] for r in coords if (r.task, r.source) == pair]
            assert told == list(range(len(SIZES))), f"task {pair[0]} from {pair[1]}"
        assert sum(r.stream != COORD for r in result.received[component]) == sum(SIZES)


@pytest.mark.parametrize("containers", [1, 2])
def test_direct_rows_to_who_does_not_read_them(containers):
    """A task that reads another stream gets nothing, the ids say so, and the tree is complete at once."""
    told = {}

    class Source(Spout):
        outputs = [Stream(["n"], "direct", direct=True), Stream(["n"])]

        def initialize(self, config, context):
            (self.reader,) = context.component_tasks("reader")
            (self.other,) = context.component_tasks("other")

        def next_tuple(self):
            for name, task in (("reader", self.reader), ("other", self.other), ("nobody", 99)):
                told[name] = self.emit([name], tup_id=name, stream="direct", direct_task=task, need_task_ids=True)
            told["quiet"] = self.emit(["quiet"], stream="direct", direct_task=self.reader)
            told["task"] = self.reader
            self.finish()

    class Sink(Bolt):
        def process(self, tup):
            pass

    class Direct(Topology):
        source = Source.spec()
        reader = Sink.spec(inputs={source["direct"]: Grouping.DIRECT})
        other = Sink.spec(inputs=[source])

    result = run(Direct, containers=containers)
    assert told.pop("task") in told["reader"]
    assert told == {"reader": told["reader"], "other": [], "nobody": [], "quiet": None}
    assert (result.inputs("reader"), result.inputs("other")) == ([("reader",), ("quiet",)], [])
    assert sorted(result.acked["source"]) == ["nobody", "other", "reader"]


@pytest.mark.parametrize("task", ["reader", 1.5, 1.0, (1,)])
def test_a_direct_emit_to_what_is_no_task_is_refused(task):
    """Also to a number that equals one."""
    raised = []

    class Source(Spout):
        outputs = [Stream(["n"], "direct", direct=True)]

        def initialize(self, config, context):
            self.readers = np.array(context.component_tasks("reader"))

        def next_tuple(self):
            try:
                self.emit([1], tup_id=1, stream="direct", direct_task=task)
            except UserError as error:
                raised.append(error)
            self.emit([2], tup_id=2, stream="direct", direct_task=self.readers[0])
            self.finish()

    class Direct(Topology):
        source = Source.spec()
        reader = CollectBolt.spec(inputs={source["direct"]: Grouping.DIRECT})

    result = run(Direct)
    assert result.inputs("reader") == [(2,)]
    (error,) = raised
    assert error.message == f"component source, stream direct: direct_task={task!r} is no task's id"
    assert "component_tasks" in error.hint


class Scripted(Spout):
    """Emits the operations of a script, some in each call, each with its number."""

    outputs = [Stream(["n"]), Stream(["n", "key"], "keyed"), Stream(["n"], "direct", direct=True), Stream(["n"], "all")]
    script = ()

    def initialize(self, config, context):
        self.tasks = context.component_tasks("sink")
        self.left = iter(enumerate(self.script))

    def next_tuple(self):
        for n, (kind, argument, goes_on) in self.left:
            tup_id = n if argument % 2 else None
            if kind == "direct":
                self.emit([n], tup_id, "direct", self.tasks[argument % len(self.tasks)])
            elif kind == "keyed":
                self.emit([n, argument], tup_id, "keyed")
            elif kind == "ids":
                self.emit([n], tup_id, need_task_ids=True)
            else:
                self.emit([n], tup_id, kind)
            if not goes_on:
                return
        self.finish()


class Sink(Bolt):
    def process(self, tup):
        pass


class PassOn(Bolt):
    """Emits each row on, in the way it came."""

    outputs = Scripted.outputs

    def initialize(self, config, context):
        self.sinks = context.component_tasks("last")

    def process(self, tup):
        direct = self.sinks[tup["n"] % len(self.sinks)] if tup.stream == "direct" else None
        self.emit(list(tup.values), stream=tup.stream, direct_task=direct)


def reads(component):
    return {
        GlobalStreamId(component): Grouping.SHUFFLE,
        GlobalStreamId(component, "keyed"): Grouping.fields("key"),
        GlobalStreamId(component, "direct"): Grouping.DIRECT,
        GlobalStreamId(component, "all"): Grouping.ALL,
    }


operations = st.tuples(st.sampled_from(["default", "ids", "keyed", "direct", "all"]), st.integers(0, 9), st.booleans())


@settings(max_examples=share(25))
@given(
    script=st.lists(operations, min_size=1, max_size=120),
    rows=st.sampled_from([1, 2, 16, 1000]),
    containers=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
def test_order_of_mixed_streams_and_groupings(script, rows, containers, seed):
    """Whatever the mix and the size of a flush: from one task to another all arrives in the order of emission."""
    parts = {
        "spout": type("Scripted", (Scripted,), {"script": script}).spec("spout"),
        "sink": PassOn.spec("sink", par=2, inputs=reads("spout")),
        "last": Sink.spec("last", par=2, inputs=reads("sink")),
        "config": {"topology.executor.batch.rows": rows},
    }
    result = run(type("Mixed", (Topology,), parts), containers=containers, seed=seed)
    assert result.state == "SUCCEEDED"
    for component, copies in (("sink", 2), ("last", 4)):
        received = result.received[component]
        assert Counter(r.values[0] for r in received) == {
            n: copies if kind == "all" else 1 for n, (kind, _, _) in enumerate(script)
        }
        for pair in {(r.source, r.task) for r in received}:
            order = [r.values[0] for r in received if (r.source, r.task) == pair]
            assert order == sorted(order)
    assert sorted(result.acked["spout"]) == [n for n, (_, argument, _) in enumerate(script) if argument % 2]
