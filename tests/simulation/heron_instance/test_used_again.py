"""A list that is emitted, changed and emitted again: each row is what the list was at its emit."""

from __future__ import annotations

import pytest

from ardea import Bolt, Spout, Stream, Topology
from ardea.testing import CollectBolt, RowsSpout, run


class OwnList(list):
    pass


KINDS = [list, OwnList]


class Reuses(Spout):
    outputs = ["n"]
    how = {}

    def initialize(self, config, context):
        self.row = KINDS[config["test.kind"]]([0])

    def next_tuple(self):
        for n in range(5):
            self.row[0] = n
            self.emit(self.row, tup_id=n, **self.how)
        self.row[0] = "changed"
        self.finish()


class ReusesOnTwoStreams(Reuses):
    outputs = ["n", Stream(["n"], name="other")]


class ReusesAndAsks(Reuses):
    how = {"need_task_ids": True}


class Passes(Bolt):
    """Also tells whether a row came as a list."""

    outputs = ["n"]

    def initialize(self, config, context):
        self.row = [None]

    def process(self, tup):
        self.row[0] = tup[0]
        self.emit(self.row)
        self.row.clear()
        self.row.append("changed")


class PassesOnTwoStreams(Passes):
    outputs = ["n", Stream(["n"], name="other")]


@pytest.mark.parametrize("kind", range(len(KINDS)))
@pytest.mark.parametrize("spout", [Reuses, ReusesOnTwoStreams, ReusesAndAsks])
@pytest.mark.parametrize("bolt", [Passes, PassesOnTwoStreams])
def test_each_row_is_what_the_list_was_when_it_was_emitted(spout, bolt, kind):
    numbers = spout.spec("numbers")
    passes = bolt.spec("passes", inputs=[numbers])
    sink = CollectBolt.spec("sink", inputs=[passes])
    topology = type("Line", (Topology,), {"numbers": numbers, "passes": passes, "sink": sink})
    result = run(topology, config={"test.kind": kind})
    assert sorted(result.inputs("passes")) == sorted(result.inputs("sink")) == [(n,) for n in range(5)]


class Again(Bolt):
    """Fails each row once."""

    seen = ()

    def process(self, tup):
        if tup[0] not in self.seen:
            self.seen += (tup[0],)
            self.fail(tup)


def test_a_row_that_is_sent_again_is_what_the_list_was():
    numbers = Reuses.spec("numbers")
    topology = type("Line", (Topology,), {"numbers": numbers, "again": Again.spec("again", inputs=[numbers])})
    result = run(topology, config={"test.kind": 0})
    assert sorted(result.inputs("again")) == sorted([(n,) for n in range(5)] * 2)


class Text(Spout):
    outputs = ["n"]

    def next_tuple(self):
        self.emit("x")
        self.finish()


def test_text_is_still_no_row():
    text = Text.spec("text")
    result = run(type("Line", (Topology,), {"text": text, "sink": CollectBolt.spec("sink", inputs=[text])}))
    assert (result.state, result.inputs("sink")) == ("FAILED", [])


def test_rows_of_a_spout_of_rows_stay_what_they_were():
    rows = RowsSpout.of(["n"], [[1], [2]]).spec("rows")
    result = run(type("Line", (Topology,), {"rows": rows, "sink": CollectBolt.spec("sink", inputs=[rows])}))
    assert sorted(result.inputs("sink")) == [(1,), (2,)]


class Routes(Bolt):
    """Emits many at once."""

    outputs = ["n"]

    def process(self, tup):
        rows = [[tup[0]]]
        self.emit_many(rows, anchors=())
        rows[0][0] = "changed"


def test_rows_that_are_emitted_together_are_what_their_lists_were():
    numbers = RowsSpout.of(["n"], [[n] for n in range(5)]).spec("numbers")
    routes = Routes.spec("routes", inputs=[numbers])
    sink = CollectBolt.spec("sink", inputs=[routes])
    result = run(type("Line", (Topology,), {"numbers": numbers, "routes": routes, "sink": sink}))
    assert sorted(result.inputs("sink")) == [(n,) for n in range(5)]
