"""A request reaches its task once, its answer stays for a while, and nothing of it stays for ever."""

from __future__ import annotations

import pytest

from ardea import Topology
from ardea.errors import ProtocolError
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.wire_pb2 import Inspect, Inspected
from ardea.scheduler.packing import packing_for
from ardea.testing import CollectBolt, RowsSpout
from ardea.topology_master.inspections import GRACE, KEPT, MOST, Inspections


class Words(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec()
    count = CollectBolt.spec(inputs=[words], par=20)


LOGICAL = Words.plan({})
PLAN = PhysicalPlan.of(LOGICAL, packing_for(LOGICAL.config).pack(LOGICAL), 1)


class Orders:
    def __init__(self):
        self.given = []

    def inspect(self, task, inspect):
        self.given.append((task.name, inspect.id))


@pytest.fixture
def orders():
    return Orders()


@pytest.fixture
def inspections(orders):
    return Inspections(orders)


@pytest.fixture
def ask(inspections):
    def asked(now, request="x", task="count-0", what="profile", seconds=30):
        return inspections.asked(Inspect(id=request, what=what, seconds=seconds), task, PLAN, now)

    return asked


def test_asked_again_and_again_it_is_ordered_once(ask, inspections, orders):
    assert ask(0.0) == ask(1.0)
    assert (ask(1.0).document, ask(1.0).refused) == (None, "")
    assert orders.given == [("count-0", "x")]
    inspections.answered("count-0", Inspected(id="x", document=b"found"), 31.0)
    assert ask(32.0).document == "Zm91bmQ="
    inspections.answered("count-0", Inspected(id="x", document=b"again"), 33.0)
    assert ask(32.0).document == "Zm91bmQ="


def test_one_at_a_time_a_task(ask, inspections, orders):
    ask(0.0)
    with pytest.raises(ProtocolError, match=r"count-0 is being looked at: profile .* another 34 s") as refused:
        ask(1.0, "y", what="stacks")
    assert refused.value.code == "INSPECTION_RUNS"
    ask(1.0, "z", "count-1")
    inspections.answered("count-0", Inspected(id="x", document=b"1"), 5.0)
    ask(6.0, "y")
    assert [task for task, _ in orders.given] == ["count-0", "count-1", "count-0"]


def test_who_does_not_answer_is_asked_anew(ask, orders):
    ask(0.0)
    ask(30.0 + GRACE, "y")
    assert len(orders.given) == 2
    ask(30.0 + GRACE, "w", "count-1", "stacks", 0)
    ask(30.0 + 2 * GRACE, "v", "count-1", "stacks", 0)


def test_answers_of_strangers_are_dropped(ask, inspections):
    ask(0.0)
    inspections.answered("count-1", Inspected(id="x", document=b"1"), 1.0)
    inspections.answered("count-0", Inspected(id="y", document=b"1"), 1.0)
    assert ask(2.0).document is None
    inspections.answered("count-0", Inspected(id="x", refused="no"), 1.0)
    assert ask(2.0).refused == "no"


def test_nothing_is_kept_for_ever(ask, inspections, orders):
    for number in range(MOST):
        ask(0.0, str(number), f"count-{number}")
    with pytest.raises(ProtocolError, match="8 other tasks"):
        ask(0.0, "y", "count-10")
    inspections.answered("count-3", Inspected(id="3", document=b"1"), 1.0)
    ask(1.0, "y", "count-10")
    assert len(inspections._asked) == MOST
    inspections.answered("count-10", Inspected(id="y", document=b"1"), 2.0)
    ask(2.0 + KEPT, "z", "count-11")
    assert list(inspections._asked) == ["z"]


@pytest.mark.parametrize("wrong", [{"task": "gone-0"}, {"what": "core"}, {"seconds": 61}, {"seconds": 0}])
def test_what_cannot_be_is_refused(ask, orders, wrong):
    with pytest.raises(ValueError, match=r"there is no task gone-0|looked at for 1 to 60 s"):
        ask(0.0, **wrong)
    assert orders.given == []
