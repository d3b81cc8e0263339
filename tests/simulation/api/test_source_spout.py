"""What a spout does with its source, in the modes without snapshots, and with sources that misbehave."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pyarrow as pa
import pytest

from ardea import END, Bolt, FailedException, Lines, PositionLost, Source, SourceSpout, Stream, Topology
from ardea.component import install
from ardea.errors import ConfigError, TopologyError, UserError
from ardea.source_task import Words
from ardea.sources import owner
from ardea.testing import Cluster, CollectBolt, run
from ardea.watermarks import SourceTime, StampCounts, Timestamps


class Numbers(Source):
    """Partitions of numbers, 0 to ``rows``; ``log`` is what the spouts have asked of it."""

    outputs = ("partition", "n")
    rows = 25

    def __init__(self, *names: str, **more) -> None:
        self.names = list(names)
        self.log: list[tuple] = []
        self.told: list[dict] = []
        vars(self).update(more)

    def list_partitions(self):
        self.log.append(("list",))
        return self.names

    def open(self, partition, position):
        self.log.append(("open", partition, position))
        return NumbersReader(self, partition, position or 0)

    def committed(self, positions):
        self.told.append(dict(positions))

    def opened(self):
        return [entry[1] for entry in self.log if entry[0] == "open"]

    def rows_of(self, *names):
        return Counter((name, n) for name in names or self.names for n in range(self.rows))


class NumbersReader:
    def __init__(self, source: Numbers, partition: str, at: int) -> None:
        self.source, self.partition, self.at = source, partition, at

    def read(self, most):
        rows = [(self.partition, n) for n in range(self.at, min(self.source.rows, self.at + most))]
        self.at += len(rows)
        return self.source.made(self, rows) if hasattr(self.source, "made") else rows or END

    def position(self):
        return self.at

    def close(self):
        self.source.log.append(("close", self.partition))


class Whole:
    def read(self): ...

    def position(self): ...


def topology_of(source, *, par=1, bolt=CollectBolt, **config):
    spout = SourceSpout(source).spec("numbers", par=par)
    body = {
        "numbers": spout,
        "out": bolt.spec(inputs=[spout]),
        "config": {"topology.executor.batch.rows": 10, **config},
    }
    return type("Made", (Topology,), body)


def finished(source, **options):
    result = run(topology_of(source, **options))
    assert (result.state, result.reason) == ("SUCCEEDED", "")
    return Counter(result.inputs("out"))


def ends_with(source, expected: str, error=None) -> None:
    result = run(topology_of(source))
    assert result.state == "FAILED"
    assert expected in result.reason, result.reason


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "ATMOST_ONCE"])
@pytest.mark.parametrize("par", [1, 3])
def test_all_partitions_are_read_and_then_it_finishes(mode, par):
    source = Numbers("p0", "p1", "p2", "p3", "p4")
    read = finished(source, par=par, **{"topology.reliability.mode": mode})
    assert read == source.rows_of()
    assert sorted(source.opened()) == source.names, "each is opened once"
    assert dict(at for told in source.told for at in told.items()) == dict.fromkeys(source.names, 25)


def test_partitions_of_one_name_and_a_number_go_to_the_tasks_in_turn():
    for names in ([f"part-{n:05}.json" for n in range(12)], [f"topic/{n}" for n in range(12)]):
        assert set(Counter(owner(name, 4) for name in names).values()) == {3}
    assert owner("9" * 10_000, 7) in range(7)


class FailsOnce(Bolt):
    """The first time, each seventh row."""

    def initialize(self, config, context):
        self.seen = set()

    def process(self, tup):
        if tup["n"] % 7 == 3 and tuple(tup.values) not in self.seen:
            self.seen.add(tuple(tup.values))
            raise FailedException


def test_a_source_is_told_what_is_acked_and_no_more():
    """The bolt holds row 13 back: until it acks, nothing from the batch of that row on is done."""

    class Holds(Bolt):
        auto_ack = False
        held: list = []

        def process(self, tup):
            if tup["n"] == 13:
                self.held.append(tup)
            else:
                self.ack(tup)

        def process_tick(self, tup):
            pass

    source = Numbers("p0", rows=1000)
    Holds.held = []
    with Cluster(topology_of(source, bolt=Holds, **{"topology.max.spout.pending": 100})) as cluster:
        cluster.advance(5)
        assert source.told[-1] == {"p0": 10}, "the batch before"
        assert len(Holds.held) == 1
        bolt = cluster.task("out-0", Holds)
        cluster.task("out-0", Holds).ack(bolt.held[0])
        cluster.run_until(lambda: cluster.over, 60)
        assert source.told[-1] == {"p0": 1000}
        assert [told["p0"] for told in source.told] == sorted(told["p0"] for told in source.told)


def test_rows_that_fail_come_again_and_are_awaited():
    source = Numbers("p0", "p1")
    result = run(topology_of(source, bolt=FailsOnce))
    assert (result.state, set(result.inputs("out"))) == ("SUCCEEDED", set(source.rows_of()))
    assert dict(at for told in source.told for at in told.items()) == {"p0": 25, "p1": 25}


def test_columns_are_emitted_as_they_are_and_tracked():
    names = ["partition", "n"]
    source = Numbers("p0", "p1", made=lambda _, rows: pa.table(
        {name: [row[place] for row in rows] for place, name in enumerate(names)}).combine_chunks().to_batches()[0]
        if rows else END)  # fmt: skip
    assert finished(source, bolt=CollectBolt) == source.rows_of()
    assert dict(at for told in source.told for at in told.items()) == {"p0": 25, "p1": 25}


@pytest.mark.parametrize(
    "outputs", [("partition", "n"), [Stream(["partition", "n"])], [Stream(["n"], "other"), Stream(["partition", "n"])]]
)
def test_the_stamp_is_that_of_the_default_stream_in_whichever_way_it_is_written(outputs):
    spec = SourceSpout(Numbers("a", outputs=outputs), timestamps=Timestamps("n")).spec()
    assert spec.cls.stamped == 1


def test_a_reader_that_raises_is_opened_again_where_it_was_and_later_each_time():
    failures = [OSError("away")] * 5

    def made(reader, rows):
        if reader.at == 20 and failures:
            raise failures.pop()
        return rows or END

    source = Numbers("p0", made=made)
    result = run(topology_of(source))
    assert (result.state, Counter(result.inputs("out"))) == ("SUCCEEDED", source.rows_of())
    assert [at for what, *at in source.log if what == "open"] == [["p0", None]] + [["p0", 10]] * 5
    assert result.time > 0.1 + 0.2 + 0.4 + 0.8 + 1.6
    assert source.log.count(("close", "p0")) == 6


def test_partitions_that_cannot_be_listed_are_listed_again():
    source = Numbers("p0")
    failures = [OSError("away")] * 3
    listed = source.list_partitions
    source.list_partitions = lambda: listed() if not failures else (_ for _ in ()).throw(failures.pop())
    assert finished(source) == source.rows_of()


def test_partitions_that_appear_are_read_from_their_beginning_and_those_that_are_gone_are_forgotten():
    source = Numbers("p0", every=1.0)
    with Cluster(topology_of(source, par=2)) as cluster:
        cluster.advance(3)
        source.names = ["p0", "p1", "p2"]
        cluster.advance(3)
        assert Counter(cluster.record.inputs("out")) == source.rows_of()
        assert sorted(source.opened()) == source.names
        source.names = []
        cluster.advance(5)
        source.names = ["p1"]
        cluster.advance(3)
        assert source.opened().count("p1") == 2, "it was forgotten: a new one of the same name"
        assert not cluster.over


def test_where_each_ends_a_task_reads_some_at_a_time():
    most = open_now = 0

    class Few(Numbers):
        at_once = 2

        def open(self, partition, position):
            nonlocal most, open_now
            open_now += 1
            most = max(most, open_now)
            return super().open(partition, position)

    def made(reader, rows):
        nonlocal open_now
        open_now -= not rows
        return rows or END

    source = Few(*(f"p{n}" for n in range(10, 20)), made=made)
    assert finished(source) == source.rows_of()
    assert (most, source.opened()) == (2, source.names)


class Task:
    """The first task of a spout, by hand, which goes on from positions."""

    def __init__(self, source, tasks=1, positions=(), complete=(), epoch=1):
        self.source, self.now, self.rows, self.finished = source, 0.0, [], False
        self.task = SourceSpout(source, timestamps=Timestamps("n")).spec("numbers").cls()
        self.task.positions, self.task.complete = [*positions], [*complete]
        install(self.task, "numbers", self)
        self.task._time = self.time = SourceTime(Timestamps("n", idle_after=5.0), lambda: 0.0, StampCounts())
        self.context = SimpleNamespace(this_component_id="numbers", this_task_index=0, clock=lambda: self.now)
        self.context.topology_id, self.context.plan_epoch = "run", epoch
        self.context.register_metric = lambda _, metric: metric
        self.context.component_tasks = lambda _: range(tasks)
        self.task.initialize({}, self.context)

    def emit_many(self, rows, *_):
        self.rows += rows

    def finish(self):
        self.finished = True

    def update(self, tasks):
        """The partitions cannot be listed for a while."""
        listed, failures = self.source.list_partitions, [OSError("away")] * 3
        self.source.list_partitions = lambda: listed() if not failures else (_ for _ in ()).throw(failures.pop())
        self.context.component_tasks = lambda _: range(tasks)
        self.task.update(self.context)

    def reads(self, calls=100):
        for _ in range(calls):
            self.now += 0.1
            self.task.next_tuple()


def test_partitions_of_several_former_tasks_are_begun_in_the_order_of_their_names():
    """Each has ended one; nobody had begun the last three, of which two were not there yet."""
    former = [["a", 25, True], ["c", 10, False], ["e", None, False], ["b", 25, True], ["d", 10, False]]
    source = Numbers("g", "f", *"abcde", at_once=2)
    Task(source, positions=former).reads()
    assert source.opened() == [*"cdefg"]


@pytest.mark.parametrize(
    ("mark", "epoch", "further"),
    [(True, 1, []), (False, 1, ["c"]), (True, 2, ["c"])],
    ids=["marked", "of an older version", "updated"],
)
def test_a_bounded_source_is_not_listed_again_as_all_go_back(mark, epoch, further):
    source = Numbers("a", "b")
    former = Task(source)
    former.task.snapshot(1)
    assert former.task.complete == [], "nothing was listed yet"
    former.reads(1)
    former.task.snapshot(2)
    source.names, source.log = [*"abc"], []
    marks = former.task.complete if mark else ()
    task = Task(source, positions=former.task.positions, complete=marks, epoch=epoch)
    task.reads()
    assert (source.opened(), task.finished, task.time.idle) == (["a", "b", *further], True, True)
    assert (("list",) in source.log) == bool(further)


def test_a_source_that_looks_for_new_partitions_goes_on_with_that():
    source = Numbers("a", every=1.0)
    former = Task(source)
    former.reads(1)
    former.task.snapshot(1)
    assert former.task.complete == []


def test_partitions_that_an_update_brings_fall_into_their_place():
    source = Numbers(*(f"p{n}" for n in range(10, 20)), at_once=2)
    task = Task(source, 2)
    task.reads(2)
    assert source.opened() == ["p10", "p12"]
    task.update(1)
    task.reads()
    assert source.opened() == ["p10", "p12", "p11", *(f"p{n}" for n in range(13, 20))]
    assert task.finished


def test_after_an_update_nothing_has_ended_before_the_partitions_are_listed_again():
    """The only one that the task has read is another's now."""
    source = Numbers("p11")
    task = Task(source)
    task.reads(1)
    source.names = ["p11", "p12"]
    task.update(2)
    task.reads(2)
    assert (source.opened(), task.finished, task.time.idle) == (["p11"], False, False)
    task.reads()
    assert (source.opened(), task.finished) == (["p11", "p12"], True)


