"""The simulated state manager: what the masters write, and the way to it, which is slow or cut like any other.

On the network it is called ``state``: ``network.cut("master", "state")``, ``network.delay("manager-1", "state", 0.5)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ardea.errors import ArdeaError, StateError
from ardea.plan.definition import Definition
from ardea.snapshots.beginning import Beginning
from ardea.snapshots.kept import Listing
from ardea.snapshots.manifest import Manifest, manifest_name
from ardea.snapshots.retention import Abandoned, superfluous
from ardea.snapshots.savepoint import Savepoint, save
from ardea.snapshots.survey import newest
from ardea.state import Fenced, Unavailable
from ardea.state.records import ExecutionState, MasterLocation, RunState, TimelineRecord
from ardea.testing.audit import InvariantError
from ardea.testing.clock import Timeline
from ardea.testing.network import Network
from ardea.topology_master.store import Found, Place, WantedListing

STATE = "state"
LEASE = 6.0
"""Seconds without an answer after which a master's lease may be another's."""


class Held:
    """Files that are in memory, by name; see :class:`ardea.snapshots.place.Files`."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files

    def read(self, name: str, most: int | None = None) -> bytes:
        """Its first bytes, or all of it."""
        try:
            return self._files[name][:most]
        except KeyError:
            raise FileNotFoundError(name) from None

    def parts(self, name: str, most: int) -> Iterator[bytes]:
        """All of it."""
        content = self.read(name)
        yield from (content[place : place + most] for place in range(0, len(content), most))

    def write(self, name: str, content: Iterable[bytes]) -> None:
        """In place of what is there."""
        self._files[name] = b"".join(content)

    def names(self) -> list[str]:
        """Of all."""
        return list(self._files)

    def written(self, name: str) -> float:  # noqa: ARG002
        """At the beginning of time."""
        return 0.0

    def remove(self) -> None:
        """All."""
        self._files.clear()

    def delete(self, names: Iterable[str], *, over: bool = False) -> None:  # noqa: ARG002
        """Those that are there."""
        for name in names:
            self._files.pop(name, None)


class MemoryStore:
    """What the masters write: it outlives them all.  ``term`` is the newest master's, ``master`` where it listens."""

    def __init__(self, state: RunState, definition: Definition) -> None:
        self.held = ExecutionState(state)
        self.definition = definition
        self.former: Definition | None = None
        self.writes = 0
        self.term = 0
        self.master: MasterLocation | None = None
        self.files: dict[str, bytes] = {}  # of snapshots, by name
        self.deleted: dict[str, bytes] = {}  # what has been among them
        self.full = False  # none can be written
        self.unreadable = False  # nor read
        self.savepoints: dict[str, dict[str, bytes]] = {}  # their files, by place
        self.records: list[TimelineRecord] = []  # each that was stored, oldest first
        self._record: TimelineRecord | None = None  # the present one
        self.switched: Callable[[], None] = _nothing  # a scheduler's watch
        self.copies: Callable[[Callable[[], None]], None] = _at_once  # a thread of the master's
        self._admitted: dict[int, list[tuple[str, int]]] = {}  # holders and their admissions, oldest first

    def holders(self) -> dict[int, str]:
        """See :class:`ardea.topology_master.store.Store`."""
        return {container: held[-1][0] for container, held in self._admitted.items()}

    def admissions(self) -> dict[int, int]:
        """The last of each container."""
        return {container: held[-1][1] for container, held in self._admitted.items()}

    def admit(self, places: Sequence[Place]) -> list[int]:
        """See :class:`ardea.topology_master.store.Store`."""
        return [self._admit(place) for place in places]

    def _admit(self, place: Place) -> int:
        held = self._admitted.setdefault(place.container, [])
        last, former = held[-1] if held else ("", 0)
        if place.holder != last and place.holder in (holder for holder, _ in held):
            raise InvariantError(f"{place.holder} was admitted again, though {last} had been admitted in its place")
        number = place.admission(last, former)
        if (place.holder, number) != (last, former):
            held.append((place.holder, number))
        return number

    def execution(self, execution: ExecutionState) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        self.held = execution
        self.writes += 1

    def switch(
        self,
        wanted: Definition,
        former: Definition | None,
        execution: ExecutionState,
        timeline: TimelineRecord | None,
    ) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        assert wanted.epoch == self.definition.epoch + 1
        self.definition, self.former = wanted, former
        self.execution(execution)
        if timeline is not None:
            self.begin_timeline(timeline)
        self.switched()

    def settled(self, execution: ExecutionState) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        self.former = None
        self.execution(execution)

    def timeline(self) -> TimelineRecord | None:
        """See :class:`ardea.topology_master.store.Store`."""
        return self._record

    def begin_timeline(self, record: TimelineRecord) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        self._record = record
        self.records.append(record)

    def survey(self, beginning: Beginning | None, done: Callable[[Found | Exception], None]) -> None:
        """See :class:`ardea.topology_master.store.Store`."""

        def look() -> None:
            try:
                if self.unreadable:
                    raise OSError("no answer")
                found = Found.of(Held(self.files), beginning)
            except (ArdeaError, OSError) as error:
                done(error)
            else:
                done(found)

        if beginning is None:
            look()
        else:
            self.copies(look)

    def forget_timeline(self) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        self._record = None

    def write_file(self, name: str, content: bytes, done: Callable[[str], None]) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        if self.full:
            done(f"{name} cannot be stored: no space left on device")
            return
        for known in (self.files, self.deleted):
            if known.get(name, content) != content:
                raise InvariantError(f"{name} is written a second time, with other content")
        self.files[name] = content
        done("")

    def tidy(self, abandoned: Abandoned) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        self._delete(abandoned.superfluous(self.files))
        try:
            newest(Held(self.files))
        except StateError as error:
            raise InvariantError(error.message) from error

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            self.deleted[name] = self.files.pop(name)

    def retain(self, committed: Manifest) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        self._delete(superfluous(self.files, committed))
        if missing := committed.names - self.files.keys():
            raise InvariantError(f"snapshot {manifest_name(committed.number)} lacks {', '.join(sorted(missing))}")

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

        def copy() -> None:
            if self.full:
                done("no space left on device")
                return
            target = Held(self.savepoints.setdefault(place, {}))
            try:
                done(save(Held(self.files), target, savepoint, anew=anew, wanted=wanted))
            except ArdeaError as error:
                done(error.message)

        self.copies(copy)

    def listing(self, wanted: WantedListing, done: Callable[[Listing], None]) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        done(wanted.look(lambda: Held(self.files)))

    def lost(self, definition: Definition) -> None:
        """All of it, and masters that begin anew write down what they were started with."""
        self.held = ExecutionState.first(active=definition.active)
        self.definition, self.former = definition, None
        self.term, self.master = 0, None
        self._record = None
        self._admitted = {}

    def copied(self) -> Callable[[], None]:
        """What is called for all of it to be again as it is now."""
        names = ("held", "definition", "former", "term", "master", "_record")
        known = {name: getattr(self, name) for name in names}
        admitted = {container: list(held) for container, held in self._admitted.items()}

        def comes_back() -> None:
            self._admitted = admitted
            for name, value in known.items():
                setattr(self, name, value)

        return comes_back

    @property
    def state(self) -> RunState:
        """The topology's."""
        return self.held.state


