"""The states in a savepoint, beside those that a topology declares."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ardea.backends.values import values_of
from ardea.errors import EncodingError, UserError
from ardea.keyed import KeyedState, ListState, State, TaskState, states_of
from ardea.plan import LogicalPlan
from ardea.plan.logical import ComponentPlan
from ardea.snapshots.savepoint import Savepoint
from ardea.snapshots.state_file import Kind, decode_state
from ardea.timers import Timers

_KEYED = KeyedState, Timers
_KINDS: Mapping[Kind, tuple[type[State], ...]] = {
    Kind.ONE: (TaskState,),
    Kind.PUT: _KEYED,
    Kind.PACKED: _KEYED,
    Kind.GONE: _KEYED,
    Kind.ITEMS: (ListState,),
}


class Found:
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
