"""Columns that Python cannot read, where bolts for columns read them: failed, raised about and given up all the same."""

from __future__ import annotations

import logging

import pyarrow as pa

from ardea import Bolt, Spout, Topology
from ardea.protocol.arrow import decode_batch
from ardea.protocol.ids import NO_IDS
from ardea.protocol.wire_pb2 import ROWS, VERDICTS, Header
from ardea.testing import CollectBolt
from tests.unit.heron_instance.bench import Bench

FINE = pa.record_batch({"n": [1, 2], "t": pa.array([1, 1000], pa.timestamp("ns"))})


class Times(Spout):
    outputs = ("n", "t")

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
