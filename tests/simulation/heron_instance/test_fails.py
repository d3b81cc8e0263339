"""What becomes of rows whose trees fail: sent again by the executor, or as ``fail`` says; and of errors beside rows."""

from __future__ import annotations

import re

import pytest

from ardea import Bolt, FailedException, Grouping, Spout, Timers, Topology
from ardea.testing import Cluster, RowsSpout, run

BACKOFF = [0, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 30]


class Fails(Bolt):
    """Fails rows below ``below`` as often as ``times``, and notes when they came."""

    below, times = 1, 1

    def initialize(self, config, context):
        self.came = {}
        self.now = lambda: 0.0

    def process(self, tup):
        came = self.came.setdefault(tup[0], [])
        came.append(self.now())
        if tup[0] < self.below and len(came) <= self.times:
            self.fail(tup)


def failing(spout, **attributes):
    source = spout.spec("spout")
    sink = type("Fails", (Fails,), attributes).spec("sink", inputs=[source])
    return type("Failing", (Topology,), {"a": source, "b": sink})


@pytest.mark.parametrize("containers", [1, 2])
def test_the_executor_sends_again_with_growing_pauses(containers):
    """0, 0.1, 0.2 ... 30 s, by the row's own count; the others are not held up; the id is the same each time."""
    heard = []

    class Source(RowsSpout.of(["n"], [[n] for n in range(5)])):
        def ack(self, tup_id):
            heard.append(tup_id)

    with Cluster(failing(Source, times=11), containers=containers) as cluster:
        cluster.run_until(lambda: cluster.record.inputs("sink"))
        sink = cluster.task("sink-0", Fails)
        sink.now = lambda: cluster.time
        cluster.run_until(lambda: cluster.state == "SUCCEEDED", 300)
        pauses = [after - before for before, after in zip(sink.came[0][1:], sink.came[0][2:], strict=False)]
    assert len(sink.came[0]) == 12
    assert pauses == pytest.approx(BACKOFF[1:], abs=0.02)
    assert cluster.record.failed["spout"] == [0] * 11
    assert heard[:4] == [1, 2, 3, 4]
    assert heard[4:] == [0]


@pytest.mark.parametrize(("answer", "given_up"), [(True, 0), (None, 3), (False, 3), (1, 3), ("again", 3)])
def test_what_fail_returns(answer, given_up):
    """True: it is taken care of.  Anything else gives the row up, and the topology ends FAILED with the number."""
    heard = []

    class Decides(RowsSpout.of(["n"], [[n] for n in range(10)])):
        def fail(self, tup_id):
            heard.append(tup_id)
            return answer

    result = run(failing(Decides, below=3))
    assert sorted(heard) == sorted(result.failed["spout"]) == [0, 1, 2]
    assert sorted(n for (n,) in result.inputs("sink")) == list(range(10)), "a row was sent again"
    assert result.state == ("FAILED" if given_up else "SUCCEEDED")
    if given_up:
        assert result.reason.startswith("3 tuples were given up; the last error: spout-0: fail(")
        assert "did not return True" in result.reason


def test_a_row_that_fail_emits_again_under_another_id():
    """The new tree counts, the old one does not."""

    class Renames(RowsSpout.of(["n"], [[n] for n in range(10)])):
        def fail(self, tup_id):
            self.emit([tup_id], tup_id=("again", tup_id))
            return True

    result = run(failing(Renames, below=2))
    assert result.state == "SUCCEEDED"
    assert set(result.acked["spout"]) == {("again", 0), ("again", 1), *range(2, 10)}


def test_fail_that_raises_ends_the_task():
    """An error of the author's: the process ends and is started again, as for any other method."""
    raised = []

    class Raises(RowsSpout.of(["n"], [[n] for n in range(4)])):
        def fail(self, tup_id):
            if not raised:
                raised.append(tup_id)
                raise RuntimeError("fail is broken")
            return True

    result = run(failing(Raises))
    assert result.state == "SUCCEEDED"
    assert [(name, str(error)) for name, error in result.record.errors] == [("spout-0", "fail is broken")]
    assert set(result.acked["spout"]) >= {1, 2, 3}


def test_timed_out_trees_are_sent_again_too():
    """What nobody acks in time comes again, with its id, and counts apart from fails."""

    class Forgets(Bolt):
        auto_ack = False

        def initialize(self, config, context):
            self.seen = set()

        def process(self, tup):
            if tup[0] in self.seen:
                self.ack(tup)
            self.seen.add(tup[0])

    class Forgetting(Topology):
        spout = RowsSpout.of(["n"], [[n] for n in range(5)]).spec()
        sink = Forgets.spec(inputs=[spout])
        config = {"topology.message.timeout.secs": 3}

    result = run(Forgetting)
    assert (result.state, sorted(result.acked["spout"])) == ("SUCCEEDED", list(range(5)))
    assert sorted(result.record.timed_out["spout"]) == list(range(5))
    assert not result.failed["spout"]
    assert len(result.inputs("sink")) == 10


