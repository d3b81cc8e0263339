"""What an author's code may ask of its task: ids, threads, ticks, hooks, the order of its calls."""

from __future__ import annotations

import sys
import threading
import types
from collections import Counter

import pyarrow as pa
import pytest

from ardea import Bolt, CustomStreamGrouping, Grouping, Spout, Stream, TaskHook, Topology, UserError
from ardea.testing import Cluster, CollectBolt, FeederSpout, RowsSpout, run


class TwoOrNone(CustomStreamGrouping):
    """Odd numbers to the last two tasks, even ones to nobody."""

    def prepare(self, context, component, stream, target_tasks):
        self.targets = target_tasks

    def choose_tasks(self, values):
        return self.targets[-2:] if values[0] % 2 else []


GROUPINGS = {
    "shuffle": Grouping.SHUFFLE,
    "fields": Grouping.fields("n"),
    "partial key": Grouping.partial_key("n"),
    "all": Grouping.ALL,
    "global": Grouping.GLOBAL,
    "none": Grouping.NONE,
    "local": Grouping.LOCAL_OR_SHUFFLE,
    "load aware": Grouping.LOAD_AWARE,
    "custom": Grouping.custom(TwoOrNone),
}


class AsksSpout(Spout):
    outputs = ["n"]

    def initialize(self, config, context):
        self.n = 0
        self.told = Counter()

    def next_tuple(self):
        if self.n == 60:
            self.finish()
            return
        if self.n % 3:
            self.told.update((self.n, task) for task in self.emit([self.n], tup_id=self.n, need_task_ids=True))
        else:
            assert self.emit([self.n], tup_id=self.n) is None
        self.n += 1


class AsksBolt(Bolt):
    outputs = ["n"]

    def initialize(self, config, context):
        self.told = Counter()

    def process(self, tup):
        if tup["n"] % 3:
            self.told.update((tup["n"], task) for task in self.emit([tup["n"]], need_task_ids=True))
        else:
            self.emit([tup["n"]])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("containers", [1, 2])
def test_the_ids_are_those_of_the_tasks_that_get_the_row(grouping, containers):
    """For each grouping, of a spout and of a bolt, together with rows for which nobody asked."""

    class Asks(Topology):
        spout = AsksSpout.spec()
        middle = AsksBolt.spec(inputs=[spout])
        first = CollectBolt.spec(par=3, inputs={spout: GROUPINGS[grouping]})
        second = CollectBolt.spec(par=3, inputs={middle: GROUPINGS[grouping]})

    with Cluster(Asks, containers=containers) as cluster:
        cluster.run_until(lambda: cluster.state == "SUCCEEDED")
        told = [cluster.task("spout-0", AsksSpout).told, cluster.task("middle-0", AsksBolt).told]
        middle = cluster.plan.component_tasks["middle"]
    got = [
        Counter((r.values[0], r.task) for r in cluster.record.received[sink] if r.values[0] % 3)
        for sink in ("first", "second")
    ]
    assert got[1] == told[1]
    assert got[0] == Counter({pair: n for pair, n in told[0].items() if pair[1] not in middle})
    assert sum(n for pair, n in told[0].items() if pair[1] in middle) == 40
    assert len(cluster.record.acked["spout"]) == 60


def elsewhere(*calls):
    """The errors that the calls raise on another thread."""
    errors = []

    def work():
        for call in calls:
            try:
                call()
            except UserError as error:
                errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return errors


def test_other_threads_are_refused_and_submit_works():
    """emit, ack, fail, finish and emit_batch raise on another thread; what it submits runs on the executor's."""
    errors, submitted = [], []

    class Source(Spout):
        outputs = ["n"]

        def initialize(self, config, context):
            self.context = context
            self.asked = False

        def next_tuple(self):
            if self.asked:
                return
            self.asked = True
            batch = pa.record_batch({"n": [1]})
            errors.extend(
                elsewhere(
                    lambda: self.emit([1]),
                    lambda: self.emit([1], need_task_ids=True),
                    lambda: self.emit_batch(batch),
                    self.finish,
                    lambda: self.context.submit(self.go_on),
                )
            )

        def go_on(self):
            submitted.append(threading.get_ident())
            self.emit([2], tup_id="submitted")
            self.finish()

    class Passes(Bolt):
        outputs = ["n"]
        auto_ack = False

        def initialize(self, config, context):
            self.context = context

        def process(self, tup):
            def done():
                self.emit([tup["n"] + 1], anchors=[tup])
                self.ack(tup)

            errors.extend(
                elsewhere(
                    lambda: self.emit([9]),
                    lambda: self.emit([9], anchors=[tup]),
                    lambda: self.ack(tup),
                    lambda: self.fail(tup),
                    lambda: self.context.submit(done),
                )
            )

    class Threads(Topology):
        spout = Source.spec()
        passes = Passes.spec(inputs=[spout])
        sink = CollectBolt.spec(inputs=[passes])

    result = run(Threads)
    assert (result.state, result.inputs("sink"), result.acked["spout"]) == ("SUCCEEDED", [(3,)], ["submitted"])
    assert submitted == [threading.get_ident()]
    assert [error.message.partition(":")[0] for error in errors] == ["spout-0"] * 4 + ["passes-0"] * 4
    assert all("context.submit" in error.hint for error in errors)


