"""What ``ardea snapshots`` shows of a topology whose store only its pods reach: another thread of the master looks."""

from __future__ import annotations

from collections import deque

from ardea.config import Settings
from ardea.plan.definition import Definition
from ardea.snapshots.kept import Listing
from ardea.snapshots.place import savepoints_at
from ardea.topology_master.snapshots import Snapshots
from ardea.topology_master.store import Store, WantedListing


class Listings:
    """At most one is under way: a request that comes meanwhile begins when it is asked again."""

    def __init__(self, store: Store, snapshots: Snapshots) -> None:
        self._store, self._snapshots = store, snapshots
        self._done: deque[Listing] | None = None  # from another thread, while it looks
        self._last: Listing | None = None

    def asked(self, request: str, definition: Definition, name: str) -> None:
        """Begins to look, unless that is what it does, or has done.

        ``name``: of the topologies whose savepoints are wanted, or an id.
        """
        last = self.last
        if self._done is not None or (last is not None and last.request == request):
            return
        storage = Settings.of(definition.shape.config).snapshot_storage
        wanted = WantedListing(
            request=request,
            topology=definition.topology,
            name=name,
            place=savepoints_at(storage, definition.state),
            committed=lambda: self._snapshots.record.committed,
        )
        self._done = deque()
        self._store.listing(wanted, self._done.append)

    @property
    def last(self) -> Listing | None:
        """The last one that is there."""
        if self._done:
            self._last, self._done = self._done.popleft(), None
        return self._last
