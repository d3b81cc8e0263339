"""Which topologies there are: to submit under a name, to find, to remove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ardea.errors import Conflict, NotFound, StateError
from ardea.health import Health
from ardea.state import paths, records
from ardea.state.envelope import Damaged
from ardea.state.manager import Check, Create, Delete, StateManager
from ardea.state.records import ExecutionState, R, TopologyRecord

_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TopologyStatus:
    """One topology.  ``record`` and ``execution`` are None where ``problem`` says that they cannot be read.

    ``running``: its state is not final and its scheduler is there; after a power failure it is not.  ``health``: None
    where nobody was asked, and once it has ended.
    """

    id: str
    record: TopologyRecord | None
    execution: ExecutionState | None
    running: bool
    problem: StateError | None = None
    health: Health | None = None

    @property
    def name(self) -> str:
        """The name that it was submitted under."""
        return paths.name_of(self.id)

    @property
    def state(self) -> str:
        """In one word: DEAD if it should run and nobody keeps it, as its ``ardea run`` or daemon was killed."""
        if self.execution is None:
            return "UNREADABLE"
        return self.execution.state.value if self.running or self.execution.state.final else "DEAD"


def register(state: StateManager, record: TopologyRecord, *, active: bool = True, also: Sequence[Create] = ()) -> None:
    """Submits a topology under its name; one that is not ``active`` waits for ``ardea activate``.

    The caller holds, or has created, ``paths.scheduler(record.id)``: that is what makes the topology run.  ``also`` are
    nodes of this topology that there must be as soon as it is known.

    Raises:
        Conflict: a topology of this name is running.  Nothing of the new one is left.
    """
    created = [
        Create(paths.topology(record.id), records.encode(record)),
        Create(paths.execution_state(record.id), records.encode(ExecutionState.first(active=active))),
        *also,
    ]
    state.transaction(created)
    try:
        _claim(state, record)
    except StateError:
        state.transaction([Delete(node.path) for node in created])
        raise


def status(state: StateManager, topology_id: str) -> TopologyStatus:
    """What is known of one id; NotFound without a root."""
    if not state.exists(paths.topology(topology_id)):
        raise _unknown(topology_id)
    record, execution, problem = None, None, None
    try:
        record = _read(state, paths.topology(topology_id), TopologyRecord)
        execution = _read(state, paths.execution_state(topology_id), ExecutionState)
    except StateError as error:
        problem = error
    final = execution is not None and execution.state.final
    running = not final and state.exists(paths.scheduler(topology_id))
    return TopologyStatus(topology_id, record, execution, running, problem)


def listing(state: StateManager, name: str | None = None) -> list[TopologyStatus]:
    """All topologies, or those of a name, the newest first."""
    found = []
    for topology_id in state.children(paths.TOPOLOGIES):
        if name is None or paths.name_of(topology_id) == name:
            try:
                found.append(status(state, topology_id))
            except NotFound:
                continue  # removed since
    return sorted(found, key=lambda s: s.record.submitted_at if s.record else _BEFORE_ALL, reverse=True)


def find(state: StateManager, name_or_id: str) -> TopologyStatus:
    """The topology of that id; else the running one of that name; else the newest of that name.

    Raises:
        NotFound: there is none.
    """
    try:
        return status(state, name_or_id)
    except (NotFound, ValueError):
        found = listing(state, name_or_id)
    if not found:
        raise _unknown(name_or_id)
    return next((topology for topology in found if topology.running), found[0])


def remove(state: StateManager, topology_id: str, *, checks: tuple[Check, ...] = ()) -> None:
    """Removes all that the state knows of an id, at once, and its name.  Can be repeated.

    Raises:
        Conflict: a check fails, or somebody writes at this moment.  Nothing was changed.
    """
    there = [Delete(path) for path in paths.every(topology_id) if state.exists(path)]
    if there:
        state.transaction(there, checks=checks)
    name = paths.name(paths.name_of(topology_id))
    try:
        holder = state.get(name)
        if holder.data.decode() == topology_id:
            state.delete(name, holder.version)
    except (NotFound, Conflict):
        pass  # nobody's, or somebody else's by now
    except Damaged:
        free(state, paths.name_of(topology_id))


def damaged_names(state: StateManager) -> tuple[str, ...]:
    """Names of which it cannot be read whose they are: nothing can be submitted under them."""
    return tuple(name for name in state.children(paths.NAMES) if _is_damaged(state, name))


def free(state: StateManager, name: str) -> bool:
    """Removes a name of which it cannot be read whose it is, unless a topology of that name runs; whether it did."""
    if not _is_damaged(state, name) or any(topology.running for topology in listing(state, name)):
        return False
    state.delete(paths.name(name))
    return True


def orphans(state: StateManager) -> tuple[str, ...]:
    """Ids of which something is left without a root, and nobody who would be about to make one."""
    known = {topology_id for kind in paths.KINDS for topology_id in state.children(kind)}
    known.difference_update(state.children(paths.TOPOLOGIES))
    return tuple(sorted(i for i in known if not state.exists(paths.scheduler(i))))


def _claim(state: StateManager, record: TopologyRecord) -> None:
    path, data = paths.name(record.name), record.id.encode()
    try:
        held = state.get(path)
    except NotFound:
        state.create(path, data)
        return
    holder = held.data.decode()
    try:
        running = status(state, holder).running
    except NotFound:
        running = False
    if running:
        raise Conflict(
            f"a topology named {record.name} is running, as {holder}; nothing was submitted",
            hint=f"`ardea kill {record.name}` ends it; or submit under another --name",
        )
    state.set(path, data, held.version)


def _is_damaged(state: StateManager, name: str) -> bool:
    try:
        state.get(paths.name(name))
    except Damaged:
        return True
    except (NotFound, ValueError):
        pass
    return False


def _read(state: StateManager, path: str, kind: type[R]) -> R:
    return records.decode(state.get(path).data, kind, path)


def _unknown(name: str) -> NotFound:
    return NotFound(f"no topology is called {name}", hint="`ardea list` shows those that there are")
