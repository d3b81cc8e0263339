"""Errors of what the engine calls beside ``process``: all go back in place, and the end after too many in a row."""

from __future__ import annotations

from collections import Counter

import pytest

from ardea import Bolt, FailedException, Grouping, Topology
from ardea.keyed import KeyedState, TaskState
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import Words, tables_of, word

MOST = 60
"""Words of each spout."""
CONFIG = {
    "topology.reliability.mode": "EFFECTIVELY_ONCE",
    "topology.stateful.checkpoint.interval.secs": 1.0,
    "topology.tick.tuple.freq.secs": 0.5,
}


class Trouble:
    """Where it raises, and how often yet; ``after`` so many calls there."""

    where, left, after = "", 0, 0

    @classmethod
    def at(cls, where):
        if where == cls.where and cls.left:
            cls.after -= 1
            if cls.after < 0:
                cls.left -= 1
                raise OSError(f"{where} is out of order")


class Spouting(Words):
    most = MOST

    def initialize(self, config, context):
        super().initialize(config, context)
        Trouble.at("spout initialize")

    def next_tuple(self):
        super().next_tuple()
        Trouble.at("next_tuple")
        if self.position == self.most:
            self.finish()

    def restored(self, number):
        Trouble.at("spout restored")

    def snapshot(self, number):
        Trouble.at("spout snapshot")

    def close(self):
        Trouble.at("spout close")


class Counting(Bolt):
    counts = KeyedState(default=0)

    def process(self, tup):
        self.counts[tup["word"]] += 1

    def process_tick(self, tup):
        Trouble.at("tick")

    def flush(self):
        Trouble.at("flush")

    def snapshot(self, number):
        Trouble.at("snapshot")

    def committed(self, number):
        Trouble.at("committed")

    def restored(self, number):
        Trouble.at("restored")

    def end_of_input(self):
        Trouble.at("end_of_input")

    def close(self):
        Trouble.at("close")


class Troubled(Topology):
    words = Spouting.spec(par=2)
    count = Counting.spec(par=2, inputs={words: Grouping.fields("word")})


@pytest.fixture
def trouble(monkeypatch):
    def begin(where, left, after=0):
        for name, value in (("where", where), ("left", left), ("after", after)):
            monkeypatch.setattr(Trouble, name, value)

    return begin


def cluster(topology, seed=1, **options):
    return Cluster(topology, containers=2, seed=seed, config=CONFIG, cost={"words": 0.02}, **options)


def ended(topology, within=120.0):
    topology.run_until(lambda: topology.over, timeout=within)
    return Inside(topology).store


EVERYWHERE = {
    "next_tuple": "words",
    "spout snapshot": "words",
    "tick": "count",
    "flush": "count",
    "snapshot": "count",
    "committed": "count",
    "end_of_input": "count",
}


@pytest.mark.parametrize("where", EVERYWHERE)
def test_all_go_back_in_place_and_every_word_is_counted(where, trouble):
    trouble(where, 2, 3 if where != "end_of_input" else 0)
    with cluster(Troubled) as topology:
        store = ended(topology)
        assert (topology.state, topology.reason) == ("SUCCEEDED", "")
        assert {topology.life(name) for name in topology.names} == {1}, "no process has ended"
        assert Trouble.left == 0
        counts = Counter()
        for tables in tables_of(store, store.records[-1].committed):
            counts.update(tables.get("counts", {}))
        assert counts == Counter(word(spout, place) for spout in range(2) for place in range(MOST))


@pytest.mark.parametrize("where", ["spout initialize", "spout restored", "restored", "close", "spout close"])
def test_what_raises_while_all_go_back_ends_no_process_but_the_one_that_is_new(where, trouble):
    trouble("", 0)
    with cluster(Troubled) as topology:
        topology.advance(1.0)
        trouble(where, 2, 1 if where == "spout initialize" else 0)
        topology.kill("words-1" if where != "spout restored" else "count-1")
        ended(topology)
        assert topology.state == "SUCCEEDED", topology.reason
        assert Trouble.left == 0
        assert [str(error) for _, error in topology.record.errors] == [f"{where} is out of order"] * 2
        assert {topology.life(name) for name in ("words-0", "count-0")} == {1}


@pytest.mark.parametrize("where", EVERYWHERE)
def test_the_first_one_is_raised_to_a_test_that_wants_it(where, trouble):
    trouble(where, 1)
    with cluster(Troubled) as topology:
        topology.raise_errors = True
        with pytest.raises(OSError, match=f"{where} is out of order") as caught:
            ended(topology)
    assert caught.traceback[-1].name == "at"


