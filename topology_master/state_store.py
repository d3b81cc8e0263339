"""The writes of an acting master to the state manager."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence

import msgspec

from ardea.errors import NotFound
from ardea.plan.definition import Definition
from ardea.plan.names import TOPOLOGY_MASTER
from ardea.snapshots.beginning import Beginning
from ardea.snapshots.kept import Listing
from ardea.snapshots.manifest import Manifest
from ardea.snapshots.place import Files, place_at
from ardea.snapshots.retention import Abandoned, superfluous
from ardea.snapshots.savepoint import Savepoint, save
from ardea.state import Create, Delete, Set, StateManager, Term, Write, paths, records
from ardea.state.records import (
    Admission,
    ExecutionState,
    Incarnations,
    MasterLocation,
    TimelineRecord,
    TopologyRecord,
)
from ardea.topology_master.store import Found, Place, WantedListing

log = logging.getLogger(TOPOLOGY_MASTER)


class StateStore:
    """The master's writes, under its term."""

    def __init__(self, state: StateManager, topology: str, term: Term, opened: Callable[[], Files]) -> None:
        """``opened`` opens the store of snapshots, which a mode without snapshots does not need."""
        self._state, self._topology, self._term, self._opened = state, topology, term, opened
        self._retention = threading.Lock()  # of the next two
        self._wanted: Callable[[], None] | None = None  # what is to be deleted next
        self._retaining = False  # whether a thread does

    @functools.cached_property
    def _files(self) -> Files:
        return self._opened()

    def holders(self) -> dict[int, str]:
        """See :class:`ardea.topology_master.store.Store`."""
        return {number: admission.holder for number, admission in self._admissions()[0].items()}

    def _admissions(self) -> tuple[dict[int, Admission], int]:
        """By container, and the version of their node; 0: there is none yet."""
        path = paths.incarnations(self._topology)
        try:
            held = self._state.get(path)
        except NotFound:
            return {}, 0
        return records.decode(held.data, Incarnations, path).containers, held.version

    def admit(self, places: Sequence[Place]) -> list[int]:
        """See :class:`ardea.topology_master.store.Store`."""
        path = paths.incarnations(self._topology)
        known, version = self._admissions()
        changed = dict(known)
        for place in places:
            former = known.get(place.container)
            number = place.admission(former.holder, former.admission) if former is not None else place.admission("", 0)
            holder, host, port = place.holder, place.host, place.port
            changed[place.container] = Admission(admission=number, holder=holder, host=host, port=port)
        if changed != known:
            data = records.encode(Incarnations(changed))
            self._term.transaction([Set(path, data, version) if version else Create(path, data)])
        return [changed[place.container].admission for place in places]

    def listens(self, location: MasterLocation) -> None:
        """The master's lease, which this process has taken, says where it is and in which term."""
        path = paths.master(self._topology)
        self._term.transaction([Set(path, records.encode(location), self._state.get(path).version)])

    def found(self) -> ExecutionState:
        """The topology's state, as the former master has left it."""
        path = paths.execution_state(self._topology)
        return records.decode(self._state.get(path).data, ExecutionState, path)

    def execution(self, execution: ExecutionState) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        path = paths.execution_state(self._topology)
        self._term.transaction([Set(path, records.encode(execution), self._state.get(path).version)])

    def timeline(self) -> TimelineRecord | None:
        """See :class:`ardea.topology_master.store.Store`."""
        path = paths.timeline(self._topology)
        try:
            return records.decode(self._state.get(path).data, TimelineRecord, path)
        except NotFound:
            return None

    def begin_timeline(self, record: TimelineRecord) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        self._term.transaction([self._timeline(record)])

    def _timeline(self, record: TimelineRecord) -> Write:
        path, data = paths.timeline(self._topology), records.encode(record)
        return Set(path, data, self._state.get(path).version) if self._state.exists(path) else Create(path, data)

    def survey(self, beginning: Beginning | None, done: Callable[[Found | Exception], None]) -> None:
        """See :class:`ardea.topology_master.store.Store`."""

        def look() -> None:
            try:
                found = Found.of(self._files, beginning)
            except Exception as error:  # whatever the client of a foreign store raises: nobody else would hear of it
                done(error)
            else:
                done(found)

        threading.Thread(target=look, name="survey", daemon=True).start()

    def forget_timeline(self) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        path = paths.timeline(self._topology)
        if self._state.exists(path):
            self._term.transaction([Delete(path, self._state.get(path).version)])

    def write_file(self, name: str, content: bytes, done: Callable[[str], None]) -> None:
        """See :class:`ardea.topology_master.store.Store`."""

        def write() -> None:
            try:
                self._files.write(name, [content])
            except Exception as error:  # as in a survey
                done(f"{name} cannot be stored: {error}")
            else:
                done("")

        threading.Thread(target=write, name="manifest", daemon=True).start()

    def retain(self, committed: Manifest) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        self._delete(lambda: self._files.delete(superfluous(self._files.names(), committed), over=True))

    def tidy(self, abandoned: Abandoned) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        self._delete(lambda: self._files.delete(abandoned.superfluous(self._files.names())))

    def _delete(self, wanted: Callable[[], None]) -> None:
        with self._retention:
            self._wanted = wanted
            if not self._retaining:
                threading.Thread(target=self._retain, name="retention", daemon=True).start()
                self._retaining = True  # not where the machine has no room for a thread

    def _retain(self) -> None:
        """What was wanted last, until that is done: in a slow store wishes may come faster than files go."""
        while (wanted := self._next()) is not None:
            try:
                wanted()
            except BaseException as error:  # as in a survey; a thread that ended by it would count as one that deletes
                log.warning("files that no snapshot needs cannot be deleted yet: %s: %s", type(error).__name__, error)

    def _next(self) -> Callable[[], None] | None:
        with self._retention:
            wanted, self._wanted = self._wanted, None
            self._retaining = wanted is not None
            return wanted

    def save(
        self,
        savepoint: Savepoint,
        place: str,
        *,
        anew: bool,
        wanted: Callable[[], bool],
        done: Callable[[Savepoint | str], None],
    ) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        stamped = msgspec.structs.replace(savepoint, at=time.time())

        def copy() -> None:
            try:
                done(save(self._files, place_at(place), stamped, anew=anew, wanted=wanted))
            except Exception as error:  # as in a survey
                done(str(error))

        threading.Thread(target=copy, name="savepoint", daemon=True).start()

    def listing(self, wanted: WantedListing, done: Callable[[Listing], None]) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        threading.Thread(target=lambda: done(wanted.look(lambda: self._files)), name="listing", daemon=True).start()

    def plans(self, submitted: Definition) -> tuple[Definition, Definition | None]:
        """The plan in force and the one that an update may go back to; the first master writes what was submitted."""
        path, former = paths.physical_plan(self._topology), paths.former_plan(self._topology)
        try:
            present = Definition.unpacked(self._state.get(path).data, path)
        except NotFound:
            # Its version is the epoch: what was submitted has a higher one where the state has lost what it held.
            self._term.transaction([Create(path, submitted.packed(), submitted.epoch)])
            return submitted, None
        try:
            return present, Definition.unpacked(self._state.get(former).data, former)
        except NotFound:
            return present, None

    def switch(
        self,
        wanted: Definition,
        former: Definition | None,
        execution: ExecutionState,
        timeline: TimelineRecord | None,
    ) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        plan, state = paths.physical_plan(self._topology), paths.execution_state(self._topology)
        record = paths.topology(self._topology)
        held = self._state.get(record)
        changed = records.decode(held.data, TopologyRecord, record).changed_to(wanted)
        writes: list[Write] = [
            Set(plan, wanted.packed(), wanted.epoch - 1),
            Set(state, records.encode(execution), self._state.get(state).version),
            Set(record, records.encode(changed), held.version),
        ]
        if timeline is not None:
            writes.append(self._timeline(timeline))
        self._term.transaction([*writes, *self._way_back(former)])

    def settled(self, execution: ExecutionState) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        path = paths.execution_state(self._topology)
        write = Set(path, records.encode(execution), self._state.get(path).version)
        self._term.transaction([write, *self._way_back(None)])

    def _way_back(self, former: Definition | None) -> list[Write]:
        path = paths.former_plan(self._topology)
        if not self._state.exists(path):
            return [] if former is None else [Create(path, former.packed())]
        return [Delete(path) if former is None else Set(path, former.packed(), self._state.get(path).version)]
