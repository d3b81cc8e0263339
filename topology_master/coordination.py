"""The coordinator of snapshots among the other parts of a master: its orders, what it stores, what it hears."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ardea.config import Settings
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.wire_pb2 import SnapshotOrder, SnapshotReport, TaskReport
from ardea.snapshots.manifest import File, Manifest, encode_manifest, manifest_name
from ardea.state.records import TimelineRecord
from ardea.topology_master.orders import Orders
from ardea.topology_master.snapshots import Pace, Snapshots
from ardea.topology_master.store import Store

LOOKS_EVERY = 0.02
"""Seconds between two looks at whether a list is stored, while one is being stored."""


class Coordination:
    """Of one master, in a topology whose mode takes snapshots."""

    def __init__(self, term: int, plan: PhysicalPlan, orders: Orders, store: Store) -> None:
        self._orders, self._store = orders, store
        self._stored: deque[tuple[int, str]] = deque()  # from another thread
        self._manifest: Manifest | None = None  # the last that was written
        places = {task: place.container for task, place in plan.tasks.items()}
        settings = Settings.of(plan.logical.config)
        pace = Pace(settings.snapshot_interval, settings.snapshot_timeout)
        self.snapshots = Snapshots(term, places, pace, self, store.timeline())

    # --- what comes in ----------------------------------------------------------------------------------------

    def manager_met(self, container: int, now: float) -> None:
        """A stream manager says hello, in another life."""
        self.snapshots.manager_met(container, now)

    def manager_rose(self, container: int, life: int, now: float) -> None:
        """A stream manager has registered, in this life."""
        self.snapshots.manager_rose(container, life, now)

    def reported(self, report: TaskReport, now: float) -> None:
        """A task says something."""
        self.snapshots.reported(report.task, report.life, report.snapshots, now)

    def tick(self, now: float) -> float:
        """Does what is due; returns when to be called again."""
        while self._stored:
            number, error = self._stored.popleft()
            self.snapshots.stored(number, now, error)
        due = self.snapshots.tick(now)
        taking = self.snapshots.taking
        return min(due, now + LOOKS_EVERY) if taking is not None and taking.storing else due

    # --- what goes out: see ardea.topology_master.snapshots.Outside -------------------------------------------

    def record(self, record: TimelineRecord) -> None:
        """Under the master's term."""
        self._store.begin_timeline(record)

    def manifest(self, number: int, files: Sequence[tuple[int, SnapshotReport]]) -> None:
        """By another thread."""
        listed = {task: tuple(File(f.name, f.checksum, f.bytes) for f in each.files) for task, each in files}
        manifest = Manifest(number=number, timeline=self.snapshots.record.timeline, files=listed)
        self._manifest = manifest
        name = manifest_name(number)
        self._store.write_file(name, encode_manifest(manifest), lambda error: self._stored.append((number, error)))

    def committed(self) -> None:
        """By another thread, too."""
        assert self._manifest is not None
        self._store.retain(self._manifest)

    def order(self, order: SnapshotOrder) -> None:
        """To all tasks."""
        self._orders.snapshots(order)