class UnderTerm:
    """A master's calls: refused when a newer one has begun, and in vain while its way to the state is cut.

    A call is carried out at once; ``wait`` is told how many seconds its answer takes.
    """

    def __init__(
        self, store: MemoryStore, above: int, holder: str, network: Network, wait: Callable[[float], None]
    ) -> None:
        """A new term; ``above``: see :meth:`ardea.state.Term.take`."""
        store.term = self.term = max(store.term, above) + 1
        self._store, self._holder, self._network, self._wait = store, holder, network, wait

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._store, name)

        def called(*args: Any, **options: Any) -> Any:
            self.reach()
            if self._store.term != self.term:
                raise Fenced(f"term {self.term} is over: the term is {self._store.term}")
            if delay := self._network.delay_of(self._holder, STATE):
                self._wait(2 * delay)
            return call(*args, **options)

        return called

    def reach(self) -> None:
        """Raises Unavailable while there is no way."""
        if self._network.is_cut(self._holder, STATE):
            raise Unavailable("no server answers")


class Known(msgspec.Struct, frozen=True):
    """What :class:`ardea.state.master_watch.MasterWatch` tells, and when it was so."""

    time: float
    master: MasterLocation | None
    final: bool


class Watch:
    """What a process has heard of the master: late if its way to the state is slow, nothing new while it is cut."""

    def __init__(self, store: MemoryStore, watcher: str, network: Network, timeline: Timeline) -> None:
        self._known = Known(0.0, None, final=False)
        self._store, self._watcher, self._network, self._timeline = store, watcher, network, timeline

    def look(self) -> Known:
        """Never waits."""
        if not self._network.is_cut(self._watcher, STATE):
            now = self._timeline.now
            news = Known(now, self._store.master, self._store.state.final)
            if delay := self._network.delay_of(self._watcher, STATE):
                self._timeline.at(now + delay, lambda: self._learn(news))
            else:
                self._learn(news)
        return self._known

    def _learn(self, news: Known) -> None:
        if news.time >= self._known.time:
            self._known = news


def _at_once(action: Callable[[], None]) -> None:
    action()


def _nothing() -> None:
    """Nobody watches."""
