"""A caller of a topology's master: the verbs of its control port."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import msgspec

from ardea.errors import ArdeaError, ClusterError, NotFound, Unreachable
from ardea.health import Health, ProcessRow, Raised
from ardea.metrics import Edge, ProcessTotals, Samples, Stall, Totals
from ardea.plan.change import UpdateProgress
from ardea.plan.definition import Definition
from ardea.plan.names import MASTER_CONTAINER, TOPOLOGY_MASTER, container_name
from ardea.plan.resource import Resource
from ardea.protocol.addresses import tcp_address
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.inspection import Answer as Inspected
from ardea.protocol.story import line
from ardea.protocol.wire_pb2 import ANSWER, ASK, REOPENED, Answer, Ask, Header, TaskState
from ardea.scheduler.keys import keys_of
from ardea.snapshots.kept import Listing
from ardea.snapshots.savepoint import SavepointProgress
from ardea.snapshots.status import SnapshotStatus
from ardea.state import MasterWatch, StateManager
from ardea.state.records import RunState
from ardea.transport import Dialled, Keyring, Poller, context, holder
from ardea.versions import PROTOCOL, protocol_differs

PATIENCE = 5.0


class Unreadable(ClusterError):  # noqa: N818 -- as its siblings in ardea.errors
    """The master has done what it was asked for, and answers as another version does."""


class TaskStatus(msgspec.Struct, frozen=True):
    """One task: ``state`` is that of its report (RESTING), ``life`` 0 if it has not reported, ``open`` its trees.

    ``asked``: what it was packed with.
    """

    state: str
    life: int
    open: int
    asked: Resource


class StoryEvent(NamedTuple):
    """One event of a story: so many seconds ago, and how often in a row."""

    ago: float
    what: str
    times: int


class Status(msgspec.Struct, frozen=True):
    """What the master says of its topology.  ``erring``: the tasks that had the ``errors``, in their order.

    ``stories``: what happened last to each task and container, to the update and the topology; only for who asks so.
    ``acting``: what people call the master, or its pod; ``came_up``: it was complete at least once; ``health``: None
    once it is over; ``supervised``: what the supervisors say of the processes; ``snapshots``: None if none are taken;
    ``begins``: why it has not begun from its savepoint; ``kept``: what the verb ``snapshots`` has found last;
    ``history``: the samples that the verb ``history`` asks for; ``edges``: those of the plan, none from a master of an
    older version; ``stalls``: the tasks that hold spouts back, who does so for longest first; ``exceptions``: those of
    authors' code, what was raised last first, only for who asks so;
    ``inspection``: what ``inspect`` asks for.
    """

    topology: str
    state: str
    reason: str
    term: int
    epoch: int
    missing_containers: list[int]
    silent_tasks: list[str]
    given_up: int
    errors: list[str]
    update: UpdateProgress | None
    tasks: dict[str, TaskStatus]
    components: dict[str, Totals]
    processes: list[ProcessTotals]
    erring: list[str] = []
    stories: dict[str, list[StoryEvent]] = {}
    acting: str = ""
    came_up: bool = False
    health: Health | None = None
    supervised: list[ProcessRow] = []
    snapshots: SnapshotStatus | None = None
    savepoint: SavepointProgress | None = None
    begins: str = ""
    kept: Listing | None = None
    history: Samples | None = None
    edges: list[Edge] = []
    stalls: list[Stall] = []
    exceptions: list[Raised] = []
    inspection: Inspected | None = None

    @property
    def complete(self) -> bool:
        """Whether every container has registered and every task has reported, other than why it cannot go on."""
        waits = self.missing_containers or self.silent_tasks or self.begins
        return not waits and self.state != RunState.FAILED.value


def waiting_for(status: Status | None) -> str:
    """What keeps a topology from running."""
    if status is None:
        return "waiting for the topology master"
    missing = [f"container {number}" for number in status.missing_containers] or status.silent_tasks
    return f"waiting for {_some(missing)}" if missing else status.begins


def unfinished(status: Status | None) -> str:
    """Which spouts keep a bounded topology from its end, as nothing else does."""
    names = (
        sorted(name for name, task in status.tasks.items() if task.state == TaskState.Name(REOPENED)) if status else []
    )
    if not names:
        return ""
    return f"{_some(names)} {'waits' if len(names) == 1 else 'wait'} for finish() again"


def answered(frames: Sequence[bytes], topology: str) -> Status | None:
    """What the master of ``topology`` says in a message; None: the message is no answer.

    Raises:
        MalformedError: it is none of any kind.
        ArdeaError, Unreadable: see :meth:`ControlPort.ask`.
    """
    header = checked(frames)
    if header.kind != ANSWER:
        return None
    return status_in(Answer.FromString(frames[1]), header.protocol, topology)


def status_in(answer: Answer, protocol: int, topology: str) -> Status:
    """What a master of any protocol says, as long as all is there that this version needs.

    Raises:
        ArdeaError, Unreadable: see :meth:`ControlPort.ask`.
    """
    master = f"the master of {topology}"
    if not answer.ok:
        raise ArdeaError(f"{master} refused: {answer.message} ({answer.code})")
    try:
        return msgspec.json.decode(answer.body, type=Status)
    except (ValueError, RecursionError) as error:
        why = protocol_differs("this verb", master, protocol, "what it answers cannot be read")
        raise Unreadable(
            why or f"what {master} answers cannot be read: {error}", hint="use the version that submitted it"
        ) from error


def story_lines(status: Status, names: Iterable[str]) -> Iterator[str]:
    """Their stories, the oldest event first; nothing of whom nothing is known."""
    for name in names:
        if events := status.stories.get(name):
            yield f"story of {name}:"
            yield from (f"  {line(*event)}" for event in events)


def _some(names: list[str]) -> str:
    return f"{', '.join(names[:4])}{' ...' if names[4:] else ''}"


class ControlPort(Protocol):
    """The way to one topology's master, wherever it is now: the verbs of docs/protocol.md, "Control port"."""

    def ask(self, verb: str, *, patience: float = PATIENCE, body: bytes = b"", **arguments: str) -> Status:
        """Asks and waits for the answer, which every verb gives alike.

        Args:
            verb: ``status``, ``activate``, ``drain``, ...
            patience: seconds.
            body: what a verb takes beside its arguments.
            arguments: the verb's.

        Raises:
            Unreachable: no master answered in time.
            Unreadable: it did what it was asked for, and answers as another version does.
            ArdeaError: it refused.
        """


