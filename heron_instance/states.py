"""The states of one component object: made empty, filled from a snapshot's file, and written into one."""

from __future__ import annotations

from typing import Any

from ardea.component import Component
from ardea.keyed import KeyedState, KeyedTable, TaskState, states_of
from ardea.snapshots.state_file import decode_state, encode_state


class States:
    """Of one object; the memory backend."""

    def __init__(self, component: Component) -> None:
        self._component = component
        self._tables: dict[str, KeyedTable] = {}
        self._single: list[str] = []
        for state in states_of(type(component)):
            if isinstance(state, KeyedState):
                self._tables[state.name] = state.attach(component)
            elif isinstance(state, TaskState):
                state.attach(component)
                self._single.append(state.name)

    def content(self) -> bytes:
        """As a file of a snapshot holds it."""
        tables = {name: list(table.items()) for name, table in self._tables.items()}
        single = {name: [(getattr(self._component, name),)] for name in self._single}
        return encode_state({**tables, **single})

    def load(self, content: bytes, file: str) -> None:
        """What :meth:`content` has written; states that it does not know begin empty.

        Raises:
            StateError: it cannot be read.
        """
        for name, rows in decode_state(content, file).items():
            if name in self._tables:
                self._tables[name].update((_hashable(key), value) for key, value in rows)
            elif name in self._single:
                setattr(self._component, name, rows[0][0])


def _hashable(key: Any) -> Any:
    """Tuples within a key arrive as lists."""
    return tuple(map(_hashable, key)) if isinstance(key, list) else key
