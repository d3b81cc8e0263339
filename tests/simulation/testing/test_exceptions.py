"""Exceptions of an author's code: what a test hears of them, and what the master says."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from ardea import Bolt, Spout, Stream, Topology, UserError
from ardea.testing import Cluster, CollectBolt, FeederSpout, RowsSpout, run, run_bolt
from ardea.windows import PartialWindows, Sum, Tumbling, WindowBolt

WORDS = [["heron"], ["fish"], ["moon"]]


class Fragile(Bolt):
    outputs = ["word"]

    def process(self, tup):
        if tup["word"] == "fish":
            raise ValueError("no fish here")
        self.emit([tup["word"]])


class Relay(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit([tup["word"]])


class T(Topology):
    words = RowsSpout.of(["word"], WORDS).spec()
    relay = Relay.spec(inputs=[words])
    fragile = Fragile.spec(inputs=[relay])
    config = {"topology.max.tuple.replays": 1}


def test_the_record_has_values_and_the_spouts_tup_id():
    result = run(T)
    assert result.state == "FAILED"
    raised = result.record.exceptions[0]
    assert (raised.task, raised.values, raised.tup_id) == ("fragile-0", ("fish",), 1)
    assert isinstance(raised.error, ValueError)
    assert len(result.record.exceptions) == 2, "it was sent again once"


def test_the_first_exception_is_raised_to_the_test():
    with pytest.raises(ValueError, match="no fish here") as caught:
        run(T, raise_errors=True)
    assert caught.traceback[-1].name == "process"
    with Cluster(T) as cluster:
        cluster.raise_errors = True
        with pytest.raises(ValueError, match="no fish here"):
            cluster.advance(5)


def test_one_that_ends_a_process_is_raised_too():
    class Dies(Relay):
        auto_fail = False

        def initialize(self, config, context):
            raise OSError("no such table")

    class Dying(T):
        relay = Dies.spec(inputs=[T.words])

    with pytest.raises(OSError, match="no such table"):
        run(Dying, raise_errors=True)


def test_a_timeout_names_the_last_exception():
    class Endless(T):
        config = {}

    with Cluster(Endless) as cluster, pytest.raises(TimeoutError, match=r"fragile-0 raised ValueError.*\('fish',\)"):
        cluster.run_until(lambda: cluster.over, 20)


@pytest.mark.parametrize("containers", [1, 2])
def test_the_master_knows_what_the_spout_calls_the_row(containers):
    class Named(type(T.words.cls.__name__, (T.words.cls,), {})):
        def describe_tup_id(self, tup_id):
            return f"line {tup_id}"

    class Again(T):
        words = Named.spec()
        relay = Relay.spec(inputs=[words])
        fragile = Fragile.spec(inputs=[relay])
        config = {}

    with Cluster(Again, containers=containers) as cluster:
        cluster.run_until(lambda: any("line 1" in error for error in cluster.errors), 10)
        (error,) = (error for error in cluster.errors if error.startswith("fragile-0"))
    assert re.fullmatch(
        r"fragile-0 raised ValueError: no fish here at test_exceptions\.py:\d+ "
        r"\(tuple \S+ of relay, stream default: \('fish'\); tree [0-9a-f]{16}\); line 1 of words",
        error,
    )


def broken(tup_id):
    raise LookupError(tup_id)


@pytest.mark.parametrize(
    ("name", "called"),
    [("line {} of the poem".format, "line 1 of the poem"), (broken, "a tup_id that cannot be shown (LookupError)")],
)
def test_a_row_that_is_given_up_is_called_as_its_spout_calls_it(name, called, caplog):
    class Named(T.words.cls):
        def describe_tup_id(self, tup_id):
            return name(tup_id)

    class Once(T):
        words = Named.spec()
        relay = Relay.spec(inputs=[words])
        fragile = Fragile.spec(inputs=[relay])

    result = run(Once)
    assert f"words-0: {called} failed 2 times, more than topology.max.tuple.replays lets it" in result.reason
    assert f"{called} of stream default failed 2 times: given up" in caplog.text
    assert result.record.errors == []


@pytest.mark.parametrize("decides", [True, False])
def test_a_row_of_columns_that_cannot_be_sent_is_called_so_too(decides):
    """And an author who decides hears of its id as it was written, not of NumPy's."""
    told = []

    class Long(Spout):
        outputs = ["line"]

        def next_tuple(self):
            self.emit_batch(pa.record_batch({"line": ["a", "b" * 5000]}), range(10, 12))
            self.finish()

        def describe_tup_id(self, tup_id):
            return f"line {tup_id!r} of the poem"

    class Deciding(Long):
        def fail(self, tup_id):
            told.append(tup_id)

    class Poem(Topology):
        lines = (Deciding if decides else Long).spec()
        reader = CollectBolt.spec(inputs=[lines])
        config = {"topology.max.tuple.bytes": 1000}

    reason = run(Poem).reason
    assert ("fail() of line 11 of the poem did not return True" if decides else "(line 11 of the poem)") in reason
    assert [type(tup_id) for tup_id in told] == [int] * decides


class Counts(Bolt):
    outputs = ["word", "count"]

    def initialize(self, config, context):
        self.least = config.get("least", 0)
        self.counts = {}

    def process(self, tup):
        self.counts[tup["word"]] = self.counts.get(tup["word"], 0) + 1

    def end_of_input(self):
        for row in self.counts.items():
            if row[1] >= self.least:
                self.emit(row)