def test_the_order_of_calls():
    """Nothing before activation; initialize, activate, next_tuple; none of it while inactive; close last."""
    calls = []

    class Traced(Spout):
        outputs = ["n"]
        ends = False

        def initialize(self, config, context):
            calls.append("initialize")

        def activate(self):
            calls.append("activate")

        def deactivate(self):
            calls.append("deactivate")

        def next_tuple(self):
            if calls[-1] != "next_tuple":
                calls.append("next_tuple")
            if self.ends:
                self.finish()

        def close(self):
            calls.append("close")

    class Order(Topology):
        spout = Traced.spec()
        sink = CollectBolt.spec(inputs=[spout])

    with Cluster(Order, active=False) as cluster:
        cluster.advance(3)
        assert calls == []
        for step in (cluster.activate, cluster.deactivate, cluster.deactivate, cluster.activate):
            step()
            cluster.advance(1)
        assert calls == ["initialize", "activate", "next_tuple", "deactivate", "activate", "next_tuple"]
        Traced.ends = True
        cluster.run_until(lambda: cluster.over)
    assert calls[-1] == "close"
    assert calls.count("close") == 1


def test_what_a_tick_emits_is_not_anchored():
    """Ticks of the component's own rhythm; their rows fail, and the tree of the tuple held meanwhile does not."""

    class Ticks(Bolt):
        outputs = ["n"]
        auto_ack = False
        config = {"topology.tick.tuple.freq.secs": 50}

        def process(self, tup):
            self.held = tup

        def process_tick(self, tup):
            self.emit(["tick"])
            self.emit(["held"], anchors=[tup])

        def flush(self):
            self.ack(self.held)

    class FailsAll(Bolt):
        def process(self, tup):
            self.fail(tup)

    class Ticking(Topology):
        spout = FeederSpout.of("n").spec()
        ticks = Ticks.spec(inputs=[spout], config={"topology.tick.tuple.freq.secs": 2})
        sink = FailsAll.spec(inputs=[ticks])
        config = {"topology.tick.tuple.freq.secs": 70, "topology.message.timeout.secs": 100}

    with Cluster(Ticking) as cluster:
        cluster.advance(1)
        cluster.task("spout-0", FeederSpout).feed([1], tup_id=1)
        cluster.advance(10)
        assert cluster.record.ticks == {"ticks": 5}
        assert cluster.record.inputs("sink") == [("tick",), ("held",)] * 5
        cluster.task("spout-0", FeederSpout).end()
        cluster.run_until(lambda: cluster.over)
        assert (cluster.state, cluster.record.acked["spout"]) == ("SUCCEEDED", [1])
        assert not cluster.record.failed["spout"]


class Log(TaskHook):
    """Every call, by component."""

    calls: Counter = Counter()
    emits: list = []

    def prepare(self, config, context):
        self.component = context.this_component_id
        self.note("prepare")

    def note(self, what):
        Log.calls[self.component, what] += 1

    def cleanup(self):
        self.note("cleanup")

    def emit(self, info):
        self.note("emit")
        Log.emits.append((self.component, info.values[0], info.stream, tuple(info.out_tasks)))

    def spout_ack(self, info):
        assert info.latency_ms > 0
        self.note(f"spout_ack {info.tup_id}")

    def spout_fail(self, info):
        assert info.latency_ms > 0
        self.note(f"spout_fail {info.tup_id}")

    def bolt_execute(self, info):
        self.note(f"bolt_execute {info.tup['n']}")

    def bolt_ack(self, info):
        self.note(f"bolt_ack {info.tup['n']}")

    def bolt_fail(self, info):
        self.note(f"bolt_fail {info.tup['n']}")


class Positional(Spout):
    """Emits with arguments by position and by name."""

    outputs = [Stream(["n"]), Stream(["n"], "other"), Stream(["n"], "direct", direct=True)]

    def initialize(self, config, context):
        (self.sink,) = context.component_tasks("sink")

    def next_tuple(self):
        assert self.emit([0], 0) is None
        assert self.emit([1], 1, "other") is None
        assert self.emit([2], None, "direct", self.sink) is None
        assert self.emit([3], stream="direct", direct_task=self.sink, need_task_ids=True) == [self.sink]
        self.finish()


