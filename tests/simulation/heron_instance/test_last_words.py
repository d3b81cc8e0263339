"""What user code does at the end of a topology, and behind it."""

from __future__ import annotations

import pytest

from ardea import Bolt, CustomStreamGrouping, Grouping, Spout, Topology
from ardea.testing import Cluster, CollectBolt, run

ROWS = [[n] for n in range(5)]


class Source(Spout):
    outputs = ["n"]

    def next_tuple(self):
        for n in range(5):
            self.emit([n], tup_id=n)
        self.finish()


class Passes(Bolt):
    outputs = ["n"]

    def process(self, tup):
        self.emit([tup[0]])


def topology(source, passes):
    class Ending(Topology):
        spout = source.spec()
        bolt = passes.spec(inputs=[spout])
        sink = CollectBolt.spec(inputs=[bolt])

    return Ending


def raising(cls, name):
    def method(self):
        raise ValueError("cannot")

    return type("Raising", (cls,), {name: method})


def raising_at_the_end(cls):
    class Raising(cls):
        ended = False

        def end_of_input(self):
            self.ended = True

        def flush(self):
            if self.ended:
                raise ValueError("cannot")

    return Raising


@pytest.mark.parametrize(
    ("source", "passes"),
    [
        (raising(Source, "close"), Passes),
        (Source, raising(Passes, "close")),
        (Source, raising(Passes, "end_of_input")),
        (Source, raising_at_the_end(Passes)),
    ],
)
def test_who_dies_as_it_ends_fails_the_topology_with_its_reason(source, passes):
    """A spout would be started again, be told the end again, and die of it again."""
    result = run(topology(source, passes), until=60)
    assert result.state == "FAILED"
    assert "died as it ended: ValueError: cannot at test_last_words.py:" in result.reason


class Last(Passes):
    """Emits at the end, when its reader has flushed already."""

    def end_of_input(self):
        self.emit([5])


class Holds(Passes):
    """Passes on in ``flush`` what it has taken."""

    def initialize(self, config, context):
        self.held = []

    def process(self, tup):
        self.held.append(tup[0])

    def flush(self):
        for n in self.held:
            self.emit([n])
        self.held = []


@pytest.mark.parametrize("mode", ["ATMOST_ONCE", "ATLEAST_ONCE"])
def test_rows_that_come_with_the_end_are_flushed(mode):
    class Ending(Topology):
        spout = Source.spec()
        last = Last.spec(inputs=[spout])
        holds = Holds.spec(inputs=[last])
        sink = CollectBolt.spec(inputs=[holds])

    result = run(Ending, config={"topology.reliability.mode": mode})
    assert (result.state, result.inputs("sink")) == ("SUCCEEDED", [(n,) for n in range(6)])


class SpeaksLate:
    def close(self):
        for n in range(6000):  # more than leave inside one call
            self.emit([n])


@pytest.mark.parametrize("late", ["spout", "bolt"])
def test_what_is_emitted_in_close_goes_nowhere_and_is_not_passed_over(late):
    source = type("Late", (SpeaksLate, Source), {}) if late == "spout" else Source
    passes = type("Late", (SpeaksLate, Passes), {}) if late == "bolt" else Passes
    result = run(topology(source, passes))
    assert result.state == "FAILED"
    assert result.reason.startswith("6,000 tuples were given up; the last error: ")
    assert "tuples were emitted in close(), behind the end of the stream" in result.reason
    assert result.inputs("sink") == [(n,) for n in range(5)]


def test_what_is_submitted_at_the_end_does_not_run_behind_close():
    calls = []

    class Submits(Passes):
        def initialize(self, config, context):
            self.context = context

        def end_of_input(self):
            self.context.submit(lambda: calls.append("submitted"))

        def close(self):
            calls.append("close")

    assert run(topology(Source, Submits)).state == "SUCCEEDED"
    assert calls == ["close"]


class Twice(CustomStreamGrouping):
    def prepare(self, context, component, stream, target_tasks):
        self.tasks = list(target_tasks)

    def choose_tasks(self, values):
        return [self.tasks[0], self.tasks[0]] if values[0] == 0 else [self.tasks[1]]


@pytest.mark.parametrize("asks", [False, True])
def test_a_task_that_is_chosen_twice_gets_both(asks):
    """Also of as many rows as it is chosen for in all."""

    class Asks(Source):
        def next_tuple(self):
            for n in range(2):
                self.emit([n], tup_id=n, need_task_ids=asks)
            self.finish()

    class Chosen(Topology):
        spout = Asks.spec()
        sink = CollectBolt.spec(par=2, inputs={spout: Grouping.custom(Twice)})

    result = run(Chosen)
    first, second = sorted({row.task for row in result.received["sink"]})
    assert sorted((row.task, row.values) for row in result.received["sink"]) == [
        (first, (0,)),
        (first, (0,)),
        (second, (1,)),
    ]


class Sticky(CustomStreamGrouping):
    """Remembers where each key went."""

    prepared = 0

    def prepare(self, context, component, stream, target_tasks):
        type(self).prepared += 1
        self.tasks = list(target_tasks)
        self.known = {}

    def choose_tasks(self, values):
        return [self.known.setdefault(values[0], self.tasks[len(self.known) % len(self.tasks)])]


def test_a_custom_grouping_keeps_what_it_knows_while_its_tasks_stay():
    """Others come into the emitter's container, which matters to local-or-shuffle only."""

    class Endless(Spout):
        outputs = ["n"]
        n = 0

        def next_tuple(self):
            self.n += 1
            self.emit([self.n % 7], tup_id=self.n)

    class Growing(Topology):
        spout = Endless.spec()
        sink = CollectBolt.spec(par=2, inputs={spout: Grouping.custom(Sticky)})
        other = CollectBolt.spec(inputs=[spout])

    with Cluster(Growing, cost={"spout": 0.01}) as cluster:
        cluster.advance(2)
        Sticky.prepared = 0
        cluster.updated(cluster.update_request(parallelism={"other": 3}))
        cluster.advance(2)
        assert Sticky.prepared == 0
