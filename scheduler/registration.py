"""What the state and the disk have of a topology whose processes this one keeps: a folder, a lease, a record."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable

from ardea.errors import Conflict, NotFound, StateError
from ardea.plan.definition import Definition
from ardea.scheduler.home import Home, hold
from ardea.scheduler.keeper_lease import FORGOTTEN, KeeperLease
from ardea.scheduler.submission import Submission
from ardea.state import Create, StateManager, paths, records
from ardea.state.records import ExecutionState, RunState, TopologyRecord
from ardea.state.topologies import TopologyStatus, listing, register, status

log = logging.getLogger("ardea.scheduler")


class Registration:
    """From :meth:`begin` to the end of the stack that it was given.

    Attributes:
        lock: the file descriptor that holds the folder.
        state: is polled by the owner.
        lease: of the right to keep its processes.
    """

    lock: int
    state: StateManager
    lease: KeeperLease

    def __init__(
        self, submission: Submission, home: Home, stays: Callable[[], bool], present: Callable[[], Definition]
    ) -> None:
        """Touches nothing.

        Args:
            submission: what was submitted.
            home: the state directory.
            stays: whether the state keeps the topology after the end.
            present: what its processes work by, after updates.
        """
        self._submission, self._home, self._stays, self._present = submission, home, stays, present
        self._topology = submission.definition.topology
        self.folder = home.folder(self._topology)

    def begin(self, undo: contextlib.ExitStack) -> None:
        """Registers it in a folder that is there; what has ended of this name leaves the state.

        Raises:
            Conflict: a topology of this name runs.
            StateError: the state directory cannot be written.
            OSError: its files cannot be.
        """
        if self._submission.code is not None:
            self._submission.code.write(self.folder)
        self.lock = hold(self.folder)
        undo.callback(os.close, self.lock)
        self.state = undo.enter_context(self._home.open_state())
        self.lease = KeeperLease(self.state, self._topology)
        undo.callback(self.lease.release)
        record = self._submission.record()
        register(self.state, record, active=self._submission.definition.active)
        undo.callback(self._forget)
        self.lease.begin(lambda: self._put_back(record))
        self._forget_former()

    def _put_back(self, record: TopologyRecord) -> None:
        """Into a state that has lost it, with the plan: a master that stood by may know none but that of its start."""
        present = self._present()
        plan = Create(paths.physical_plan(self._topology), present.packed(), present.epoch)
        register(self.state, record.changed_to(present), active=present.active, also=[plan])

    def outcome(self, verdict: Callable[[], ExecutionState]) -> ExecutionState:
        """The master's last word; if it had none, or nobody can read it, the ``verdict``, written down if it can be."""
        path = paths.execution_state(self._topology)
        try:
            held = self.state.get(path)
            execution = records.decode(held.data, ExecutionState, path)
            if not execution.state.final:
                execution = verdict()
                self.state.set(path, records.encode(execution), held.version)
        except NotFound:
            return ExecutionState(RunState.FAILED, FORGOTTEN)
        except StateError as error:
            execution = verdict()
            log.error("the state may not say that %s ended as %s: %s", self._topology, execution.state, error.message)
        return execution

    def _forget_former(self) -> None:
        """Those of this name that have ended, or died, leave the state to this one; their logs stay."""
        for former in listing(self.state, self._submission.plan.name):
            kept = self.state.exists(paths.scheduler(former.id))
            if former.problem is None and not kept:
                with contextlib.suppress(Conflict, NotFound):  # somebody else removes it at this moment
                    self._home.forget(self.state, former.id, snapshots=_ended_well(former))

    def _forget(self) -> None:
        if not self._stays():
            self._home.forget(self.state, self._topology, snapshots=self._done)

    @property
    def _done(self) -> bool:
        with contextlib.suppress(StateError):
            return _ended_well(status(self.state, self._topology))
        return False


def _ended_well(topology: TopologyStatus) -> bool:
    """Whether it has ended, and has not FAILED; else what it remembers stays, to be looked at."""
    execution = topology.execution
    return execution is not None and execution.state.final and execution.state is not RunState.FAILED