class OwnEmit(Bolt):
    """Its own ``emit`` reaches the engine's through the base class."""

    outputs = [Stream(["n"], "other")]

    def initialize(self, config, context):
        self.failed = False

    def emit(self, values, *args):
        return super().emit(values, "other", *args)

    def process(self, tup):
        self.emit([tup["n"] + 10], [tup])
        if tup["n"] == 1 and not self.failed:
            self.failed = True
            self.fail(tup)


class Whole(Bolt):
    def process_batch(self, rows):
        pass


@pytest.fixture
def hook_module(monkeypatch):
    """A module that holds the class ``Log``."""
    module = types.ModuleType("hooks_of_a_test")
    module.Log = Log
    monkeypatch.setitem(sys.modules, module.__name__, module)
    Log.calls.clear()
    Log.emits.clear()
    return module.__name__


def test_hooks_of_every_task_by_configuration(hook_module):
    """``topology.auto.task.hooks``: all calls, of emits in any form, single tuples and whole batches."""

    class Hooked(Topology):
        spout = Positional.spec()
        middle = OwnEmit.spec(inputs=[spout, spout["other"]])
        sink = Whole.spec(inputs={middle["other"]: Grouping.GLOBAL, spout["direct"]: Grouping.DIRECT})
        config = {"topology.auto.task.hooks": [f"{hook_module}:Log"]}

    with Cluster(Hooked) as cluster:
        (middle,), (sink,) = cluster.plan.component_tasks["middle"], cluster.plan.component_tasks["sink"]
        cluster.run_until(lambda: cluster.over)
    assert cluster.state == "SUCCEEDED"
    assert Log.emits[:4] == [
        ("spout", 0, "default", (middle,)),
        ("spout", 1, "other", (middle,)),
        ("spout", 2, "direct", (sink,)),
        ("spout", 3, "direct", (sink,)),
    ]
    assert sorted(Log.emits[4:]) == [("middle", 10, "other", (sink,))] + [("middle", 11, "other", (sink,))] * 2
    once = [*((c, what) for c in ("spout", "middle", "sink") for what in ("prepare", "cleanup"))]
    once += [("spout", "spout_ack 0"), ("spout", "spout_ack 1"), ("spout", "spout_fail 1"), ("middle", "bolt_fail 1")]
    once += [("middle", "bolt_execute 0"), ("middle", "bolt_ack 0"), ("middle", "bolt_ack 1")]
    once += [("sink", f"bolt_{what} {n}") for what in ("execute", "ack") for n in (2, 3, 10)]
    several = {("spout", "emit"): 4, ("middle", "emit"): 3, ("middle", "bolt_execute 1"): 2}
    several |= {("sink", f"bolt_{what} 11"): 2 for what in ("execute", "ack")}
    assert Log.calls == Counter(once) + Counter(several)


def test_a_hook_that_is_not_there_refuses_the_topology():
    """The problem names the key and the hook."""

    class Hooked(Topology):
        spout = RowsSpout.of(["n"], [[1]]).spec()
        sink = CollectBolt.spec(inputs=[spout])
        config = {"topology.auto.task.hooks": ["no.such.module:Hook"]}

    with pytest.raises(UserError, match=r"topology\.auto\.task\.hooks.*no\.such\.module:Hook"):
        run(Hooked)


@pytest.mark.parametrize(
    ("component", "call", "ends"),
    [
        ("bolt", "emit", []),
        ("bolt", "bolt_execute", []),
        ("bolt", "bolt_ack", ["bolt-0"]),
        ("spout", "emit", ["spout-0"]),
        ("spout", "spout_ack", ["spout-0"]),
    ],
)
def test_what_a_hook_raises_counts_as_raised_by_what_it_is_told_of(component, call, ends):
    """Inside ``process`` it fails the tuple, elsewhere it ends the process."""
    told = []

    class Raises(TaskHook):
        pass

    def raises(hook, info):
        told.append(info)
        if len(told) == 1:
            raise ValueError(call)

    setattr(Raises, call, raises)

    class Hooked(RowsSpout.of(["n"], [[0], [1]])):
        def initialize(self, config, context):
            super().initialize(config, context)
            if component == "spout":
                context.add_task_hook(Raises())

    class Passes(Bolt):
        outputs = ["n"]

        def initialize(self, config, context):
            if component == "bolt":
                context.add_task_hook(Raises())

        def process(self, tup):
            self.emit([tup["n"]])

    class Raised(Topology):
        spout = Hooked.spec()
        bolt = Passes.spec(inputs=[spout])

    result = run(Raised)
    assert result.state == "SUCCEEDED"
    assert [task for task, _ in result.record.errors] == ends
    assert result.failed["spout"] == ([] if ends else [0])
