"""An emit that a component has kept in ``initialize``, before the engine knew of its hooks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ardea import Bolt, Grouping, Spout, Stream, TaskHook, TopologyBuilder
from ardea.testing import run

TOTAL = 20
ONE, TWO = ["n"], ["n", Stream(["n"], name="other")]


class Told(TaskHook):
    def __init__(self):
        self.rows = []

    def emit(self, info):
        self.rows.append(tuple(info.values))


class Kept:
    def initialize(self, config, context):
        context.add_task_hook(self.hook)
        self.keep()

    def keep(self):
        self.out = self.emit


class Source(Kept, Spout):
    sent = 0

    def next_tuple(self):
        if self.sent == TOTAL:
            self.finish()
        else:
            self.out([self.sent], tup_id=self.sent)
            self.sent += 1

    def ack(self, tup_id):
        self.acked.append(tup_id)

    def fail(self, tup_id):
        self.failed.append(tup_id)


class Rows(Kept, Bolt):
    def process(self, tup):
        self.out([tup[0]])


class Chosen(Kept, Bolt):
    def process(self, tup):
        self.out([tup[0]], need_task_ids=True)


class WholeBatches(Kept, Bolt):
    def process_batch(self, rows):
        for tup in rows:
            self.out([tup[0]])


class Columns(Kept, Bolt):
    def process_columns(self, columns):
        for n in columns["n"].tolist():
            self.out([n])


class Batches(Kept, Bolt):
    def keep(self):
        self.out = self.emit_batch

    def process_columns(self, columns):
        self.out(pa.record_batch({"n": pa.array(columns["n"], pa.int64())}))


class Fails(Bolt):
    def process(self, tup):
        raise RuntimeError("downstream fails")


@pytest.mark.parametrize("bolt", [Rows, Chosen, WholeBatches, Columns, Batches])
@pytest.mark.parametrize("outputs", [ONE, TWO], ids=["one", "two"])
def test_is_anchored_and_the_hooks_are_told(bolt, outputs):
    acked, failed, hooks = [], [], (Told(), Told())
    source = type("Fed", (Source,), {"outputs": outputs, "hook": hooks[0], "acked": acked, "failed": failed})
    builder = TopologyBuilder("kept")
    spout = builder.add_spout("spout", source)
    hooked = type("Hooked", (bolt,), {"outputs": outputs, "hook": hooks[1]})
    middle = builder.add_bolt("bolt", hooked, 1, {spout: Grouping.SHUFFLE})
    builder.add_bolt("fails", Fails, 1, {middle: Grouping.SHUFFLE})
    assert run(builder).state == "FAILED"
    assert (acked, sorted(failed)) == ([], list(range(TOTAL)))
    for hook in hooks:
        assert sorted(hook.rows) == [(n,) for n in range(TOTAL)]