def samples(control: ControlPort, names: Iterable[str] = (), since: float = 0.0) -> Samples:
    """What components and tasks did lately (docs/console.md, History).

    Args:
        control: of the topology.
        names: components and tasks, at most 100; none: all components.
        since: Unix seconds; later samples only.

    Raises:
        Unreachable, ArdeaError: see :meth:`ControlPort.ask`; a master of an older version refuses.
    """
    status = control.ask("history", names=",".join(names), since=repr(since), brief="yes")
    if status.history is None:
        raise Unreadable(f"the master of {status.topology} answers without a history")
    return status.history


class MasterClient:
    """A :class:`ControlPort` for a process that reads the state and reaches the master.  Belongs to one thread."""

    def __init__(
        self,
        state: StateManager,
        topology_id: str,
        folder: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``folder`` is the topology's: the token and the callers' key; ``master_watch`` is what asking sees of it."""
        self.master_watch = MasterWatch(state, topology_id)
        self._topology, self._folder, self._clock = topology_id, folder, clock
        self._context = context()
        self._poller = Poller()
        self._link: Dialled | None = None
        self._identity = b"c%d-%s" % (os.getpid(), secrets.token_hex(4).encode())

    def ask(self, verb: str, *, patience: float = PATIENCE, body: bytes = b"", **arguments: str) -> Status:
        """See :class:`ControlPort`."""
        deadline = self._clock() + patience
        self._drop()  # an answer to an earlier question would be taken for this one's
        sent = False
        while (left := deadline - self._clock()) > 0:
            sent = sent or self.send(verb, body, **arguments)
            self.wait(min(left, 0.2))
            if sent and (status := self.receive()) is not None:
                return status
        log = self._folder / container_name(MASTER_CONTAINER) / "logs" / f"{TOPOLOGY_MASTER}.log"
        raise Unreachable(
            f"the master of {self._topology} did not answer `{verb}` within {patience:g} s",
            hint=f"its log is {log}",
        )

    def send(self, verb: str, body: bytes = b"", /, **arguments: str) -> bool:
        """Asks without waiting; False: there is no master now."""
        token, link = self._token(), self._connect()
        if link is None:
            return False
        ask = Ask(verb=verb, token=token, arguments=arguments, body=body)
        return link.send([Header(kind=ASK, protocol=PROTOCOL).SerializeToString(), ask.SerializeToString()])

    def receive(self) -> Status | None:
        """The newest answer that has come; None: nothing has.

        Raises:
            ArdeaError: the master refused what was asked.
            Unreadable: it did not, and answers as another version.
        """
        newest: Status | None = None
        for frames in self._link.receive(16) if self._link is not None else ():
            with contextlib.suppress(MalformedError):  # as if it had not come
                newest = answered(frames, self._topology) or newest
        return newest

    def wait(self, seconds: float) -> None:
        """Until an answer or a wake-up, or the time has passed."""
        self._poller.wait(seconds)

    def wake(self) -> None:
        """Ends :meth:`wait`; from a signal handler or another thread."""
        self._poller.wake()

    def close(self) -> None:
        """Closes the sockets.  Can be repeated."""
        if self._context.closed:
            return
        self._drop()
        self.master_watch.close()
        self._poller.close()
        self._context.destroy(linger=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> Dialled | None:
        if (location := self.master_watch.look().master) is None:
            return None
        address = tcp_address(location.host, location.port)
        if self._link is None or self._link.address != address:
            self._drop()
            keys = Keyring.read(keys_of(self._folder), Definition.read(self._folder / "definition").keys)
            self._link = Dialled(self._context, self._identity, address, keys, holder(MASTER_CONTAINER))
            self._poller.watch(self._link)
        return self._link

    def _drop(self) -> None:
        if self._link is not None:
            self._poller.forget(self._link)
            self._link.close()
            self._link = None

    def _token(self) -> str:
        try:
            return (self._folder / "token").read_text().strip()
        except OSError as error:
            raise NotFound(
                f"the token of {self._topology} cannot be read: {error.strerror}",
                hint=f"the topology belongs to another user, or runs elsewhere: {self._folder}",
            ) from error