def test_run_bolt():
    rows = [{"word": "heron"}, {"word": "fish"}, {"word": "heron"}]
    assert run_bolt(Counts, rows) == [("heron", 2), ("fish", 1)]
    assert run_bolt(Counts, [["heron"]], fields=["word"]) == [("heron", 1)]
    assert run_bolt(Counts, rows, config={"least": 2}) == [("heron", 2)]
    assert run_bolt(Counts, [], fields=["word"]) == []
    with pytest.raises(ValueError, match="no fish here"):
        run_bolt(Fragile, rows)


class Sets(Relay):
    outputs = ["word", Stream(["word"], "odd")]
    stream = "default"

    def end_of_input(self):
        self.emit([{1, 2}], stream=self.stream)


@pytest.mark.parametrize("stream", ["default", "odd"])
def test_run_bolt_refuses_a_row_that_cannot_be_sent(stream):
    with pytest.raises(UserError, match=rf"FAILED: .* stream {stream}, field word: a value of type set cannot be sent"):
        run_bolt(type("Sets", (Sets,), {"stream": stream}), [{"word": "heron"}])


def test_run_bolt_of_direct_streams_and_of_what_only_windows_read():
    class Direct(Relay):
        outputs = [Stream(["word"], "mine", direct=True)]

        def initialize(self, config, context):
            (reader,) = context.this_targets["mine"]
            self.target = context.component_tasks(reader)[0]

        def process(self, tup):
            self.emit([tup["word"]], stream="mine", direct_task=self.target)

    class Minutes(WindowBolt):
        windows = Tumbling("1 min", on="at", fold=Sum("n"))

    class Parts(PartialWindows):
        outputs = ["at", "n", "part"]
        of = Minutes

    assert run_bolt(Direct, [{"word": "heron"}]) == []
    assert len(run_bolt(Parts, [{"at": 1.0, "n": 2}])) == 1


def test_a_timeout_has_the_last_errors_of_rows_that_cannot_be_sent():
    class Sometimes(Relay):
        def process(self, tup):
            self.emit([tup["word"]] * (2 if tup["word"] == "fish" else 1))

    with pytest.raises(TimeoutError, match=r"a tuple has 2 values, the stream declares 1 \(word\)"):
        run_bolt(Sometimes, [{"word": "heron"}, {"word": "fish"}])


@pytest.mark.parametrize("rows", [[], [["heron"]], [{"word": "heron"}, {"wrod": "fish"}]])
def test_run_bolt_wants_the_names_of_the_fields(rows):
    with pytest.raises(UserError, match="fields"):
        run_bolt(Counts, rows)


def test_a_mistake_that_every_tuple_meets_ends_the_topology_at_once():
    class Wrong(Relay):
        def process(self, tup):
            self.emit([tup["wrod"]])

    class Mistaken(T):
        relay = Wrong.spec(inputs=[T.words])
        config = {}

    result = run(Mistaken)
    assert result.state == "FAILED"
    assert result.record.errors
    assert len(result.record.exceptions) == 0
    assert re.fullmatch(
        r"relay-0 cannot go on: a tuple of stream 'default' of component 'words' has no field 'wrod'; "
        r"its fields are word at test_exceptions\.py:\d+",
        result.reason,
    )


def test_a_task_that_has_worked_fails_such_a_tuple_only():
    class Sometimes(Relay):
        def process(self, tup):
            self.emit([tup["wrod" if tup["word"] == "fish" else "word"]])

    class Mistaken(T):
        relay = Sometimes.spec(inputs=[T.words])
        config = {}

    with Cluster(Mistaken) as cluster:
        cluster.advance(10)
        assert cluster.state == "RUNNING"
        assert sorted(cluster.record.acked["words"]) == [0, 2]


def test_a_spout_whose_rows_cannot_travel_ends_the_topology_at_once():
    class Odd(Spout):
        outputs = ["word"]

        def next_tuple(self):
            self.emit([object()], tup_id=1)

    class Mistaken(T):
        words = Odd.spec()
        relay = Relay.spec(inputs=[words])
        fragile = Fragile.spec(inputs=[relay])
        config = {}

    result = run(Mistaken)
    assert result.state == "FAILED"
    assert "words-0 cannot go on: component words, stream default, field word: a value of type object" in result.reason


def test_a_bolt_that_returns_its_row_is_told():
    class Returns(Relay):
        def process(self, tup):
            return [tup["word"]]

    class Mistaken(T):
        relay = Returns.spec(inputs=[T.words])

    with Cluster(Mistaken) as cluster:
        cluster.run_until(lambda: cluster.errors, 10)
        assert cluster.errors == ["relay-0: process() returned list, which nobody reads: emit rows with self.emit(...)"]


class Hopeless(Bolt):
    auto_fail = False

    def process(self, tup):
        raise UserError("there is no such table")


class Hopelessly(Topology):
    words = FeederSpout.of("word").spec()
    hopeless = Hopeless.spec(inputs=[words])


def kill_twice(cluster):
    for _ in range(2):
        cluster.run_until(lambda: "master" in cluster.running)
        cluster.kill("master")


@pytest.mark.parametrize("away", [kill_twice, lambda cluster: cluster.network.cut("master", "state")])
def test_one_that_fails_the_topology_waits_for_a_master_that_can_write_it(away):
    with Cluster(Hopelessly) as cluster:
        cluster.advance(1)
        away(cluster)
        cluster.task("words-0", FeederSpout).feed(["fish"])
        cluster.run_until(lambda: cluster.record.errors, 1)
        assert cluster.state == "RUNNING"
        cluster.advance(0.5)
        cluster.network.heal("master", "state")
        cluster.run_until(lambda: cluster.over)
        assert cluster.state == "FAILED"
        assert "hopeless-0 cannot go on: there is no such table" in cluster.reason
