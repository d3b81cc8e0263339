"""What is stored of a topology's state; it is written before anybody hears of it."""

from __future__ import annotations

from ardea.errors import ProtocolError
from ardea.plan.definition import Definition
from ardea.state.manager import TooLarge
from ardea.state.records import EndFacts, ExecutionState, RunState, Switch, TimelineRecord
from ardea.topology_master.ending import Ending
from ardea.topology_master.store import Store


class Execution:
    """``drain``: seconds that the drain under way may take; None: there is none.

    ``came_up``: every container has registered, and every task has reported, at least once.
    """

    def __init__(self, store: Store, found: ExecutionState) -> None:
        """``found`` is what the former master has left."""
        self.state = found.state
        self.reason = found.reason
        self.drain = found.end.drain
        self.came_up = found.came_up
        self._switch = found.switch
        self._store = store

    def write(
        self, ending: Ending, state: RunState, reason: str = "", culprit: str = "", *, drain: float | None = None
    ) -> None:
        """The state, and the facts of the end with it."""
        drain = self.drain if drain is None else drain
        switch = None if state.final else self._switch
        self._store.execution(self._stored(state, reason, ending.facts(state, drain), switch, culprit))
        self.state, self.reason, self.drain = state, reason, drain
        ending.unsaved = False

    def switch(
        self,
        wanted: Definition,
        former: Definition | None,
        switch: Switch,
        ending: Ending,
        timeline: TimelineRecord | None,
    ) -> None:
        """Another plan, the way back from it, and the timeline between; ``ending`` knows the plan's tasks.

        Raises:
            ProtocolError: the state manager does not take so much at once; nothing was changed.
        """
        try:
            self._store.switch(wanted, former, self._with(switch, ending), timeline)
        except TooLarge as error:
            raise ProtocolError("UPDATE_REFUSED", error.message) from error
        self._switch = switch

    def settled(self, ending: Ending) -> None:
        """There is no way back any more."""
        self._store.settled(self._with(None, ending))
        self._switch = None

    def _with(self, switch: Switch | None, ending: Ending) -> ExecutionState:
        facts = ending.facts(self.state, self.drain)
        return self._stored(self.state, self.reason, facts, None if self.state.final else switch, "")

    def _stored(
        self, state: RunState, reason: str, facts: EndFacts, switch: Switch | None, culprit: str
    ) -> ExecutionState:
        return ExecutionState(state, reason, facts, switch, culprit, self.came_up)
