"""What a scheduler does: one interface for all verbs (docs/schedulers.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from ardea.code import Code
from ardea.config import Settings
from ardea.errors import ClusterError, NotFound, OtherVersion, Unreachable, UsageError
from ardea.health import Health, ProcessRow, Raised
from ardea.metrics import Samples
from ardea.plan.definition import Begins, Definition
from ardea.scheduler.control import ControlPort, Status, Unreadable, samples
from ardea.scheduler.difference import Difference
from ardea.scheduler.next_definition import Change
from ardea.scheduler.submission import Submission
from ardea.snapshots.kept import Kept
from ardea.snapshots.place import savepoints_at
from ardea.state.records import RunState, SchedulerLocation
from ardea.state.topologies import TopologyStatus

Say = Callable[[str], None]
"""Takes a sentence for people."""


class Closing:
    """What holds something until it is closed."""

    def close(self) -> None:
        """Gives back what this process holds; the topology goes on.  Can be repeated."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a topology is: RUNNING when every task has reported, else its final state, and why.

    ``hint``: what to look at.
    """

    state: RunState
    reason: str = ""
    hint: str | None = None


class Check(NamedTuple):
    """One line of ``ardea doctor``: what, whether it is in order, and what was found."""

    name: str
    ok: bool
    found: str


class LogLine(NamedTuple):
    """One line that a process of a topology has printed; ``label`` is what a person calls that process."""

    label: str
    text: str


class Evidence(NamedTuple):
    """A file for the bundle of ``ardea debug bundle``: ``read`` gives text as bytes, or a document for JSON.

    ``read`` may raise any :class:`ArdeaError` or OSError, which the bundle's manifest then tells.
    """

    file: str
    read: Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What is known of a topology at this moment.

    Attributes:
        topology: what the state manager, or what stands for it, knows.
        status: what its master says; None: there is none, or it does not answer.
        silence: why a running topology's master has not answered; empty: it has.
        kept_by: who keeps its processes; None: nobody.
        processes: one row each.
        metrics_ports: container -> port of this machine that serves ``/metrics``; None: elsewhere.
        folder: where its files lie on this machine; None: elsewhere.
        pods: where its containers are, if each is a pod: ``container``, ``pod``, ``node``, ``phase``, ``trouble``.
        health: in one word, with its problems; None: it is not known, or the topology has ended.
    """

    topology: TopologyStatus
    status: Status | None
    silence: str
    kept_by: SchedulerLocation | None
    processes: list[ProcessRow]
    metrics_ports: Mapping[int, int] | None = None
    folder: Path | None = None
    pods: list[dict[str, Any]] | None = None
    health: Health | None = None


@dataclass(frozen=True, slots=True)
class Preview:
    """What a dry run shows.

    Attributes:
        submission: what was loaded, checked and packed.
        manifests: the documents that another system is given, in the order in which it makes the objects.  Empty: the
            packing plan is shown.
        before: lines for people, in comments before the manifests.
        after: the same after them; the last line is a command.
    """

    submission: Submission
    manifests: list[dict[str, Any]] = field(default_factory=list)
    before: str = ""
    after: str = ""


class Deployment(Closing, ABC):
    """A topology that one scheduler is ready to start.

    Attributes:
        submission: what was loaded, checked and packed.
        place: where it is going to run, for people: ``namespace streams``.
        where: the same for programs; ``-o json`` has these keys, too.
        options: what the other verbs need to find it: `` -n streams``; empty: nothing.
    """

    submission: Submission
    place: str
    where: Mapping[str, str]
    options: str = ""

    @property
    def id(self) -> str:
        """The topology's."""
        return self.submission.definition.topology

    @abstractmethod
    def submit(self, say: Say) -> None:
        """Starts it, once; returns when it is accepted: it comes up, and stays, without this process.

        ``say`` takes a sentence for people.

        Raises:
            Conflict: a topology of this name runs.  Like after any other error, nothing of the new one is left.
            ClusterError: there is no room, or no right.
        """

    @abstractmethod
    def wait(self, patience: float | None, *, ended: bool, show: Callable[[str, str], None]) -> Verdict:
        """Returns when it runs, or has ended; with ``ended`` only the latter.

        Args:
            patience: seconds; None: for ever.
            ended: whether to wait for its end.
            show: takes its state, and for whom it waits, as often as there is news.

        Raises:
            ClusterError: it ended before it ran, or can never run.
            Conflict: somebody has removed it meanwhile.
            TimedOut: not yet; it goes on.
        """


class Update(Closing, ABC):
    """A change of a running topology that is ready to be made."""

    difference: Difference

    @abstractmethod
    def apply(self, patience: float, say: Say) -> None:
        """Makes it, once; returns when the topology works by the new plan.

        Args:
            patience: seconds that new processes have to come up.
            say: takes a sentence for people.

        Raises:
            Refused: it was refused, or put back: the topology goes on as it was; or it has ended meanwhile.
            Unreachable: no master answered for a while; the same again finishes what is half done.
        """


