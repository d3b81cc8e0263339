"""A master's right to write."""

from __future__ import annotations

from collections.abc import Sequence

from ardea.errors import Conflict, NotFound
from ardea.state import paths
from ardea.state.manager import Check, Create, Set, StateManager, Write


class Fenced(Conflict):
    """A newer master has taken over, or the topology is gone: this master ends."""


class Term:
    """One master's term: ``number`` is the version of the term's node, higher for each master.

    Every write of a master goes through :meth:`transaction`, so that one which was frozen and wakes up late changes
    nothing.
    """

    def __init__(self, state: StateManager, topology_id: str, number: int) -> None:
        self.number = number
        self._state = state
        self._check = Check(paths.term(topology_id), number)

    @classmethod
    def take(cls, state: StateManager, topology_id: str, holder: str, above: int = 0) -> Term:
        """A new master's first act; ``holder`` says who it is, to people.

        ``above``: a term that there was, of which the state manager may know nothing any more.
        """
        path, data = paths.term(topology_id), holder.encode()
        while True:
            try:
                last = state.get(path).version
                write: Write = Set(path, data, last, rise=max(1, above + 1 - last))
            except NotFound:
                write = Create(path, data, above + 1)
            try:
                (number,) = state.transaction([write])
            except (Conflict, NotFound):
                continue  # another master has taken a term in between
            return cls(state, topology_id, number)

    def transaction(self, writes: Sequence[Write], *, checks: Sequence[Check] = ()) -> tuple[int, ...]:
        """As :meth:`StateManager.transaction`, provided that the term still runs.

        Raises:
            Fenced: it does not.  Nothing was changed.
        """
        try:
            return self._state.transaction(writes, checks=(self._check, *checks))
        except (Conflict, NotFound) as error:
            if self._runs():
                raise
            raise Fenced(
                f"term {self.number} of {self._check.path} is over; nothing was changed, and this master ends",
                hint="nothing to do: the topology goes on under its newer master, or was killed",
            ) from error

    def _runs(self) -> bool:
        try:
            return self._state.get(self._check.path).version == self.number
        except NotFound:
            return False