@pytest.mark.parametrize("error", [FailedException, ValueError])
@pytest.mark.parametrize("where", ["initialize", "on_timer", "process_tick"])
def test_what_is_raised_beside_tuples_ends_the_process_and_it_is_started_again(where, error):
    lives = []

    class Raises(Bolt):
        config = {"topology.tick.tuple.freq.secs": 1}
        timers = Timers()

        def initialize(self, config, context):
            lives.append(self)
            self.raises("initialize")

        def process(self, tup):
            self.timers.set(0, 0.0)

        def on_timer(self, name, key, at):
            self.raises("on_timer")

        def process_tick(self, tup):
            self.raises("process_tick")

        def raises(self, method):
            if method == where and len(lives) == 1:
                raise error("not now")

    class Made(Topology):
        rows = RowsSpout.of(["n"], [[0]] * 20).spec()
        bolt = Raises.spec(inputs={rows: Grouping.fields("n")})

    result = run(Made, cost={"rows": 0.2})
    assert (result.state, [type(each) for _, each in result.record.errors]) == ("SUCCEEDED", [error])
    assert len(lives) == 2


@pytest.mark.parametrize(("error", "told"), [(FailedException, 0), (ValueError, 3)])
def test_a_failed_exception_fails_its_tuple_quietly(error, told, caplog):
    class Raises(Bolt):
        def initialize(self, config, context):
            self.seen = set()

        def process(self, tup):
            if tup[0] not in self.seen:
                self.seen.add(tup[0])
                raise error

    class Raising(Topology):
        spout = RowsSpout.of(["n"], [[n] for n in range(3)]).spec()
        bolt = Raises.spec(inputs=[spout])

    assert len(run(Raising).failed["spout"]) == 3
    said = [record.getMessage() for record in caplog.records]
    assert sum("failed on tuple" in message for message in said) == told
    named = [
        message
        for message in said
        if re.match(r"bolt-0 failed on tuple \S+ of spout, stream default: \(\d\); tree [0-9a-f]{16}:\n", message)
    ]
    assert len(named) == told, "component, task and the tuple's origin, in one message"
    assert all("test_fails.py" in message and message.endswith("ValueError") for message in named)


@pytest.mark.parametrize("mode", [{"topology.reliability.mode": "ATMOST_ONCE"}, {"topology.acker.executors": 0}])
def test_without_acking_nothing_fails(mode):
    """Acked at the emit: neither ``fail`` nor a replay."""
    heard = []

    class Hears(RowsSpout.of(["n"], [[n] for n in range(10)])):
        def ack(self, tup_id):
            heard.append(tup_id)

        def fail(self, tup_id):
            raise AssertionError(tup_id)

    topology = failing(Hears, below=10, times=100)
    result = run(topology, config=mode)
    assert (result.state, heard, len(result.inputs("sink"))) == ("SUCCEEDED", list(range(10)), 10)


@pytest.mark.parametrize("number", [1, 4])
def test_any_number_of_ackers_tracks(number):
    """Storm's number of acker tasks: here each container with spouts has its ledger."""
    topology = failing(RowsSpout.of(["n"], [[n] for n in range(10)]), below=10, times=1)
    result = run(topology, config={"topology.acker.executors": number})
    assert (len(result.failed["spout"]), sorted(result.acked["spout"])) == (10, list(range(10)))


def test_a_spout_may_finish_again_where_it_hears_of_a_fail():
    """It has sent the row again by then, and has nothing more."""

    class Again(Spout):
        outputs = ["n"]
        calls = 0

        def next_tuple(self):
            self.calls += 1
            self.emit([0], tup_id=0)
            self.finish()

        def fail(self, tup_id):
            self.emit([tup_id], tup_id=tup_id)
            self.finish()
            return True

    with Cluster(failing(Again, times=2)) as cluster:
        cluster.run_until(lambda: cluster.record.inputs("sink"))
        spout = cluster.task("spout-0", Again)
        cluster.run_until(lambda: cluster.state == "SUCCEEDED", 60)
        assert spout.calls == 1
        assert cluster.record.failed["spout"] == [0, 0]
        assert cluster.record.acked["spout"] == [0]


def test_an_error_names_its_row_however_many_fail():
    """Bolt and spout each tell the master of few: of the same ones."""

    class Refuses(Bolt):
        def process(self, tup):
            raise ValueError("no")

    class Refused(Topology):
        numbers = RowsSpout.of(["n"], [[n] for n in range(800)]).spec()
        refuses = Refuses.spec(inputs=[numbers])

    with Cluster(Refused, cost={"refuses": 0.005}) as cluster:
        cluster.advance(3)
        looks = []
        for _ in range(20):
            cluster.advance(0.45)
            looks += cluster.errors
    assert len(looks) == 20
    assert [error for error in looks if "tup_id" not in error] == []
    assert len(set(looks)) > 5
