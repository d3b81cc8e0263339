"""Storm's mini-cluster tests, side by side in one topology, and what only Ardea's API has."""

from __future__ import annotations

import threading
import time
from collections import Counter

from leaving import LeavingBolt, LeavingSpout

from ardea import CountMetric, CustomStreamGrouping, GlobalStreamId, Grouping, Stream, TaskHook, Topology

TIMEOUT = "topology.message.timeout.secs"


class Fixed(LeavingSpout):
    """Emits its rows, untracked, and is done."""

    outputs = ["word"]
    rows = ["nathan", "bob", "joey", "nathan"]

    def begin(self):
        self.left = list(self.rows)

    def next_tuple(self):
        if not self.left:
            self.finish()
            return
        self.emit([self.left.pop(0)])


class WordCounter(LeavingBolt):
    """TestWordCounter: each word with how often it has come so far."""

    outputs = ["word", "count"]

    def begin(self):
        self.counts = Counter()
        self.emitted = []

    def process(self, tup):
        self.counts[tup["word"]] += 1
        row = [tup["word"], self.counts[tup["word"]]]
        self.emitted.append(row)
        self.emit(row)

    def end_of_input(self):
        self.leave(self.emitted)


class GlobalCounter(LeavingBolt):
    """TestGlobalCount, and TestAggregatesCounter behind a counter: how many tuples have come so far."""

    outputs = ["total"]

    def begin(self):
        self.totals = []

    def process(self, tup):
        self.totals.append(len(self.totals) + 1)
        self.emit([self.totals[-1]])

    def end_of_input(self):
        self.leave(self.totals)


class TaskIndexes(LeavingBolt):
    """Three executors, six tasks, everything to all of them; also reads the system stream."""

    def begin(self):
        self.got = []

    def process(self, tup):
        self.got.append(tup["word"])

    def end_of_input(self):
        self.leave({"index": self.index, "got": self.got})


class One(Fixed):
    rows = ["one"]


class Feeder(LeavingSpout):
    """Ids 1, 2, 3; what fails it sends again itself; leaves every verdict with the time since the emit.

    It finishes when all are acked, so that its reader expects input until then.
    """

    outputs = ["number"]

    def begin(self):
        self.left = [1, 2, 3]
        self.unacked = 3
        self.verdicts = []
        self.emitted = {}

    def next_tuple(self):
        if not self.unacked:
            self.finish()
        if not self.left:
            return
        number = self.left.pop(0)
        self.emitted[number] = time.monotonic()
        self.emit([number], tup_id=number)

    def ack(self, tup_id):
        self.unacked -= 1
        self.verdict("ack", tup_id)

    def fail(self, tup_id):
        self.verdict("fail", tup_id)
        self.left.append(tup_id)
        return True

    def verdict(self, kind, number):
        self.verdicts.append((kind, number, time.monotonic() - self.emitted[number]))

    def close(self):
        self.leave(self.verdicts)


class AckEveryOther(LeavingBolt):
    """Acks the first, not the second, and so on; counts the ticks that it gets meanwhile."""

    auto_ack = False

    def begin(self):
        self.acks = True
        self.ticks = []

    def process(self, tup):
        if self.acks:
            self.ack(tup)
        self.acks = not self.acks

    def process_tick(self, tup):
        self.ticks.append([tup.component, tup.stream, tup["rate_secs"]])

    def end_of_input(self):
        self.leave(self.ticks)


class Alike(Fixed):
    """Equal bytes, of which no two are the same object."""

    def begin(self):
        self.left = [bytes([1, 2, 3]) for _ in range(6)]


class Tally(LeavingBolt):
    """How many have come so far, at each."""

    def begin(self):
        self.counts = []

    def process(self, tup):
        assert tup["word"] == b"\x01\x02\x03"
        self.counts.append(len(self.counts) + 1)

    def end_of_input(self):
        self.leave(self.counts)


