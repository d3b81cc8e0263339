"""What the nodes hold: JSON of a frozen record, under the record's name."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Any, Self, TypeVar

import msgspec

from ardea.errors import StateError
from ardea.plan.definition import Definition
from ardea.versions import UNNUMBERED, format_differs

R = TypeVar("R")


class RunState(enum.StrEnum):
    """How a topology is doing."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    ENDING = "ENDING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"

    @property
    def final(self) -> bool:
        """Whether nothing comes after it: whoever starts and finds it exits with it."""
        return self in (RunState.SUCCEEDED, RunState.FAILED, RunState.KILLED)


class TopologyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Who submitted what, when and from where.

    ``location`` is the topology's file, or the bundle it came in; ``config`` what the submitter overrides;
    ``components`` the digest of each, so that a process that built another plan can name the first difference;
    ``format`` that of :mod:`ardea.versions`.
    """

    id: str
    name: str
    location: str
    topology_class: str
    config: dict[str, Any]
    submitted_by: str
    submitted_at: datetime
    submitted_from: str
    ardea_version: str
    digest: str
    components: dict[str, str]
    format: int = UNNUMBERED

    @property
    def differs(self) -> str:
        """By what versions the topology was submitted and is looked at; empty if it is of this version's format."""
        return format_differs(self.id, self.format, f"Ardea {self.ardea_version}")

    def changed_to(self, definition: Definition) -> Self:
        """What an update has made of it."""
        shape = definition.shape
        return msgspec.structs.replace(
            self,
            location=definition.location,
            config=definition.config,
            digest=shape.digest,
            components=shape.digests,
        )


class TaskFacts(msgspec.Struct, frozen=True, array_like=True):
    """The incarnation of a task; rows that it gave up; rows that its former lives gave up."""

    life: int
    given_up: int
    former_given_up: int


class EndFacts(msgspec.Struct, frozen=True):
    """What a new master must know to go on with an end (docs/end-of-topology.md).

    ``drain`` is the patience of a drain in seconds; None: there is none.  ``managers`` has the incarnations of the
    stream managers, by container; ``removed`` the rows that tasks gave up which an update has removed; ``ended``
    the tasks that have reported their end.
    """

    drain: float | None = None
    tasks: dict[int, TaskFacts] = {}
    managers: dict[int, int] = {}
    removed: int = 0
    ended: list[int] = []


class Switch(msgspec.Struct, frozen=True):
    """An update whose plan is written, and whose spouts have not gone on yet (docs/updating.md).

    ``id`` is the caller's; ``patience`` the seconds that new processes have to come up; ``put_back`` why the former
    plan is in force again, empty on the way forward.
    """

    id: str
    patience: float = 60.0
    put_back: str = ""


class ExecutionState(msgspec.Struct, frozen=True):
    """``reason`` is a sentence for people; empty while all is well.  ``switch``: an update is half done.

    ``culprit`` names the process whose log tells more of the reason, as ``words-0`` or ``container-1/stream-manager``;
    empty: none does.  ``came_up``: every task has reported at least once.
    """

    state: RunState
    reason: str = ""
    end: EndFacts = EndFacts()
    switch: Switch | None = None
    culprit: str = ""
    came_up: bool = False

    @classmethod
    def first(cls, *, active: bool) -> Self:
        """Of a topology that is submitted; one that is not active waits for ``ardea activate``."""
        return cls(RunState.RUNNING if active else RunState.PAUSED)


class BlamedRow(msgspec.Struct, frozen=True, array_like=True):
    """How often a row has ended a timeline, by its hash, in a bolt of that name."""

    component: str
    row: int
    times: int


class BlameFacts(msgspec.Struct, frozen=True):
    """Who has ended timelines since the last commit (docs/snapshots.md, poison).

    By component: ``strikes`` counts rollbacks that name no row, or one for the first time; ``deaths`` are those of
    processes by themselves.
    """

    rows: tuple[BlamedRow, ...] = ()
    strikes: dict[str, int] = {}
    deaths: dict[str, int] = {}


class TimelineRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the topology goes back to, and who works in it (docs/snapshots.md).

    ``timeline`` began from the snapshot ``restore`` (0: with nothing) and has these incarnations of tasks, and of
    stream managers by container; ``committed`` is the last snapshot that counts, 0: none does; ``final``: with it the
    topology ends.  ``blame`` is of the timelines that have ended since then.
    """

    timeline: int = 0
    restore: int = 0
    committed: int = 0
    tasks: dict[int, int] = {}
    managers: dict[int, int] = {}
    final: bool = False
    blame: BlameFacts = BlameFacts()


class SchedulerLocation(msgspec.Struct, frozen=True, kw_only=True):
    """Who keeps the topology's processes: ``scheduler`` is ``local`` with its host and process id.

    On Kubernetes ``host`` is the namespace, and ``root`` the UID of the root object.
    """

    scheduler: str
    host: str
    pid: int
    root: str = ""


class MasterLocation(msgspec.Struct, frozen=True, kw_only=True):
    """Where the acting master listens, and under which term it acts; 0: it is about to take one.

    ``holder`` names the process over its lives, which ``life`` counts: its supervisor's id and its own name.
    """

    host: str
    port: int
    term: int
    pid: int
    holder: str = ""
    life: int = 0


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a container's index.

    ``admission`` rises whenever another ``holder`` (a pod's UID, locally its supervisor's random id) is admitted;
    ``host`` and ``port`` are its stream manager's.
    """

    admission: int
    holder: str
    host: str
    port: int


class Incarnations(msgspec.Struct, frozen=True):
    """The admission of each container, by number."""

    containers: dict[int, Admission] = {}


class _Named(msgspec.Struct, frozen=True):
    record: str
    value: msgspec.Raw


def encode(record: Any) -> bytes:
    """The bytes for a node: a record of this module, a packing plan, or any other frozen value of plain ones."""
    return msgspec.json.encode(_Named(type(record).__name__, msgspec.Raw(msgspec.json.encode(record))))


def decode(data: bytes, kind: type[R], path: str) -> R:
    """The inverse of :func:`encode`.  Unknown fields, of a newer Ardea, are passed over.

    Raises:
        StateError: the node at ``path`` holds something else.
    """
    try:
        named = msgspec.json.decode(data, type=_Named)
        if named.record == kind.__name__:
            return msgspec.json.decode(named.value, type=kind)
        reason = f"it is a {named.record}"
    except ValueError as error:
        reason = str(error)
    raise StateError(
        f"{path} does not hold a {kind.__name__}: {reason}; it is left as it is",
        hint="if another version of Ardea wrote it, use that one; else `ardea kill` the topology and submit it again",
    )