def test_after_an_update_the_task_is_not_idle_before_the_partitions_are_listed_again():
    """For as long as they cannot be: there may be rows in those that it does not know."""
    task = Task(Numbers("p11", "p12"), 2)
    task.reads(1)
    task.update(1)
    task.time.waited(60.0)
    task.reads(1)
    assert not task.time.idle
    task.reads()
    assert (task.finished, task.time.idle) == (True, True)


@pytest.mark.parametrize("later", [False, True], ids=["at once", "in a later life of the task"])
def test_a_name_that_comes_back_before_the_task_has_forgotten_it_is_an_error(tmp_path, later):
    path = tmp_path / "a"
    path.touch()
    task = Task(Lines(tmp_path / "*", follow=True))
    task.reads(1)
    path.rename(tmp_path.with_name("rotated"))
    task.reads(1)
    if later:
        task.task.snapshot(1)
        task = Task(Lines(tmp_path / "*", follow=True), positions=task.task.positions)
        task.reads(1)
    path.touch()
    with pytest.raises(UserError, match=f"{path} has ended, since it was removed.*nobody would read the file that has"):
        task.reads(150)
    path.unlink()
    task.reads(250)
    path.write_text("as any other new one\n")
    task.reads(150)
    task.task.close()
    assert task.rows == [("as any other new one",)]