@pytest.mark.parametrize("where", ["spout initialize", "restored"])
def test_who_cannot_begin_after_a_rollback_tries_again_and_the_others_wait(where, trouble):
    """A database that is away for longer than the topology would bear errors of rows."""
    trouble("", 0)
    with cluster(Troubled) as topology:
        inside = Inside(topology)
        topology.advance(1.0)
        trouble(where, 1000, 1 if where == "spout initialize" else 0)
        topology.kill("words-1")
        topology.advance(20.0)
        assert (topology.state, inside.store.records[-1].timeline) == ("RUNNING", 2)
        waits = [*inside.master.coordination.figures.reading.values()]
        assert waits
        assert all(why.startswith("cannot begin: it raised OSError") and "test_troubles.py:" in why for why in waits)
        assert 900 < Trouble.left < 990
        trouble("", 0)
        ended(topology)
        assert topology.state == "SUCCEEDED", topology.reason
        assert inside.store.records[-1].timeline == 2


@pytest.mark.parametrize("where", EVERYWHERE)
def test_errors_without_an_end_are_the_end_and_name_component_error_and_line(where, trouble):
    trouble(where, 1000)
    with cluster(Troubled) as topology:
        ended(topology)
        component = EVERYWHERE[where]
        assert topology.state == "FAILED"
        assert topology.reason.startswith(
            f"{component} has ended 4 timelines without a snapshot that counts in between"
        )
        assert f"raised OSError: {where} is out of order at test_troubles.py:" in topology.reason
        assert Inside(topology).store.held.culprit.startswith(component)
        assert {topology.life(name) for name in topology.names} == {1}


class First(Words):
    def initialize(self, config, context):
        raise OSError("no broker")


class Refused(Topology):
    words = First.spec()
    count = Counting.spec(inputs={words: Grouping.fields("word")})


def test_the_first_initialize_of_a_process_ends_it_as_in_other_modes():
    with cluster(Refused) as topology:
        topology.advance(5.0)
        assert topology.life("words-0") > 1


# --- rows that fail, and columns ------------------------------------------------------------------------------


class Fails(Bolt):
    seen = TaskState(default=0)

    def process(self, tup):
        if tup["word"] == "w3":
            self.fail(tup)
        else:
            self.seen += 1


class FailsBatch(Bolt):
    seen = TaskState(default=0)

    def process_batch(self, rows):
        if any(tup["word"] == "w3" for tup in rows):
            raise FailedException
        self.seen += len(rows)


class FailsColumns(Bolt):
    seen = TaskState(default=0)

    def process_columns(self, columns):
        words = columns["word"].to_pylist()
        bad = [place for place, each in enumerate(words) if each == "w3"]
        self.fail_batch(columns, bad)
        self.seen += len(words) - len(bad)


class RaisesColumns(Bolt):
    seen = TaskState(default=0)

    def process_columns(self, columns):
        if "w3" in columns["word"].to_pylist():
            raise FailedException
        self.seen += len(columns["word"])


class Letters(Bolt):
    letters = TaskState(default=())

    def process(self, tup):
        assert (tup["tup_id"], tup["stream"]) == (None, "words:default")
        self.letters = [*self.letters, tup["values"][0]]


@pytest.mark.parametrize("bolt", [Fails, FailsBatch, FailsColumns, RaisesColumns])
def test_rows_that_fail_are_dead_letters_and_nothing_goes_back(bolt, trouble):
    trouble("", 0)

    class Failing(Topology):
        words = Spouting.spec(par=2)
        count = bolt.spec(inputs=[words])
        letters = Letters.spec(inputs=[count["__dead_letter"]])

    with cluster(Failing) as topology:
        store = ended(topology)
        assert topology.state == "SUCCEEDED", topology.reason
        assert store.records[-1].timeline == 1
        seen, letters = 0, []
        for tables in tables_of(store, store.records[-1].committed):
            seen, letters = seen + tables.get("seen", 0), letters + list(tables.get("letters", ()))
        assert seen + len(letters) == 2 * MOST
        bad = sum(word(spout, place) == "w3" for spout in range(2) for place in range(MOST))
        assert letters.count("w3") == bad
        assert bolt not in (Fails, FailsColumns) or len(letters) == bad


def test_without_a_reader_a_row_that_fails_is_given_up_and_the_topology_says_so_in_the_end(trouble):
    trouble("", 0)

    class Unread(Topology):
        words = Spouting.spec()
        count = Fails.spec(inputs=[words])

    with cluster(Unread) as topology:
        ended(topology)
        assert topology.state == "FAILED"
        assert "nobody reads __dead_letter" in topology.reason


class FailsBefore(Bolt):
    """It fails a row, the first time only or always, and raises at a later one."""

    always, first, raised = False, True, False

    def process(self, tup):
        cls = type(self)
        if tup["word"] == "w3" and (cls.first or cls.always):
            cls.first = False
            raise FailedException("no answer")
        if tup["word"] == "w24" and not cls.raised:
            cls.raised = True
            raise OSError("once")


