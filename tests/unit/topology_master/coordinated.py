"""A coordinator of snapshots by itself, and what it writes and orders."""

from __future__ import annotations

from ardea.protocol.wire_pb2 import SnapshotReport, StateFile
from ardea.topology_master.blame import Accused, Blame
from ardea.topology_master.pacing import Pace
from ardea.topology_master.snapshot_figures import SnapshotFigures
from ardea.topology_master.snapshots import Snapshots

PLACES = {1: 1, 2: 1, 3: 2}
ACCUSED = {1: Accused("words-0", "words"), 2: Accused("count-0", "count"), 3: Accused("count-1", "count")}


class Recorded:
    """What surrounds it, as lists."""

    def __init__(self):
        self.records, self.lists, self.orders, self.events = [], [], [], []
        self.told = []
        self.figures = SnapshotFigures(lambda task: f"task {task}", self.told.append)

    def record(self, record):
        self.records.append(record)
        self.events.append("record")

    def manifest(self, number, files):
        self.lists.append((number, [each.files[0].name for _, each in files]))
        self.events.append("list")

    def committed(self):
        self.events.append("committed")

    def given_up(self):
        self.events.append("given up")

    def undeclared(self):
        self.events.append("undeclared")

    def fail(self, reason, culprit):
        self.events.append(("fail", reason, culprit))

    def unusable(self, reason, culprit):
        self.events.append(("unusable", reason, culprit))

    def tell(self, task, what):
        self.events.append(("tell", task, what))

    def order(self, order):
        self.orders.append(order)
        self.events.append("order")


class Topology:
    """A coordinator with three tasks in two containers, all of life 1."""

    def __init__(self, term=1, record=None, *, managers=True, surveyed=True):
        self.out, self.now = Recorded(), 0.0
        blame = Blame(ACCUSED, 3, None if record is None else record.blame)
        self.snapshots = Snapshots(term, PLACES, Pace(interval=10.0, timeout=60.0), self.out, record, blame)
        if surveyed:
            self.snapshots.surveyed(None, 0.0)
        self.lives = dict.fromkeys(PLACES, 1)
        if managers:
            self.managers(1, 1)

    def managers(self, first, second):
        self.snapshots.manager_rose(1, first, self.now)
        self.snapshots.manager_rose(2, second, self.now)

    def manager_dies(self, container):
        """And comes back: says hello, then registers."""
        self.snapshots.manager_met(container, self.now)
        self.snapshots.manager_rose(container, 2, self.now)

    def report(self, *tasks, **more):
        more.setdefault("timeline", self.timeline)
        for task in tasks or PLACES:
            self.snapshots.reported(task, self.lives[task], SnapshotReport(**more), self.now)

    def rise(self, *tasks):
        for task in tasks:
            self.lives[task] += 1
            self.snapshots.task_rose(task, self.lives[task], self.now)

    def tick(self, after=0.0):
        self.now += after
        return self.snapshots.tick(self.now)

    @property
    def timeline(self):
        return self.snapshots.record.timeline

    @property
    def order(self):
        return self.out.orders[-1]

    def begin(self):
        """Until rows may flow: the first snapshot counts."""
        self.report(timeline=0)
        self.tick()
        self.report()
        self.tick()
        self.take()

    def take(self):
        """All tasks have taken the one under way, and its list is stored."""
        number = self.order.begun
        self.report(number=number, files=[StateFile(name="f")])
        self.snapshots.stored(number, self.now)