def test_files_that_were_read_to_their_ends_stay_in_the_list(tmp_path):
    (tmp_path / "a").write_text("line\n")
    task = Task(Lines(tmp_path / "a"))
    task.reads()
    task.task.snapshot(1)
    later = Task(Lines(tmp_path / "a"), positions=task.task.positions)
    later.reads()
    assert (task.rows, later.rows, later.finished) == ([("line",)], [], True)


def lost(*_):
    raise PositionLost("only 7 rows are left")


def refused(*_):
    raise ConfigError("no such user")


def narrow(*_):
    return pa.record_batch({"partition": ["p0"]})


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"made": lost}, "position None of partition p0 is not there any more: only 7 rows are left; rows that were"),
        ({"made": refused}, "no such user"),
        ({"made": lambda *_: None}, "partition p0: read() returned NoneType"),
        ({"made": lambda *_: "rows"}, "partition p0: read() returned str"),
        ({"made": lambda _, rows: rows * 2}, "partition p0: read(10) returned 20 rows"),
        ({"open": lambda *_: None}, "Numbers.open() returned what is no reader: NoneType has no read(most)"),
        ({"open": lambda *_: Whole()}, "which Whole.read does not take: too many positional arguments"),
        ({"made": narrow}, "a batch has 1 columns, the stream declares 2"),
        ({"made": narrow, "timestamps": Timestamps("n")}, "a batch has 1 columns, the stream declares 2"),
        ({"list_partitions": lambda: "p0"}, "Numbers.list_partitions() returned 'p0': it returns a list of texts"),
        ({"list_partitions": lambda: ["p0", 1]}, "Numbers.list_partitions() returned ['p0', 1]"),
        ({"list_partitions": lambda: ["p0", "caf\udce9"]}, r"has a name that is no UTF-8: caf\udce9"),
        ({"list_partitions": lambda: ["p0", "p0"]}, "Numbers.list_partitions() has a name twice: ['p0', 'p0']"),
    ],
)
def test_a_source_that_misbehaves_ends_the_topology_in_one_sentence(more, expected):
    ends_with(Numbers("p0", **more), expected)


def test_of_snapshots_that_never_count_no_more_than_two_are_kept():
    """As while the store cannot be written."""
    source = Numbers("a")
    words = Words(source)
    for number in range(1, 1001):
        words.took(number, {"a": number})
    assert len(words._taken) == 2
    words.counts(1000)
    assert (source.told, len(words._taken)) == ([{"a": 1000}], 0)


def test_what_is_said_in_vain_is_said_again():
    source = Numbers("p0", every=60.0)
    failures = [OSError("no broker")] * 2
    told = source.committed
    source.committed = lambda positions: told(positions) if not failures else (_ for _ in ()).throw(failures.pop())
    with Cluster(topology_of(source)) as cluster:
        cluster.advance(10)
    assert (failures, source.told) == ([], [{"p0": 25}])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("orders", "it reads an object of a class derived from ardea.Source, not 'orders'"),
        (Numbers(every=0), "Numbers.every is a number of seconds, or None, not 0"),
        (Numbers(at_once=0), "Numbers.at_once is a number from 1, or None, not 0"),
    ],
)
def test_a_spout_refuses_what_is_no_source(source, expected):
    with pytest.raises(TopologyError, match=expected):
        SourceSpout(source)
