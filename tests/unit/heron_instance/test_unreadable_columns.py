"""Columns that Python cannot read, where bolts for columns read them: their rows fail like any other."""

from __future__ import annotations

import logging

import numpy as np
import pyarrow as pa

from ardea import Bolt, FailedException, Spout, Topology
from ardea.heron_instance.input_batch import ColumnInput
from ardea.heron_instance.poison import Poison
from ardea.heron_instance.snapshots import TaskSnapshots
from ardea.plan.logical import StreamPlan
from ardea.protocol.arrow import decode_batch, encode_batch
from ardea.protocol.columns import ColumnRows
from ardea.protocol.ids import NO_IDS, make_roots
from ardea.protocol.wire_pb2 import ACKS, ARROW, ONE, ROWS, VERDICTS, Header
from ardea.testing import CollectBolt
from tests.unit.heron_instance.bench import Bench

FINE = pa.record_batch({"n": [1, 2], "t": pa.array([1, 1000], pa.timestamp("ns"))})


class Times(Spout):
    outputs = ("n", "t")
    replayable = False

    def next_tuple(self):
        self.emit_batch(FINE, [10, 11])
        self.finish()


class Deciding(Times):
    told = ()

    def fail(self, tup_id):
        self.told = (*self.told, tup_id)
        return True


class Reads(Bolt):
    def process_columns(self, columns): ...


def spout(kind, **config):
    times = kind.spec("times")
    letters = CollectBolt.spec(inputs=[times["__dead_letter"]])
    body = {"times": times, "reads": Reads.spec(inputs=[times]), "letters": letters}
    bench = Bench(type("Timed", (Topology,), body), "times", **config)
    bench.turn()
    return bench


def rows_of(bench):
    return [message for message in bench.output.messages if message.header.kind == ROWS]


def fails(bench):
    """Both of its rows."""
    (sent,) = rows_of(bench)
    bench.output.messages.clear()
    none = NO_IDS.tobytes()
    bench.executor.handle((Header(kind=VERDICTS), [none, sent.frames[-2], none, none]))


def test_failed_rows_are_told_of_and_sent_again(caplog):
    caplog.set_level(logging.INFO)
    bench = spout(Times)
    fails(bench)
    assert "tup_id 10 failed" in caplog.text
    assert "(1, None) of stream default" in caplog.text
    assert "(2, datetime.datetime(1970, 1, 1, 0, 0, 0, 1)) of stream default" in caplog.text
    bench.turn()
    (again,) = rows_of(bench)
    assert decode_batch(again.frames[0]).equals(FINE)


def test_an_author_who_decides_hears_of_them():
    bench = spout(Deciding)
    fails(bench)
    assert bench.component.told == (10, 11)


def test_rows_that_failed_too_often_are_dead_letters():
    bench = spout(Times, **{"topology.max.tuple.replays": 0})
    fails(bench)
    replays = bench.executor.runner._open.replays
    letters = [replays.take().values for _ in range(len(replays))]
    assert [(letter[0], letter[2][0], letter[2][1] is None) for letter in letters] == [(10, 1, True), (11, 2, False)]


class Away(Bolt):
    def process_columns(self, columns):
        raise ConnectionError("not there")


class Refuses(Bolt):
    outputs = ()

    def process_columns(self, columns):
        self.fail_batch(columns, [0])
        raise FailedException("nor the other one")


def bolt(kind, **config):
    times = Times.spec("times")
    reads = kind.spec("reads", inputs=[times])
    body = {"times": times, "reads": reads}
    if config:
        body["letters"] = CollectBolt.spec(inputs=[reads["__dead_letter"]])
    return Bench(type("Timed", (Topology,), {**body, "config": config}), "reads", "times")


def test_an_exception_about_them_fails_them_and_names_the_first(caplog):
    bench = bolt(Away)
    roots = make_roots(bench.spout, np.arange(2), np.arange(2))
    header = Header(kind=ROWS, source=bench.spout, rows=2, ids=ONE, codec=ARROW)
    bench.executor.handle((header, [encode_batch(FINE), roots.tobytes(), roots.tobytes()]))
    bench.turn()
    bench.executor.runner.emitted.send()
    (acks,) = [message for message in bench.output.messages if message.header.kind == ACKS]
    assert acks.frames[2] == roots.tobytes()
    assert "the first of 2 tuples" in caplog.text
    assert "stream default: (1, None)" in caplog.text


def test_those_that_are_refused_are_dead_letters_of_a_bolt():
    bench = bolt(Refuses, **{"topology.reliability.mode": "EFFECTIVELY_ONCE"})
    runner, env = bench.executor.runner, bench.executor.env
    Poison(runner._parts, TaskSnapshots(env.task, 1, None), runner.emitted)
    batch = ColumnInput(Header(rows=2), [b""], ColumnRows(FINE), "times", StreamPlan("default", ("n", "t")))
    assert runner.process(batch, 0, 2) == 2
    letters = bench.executor.task_output.buffers["__dead_letter"].rows.values
    assert [(stream, number, time is None) for _, stream, (number, time) in letters] == [
        ("times:default", 1, True),
        ("times:default", 2, False),
    ]
