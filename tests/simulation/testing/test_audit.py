"""The watched invariants: each is broken once, on purpose, and is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from ardea import Topology
from ardea.heron_instance.bolt import BoltRunner
from ardea.heron_instance.gateway import Gateway
from ardea.protocol.flow import Channel, Window
from ardea.protocol.lane import Lane
from ardea.protocol.link import CONTROL_ROOM, Link
from ardea.protocol.wire_pb2 import CREDITS, VERDICTS, Header
from ardea.stream_manager.ledger import Ledger
from ardea.stream_manager.output_credit import OutputCredit
from ardea.testing import CollectBolt, InvariantError, RowsSpout, run
from ardea.testing.audit import Audit


class Plain(Topology):
    words = RowsSpout.of(["word"], [[f"word {n}"] for n in range(200)]).spec()
    sink = CollectBolt.spec(inputs=[words])
    config = {"heron.instance.internal.queue.bytes": 4096}


class Long(Plain):
    """Without trees: nothing but credit and the limit of held output is in its way."""

    words = RowsSpout.of(["word"], [[f"word {n}"] for n in range(5000)], tracked=False).spec()
    sink = CollectBolt.spec(inputs=[words])


def test_a_sound_engine_passes():
    assert run(Plain, containers=2, cost={"sink": 0.001}).state == "SUCCEEDED"


def test_false_completion(monkeypatch):
    """A ledger that takes any ack for the last one."""
    monkeypatch.setattr(Ledger, "init", _complete_at_once)
    with pytest.raises(InvariantError, match="is complete, yet 1 of its rows were never processed") as error:
        run(Plain, containers=2, cost={"sink": 0.001})
    begins, sends, hears = str(error.value).splitlines()[1:]
    assert begins.endswith("s ago: words-0 begins it")
    assert "s ago: words-0 sends the row 0x" in sends
    assert hears == "  0.0 s ago: words-0 hears that it is complete"


def _complete_at_once(self, roots, xors, now):
    return roots


def test_two_verdicts(monkeypatch):
    """A ledger that says each verdict twice."""
    ack = Ledger.ack
    monkeypatch.setattr(Ledger, "ack", lambda self, roots, xors: np.repeat(ack(self, roots, xors), 2))
    with pytest.raises(InvariantError, match="got a second verdict on the tree of") as error:
        run(Plain)
    assert "sink-0 processes the row 0x" in str(error.value)
    assert str(error.value).endswith("words-0 hears that it is complete (2 times)")


def test_credit_for_what_was_never_sent(monkeypatch):
    """A source that is credited twice."""
    passed = OutputCredit.passed

    def twice(self, rows, size, now, *, waited):
        passed(self, rows, size, now, waited=waited)
        return passed(self, rows, size, now, waited=waited)

    monkeypatch.setattr(OutputCredit, "passed", twice)
    with pytest.raises(InvariantError, match="more was consumed than sent"):
        run(Plain)


def test_an_input_queue_without_bounds(monkeypatch):
    """Senders that need no credit."""
    monkeypatch.setattr(Channel, "_admits", lambda *args: True)
    with pytest.raises(InvariantError, match="wait in the input queue of sink-0"):
        run(Long, cost={"sink": 0.1})


def test_output_without_bounds(monkeypatch):
    """An executor that goes on with held output, and whoever pauses it."""
    monkeypatch.setattr(BoltRunner, "waits_for_room", property(lambda self: False))
    monkeypatch.setattr(Gateway, "held", property(lambda self: False))
    monkeypatch.setattr("ardea.heron_instance.spout.PAUSE_LAPSES", -1.0)
    with pytest.raises(InvariantError, match=r"words-0 holds .* bytes; the limit is"):
        run(Long, config={"topology.max.held.bytes": 1000}, cost={"sink": 0.1})


def test_a_miscounted_queue(monkeypatch):
    """A channel that forgets what it holds."""
    offer = Channel.offer

    def forgetful(self, item, rows, size):
        out = offer(self, item, rows, size)
        self.held_rows = 0
        return out

    monkeypatch.setattr(Channel, "offer", forgetful)
    monkeypatch.setattr(Window, "consumed", lambda self, rows, size, busy: False)
    with pytest.raises(InvariantError, match="and counts otherwise"):
        run(Plain, cost={"sink": 0.01})


@pytest.mark.parametrize(("kind", "allowed"), [(VERDICTS, True), (CREDITS, False)])
def test_a_control_lane_without_bounds(kind, allowed):
    """Verdicts do not wait for room; four of half its size are more than the lane has."""
    link = Link("peer", "peer", 1, lambda *_: None)
    link.meet(1)
    for _ in range(4):
        link.send(Lane.CONTROL, Header(kind=kind), [b"x"], CONTROL_ROOM // 2)
    audit = Audit(lambda: 3.0)
    if allowed:
        audit.link("manager-1", link)
    else:
        with pytest.raises(
            InvariantError, match=r"unconfirmed control bytes to .*\n  3.0 s ago: met admission 0, life 1"
        ):
            audit.link("manager-1", link)
