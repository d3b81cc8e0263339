"""The states of one component object: made empty, filled from files of a snapshot, and written into one."""

from __future__ import annotations

from collections.abc import Iterator

from ardea.backends.memory import KeyedTable, Lower
from ardea.component import Component
from ardea.keyed import KeyedState, TaskState, states_of
from ardea.snapshots.state_file import HEAD, Kind, decode_state, encode_piece


class States:
    """Of one object; in memory."""

    def __init__(self, component: Component) -> None:
        self._component = component
        self._tables: dict[str, tuple[KeyedTable, Lower]] = {}
        self._single: list[str] = []
        self._frozen: list[bytes] = []  # those of one value, as they were at the last barrier
        for state in states_of(type(component)):
            if isinstance(state, KeyedState):
                self._tables[state.name] = state.attach(component)
            elif isinstance(state, TaskState):
                state.attach(component)
                self._single.append(state.name)

    def freeze(self) -> None:
        """What there is belongs to a snapshot, what comes from now on to the next.

        Raises:
            UserError: a value cannot be stored.
        """
        self._frozen = [encode_piece(name, Kind.ONE, [(getattr(self._component, name),)]) for name in self._single]
        for table, _ in self._tables.values():
            table.freeze()

    def pieces(self, *, full: bool) -> Iterator[bytes]:
        """A file of what :meth:`freeze` has left: all of it, or what has changed since what was last :meth:`stored`.

        It may be read by another thread, until :meth:`stored` or the next :meth:`freeze` is called.

        Raises:
            UserError: a key or a value cannot be stored.
        """
        yield HEAD
        yield from self._frozen
        for name, (_, lower) in self._tables.items():
            for kind, rows in lower.rows(full=full):
                yield encode_piece(name, kind, rows)

    def stored(self) -> None:
        """The file that was written last lies in the store."""
        for _, lower in self._tables.values():
            lower.stored()

    def settle(self) -> None:
        """A little of the work that storing has left."""
        for _, lower in self._tables.values():
            lower.settle()

    def load(self, content: bytes, file: str) -> None:
        """A base or a delta, in their order; states that the component does not know are passed over.

        Raises:
            StateError: it cannot be read.
        """
        for piece in decode_state(content, file):
            if piece.state in self._tables:
                self._tables[piece.state][1].load(piece.kind, piece.rows)
            elif piece.state in self._single:
                setattr(self._component, piece.state, piece.rows[0][0])
