"""Rows that cannot be sent: a definite error that names component, stream, field and type; their neighbours go on."""

from __future__ import annotations

import pytest

from ardea import Bolt, Grouping, Spout, Stream, TaskHook, Topology
from ardea.testing import Cluster, CollectBolt, RowsSpout, run

BAD = {
    "type": ([1, {1, 2}], "component spout, stream default, field word: a value of type set cannot be sent"),
    "nested": ([1, [object()]], "component spout, stream default, field word: a value of type object cannot be sent"),
    "size": ([1, b"x" * 20_000_000], "component spout, stream default: a tuple of 20,000,"),
    "few": ([1], "component spout, stream default: a tuple has 1 values, the stream declares 2 (n, word)"),
    "many": ([1, 2, 3], "component spout, stream default: a tuple has 3 values, the stream declares 2 (n, word)"),
    "text": (
        "ab",
        "component spout, stream default: a value of type str was emitted; a row is a list or a tuple of values",
    ),
    "bytes": (
        b"ab",
        "component spout, stream default: a value of type bytes was emitted; a row is a list or a tuple of values",
    ),
    "dict": (
        {1: 2, 3: 4},
        "component spout, stream default: a value of type dict was emitted; a row is a list or a tuple of values",
    ),
    "number": (
        5,
        "component spout, stream default: a value of type int was emitted; a row is a list or a tuple of values",
    ),
}


