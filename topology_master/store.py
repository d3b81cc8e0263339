"""What a master writes down: its own view of the state manager."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ardea.errors import ArdeaError
from ardea.plan.definition import Definition
from ardea.snapshots.beginning import Beginning
from ardea.snapshots.kept import Listing, committed_in, savepoints_in
from ardea.snapshots.manifest import Manifest
from ardea.snapshots.place import Files, check
from ardea.snapshots.retention import Abandoned
from ardea.snapshots.savepoint import Savepoint
from ardea.snapshots.survey import newest
from ardea.state import paths
from ardea.state.records import ExecutionState, TimelineRecord


@dataclass(frozen=True, slots=True)
class Place:
    """A container that its holder wants to be admitted to, and where the holder's manager listens.

    ``remembered``: the container's highest admission that any manager has heard of; the state may have lost it.
    ``had``: the admission that the holder has come with; 0: it has none.
    """

    container: int
    holder: str
    host: str
    port: int
    remembered: int = 0
    had: int = 0

    def admission(self, holder: str, former: int) -> int:
        """What it gets; ``former`` is the container's last that is stored, and its ``holder``; 0: none is."""
        if holder == self.holder and former >= self.remembered:
            return former
        return max(former + 1, self.had if self.had >= self.remembered else self.remembered + 1)


class Found(NamedTuple):
    """The newest list in a store of snapshots; None: there is none.  ``begins``: it was copied there just now."""

    manifest: Manifest | None
    begins: bool = False

    @classmethod
    def of(cls, files: Files, beginning: Beginning | None) -> Found:
        """What is found there, or was made; for a thread that may wait.

        Where nothing is found, the store is tried first.

        Raises:
            ArdeaError: the store is damaged, or does not work, or the topology cannot begin from its savepoint.
            OSError: a file cannot be read.
        """
        manifest = newest(files)
        if manifest is not None:
            return cls(manifest)
        check(files)
        return cls(None) if beginning is None else cls(beginning.copy(files), begins=True)


@dataclass(frozen=True, slots=True)
class WantedListing:
    """What a caller wants to see: of the ``topology`` the snapshot that counts, whose number ``committed`` tells.

    And the savepoints in the folder ``place`` that are of topologies called ``name``, which may be an id.
    """

    request: str
    topology: str
    name: str
    place: str
    committed: Callable[[], int]

    def look(self, opened: Callable[[], Files]) -> Listing:
        """In the topology's store, which is ``opened``; for a thread that may wait."""
        try:
            committed = committed_in(opened(), self.topology, self.committed)
            return Listing(self.request, committed, savepoints_in(self.place, paths.called(self.name)))
        except ArdeaError as error:
            return Listing(self.request, error=error.message)
        except Exception as error:  # whatever the client of a foreign store raises: nobody else would hear of it
            return Listing(self.request, error=f"the store of snapshots cannot be read: {error}")


class Store(Protocol):
    """The master's writes; each is one transaction under its term, and raises Fenced when that is over."""

    def holders(self) -> Mapping[int, str]:
        """Who was admitted last, by container."""

    def admit(self, places: Sequence[Place]) -> list[int]:
        """The admission of each: the holder's own, or a higher one; all in one write."""

    def execution(self, execution: ExecutionState) -> None:
        """The topology's state."""

    def switch(
        self,
        wanted: Definition,
        former: Definition | None,
        execution: ExecutionState,
        timeline: TimelineRecord | None,
    ) -> None:
        """The plan, which is of the next epoch, what to go back to, and the state, all at once."""

    def timeline(self) -> TimelineRecord | None:
        """What the last master has written of snapshots; None: nothing yet."""

    def begin_timeline(self, record: TimelineRecord) -> None:
        """In its place: a timeline begins, or a snapshot counts."""

    def survey(self, beginning: Beginning | None, done: Callable[[Found | Exception], None]) -> None:
        """Begins to look into the store of snapshots; ``done`` hears of the newest in it, or of an error.

        An ArdeaError lasts; with any other one the store may answer another time.  ``beginning``: what is copied there
        if there is none.
        """

    def forget_timeline(self) -> None:
        """What is stored of snapshots is not what was: the next master finds out by a survey."""

    def write_file(self, name: str, content: bytes, done: Callable[[str], None]) -> None:
        """Begins to write a file into the store of snapshots; ``done`` hears of an error, or an empty text."""

    def retain(self, committed: Manifest) -> None:
        """Begins to delete what nobody needs any more once that snapshot counts; what is left is deleted later."""

    def tidy(self, abandoned: Abandoned) -> None:
        """Likewise, what nobody needs though no snapshot counts."""

    def save(
        self,
        savepoint: Savepoint,
        place: str,
        *,
        anew: bool,
        wanted: Callable[[], bool],
        done: Callable[[Savepoint | str], None],
    ) -> None:
        """Begins to copy a snapshot's files to ``place``; ``done`` hears what lies there then, or an error.

        See :func:`ardea.snapshots.savepoint.save`.
        """

    def listing(self, wanted: WantedListing, done: Callable[[Listing], None]) -> None:
        """Begins to look for what is kept of the topology; ``done`` hears of it."""

    def settled(self, execution: ExecutionState) -> None:
        """The state; there is nothing to go back to any more."""
