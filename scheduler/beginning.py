"""``submit --from``: whether a topology can begin from a savepoint, and how it does (docs/snapshots.md).

All is looked at before anything is started: the description, each file's checksum, and what lies in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from ardea.backends.values import values_of
from ardea.config import Settings
from ardea.errors import ArdeaError, EncodingError, StateError, UserError
from ardea.keyed import KeyedState, ListState, State, TaskState, states_of
from ardea.plan import LogicalPlan
from ardea.plan.logical import ComponentPlan
from ardea.snapshots.manifest import STATE_FILES, text_of
from ardea.snapshots.place import Files, place_at
from ardea.snapshots.savepoint import NUMBER, Savepoint, begin, contents, read
from ardea.snapshots.state_file import Kind, decode_state
from ardea.state.records import TimelineRecord
from ardea.timers import Timers

_KEYED = KeyedState, Timers
_KINDS: Mapping[Kind, tuple[type[State], ...]] = {
    Kind.ONE: (TaskState,),
    Kind.PUT: _KEYED,
    Kind.PACKED: _KEYED,
    Kind.GONE: _KEYED,
    Kind.ITEMS: (ListState,),
}
NOTHING_STARTED = "nothing was started"


class Beginning(msgspec.Struct, frozen=True):
    """A savepoint that a topology can begin from, less what it does not take over, and the folder where it lies."""

    folder: str
    savepoint: Savepoint

    @classmethod
    def of(cls, folder: str, plan: LogicalPlan, *, drop_state: bool) -> Beginning:
        """``drop_state``: whether state may be left behind that the topology does not have any more.

        Raises:
            NotFound: no savepoint lies there.
            StateError: it is not whole, or cannot be read.
            UserError: the topology cannot begin from it.
        """
        settings = Settings.of(plan.config)
        if not settings.remembers:
            raise UserError(
                f"--from: {plan.name} is in the mode {settings.reliability_mode}, which keeps no state; "
                f"{NOTHING_STARTED}",
                hint="set topology.reliability.mode to EFFECTIVELY_ONCE",
            )
        files = place_at(folder)
        with _blaming(folder):
            savepoint = read(files)
            if savepoint.groups != settings.key_groups:
                raise UserError(
                    f"its keys are divided among {savepoint.groups} groups, and {plan.name} has topology.key.groups = "
                    f"{settings.key_groups}",
                    hint=f"submit it with --set topology.key.groups={savepoint.groups}",
                )
            found = _Found(plan, savepoint)
            for part, file, content in contents(files, savepoint):
                if file.name.endswith(STATE_FILES):
                    found.look(part.component, part.index, content, file.name)
            found.check(drop_state=drop_state)
        return cls(folder, savepoint.without(found.gone))

    def copy(self, store: Files) -> None:
        """Into the topology's own store.

        Raises:
            StateError: it is not whole any more, or cannot be read or written.
        """
        with _blaming(self.folder):
            begin(place_at(self.folder), store, self.savepoint)

    @property
    def record(self) -> TimelineRecord:
        """With which the topology begins: nobody works in it yet, as after an update."""
        return TimelineRecord(restore=NUMBER, committed=NUMBER)

    @property
    def says(self) -> str:
        """A sentence for people."""
        one, manifest = self.savepoint, self.savepoint.manifest
        at = datetime.fromtimestamp(one.at, UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
        return (
            f"begins from the savepoint {self.folder}: snapshot {text_of(one.number)} of {one.topology}, taken at "
            f"{at} UTC, {manifest.bytes:,} bytes in {len(manifest.names):,} files"
        )


class _Found:
    """What a savepoint has, against what a topology declares."""

    def __init__(self, plan: LogicalPlan, savepoint: Savepoint) -> None:
        self._components: dict[str, ComponentPlan] = {component.name: component for component in plan}
        self._name = plan.name
        self.gone = sorted(savepoint.components.keys() - self._components.keys())
        self._states = {c.name: {state.name: state for state in states_of(c.cls)} for c in plan}
        self._lost: defaultdict[str, set[str]] = defaultdict(set)  # states, by component
        self._others: list[str] = []
        self._held: dict[tuple[str, int, str], bool] = {}  # whether a task that is gone has another value

    def look(self, component: str, index: int, content: bytes, name: str) -> None:
        """One of a task's files, in their order."""
        if component not in self._components:
            return
        declared = self._states[component]
        for piece in decode_state(content, name):
            state = declared.get(piece.state)
            if state is None:
                self._lost[component].add(piece.state)
            elif not isinstance(state, kinds := _KINDS[piece.kind]):
                said = f"{component}.{piece.state} was a {kinds[0].__name__} and is a {type(state).__name__}"
                if said not in self._others:
                    self._others.append(said)
            elif piece.kind is Kind.ONE and index >= self._components[component].tasks:
                self._held[component, index, piece.state] = _differs(state, piece.rows[0][0])

    def check(self, *, drop_state: bool) -> None:
        """Raises UserError."""
        if self._others:
            raise UserError(
                f"{'; '.join(self._others)}: what is stored cannot be read so", hint="give the new state another name"
            )
        bound = sorted(f"{component}-{index}" for (component, index, _), held in self._held.items() if held)
        if bound:
            raise UserError(
                f"{', '.join(dict.fromkeys(bound))} would not be there, with a TaskState that no other task can have",
                hint="submit it with as many tasks of that component, or keep positions in a ListState",
            )
        lost = [f"component {name}" for name in self.gone]
        lost += [
            f"state {component}.{state}" for component, states in sorted(self._lost.items()) for state in sorted(states)
        ]
        if lost and not drop_state:
            raise UserError(
                f"it has the {', the '.join(lost)}, which {self._name} does not have",
                hint="--drop-state begins without what that holds; or give back the former name.  A state that "
                "initialize() makes by context.keyed_state() is not known before: it is taken over even so",
            )


def _differs(state: State, stored: object) -> bool:
    """Whether a task has had another value than the default."""
    try:
        return bool(values_of(state.type, state.place).of_plain(stored) != state.make())
    except EncodingError:
        return True


@contextmanager
def _blaming(folder: str) -> Iterator[None]:
    try:
        yield
    except ArdeaError as error:
        raise type(error)(f"{folder}: {error.message}; {NOTHING_STARTED}", hint=error.hint) from error
    except OSError as error:
        raise StateError(f"{folder}: {error.strerror or error}; {NOTHING_STARTED}") from error