class FirstTwo(CustomStreamGrouping):
    """NGrouping."""

    def prepare(self, context, component, stream, target_tasks):
        self.tasks = target_tasks[:2]

    def choose_tasks(self, values):
        return self.tasks


class Configured(LeavingBolt):
    """Its class configures it, too; leaves what its ``initialize`` was given."""

    config = {"fake.config": 123, "topology.max.task.parallelism": 20, "topology.max.spout.pending": 30}

    def begin(self):
        kept = ("fake.config", "fake.config2", "fake.topology", *Configured.config)
        self.leave({key: self.config[key] for key in kept})

    def process(self, tup):
        pass


class Slowly(LeavingSpout):
    """Five tuples, more than two within a timeout; leaves their verdicts in order."""

    outputs = ["number"]

    def begin(self):
        self.emitted = 0
        self.gap = 0.375 * self.config[TIMEOUT]
        self.due = time.monotonic()
        self.verdicts = []

    def next_tuple(self):
        if len(self.verdicts) == 5:
            self.finish()
        if self.emitted == 5 or time.monotonic() < self.due:
            return
        self.emitted += 1
        self.due = time.monotonic() + self.gap
        self.emit([self.emitted], tup_id=self.emitted)

    def ack(self, tup_id):
        self.verdicts.append(["ack", tup_id])

    def fail(self, tup_id):
        self.verdicts.append(["fail", tup_id])
        return True

    def close(self):
        self.leave(self.verdicts)


class Patient(LeavingBolt):
    """Holds the first tuple, whose time begins anew with each of the next three; the second is lost."""

    auto_ack = False

    def begin(self):
        self.first = None

    def process(self, tup):
        if tup["number"] == 1:
            self.first = tup
        elif tup["number"] < 5:
            self.reset_timeout(self.first)
        else:
            self.ack(self.first)
        if tup["number"] > 2:
            self.ack(tup)


class Hook(TaskHook):
    def __init__(self):
        self.counts = [0, 0, 0, 0]

    def emit(self, info):
        self.counts[0] += 1

    def bolt_ack(self, info):
        self.counts[1] += 1

    def bolt_fail(self, info):
        self.counts[2] += 1

    def bolt_execute(self, info):
        self.counts[3] += 1


class Hooked(LeavingBolt):
    """Emits what its hook has seen so far, twice; acks and fails in turn."""

    outputs = [Stream(["emitted", "acked", "failed", "executed"]), Stream(["number"], "copy")]
    auto_ack = False

    def begin(self):
        self.hook = Hook()
        self.context.add_task_hook(self.hook)

    def process(self, tup):
        self.emit(tuple(self.hook.counts))
        self.emit([tup["word"]], stream="copy")
        _, acked, failed, _ = self.hook.counts
        if acked == failed:
            self.ack(tup)
        else:
            self.fail(tup)


class Rows(LeavingBolt):
    def begin(self):
        self.rows = []

    def process(self, tup):
        self.rows.append(list(tup.values))

    def end_of_input(self):
        self.leave(self.rows)


class Numbers(LeavingSpout):
    """A thousand tracked rows; leaves how often each was acked, and how the others ended."""

    outputs = ["number"]
    rows = 1000

    def begin(self):
        self.next = 0
        self.acked = Counter()

    def next_tuple(self):
        if self.next == self.rows:
            self.finish()
            return
        self.emit([self.next], tup_id=self.next)
        self.next += 1

    def ack(self, tup_id):
        self.acked[tup_id] += 1

    def close(self):
        self.leave({"acked": len(self.acked), "most": max(self.acked.values()), "open": self.next - len(self.acked)})


