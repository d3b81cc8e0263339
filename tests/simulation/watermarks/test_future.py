"""Rows that are too far ahead of the clock go to a stream of their own, however they were emitted (docs/time.md)."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from ardea import END, Bolt, Grouping, Source, SourceSpout, Spout, Stream, TaskState, Timestamps, Topology
from ardea.context import TaskHook
from ardea.errors import FailedException, TopologyError
from ardea.testing import Cluster, CollectBolt, run
from ardea.testing.inside import Inside

FAR = 1e12
ROWS = [(place, FAR if place % 3 == 2 else float(place)) for place in range(12)]
AHEAD = [row for row in ROWS if row[1] == FAR]
IDS = [100 + place for place in range(len(ROWS))]


def batch(rows):
    return pa.record_batch([list(column) for column in zip(*rows, strict=True)], ["n", "at"])


class Rows(Spout):
    """``told``: what the emits have returned."""

    outputs = ("n", "at")
    timestamps = Timestamps("at")
    emitted = TaskState(default=False)
    way, stays = "emit", False
    told: list

    def next_tuple(self):
        if not self.emitted:
            self.emitted = True
            getattr(self, f"by_{self.way}")()
        elif not self.stays:
            self.finish()

    def by_emit(self):
        for row, tup_id in zip(ROWS, IDS, strict=True):
            self.emit(row, tup_id)

    def by_chosen(self):
        self.told += [self.emit(row, tup_id, need_task_ids=True) for row, tup_id in zip(ROWS, IDS, strict=True)]

    def by_many(self):
        self.emit_many(list(ROWS), IDS)

    def by_iterator(self):
        self.emit_many(iter(ROWS), iter(IDS))

    def by_counted(self):
        self.told.append(self.emit_many(ROWS, IDS, need_task_counts=True))

    def by_columns(self):
        self.emit_batch(batch(ROWS), range(100, 100 + len(ROWS)))

    def by_columns_of_texts(self):
        self.emit_batch(batch(ROWS), [str(tup_id) for tup_id in IDS])

    def by_untracked_columns(self):
        self.emit_batch(batch(ROWS))


WAYS = [name[3:] for name in vars(Rows) if name.startswith("by_")]


def future(way, spout=Rows, **inside):
    rows = type("Rows", (spout,), {"way": way, "told": [], **inside}).spec()
    kept, late = CollectBolt.spec(inputs=[rows]), CollectBolt.spec(inputs=[rows["future"]])
    return type("Ahead", (Topology,), {"rows": rows, "kept": kept, "aside": late}), rows.cls


def check(result):
    assert (result.state, result.reason) == ("SUCCEEDED", "")
    assert result.record.inputs("kept") == [row for row in ROWS if row not in AHEAD]
    assert result.record.inputs("aside") == AHEAD


@pytest.mark.sampled(5)
@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "ATMOST_ONCE", "EFFECTIVELY_ONCE"])
@pytest.mark.parametrize("way", WAYS)
def test_rows_that_are_ahead_are_put_aside_and_are_acked_as_others(way, mode):
    topology, cls = future(way)
    result = run(topology, config={"topology.reliability.mode": mode})
    check(result)
    if mode == "ATLEAST_ONCE" and way != "untracked_columns":
        assert sorted(map(int, result.record.acked["rows"])) == IDS
    if cls.told and mode == "ATLEAST_ONCE":
        told = [task for each in cls.told for task in (each if isinstance(each, list) else Counter(each).elements())]
        received = [row.task for name in ("kept", "aside") for row in result.record.received[name]]
        assert sorted(told) == sorted(received), "whoever asks hears of the tasks that get them"


class FailsOnce(Bolt):
    seen: list

    def process(self, tup):
        self.seen.append(tup["n"])
        if self.seen.count(tup["n"]) == 1:
            raise FailedException("once")


@pytest.mark.parametrize("way", ["emit", "many", "columns"])
def test_what_fails_is_sent_again_where_it_was_sent_before(way):
    topology, _ = future(way)
    topology.aside = type("FailsOnce", (FailsOnce,), {"seen": []}).spec(inputs=[topology.rows["future"]])
    result = run(topology)
    assert sorted(result.record.acked["rows"]) == IDS
    assert Counter(result.record.inputs("aside")) == dict.fromkeys(AHEAD, 2)
    assert len(result.record.inputs("kept")) == len(ROWS) - len(AHEAD)


class Hook(TaskHook):
    streams: list = []

    def emit(self, info):
        self.streams.append(info.stream)


@pytest.mark.parametrize("way", ["emit", "many", "columns"])
def test_hooks_see_them_on_that_stream(way):
    Hook.streams.clear()
    topology, _ = future(way)
    check(run(topology, config={"topology.auto.task.hooks": [f"{__name__}:Hook"]}))
    assert Counter(Hook.streams)["future"] == len(AHEAD)


@pytest.mark.parametrize("way", WAYS)
def test_they_are_counted_once_and_move_nothing(way):
    topology, _ = future(way, stays=True)
    with Cluster(topology) as cluster:
        cluster.advance(0.5)
        stamps = Inside(cluster).process("rows-0").shell.instruments.stamps
        assert (stamps.ahead, stamps.late, stamps.none) == (len(AHEAD), 0, 0)
        assert cluster.task("aside-0", CollectBolt).watermark == 10.0


def test_where_nobody_reads_it_they_stay_where_they_are():
    rows = type("Rows", (Rows,), {"told": []}).spec()
    topology = type("Ahead", (Topology,), {"rows": rows, "kept": CollectBolt.spec(inputs=[rows])})
    result = run(topology)
    assert result.record.inputs("kept") == ROWS
    assert [stream.name for stream in topology.plan({})["rows"].streams] == ["default"]


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
def test_where_nobody_reads_it_the_log_says_once_that_stamps_are_ahead(mode, caplog):
    rows = type("Rows", (Rows,), {"told": []}).spec()
    topology = type("Ahead", (Topology,), {"rows": rows, "kept": CollectBolt.spec(inputs=[rows])})
    run(topology, config={"topology.reliability.mode": mode})
    [said] = [record.getMessage() for record in caplog.records if "max_ahead" in record.getMessage()]
    assert said.startswith(
        "rows-0: a stamp in the field 'at' is more than 86400 s (max_ahead) ahead of the clock (1970-"
    )
    assert "moves no watermark" in said


def test_where_it_is_read_the_log_says_nothing_of_stamps(caplog):
    check(run(future("many")[0]))
    assert caplog.records == []


def test_a_declared_one_is_used_whether_it_is_read_or_not():
    rows = type("Rows", (Rows,), {"outputs": ["n", "at", Stream(["n", "at"], "future")], "told": []}).spec()
    result = run(type("Ahead", (Topology,), {"rows": rows, "kept": CollectBolt.spec(inputs=[rows])}))
    assert result.state == "SUCCEEDED"
    assert len(result.record.inputs("kept")) == len(ROWS) - len(AHEAD)
    assert sorted(result.record.acked["rows"]) == IDS


class Several(Spout):
    """A stream without stamps, one of the same fields, a direct one, and one of others."""

    timestamps = Timestamps("at")
    outputs = [
        Stream(["n", "at"], "first"),
        Stream(["n", "at"], "second"),
        Stream(["n", "at"], "direct", direct=True),
        Stream(["at"], "other"),
        Stream(["n"], "without"),
    ]

    def initialize(self, config, context):
        [self._reader] = context.component_tasks("kept")

    def next_tuple(self):
        for stream, row in (("first", (1, FAR)), ("second", (2, FAR)), ("other", (FAR,)), ("without", (FAR,))):
            self.emit(row, stream=stream)
        self.emit((3, FAR), stream="direct", direct_task=self._reader)
        self.finish()


def test_only_rows_that_have_its_fields_go_there():
    rows = Several.spec()
    read = {rows[name]: Grouping.SHUFFLE for name in ("first", "second", "other", "without")}
    kept = CollectBolt.spec(inputs={**read, rows["direct"]: Grouping.DIRECT})
    topology = type(
        "Some", (Topology,), {"rows": rows, "kept": kept, "aside": CollectBolt.spec(inputs=[rows["future"]])}
    )
    result = run(topology)
    assert sorted(result.record.inputs("kept")) == [(3, FAR), (FAR,), (FAR,)]
    assert sorted(result.record.inputs("aside")) == [(1, FAR), (2, FAR)]


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (["n", "at", Stream(["at"], "future")], r"\[future\], which has not the fields of any other"),
        ([Stream(["n", "at"], "future")], r"\[future\], which has not the fields of any other"),
    ],
)
def test_a_declared_one_of_other_fields_is_refused(outputs, words):
    rows = type("Rows", (Rows,), {"outputs": outputs}).spec()
    with pytest.raises(TopologyError, match=words):
        type("Ahead", (Topology,), {"rows": rows, "kept": CollectBolt.spec(inputs=[rows["future"]])}).plan({})


def test_a_spout_without_stamps_has_none():
    rows = type("Rows", (Rows,), {"timestamps": None}).spec()
    with pytest.raises(TopologyError, match=r"non-existent stream: \[future\]"):
        type("Ahead", (Topology,), {"rows": rows, "kept": CollectBolt.spec(inputs=[rows["future"]])}).plan({})


# --- partitions -------------------------------------------------------------------------------------------------------


class Parted(Source):
    outputs = ("n", "at")
    timestamps = Timestamps("at")

    def __init__(self, columns):
        self.columns = columns

    def list_partitions(self):
        return ["a"]

    def open(self, partition, position):
        return Reader(position or 0, columns=self.columns)


class Reader:
    def __init__(self, at, *, columns):
        self.at, self.columns = at, columns

    def read(self, most):
        rows, self.at = ROWS[self.at : self.at + 5], min(self.at + 5, len(ROWS))
        return END if not rows else batch(rows) if self.columns else rows

    def position(self):
        return self.at

    def close(self):
        pass


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
@pytest.mark.parametrize("columns", [False, True])
def test_of_a_source_too(columns, mode):
    rows = SourceSpout(Parted(columns)).spec()
    topology = type(
        "Ahead",
        (Topology,),
        {"rows": rows, "kept": CollectBolt.spec(inputs=[rows]), "aside": CollectBolt.spec(inputs=[rows["future"]])},
    )
    with Cluster(topology, config={"topology.reliability.mode": mode}) as cluster:
        cluster.advance(0.001)
        stamps = Inside(cluster).process("rows-0").shell.instruments.stamps
        cluster.run_until(lambda: cluster.over)
        assert (cluster.state, stamps.ahead) == ("SUCCEEDED", len(AHEAD))
        assert cluster.record.inputs("aside") == AHEAD
        assert len(cluster.record.inputs("kept")) == len(ROWS) - len(AHEAD)