def spout_with(bad):
    """Forty rows with one of these in the middle, all tracked, out of one call."""

    class Source(Spout):
        outputs = ["n", "word"]

        def next_tuple(self):
            for n in range(40):
                self.emit(bad if n == 20 else [n, "good"], tup_id=n)
            self.finish()

    return Source


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("par", [1, 2])
def test_a_spouts_row(case, par, caplog):
    """It is given up: the topology ends FAILED and says why; the rows before and behind it are acked."""
    row, problem = BAD[case]

    class Refusing(Topology):
        spout = spout_with(row).spec()
        sink = CollectBolt.spec(par=par, inputs=[spout])

    result = run(Refusing)
    others = [n for n in range(40) if n != 20]
    assert sorted(values[0] for values in result.inputs("sink")) == others
    assert sorted(result.acked["spout"]) == others
    assert result.state == "FAILED"
    assert problem in result.reason
    assert "1 " in result.reason
    assert any(problem in record.getMessage() and "tup_id 20" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("stream", ["default", "more"])
def test_a_bolts_row(case, stream, caplog):
    """The tuple it was anchored to fails, and only that; the log says which it was."""
    row, problem = BAD[case]

    class Emits(Bolt):
        outputs = [Stream(["n", "word"]), Stream(["n", "word"], "more")]

        def initialize(self, config, context):
            self.failed = False

        def process(self, tup):
            if tup["n"] == 20 and not self.failed:
                self.failed = True
                self.emit(row, stream=stream)
            self.emit([tup["n"], "good"])

    class Refusing(Topology):
        spout = RowsSpout.of(["n"], [[n] for n in range(40)]).spec("source")
        middle = Emits.spec("spout", inputs=[spout])  # so that the expected messages hold
        sink = CollectBolt.spec(inputs=[middle, middle["more"]])

    result = run(Refusing)
    assert result.failed["source"] == [20]
    assert sorted(result.acked["source"]) == list(range(40))
    assert result.state == "FAILED"
    problem = problem.replace("stream default", f"stream {stream}")
    assert problem in result.reason
    assert any(problem in r.getMessage() and "of source" in r.getMessage() for r in caplog.records)


def test_a_key_that_cannot_be_hashed():
    """The error names the field of the key; others with good keys go on."""
    from ardea import Grouping

    class Keyed(Topology):
        spout = spout_with([20, [{1: 2}, {3}]]).spec()
        sink = CollectBolt.spec(par=2, inputs={spout: Grouping.fields("n")})

    result = run(Keyed)
    assert (result.state, len(result.acked["spout"])) == ("FAILED", 39)
    assert "component spout, stream default, field word" in result.reason


def test_nothing_of_a_refused_row_stays_open():
    """A bolt that cannot send the row for any replay: each attempt is a definite fail, none times out."""

    class Never(Bolt):
        outputs = ["n"]

        def process(self, tup):
            self.emit([object()])

    class Hopeless(Topology):
        spout = RowsSpout.of(["n"], [[1]]).spec()
        middle = Never.spec(inputs=[spout])
        sink = CollectBolt.spec(inputs=[middle])
        config = {"topology.max.tuple.replays": 100}  # else the third one ends the topology

    with Cluster(Hopeless) as cluster:
        cluster.advance(15)
        assert len(cluster.record.failed["spout"]) == 8  # after 0, 0.1, 0.2, 0.5, 1, 2, 5 s
        assert not cluster.record.timed_out["spout"]


def test_an_author_who_decides_on_fails_hears_of_a_refused_row():
    """Once, and may send something else; nothing is given up then."""

    class Careful(spout_with([1, {1, 2}])):
        def initialize(self, config, context):
            self.asked = []

        def fail(self, tup_id):
            self.asked.append(tup_id)
            self.emit([tup_id, "instead"], tup_id="instead")
            self.finish()
            return True

    class Refusing(Topology):
        spout = Careful.spec()
        sink = CollectBolt.spec(inputs=[spout])

    Refusing.spout.cls.next_tuple = once(Refusing.spout.cls.next_tuple)
    result = run(Refusing)
    assert (result.state, result.reason) == ("SUCCEEDED", "")
    assert sorted(result.inputs("sink")) == sorted([(n, "good") for n in range(40) if n != 20] + [(20, "instead")])
    assert result.acked["spout"].count("instead") == 1


def once(method):
    """Calls it the first time only; it was finished then."""
    called = []

    def only_once(self):
        if called:
            self.finish()
        else:
            called.append(True)
            method(self)

    return only_once


@pytest.mark.parametrize("case", ["few", "many", "type", "nested", "size"])
def test_a_row_whose_tasks_are_asked_for(case):
    """As any other: it is refused as it leaves, its tasks are none, or what it would have had."""
    told = []

    class Source(Spout):
        outputs = ["n", "word"]

        def next_tuple(self):
            for n in range(40):
                bad = BAD[case][0]
                told.append(self.emit(bad if n == 20 else [n, "good"], tup_id=n, need_task_ids=True))
            self.finish()

    class Asking(Topology):
        spout = Source.spec()
        sink = CollectBolt.spec(par=2, inputs={spout: Grouping.fields("n")})

    result = run(Asking)
    others = [n for n in range(40) if n != 20]
    assert sorted(values[0] for values in result.inputs("sink")) == others
    assert sorted(result.acked["spout"]) == others
    assert result.state == "FAILED"
    assert BAD[case][1].partition(": ")[2] in result.reason
    assert all(len(tasks) == 1 for n, tasks in enumerate(told) if n != 20)


def test_hooks_change_nothing_for_a_row_without_a_key():
    class Source(Spout):
        outputs = ["n"]

        def initialize(self, config, context):
            context.add_task_hook(TaskHook())

        def next_tuple(self):
            for n in range(5):
                self.emit([{n}] if n == 2 else [n], tup_id=n)
            self.finish()

    class Hooked(Topology):
        spout = Source.spec()
        sink = CollectBolt.spec(par=2, inputs={spout: Grouping.fields("n")})

    result = run(Hooked)
    assert sorted(result.acked["spout"]) == [0, 1, 3, 4]
    assert result.reason.count("component spout, stream default") == 1


def test_a_small_limit_holds_for_small_rows_too():
    """The batch is far below its own limit; its good rows travel."""

    class Limited(Topology):
        spout = RowsSpout.of(["n", "text"], [[n, "x" * (5000 if n == 2 else 500)] for n in range(5)]).spec()
        sink = CollectBolt.spec(inputs=[spout])
        config = {"topology.max.tuple.bytes": 1000}

    result = run(Limited)
    assert sorted(result.acked["spout"]) == [0, 1, 3, 4]
    assert "is larger than topology.max.tuple.bytes (1,000)" in result.reason
