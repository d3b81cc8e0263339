"""An update of a topology on this machine, from what is asked for to the plan in force (docs/updating.md)."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from pathlib import Path

from ardea.code import Code
from ardea.plan.change import UpdateRequest
from ardea.plan.definition import Definition
from ardea.scheduler import keys
from ardea.scheduler.control import MasterClient
from ardea.scheduler.difference import difference
from ardea.scheduler.next_definition import Change, Version, check_capacity, code_of, next_of, plan_of
from ardea.scheduler.processes import died_since
from ardea.scheduler.schedulers import Say, Update
from ardea.scheduler.update import Refused, Updating
from ardea.state import StateManager, paths, records
from ardea.state.records import ExecutionState

_SHOWN_CAUSES = 4


class LocalUpdate(Update):
    """One update; the same again joins, or finishes, what is half done."""

    def __init__(self, state: StateManager, topology: str, folder: Path, change: Change, target: str | None) -> None:
        """See :meth:`ardea.scheduler.schedulers.Handle.update`; ``folder`` is the topology's."""
        self._state, self._topology, self._folder = state, topology, folder
        self._fresh = code_of(target) if target is not None else None
        if target is not None and self._fresh is not None:
            change = replace(change, version=Version(location=str(Path(target).absolute()), code=self._fresh.digest))
        self._present, half_done = self._in_force()
        self._next = self._wanted(change, half_done=half_done)
        self.difference = difference(self._present, self._next)

    def apply(self, patience: float, say: Say) -> None:
        """See :class:`Update`."""
        if self._fresh is not None:
            self._fresh.write(self._folder)
        request = self._request(patience)
        began = time.time()
        try:
            with MasterClient(self._state, self._topology, self._folder) as client:
                Updating(client, request, say, ended=lambda: client.master_watch.look().final).update()
        except Refused as refused:
            causes = died_since(self._folder, began)[:_SHOWN_CAUSES]
            raise Refused("\n".join((refused.message, *causes)), hint=refused.hint) from refused

    def _in_force(self) -> tuple[Definition, bool]:
        """The plan in force, and whether an update to it is half done."""
        path, execution = paths.physical_plan(self._topology), paths.execution_state(self._topology)
        present = Definition.unpacked(self._state.get(path).data, path)
        return present, records.decode(self._state.get(execution).data, ExecutionState, execution).switch is not None

    def _wanted(self, change: Change, *, half_done: bool) -> Definition:
        """The next plan, of the code that is kept in the topology's folder or of a new version's."""
        present = self._present
        location, code = present.location, None
        if change.version is not None:
            location = change.version.location
        else:
            code = Code.read(self._folder, present.code)
        return next_of(present, change, lambda config: plan_of(location, config, code), half_done=half_done)

    def _request(self, patience: float) -> UpdateRequest:
        """The keys of new containers lie where their processes look for them."""
        check_capacity(self._present, self._next)
        lacking = keys.lacking(self._next)
        _, fresh = keys.issue(self._next, keys.read(self._folder, lacking))
        keys.write(self._folder, fresh)
        # Of two verbs at the same moment both ask with the keys that lie there.
        next_, _ = keys.issue(self._next, keys.read(self._folder, lacking))
        return UpdateRequest(secrets.token_hex(8), next_, self._present.epoch, patience)