class Holds(LeavingBolt):
    """Takes batches whole; keeps tuples, and acks a hundred together, anchored to one row; the rest at the flush."""

    outputs = ["sum"]
    auto_ack = auto_anchor = False

    def begin(self):
        self.held = []
        self.batches = 0

    def process_batch(self, rows):
        self.batches += 1
        for tup in rows:
            self.held.append(tup)
            if len(self.held) == 100:
                self.release()

    def flush(self):
        self.release()

    def release(self):
        if not self.held:
            return
        self.emit([sum(tup["number"] for tup in self.held)], anchors=self.held)
        for tup in self.held:
            self.ack(tup)
        self.held = []

    def end_of_input(self):
        self.leave(self.batches)


class Asynchronous(LeavingBolt):
    """A slow thread of its own works; results come back by ``submit``, the last of them when the task already rests.

    Acking in the thread itself raises.
    """

    outputs = ["sum"]
    auto_ack = False

    def begin(self):
        self.refused = 0
        self.done = self.context.register_metric("done", CountMetric())
        self.given = []
        self.wake = threading.Condition()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def process(self, tup):
        with self.wake:
            self.given.append(tup)
            self.wake.notify()

    def work(self):
        while True:
            with self.wake:
                self.wake.wait_for(lambda: self.given)
                tup = self.given.pop(0)
            if tup is None:
                return
            time.sleep(0.05)
            try:
                self.ack(tup)
            except Exception:
                self.refused += 1
            self.context.submit(lambda tup=tup: self.complete(tup))

    def complete(self, tup):
        self.emit([tup["sum"]], anchors=[tup])
        self.ack(tup)
        self.done.incr()

    def close(self):
        with self.wake:
            self.given.append(None)
            self.wake.notify()
        self.thread.join(5)
        self.leave({"refused": self.refused, "done": self.done.value, "alive": self.thread.is_alive()})


class Sum(LeavingBolt):
    def begin(self):
        self.sum = self.rows = 0

    def process(self, tup):
        self.sum += tup["sum"]
        self.rows += 1

    def end_of_input(self):
        self.leave({"sum": self.sum, "rows": self.rows})


class MiniCluster(Topology):
    words = Fixed.spec()
    counter = WordCounter.spec(inputs={words: Grouping.fields("word")}, par=4)
    overall = GlobalCounter.spec(inputs={words: Grouping.GLOBAL})
    aggregator = GlobalCounter.spec(inputs={counter: Grouping.GLOBAL})

    alike = Alike.spec(par=4)
    tally = Tally.spec(inputs={alike: Grouping.fields("word")}, par=6)

    partial = Rows.spec(inputs={words: Grouping.partial_key("word")}, par=2)
    near = Rows.spec(inputs={words: Grouping.LOCAL_OR_SHUFFLE}, par=2)
    idlest = Rows.spec(inputs={words: Grouping.LOAD_AWARE}, par=2)
    first = Rows.spec(inputs={words: Grouping.custom(FirstTwo)}, par=3)

    one = One.spec()
    everyone = TaskIndexes.spec(
        inputs={one: Grouping.ALL, GlobalStreamId(one, "__system"): Grouping.ALL}, par=3, tasks=6
    )

    configured = Configured.spec(
        inputs=[words], par=4, config={"fake.config2": 987, "topology.max.task.parallelism": 2}
    )

    feeder = Feeder.spec()
    every_other = AckEveryOther.spec(inputs=[feeder], config={"topology.tick.tuple.freq.secs": 0.2})

    slowly = Slowly.spec()
    patient = Patient.spec(inputs=[slowly])

    hooked = Hooked.spec(inputs={words: Grouping.GLOBAL})
    hook_rows = Rows.spec(inputs=[hooked])

    numbers = Numbers.spec()
    holds = Holds.spec(inputs={numbers: Grouping.GLOBAL})
    asynchronous = Asynchronous.spec(inputs=[holds])
    total = Sum.spec(inputs=[asynchronous])

    config = {
        "topology.stmgrs": 2,
        TIMEOUT: 6.0,
        "fake.config": 1,
        "fake.topology": 5,
        "topology.max.spout.pending": 700,
    }
