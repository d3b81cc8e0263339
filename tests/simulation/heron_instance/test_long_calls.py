"""Rows leave while the call that emitted them goes on, and a turn ends once a slice has passed."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea import Bolt, CustomStreamGrouping, Grouping, Spout, Stream, Topology
from ardea.heron_instance.long_calls import EVERY, Lookout, Sender
from ardea.protocol.wire_pb2 import VERDICTS, Header
from ardea.testing import CollectBolt, RowsSpout, run
from tests.unit.heron_instance.bench import Bench

NUMBERS = RowsSpout.of(["n"], []).spec("numbers")


def line(component):
    """A topology of one of these and a sink; a bolt reads numbers."""
    if issubclass(component, Spout):
        made = component.spec("made")
        return type("Line", (Topology,), {"made": made, "sink": CollectBolt.spec("sink", inputs=[made])})
    made = component.spec("made", inputs=[NUMBERS])
    sink = CollectBolt.spec("sink", inputs=[made, made["other"]] if issubclass(component, TwoStreamed) else [made])
    return type("Line", (Topology,), {"numbers": NUMBERS, "made": made, "sink": sink})


def bench(component, **config):
    source = "numbers" if issubclass(component, Bolt) else None
    return Bench(line(component), "made", source, **config)


class Slow(Spout):
    """Emits, then works for a long time."""

    outputs = ["n"]
    n = 0

    def next_tuple(self):
        self.n += 1
        self.emit([self.n], self.n)
        self.bench.now += 0.3


class Endless(Spout):
    """Never returns by itself."""

    outputs = ["n"]

    def next_tuple(self):
        for n in range(3):
            self.emit([n], n)
            self.bench.passes(1.0)
            self.seen.append(self.bench.left())


class TwoStreams(Endless):
    outputs = ["n", Stream(["n"], name="other")]


class FastThenSlow(Spout):
    outputs = ["n"]
    n = 0

    def next_tuple(self):
        self.n += 1
        self.emit([self.n], self.n)
        self.bench.passes(1e-6 if self.n <= 5000 else 0.3)


def test_the_first_turn_of_a_spout_is_one_call():
    made = bench(Slow)
    made.turn()
    assert made.left() == [(1,)]


@pytest.mark.parametrize("component", [Endless, TwoStreams])
@pytest.mark.parametrize("tracked", [1, 0])
def test_what_a_spout_emits_leaves_inside_the_call(component, tracked):
    made = bench(component, **{"topology.acker.executors": tracked})
    made.component.seen = []
    made.turn()
    assert made.component.seen == [[(0,)], [(0,), (1,)], [(0,), (1,), (2,)]]
    assert made.left() == [(0,), (1,), (2,)]
    assert made.executor.runner.open_rows == 3 * tracked
    assert sum(buffer.emitted for buffer in made.executor.task_output.buffers.values()) == 3


def test_a_turn_ends_once_a_slice_has_passed():
    made = bench(FastThenSlow, **{"topology.acker.executors": 0})
    while made.component.n <= 5000:
        made.turn()
    made.turn()
    before = made.component.n
    made.turn()
    assert made.component.n == before + 1
    assert len(made.left()) == made.component.n


def test_when_somebody_looks_again():
    made = bench(Slow)
    look = made.executor.user_code.look
    assert look(made.now) == math.inf  # in no call
    with made.executor.user_code:
        assert look(made.now) == math.inf  # which is short so far
        assert made.passes(1.0) == made.now + EVERY
    assert look(made.now) == math.inf


class Sleeper(Bolt):
    outputs = ["n"]

    def process(self, tup):
        self.emit([tup[0]])
        self.bench.passes(5.0)
        self.seen.append(self.bench.left())


class Batches(Sleeper):
    def process_batch(self, rows):
        for tup in rows:
            self.process(tup)


class Columns(Sleeper):
    column_types = {"n": "int64"}

    def process_columns(self, columns):
        for n in columns["n"].to_pylist():
            self.process([n])


class Hooked(Sleeper):
    outputs = ["n", Stream(["n"], name="other")]


@pytest.mark.parametrize("component", [Sleeper, Batches, Columns, Hooked])
def test_what_a_bolt_emits_leaves_inside_the_call_and_hangs_on_its_trees(component):
    made = bench(component)
    made.component.seen = []
    roots = made.arrives([(7,), (8,)])
    for _ in range(3):
        made.turn()
    assert made.component.seen == [[(7,)], [(7,), (8,)]]
    assert_complete(made.edges(), roots)


class Ticks(Bolt):
    outputs = ["n"]

    def process(self, tup):
        """Nothing."""

    def process_tick(self, tup):
        self.emit([1])
        self.bench.passes(5.0)
        self.seen = self.bench.left()


def test_what_is_emitted_in_a_tick_leaves_inside_it():
    made = bench(Ticks, **{"topology.tick.tuple.freq.secs": 1})
    made.turn()
    made.now += 1
    made.turn()
    assert made.component.seen == [(1,)]


def test_no_more_tuples_once_a_slice_has_passed():
    made = bench(Sleeper, **{"topology.executor.slice.ms": 4000})
    made.component.seen = []
    made.arrives([(n,) for n in range(100)])
    made.turn()
    assert len(made.component.seen) == 1
    while made.executor.runner.busy:
        made.turn()
    assert made.left() == [(n,) for n in range(100)]


def test_nothing_leaves_while_too_much_waits_for_credit():
    made = bench(Endless)
    made.component.seen = []
    made.output.held_bytes = 1 << 40
    made.turn()
    assert made.component.seen == [[], [], []]


class Bad(Spout):
    """One of its rows cannot be sent."""

    outputs = ["n"]
    told = ()

    def next_tuple(self):
        for n in (1, object(), 3):
            self.emit([n], str(n)[:3])
        self.bench.passes(1.0)
        self.seen = self.bench.left(), self.told
        self.finish()

    def fail(self, tup_id):
        self.told += (tup_id,)
        return False


def test_a_row_that_cannot_be_sent_does_not_hold_up_its_neighbours_and_its_author_hears_of_it_later():
    made = bench(Bad)
    made.turn()
    assert made.component.seen == ([(1,), (3,)], ())
    made.now += 1
    made.turn()
    assert made.component.told == ("<ob",)


class Fails(Spout):
    """What it emits in ``fail`` leaves inside that."""

    outputs = ["n"]

    def next_tuple(self):
        self.emit([5], 5)
        self.finish()

    def fail(self, tup_id):
        self.emit([tup_id], tup_id)
        self.bench.passes(1.0)
        self.seen = self.bench.left()
        return True


def test_what_a_spout_emits_when_it_hears_of_a_fail_leaves_inside_that_call():
    made = bench(Fails)
    made.turn()
    ((_, root, _),) = made.edges()
    made.output.messages.clear()
    made.executor.handle((Header(kind=VERDICTS), [b"", root.to_bytes(8, "little"), b"", b""]))
    assert made.component.seen == [(5,)]
    assert made.executor.runner.waiting_rows == 0


class Raises(CustomStreamGrouping):
    calls = 0
    error: type[BaseException]

    def prepare(self, context, component, stream, targets):
        self.targets = targets

    def choose_tasks(self, values):
        Raises.calls += 1
        if Raises.calls < 3:
            raise Raises.error("not now")
        return [self.targets[0]]


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_a_grouping_that_raises_leaves_the_rows_to_the_executor(error, caplog):
    Raises.error = error
    made = Endless.spec("made")
    sink = CollectBolt.spec("sink", inputs={made: Grouping.custom(Raises)})
    each = Bench(type("Line", (Topology,), {"made": made, "sink": sink}), "made")
    each.component.seen = []
    Raises.calls = 1
    each.turn()
    assert each.component.seen == [[], [], []]
    assert f"rows cannot be sent while a call of user code goes on ({error.__name__}: not now)" in caplog.text
    assert each.left() == [(0,), (1,), (2,)]


# --- whatever a bolt does inside its calls ------------------------------------------------------------------------


class Script(Bolt):
    """Does what the test has drawn."""

    outputs = ["n"]
    auto_ack = False

    def process(self, tup):
        self.tuples.append(tup)
        for what, number in self.script.pop(0) if self.script else ():
            getattr(self, what)(self.tuples[number % len(self.tuples)])

    def row(self):
        self.rows += 1
        return [self.rows]

    def emits(self, _):
        self.emit(self.row())

    def anchors(self, tup):
        if tup not in self.settled:
            self.emit(self.row(), anchors=[tup])

    def unanchored(self, _):
        self.emit(self.row(), anchors=[])

    def routed(self, _):
        self.emit(self.row(), need_task_ids=True)

    def acks(self, tup):
        if tup not in self.settled:
            self.ack(tup)
            self.settled.append(tup)

    def fails(self, tup):
        if tup not in self.settled:
            self.fail(tup)
            self.settled.append(tup)

    def looked_at(self, _):
        self.bench.passes(1.0)


class TwoStreamed(Script):
    outputs = ["n", Stream(["n"], name="other")]

    def routed(self, _):
        self.emit(self.row(), stream="other")


DOES = st.sampled_from(["emits", "emits", "anchors", "unanchored", "routed", "acks", "fails", "looked_at"])
CALLS = st.lists(st.lists(st.tuples(DOES, st.integers(0, 5)), max_size=8), max_size=6)


@given(CALLS, st.sampled_from([Script, TwoStreamed]), st.sampled_from([1, 1000]))
def test_whatever_is_emitted_and_acked_inside_calls_adds_up(script, component, batch_rows):
    made = bench(component, **{"topology.executor.batch.rows": batch_rows})
    bolt = made.component
    bolt.script, bolt.tuples, bolt.settled, bolt.rows = list(script), [], [], 0
    roots = made.arrives([(n,) for n in range(7)])
    while made.executor.runner.busy:
        made.turn()
    for tup in list(bolt.tuples):
        bolt.acks(tup)
    made.executor.runner.emitted.send()
    if component is Script:
        assert made.left() == [(n + 1,) for n in range(bolt.rows)]
    assert sorted(made.left()) == [(n + 1,) for n in range(bolt.rows)]
    assert_complete(made.edges(), roots)


def assert_complete(events, roots):
    """Each root was acked with all edges that hang on it, none of them later; or it failed."""
    values, acked, failed = defaultdict(list), {}, set()
    for what, root, edge in events:
        if what == "row":
            assert root not in acked
            values[root].append(edge)
        elif what == "ack":
            assert root not in acked
            acked[root] = edge
        else:
            failed.add(root)
    assert acked.keys() | failed == set(roots)
    assert not acked.keys() & failed
    for root, value in acked.items():
        assert value == functools.reduce(operator.xor, values[root], root | 1)


# --- the thread ---------------------------------------------------------------------------------------------------


def test_the_sender_sleeps_until_a_call_is_long_and_then_looks_until_it_is_over(deadline):
    answers = [0.0, 2.0, math.inf, math.inf]
    looked = []

    def look(now):
        looked.append(now)
        return answers[len(looked) - 1]

    now = [1.0]

    def clock():
        now[0] += 0.5
        return now[0]

    sender = Sender(look, clock, "made-0")
    sender.start()
    assert looked == []
    sender.ask()
    deadline(lambda: len(looked) == 3, "it has looked again, and when it had said")
    sender.ask()
    deadline(lambda: len(looked) == 4, "it looks at the next long call")
    sender.stop(20)
    assert not sender._thread.is_alive()


class Asked:
    """Counts what the lookout asks of the sender."""

    times = 0

    def ask(self):
        self.times += 1


@pytest.fixture
def lookout():
    made = bench(Slow)
    made.woken = 0

    def wake():
        made.woken += 1

    made.asked = Asked()
    made.lookout = Lookout(made.executor.user_code, made.asked, wake)
    made.executor.user_code.bell = made.lookout
    return made


def call(made, seconds):
    with made.executor.user_code:
        made.now += seconds


def test_a_call_that_nobody_would_look_at_in_time_wakes_the_gateway_and_later_ones_do_not(lookout):
    assert lookout.lookout.look(lookout.now, begins=False) == math.inf
    call(lookout, 0.001)
    assert (lookout.woken, lookout.lookout.rung) == (1, True)
    assert lookout.lookout.look(lookout.now, begins=False) == lookout.now + EVERY
    assert not lookout.lookout.rung
    for _ in range(10):
        call(lookout, 0.001)
    assert lookout.woken == 1
    lookout.now += EVERY
    assert lookout.lookout.look(lookout.now, begins=False) == lookout.now + EVERY, "there were calls"
    lookout.now += EVERY
    assert lookout.lookout.look(lookout.now, begins=False) == math.inf
    call(lookout, 0.001)
    assert lookout.woken == 2
    assert lookout.asked.times == 0


def test_a_call_that_the_gateway_has_brought_about_does_not_ring(lookout):
    assert lookout.lookout.look(lookout.now, begins=True) == lookout.now + EVERY
    call(lookout, 0.001)
    assert (lookout.woken, lookout.lookout.rung) == (0, False)


def test_the_gateway_asks_the_sender_once_a_call_is_long_and_has_done_with_it(lookout):
    with lookout.executor.user_code:
        lookout.now += 0.001
        assert lookout.lookout.look(lookout.now, begins=False) == lookout.now + EVERY
        lookout.now += EVERY
        assert lookout.lookout.look(lookout.now, begins=False) == math.inf
        assert lookout.asked.times == 1
    call(lookout, 0.001)
    assert lookout.woken == 2, "the next call needs somebody who looks"
    call(lookout, 1.0)
    assert lookout.lookout.look(lookout.now, begins=False) < math.inf
    assert lookout.asked.times == 1, "what was long is over"


# --- a simulated cluster ------------------------------------------------------------------------------------------


class Counts(Spout):
    outputs = ["n"]
    n = 0

    def next_tuple(self):
        self.n += 1
        self.emit([self.n], self.n)
        if self.n == 5:
            self.finish()


class Stamps(Bolt):
    """When rows come."""

    def initialize(self, config, context):
        self.context = context

    def process(self, tup):
        TIMES.append((tup[0], self.context.now()))


TIMES = []


def test_rows_of_slow_calls_arrive_as_they_are_emitted_in_a_simulated_cluster():
    numbers = Counts.spec("numbers")
    stamps = Stamps.spec("stamps", inputs=[numbers])
    TIMES.clear()
    run(type("Slow", (Topology,), {"numbers": numbers, "stamps": stamps}), cost={"numbers": 0.3})
    gaps = [later - earlier for (_, earlier), (_, later) in itertools.pairwise(TIMES)]
    assert gaps == pytest.approx([0.3] * 4, abs=0.1)
