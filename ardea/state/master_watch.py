"""What the processes of a topology look out for: where its master acts, and whether it is over."""

from __future__ import annotations

import contextlib

from ardea.errors import StateError
from ardea.state import paths, records
from ardea.state.manager import StateManager, Versioned
from ardea.state.records import ExecutionState, MasterLocation


class MasterWatch:
    """The last that was heard of a topology; for I/O loops, which wait for no server.

    Attributes:
        master: where the acting master listens; None: there is none, or nothing was heard yet.
        final: whether the topology has its final state.
    """

    def __init__(self, state: StateManager, topology_id: str) -> None:
        """``state`` is used by nobody else on another thread."""
        self.master: MasterLocation | None = None
        self.final = False
        self._state = state
        self._path = paths.master(topology_id)
        self._end = paths.execution_state(topology_id)
        self._watches = [state.watch(self._path, self._found_master), state.watch(self._end, self._found_end)]

    def look(self) -> MasterWatch:
        """Takes the news that have come.  While no server answers, or a node is damaged, what was known holds."""
        with contextlib.suppress(StateError):
            self._state.poll()
        return self

    def close(self) -> None:
        """Looks no more.  Can be repeated."""
        for watch in self._watches:
            watch.cancel()

    def _found_master(self, node: Versioned | None) -> None:
        with contextlib.suppress(StateError):
            found = None if node is None else records.decode(node.data, MasterLocation, self._path)
            # One without a term does not act yet.  Who dialled it would dial it again when it has one, and so break the
            # order of what it had said before.
            self.master = found if found is not None and found.term else None

    def _found_end(self, node: Versioned | None) -> None:
        if node is not None:
            with contextlib.suppress(StateError):
                self.final = records.decode(node.data, ExecutionState, self._end).state.final
