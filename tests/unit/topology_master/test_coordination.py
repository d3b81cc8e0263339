"""What the coordinator of snapshots hears of tasks, and what it makes of that."""

from __future__ import annotations

import pytest

from ardea import Topology
from ardea.errors import UserError
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.protocol.wire_pb2 import SnapshotReport, StateFile, TaskReport
from ardea.scheduler.packing import packing_for
from ardea.state.records import RunState
from ardea.testing import CollectBolt, RowsSpout
from ardea.testing.memory_store import MemoryStore
from ardea.topology_master.coordination import Coordination
from ardea.topology_master.store import Found
from ardea.topology_master.updates import plan_of


class Orders:
    def __init__(self):
        self.given = []

    def snapshots(self, order):
        self.given.append(order)


class Words(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec(par=2)
    count = CollectBolt.spec(inputs=[words], par=2)


@pytest.fixture(scope="module")
def definition() -> Definition:
    plan = Words.plan()
    packing = packing_to_bytes(packing_for(plan.config).pack(plan))
    return Definition(topology="words", state="", location="", config={}, shape=shape_of(plan), packing=packing)


class Heard:
    """A coordinator whose manager has registered."""

    came_up = False

    def __init__(self, definition, store=MemoryStore):
        self.plan, self.orders = plan_of(definition), Orders()
        self.store = store(RunState.RUNNING, definition)
        self.told, self.failed = [], []
        self.coordination = Coordination(1, self.plan, self.orders, self.store, self, None)
        self.coordination.manager_rose(1, 1, 0.0)

    def tell(self, name, what):
        self.told.append(what)

    def fail(self, reason, culprit=""):
        self.failed.append((reason, culprit))

    def troubles(self, now):
        return [(each.who, each.since, each.why) for each in self.coordination.troubles(now, 1000.0 + now)]

    def report(self, epoch=1, **said):
        for task in self.plan.tasks:
            self.coordination.reported(
                TaskReport(task=task, life=1, epoch=epoch, snapshots=SnapshotReport(**said)), 0.0
            )
        self.coordination.tick(0.0)


def test_a_task_that_works_by_another_plan_has_not_been_heard_of(definition):
    heard = Heard(definition)
    heard.report(epoch=0)
    heard.report(epoch=2)
    assert heard.orders.given == []
    heard.report()
    assert [order.timeline for order in heard.orders.given] == [1]


def test_the_list_of_a_snapshot_says_whose_each_file_is(definition):
    heard = Heard(definition)
    heard.report()
    heard.report(timeline=1)
    number = heard.orders.given[-1].begun
    heard.store.files.update(a=b"", b=b"")
    heard.report(timeline=1, number=number, files=[StateFile(name="a"), StateFile(name="b")])
    manifest = heard.coordination._manifest
    assert [(part.component, part.index) for _, part in sorted(manifest.parts.items())] == [
        (place.component, place.index) for _, place in sorted(heard.plan.tasks.items())
    ]
    assert {tuple(file.name for file in part.files) for part in manifest.parts.values()} == {("a", "b")}


def test_what_tasks_have_said_counts_once_all_are_in_the_timeline(definition):
    heard = Heard(definition)
    heard.report()
    assert not heard.coordination.flows
    heard.report(timeline=1)
    assert heard.coordination.flows
    heard.coordination.manager_met(1, 1.0)
    assert not heard.coordination.flows


class Hanging(MemoryStore):
    """No answer comes before the test gives one."""

    def survey(self, beginning, done):
        self.answer = lambda: super(Hanging, self).survey(beginning, done)


SILENT = "the store of snapshots beside the state has not answered"


def test_a_topology_whose_store_never_answers_does_not_begin_and_fails(definition):
    heard = Heard(definition, Hanging)
    assert heard.coordination.begins == SILENT
    heard.report()
    heard.coordination.tick(0.9)
    assert heard.troubles(0.9) == []
    heard.coordination.tick(599.0)
    assert heard.coordination.status(599.0).waits == [SILENT]
    assert heard.troubles(599.0) == [("snapshots", 1000.0, SILENT)]
    assert (heard.failed, heard.orders.given) == ([], [])
    heard.coordination.tick(600.0)
    heard.coordination.tick(601.0)
    assert heard.failed == [(f"{SILENT} after 600 s (topology.stateful.checkpoint.timeout.secs)", "")]
    assert heard.coordination.begins == ""


def test_a_topology_that_works_waits_for_its_store_as_long_as_it_takes(definition):
    """Its record is lost: what its tasks have in memory would be lost with them."""
    heard = Heard(definition, Hanging)
    heard.report(timeline=3)
    heard.coordination.tick(10_000.0)
    assert heard.failed == []
    assert heard.troubles(10_000.0) == [("snapshots", 1000.0, SILENT)]
    heard.store.answer()
    heard.coordination.tick(10_001.0)
    assert (heard.coordination.begins, heard.troubles(10_001.0)) == ("", [])


class Answering(MemoryStore):
    """As often as it is asked, and each time with this."""

    said: Found | Exception = OSError("no answer")

    def survey(self, beginning, done):
        done(self.said)


ERRS = "the store of snapshots beside the state cannot be read: OSError: no answer"


def test_a_topology_whose_store_answers_with_errors_asks_it_again_and_fails_if_it_never_came_up(definition):
    """For some seconds it may be one that the state has forgotten, and of which managers have not told yet."""
    heard = Heard(definition, Answering)
    for now in range(10):
        heard.coordination.tick(float(now))
        assert heard.coordination.begins == ERRS
    assert heard.troubles(9.0) == [("snapshots", 1000.0, ERRS)]
    assert heard.failed == []
    heard.coordination.tick(10.0)
    assert heard.failed == [(f"{ERRS} after 10 s", "")]


def test_a_topology_that_had_come_up_goes_on_once_its_store_answers_without_an_error(definition):
    heard = Heard(definition, Answering)
    heard.came_up = True
    for now in (0.0, 1_000.0, 1_000.1):
        heard.coordination.tick(now)
    assert (heard.failed, heard.coordination.begins) == ([], ERRS)
    heard.store.said = Found(None)
    heard.coordination.tick(1_002.0)
    heard.coordination.tick(1_002.1)
    assert (heard.failed, heard.coordination.begins, heard.troubles(1_002.1)) == ([], "", [])


def test_what_is_wrong_with_a_store_for_good_ends_a_topology_at_once(definition):
    class Wrong(Answering):
        said = UserError("nothing can be kept there", hint="name another place")

    heard = Heard(definition, Wrong)
    heard.came_up = True
    heard.coordination.tick(0.0)
    assert heard.failed == [("nothing can be kept there; name another place", "")]


class Tidied(MemoryStore):
    def tidy(self, abandoned):
        self.tidied = [*getattr(self, "tidied", []), abandoned]


def test_each_third_abandoned_snapshot_lets_files_go_unless_a_savepoint_is_copied(definition):
    heard = Heard(definition, Tidied)
    heard.report()
    heard.report(timeline=1)
    first = heard.orders.given[-1].begun
    heard.coordination.demanded = "what is copied"
    for after in range(7):
        number = heard.orders.given[-1].begun
        heard.report(timeline=1, number=first, files=[StateFile(name="a")], gives_up=number, why="the store is full")
        if after == 3:
            assert not hasattr(heard.store, "tidied")
            heard.coordination.demanded = None
        heard.coordination.tick(after + 1.0)
    (abandoned,) = heard.store.tidied
    assert (abandoned.stored, abandoned.named) == (dict.fromkeys(heard.plan.tasks, first), {"a"})