class Handle(Closing, ABC):
    """One topology that a scheduler keeps, alive, dying or dead.

    Attributes:
        topology: as it was found.
        options: what the other verbs need to find it: `` -n streams``; empty: nothing.
    """

    topology: TopologyStatus
    options: str = ""

    @property
    def id(self) -> str:
        """The topology's."""
        return self.topology.id

    @abstractmethod
    def look(self) -> TopologyStatus:
        """What is known of it now; NotFound if it is gone."""

    @abstractmethod
    def describe(self) -> Description:
        """What its master, its processes' records and its place tell; an answer that does not come is left out."""

    @abstractmethod
    def definition(self) -> Definition:
        """What runs."""

    def code(self) -> Code | None:
        """The author's code that runs; None: it does not lie where this process could load it."""
        return None

    @abstractmethod
    def control(self) -> AbstractContextManager[ControlPort]:
        """The way to its master: for ``status``, and for all orders.

        Raises:
            Unreachable: it does not run.
        """

    @abstractmethod
    def dump(self, task: str) -> None:
        """Has the process of this task (``count-0``) write the stack of every thread into its log.

        Raises:
            Unreachable: it does not run now.
        """

    @abstractmethod
    def restart(self, container: int | None, patience: float) -> list[int]:
        """Restarts the processes of one container, or of all, in place; returns which, when all are back.

        Args:
            container: its number, 0 is the master's; None: all.
            patience: seconds that they have to come back.

        Raises:
            NotFound: there is no such container.
            TimedOut: they are not back yet; they are still being started.
        """

    @abstractmethod
    def update(self, change: Change, target: str | None) -> Update:
        """Loads, compares and packs; nothing is changed.

        Args:
            change: what is asked for, but for a version.
            target: the new version's ``FILE`` or ``FILE:Class``; None: the present one goes on.

        Raises:
            UserError: it cannot be.
            Unreachable: it does not run, or nobody says what does.
        """

    def savepoint_folder(self, name: str = "") -> str:
        """Where a new savepoint of that name lies by default; without a name, all of this topology.

        Raises:
            UserError: nowhere; the caller has to name a folder.
        """
        definition = self.definition()
        storage = Settings.of(definition.shape.config).snapshot_storage
        return savepoints_at(storage, definition.state, self.id, name)

    def history(self, names: Iterable[str] = (), since: float = 0.0) -> Samples:
        """What components and tasks did lately, as its master keeps it; see :func:`ardea.scheduler.control.samples`.

        Raises:
            Unreachable: it does not run, or no master answered in time.
            ArdeaError: its master is of an older version.
        """
        with self.control() as control:
            return samples(control, names, since)

    def exceptions(self) -> list[Raised]:
        """What authors' code has raised since the master began, in groups; what was raised last comes first.

        Raises:
            Unreachable: it does not run, or no master answered in time.
        """
        with self.control() as control:
            return control.ask("status", exceptions="yes", brief="yes").exceptions

    def committed(self) -> Kept | None:
        """The snapshot that counts; None: there is none, or it cannot be seen from here."""
        return None

    def evidence(self) -> Iterator[Evidence]:
        """What else its place knows, beyond :meth:`describe` and logs: metrics, ends, events.  By default nothing."""
        yield from ()

    def why(self) -> str | None:
        """Why it is in its present state; empty: nobody knows; None: the state does not know it any more."""
        try:
            execution = self.look().execution
        except (NotFound, ClusterError) as error:
            return None if isinstance(error, NotFound) else ""
        return "" if execution is None else execution.reason

    def runs(self) -> bool:
        """Whether it runs now."""
        try:
            return self.look().running
        except NotFound:
            return False

    def master_says(self) -> tuple[Status | None, str]:
        """Its status with all stories, or why there is none; a topology that does not run has neither."""
        if not self.topology.running:
            return None, ""
        try:
            with self.control() as control:
                return control.ask("status", stories="yes"), ""
        except (Unreachable, Unreadable, OtherVersion) as error:  # just then one wants to know what its processes do
            return None, error.message

    def require_running(self) -> None:
        """Raises Unreachable if it does not run."""
        topology = self.topology
        if topology.running:
            return
        dead = topology.state == "DEAD"
        raise Unreachable(
            f"{self.id} does not run; it is {topology.state}"
            + (": nobody keeps its processes any more" if dead else ""),
            hint=f"`ardea kill {topology.name}{self.options}` removes what is left"
            if dead
            else f"`ardea list{self.options}` shows which topologies run",
        )

    def require_version(self, verb: str) -> None:
        """For verbs that start processes, or change what they are.

        Raises:
            ClusterError: another version has submitted the topology; it goes on as it is.
            StateError: its record cannot be read.
        """
        topology = self.topology
        if topology.problem is not None:
            raise topology.problem
        if topology.record is not None and (why := topology.record.differs):
            raise ClusterError(
                f"{why}: `ardea {verb}` cannot go on with it; nothing was changed",
                hint=f"use the version that submitted it, or `ardea kill {topology.name}{self.options}` and submit it "
                "again",
            )