@pytest.mark.parametrize("always", [False, True])
def test_rows_given_up_since_the_snapshot_that_all_go_back_to_do_not_count(trouble, always):
    trouble("", 0)

    class Failing(FailsBefore):
        pass

    Failing.always = always

    class Unread(Topology):
        words = Spouting.spec()
        count = Failing.spec(inputs=[words])

    config = {**CONFIG, "topology.stateful.checkpoint.interval.secs": 100.0}
    with Cluster(Unread, config=config, cost={"words": 0.02}) as topology:
        store = ended(topology)
        assert store.records[-1].timeline == 2
        places = [place for place in range(MOST) if word(0, place) == "w3"]
        assert topology.state == ("FAILED" if always else "SUCCEEDED"), topology.reason
        assert topology.reason.startswith(f"{len(places)} tuple") == always


class Columns(Bolt):
    def process_columns(self, columns):
        raise KeyError("never")


def test_columns_that_raise_are_the_end_after_three_rollbacks(trouble):
    trouble("", 0)

    class Failing(Topology):
        words = Spouting.spec(par=2)
        count = Columns.spec(inputs=[words], par=2)

    with cluster(Failing) as topology:
        ended(topology)
        assert "count has ended 4 timelines" in topology.reason
        assert "no single row can be blamed" in topology.reason


class Anew(Bolt):
    """Makes another row of each, as one with a random number or a time in it does."""

    outputs = ("made",)
    made = 0

    def process(self, tup):
        Anew.made += 1
        self.emit((Anew.made,))


class Never(Bolt):
    def process(self, tup):
        raise ValueError("never")


class Unreadable(Exception):  # noqa: N818
    """Pickle takes it, and cannot give it back: it has two arguments, and only one in ``args``."""

    def __init__(self, one, two):
        super().__init__(one)


class Sends(Words):
    def next_tuple(self):
        self.position += 1
        self.emit((Unreadable(1, 2),))


def test_rows_that_nobody_can_read_are_the_end_and_it_says_why(trouble):
    trouble("", 0)

    class Failing(Topology):
        words = Sends.spec()
        count = Never.spec(inputs=[words])
        config = {"topology.serializer.pickle": True}

    with cluster(Failing) as topology:
        ended(topology)
        assert topology.reason.startswith("count has ended 4 timelines")
        assert "count-0 cannot read rows: " in topology.reason
        assert "of words, stream default" in topology.reason


def test_rows_that_differ_at_each_replay_are_the_end(trouble):
    trouble("", 0)

    class Failing(Topology):
        words = Spouting.spec()
        anew = Anew.spec(inputs=[words])
        count = Never.spec(inputs=[anew])

    with cluster(Failing) as topology:
        ended(topology)
        assert topology.reason.startswith("count has ended 4 timelines")
        assert "each time with another row" in topology.reason


class HandsOver(Bolt):
    """Raises once, after it has handed a function over; ``log``: what its objects do.

    ``former``: the context of its first object, which some thread of that one still has.
    """

    counts = KeyedState(default=0)
    log: list[str] = []
    former = None

    def initialize(self, config, context):
        self.context, self.number = context, self.log.count("close")
        self.log.append(f"{self.number} begins")
        if self.number == 0:
            HandsOver.former = context

    def process(self, tup):
        self.counts[tup["word"]] += 1
        if self.number == 0 and tup["word"] == word(0, 20):
            self.context.submit(lambda: self.log.append(f"{self.number} is called"))
            raise ConnectionError("not there")
        if self.number == 1 and self.log[-1] == "1 begins":
            self.former.submit(lambda: self.log.append("0 is called late"))
            self.context.submit(lambda: self.log.append(f"{self.number} is called"))

    def close(self):
        self.log.append("close")


def test_a_function_runs_on_the_object_that_handed_it_over_or_not_at_all():
    HandsOver.log.clear()
    words = Spouting.spec("words")
    body = {"words": words, "hands": HandsOver.spec(inputs={words: Grouping.fields("word")}), "config": CONFIG}
    with Cluster(type("HandingOver", (Topology,), body), seed=1) as cluster:
        cluster.run_until(lambda: "0 begins" in HandsOver.log, 60)
        before = Inside(cluster).executor("hands-0").env
        cluster.run_until(lambda: "1 is called" in HandsOver.log, 60)
        now = Inside(cluster).executor("hands-0").env
        assert (before.timeline, now.timeline) == (1, 2), "what the former one still sends is void"
    assert HandsOver.log[:4] == ["0 begins", "close", "1 begins", "1 is called"]