class Logs(Closing, ABC):
    """What the processes of one topology have printed, and print."""

    @abstractmethod
    def names(self, selection: str | None = None) -> list[str]:
        """Whose logs there are now: tasks (``count-0``) and managers (``container-1/stream-manager``).

        Args:
            selection: ``COMPONENT``, ``COMPONENT:INDEX`` (from 0), or a process such as ``stream-manager``; None: all.

        Raises:
            NotFound: nothing of that name has a log.
        """

    @abstractmethod
    def lines(
        self, selection: str | None = None, *, follow: bool = False, tail: int | None = None, since: float | None = None
    ) -> Iterator[LogLine | None]:
        """Their lines; each process' in order.

        With ``follow`` it goes on until the topology has ended, and gives None for "nothing new", at least each second.

        Args:
            selection: see :meth:`names`.
            follow: whether to wait for more.
            tail: of what is there already, the last so many lines of each process; None: all.  With 0, what is printed
                after the first None is not missed.
            since: of what is there already, only what was printed within so many seconds; None: all.
        """

    def secrets(self) -> Iterator[str]:
        """Values that nothing which is handed on may contain: token, keys, passwords.  By default none is known."""
        yield from ()

    def newest(self, label: str, most: int) -> bytes:
        """The last ``most`` bytes of one process' log, as they were printed; ``label`` is one of :meth:`names`."""
        kept: deque[bytes] = deque()
        size = 0
        for line in self.lines(label.rpartition("/")[2]):
            if line is not None and line.label == label:
                kept.append(line.text.encode(errors="backslashreplace") + b"\n")
                size += len(kept[-1])
            while size - len(kept[0] if kept else b"") >= most:
                size -= len(kept.popleft())
        return b"".join(kept)[-most:]


class Scheduler(Closing, ABC):
    """Where topologies run.  The docstring of the class is what ``ardea submit NAME --help`` says.

    The parameters of its constructor are the options of ``ardea submit NAME``: each has a default, and may be annotated
    as typer has it.  The constructor asks nobody and touches nothing.

    Attributes:
        place: where its topologies are, for people: ``namespace streams``.
    """

    start_secs: ClassVar[float] = 60.0
    """How long ``submit`` waits until a topology runs, and ``update`` for new processes, unless told otherwise."""
    finds_by: ClassVar[tuple[str, ...]] = ()
    """The parameters of the constructor by which its topologies are found again: options of all verbs."""
    updates_by: ClassVar[tuple[str, ...]] = ()
    """Those that ``ardea update`` has, too."""
    place: str

    @abstractmethod
    def prepare(self, target: str, overrides: Mapping[str, Any], begins: Begins | None = None) -> Deployment:
        """Loads, checks and packs; nothing is written or started.

        Args:
            target: ``FILE`` or ``FILE:Class``.
            overrides: configuration that wins over the topology's.
            begins: the savepoint that it begins from (:meth:`Submission.begun_from`); None: without state.

        Raises:
            NotFound: there is no such file.
            UserError: the file, the topology, a key or an option is wrong.
        """

    def preview(self, target: str, overrides: Mapping[str, Any], begins: Begins | None = None) -> Preview:
        """What ``--dry-run`` shows; nothing is started, and nobody is asked.  By default the packing plan.

        Args and errors are those of :meth:`prepare`.
        """
        with self.prepare(target, overrides, begins) as deployment:
            return Preview(deployment.submission)

    @abstractmethod
    def topologies(self) -> list[TopologyStatus]:
        """All topologies of this place, the newest first, each with its health as far as anybody can say."""

    @abstractmethod
    def find(self, topology: str) -> Handle:
        """The topology of that id; else the running one of that name; else the newest of that name.

        Raises:
            NotFound: there is none.
        """

    @abstractmethod
    def logs(self, topology: str) -> Logs:
        """Of the topology of that name or id, which may be gone by now if its logs are not.

        Raises:
            NotFound: there is none.
        """

    @abstractmethod
    def kill(self, topology: str, wait_secs: float, say: Say) -> None:
        """Ends the topology of that name or id, and forgets it; returns when its last process is gone.

        Can be repeated.

        Args:
            topology: running, ended, or dead.
            wait_secs: what open tuples have to finish.
            say: takes a sentence for people.

        Raises:
            NotFound: there is none.
            TimedOut: something of it still lives; the same again goes on.
        """

    def savepoints(self, topology: str) -> list[Kept]:  # noqa: ARG002
        """Those of topologies of that name or id, also of such that are gone, beside the state; the newest first."""
        return []

    def checks(self, *, prune: bool) -> Iterator[Check]:
        """Whether all that it needs is in order; by default nothing is looked at.

        Args:
            prune: whether to remove what dead topologies have left.

        Raises:
            UsageError: there is nothing to remove.
        """
        if prune:
            raise UsageError(f"--prune: dead topologies leave nothing behind in {self.place}")
        yield from ()
