"""One topology on this machine, from its start to the last trace of it: for `ardea run` and `ardea submit local`.

The topology's supervisor is on a parent link that this process holds: however this process ends, everything does.
"""

from __future__ import annotations

import contextlib
import enum
import logging
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ardea.config import Settings
from ardea.errors import Conflict, NotFound, StateError
from ardea.metrics import Overview, Totals, by_component
from ardea.plan.definition import Definition
from ardea.plan.names import CONTAINERS, container_name
from ardea.scheduler import capacity
from ardea.scheduler.control import MasterClient, Status
from ardea.scheduler.exits import ExitRecords
from ardea.scheduler.follow import Follower
from ardea.scheduler.home import Home, hold
from ardea.scheduler.hopeless_run import PATIENCE, Cause, DiesInVain, NothingAcked, NothingDone, permanent
from ardea.scheduler.keeper_lease import FORGOTTEN, KeeperLease
from ardea.scheduler.local_processes import LocalProcesses
from ardea.scheduler.submission import Submission
from ardea.state import StateManager, paths, records
from ardea.state.files import is_locked
from ardea.state.records import ExecutionState, RunState
from ardea.state.topologies import listing, register, status
from ardea.supervision.child import Child
from ardea.supervision.logfile import LogFile
from ardea.supervision.records import Exit, take_reason

SUPERVISOR = "supervisor"
log = logging.getLogger("ardea.scheduler")
LOOK_EVERY = 0.1
ASK_EVERY = 0.5
ANSWER_WITHIN = 3.0
"""Seconds that a master has to take an order before its processes are told to end."""
END_WITHIN = 15.0
"""Seconds that processes have to end once the topology is over."""
GIVEN_UP_END_WITHIN = 1.0
"""The same if it was given up: somebody is dying again and again, and will not hear of the end."""


class Stage(enum.IntEnum):
    """How far the end has come; it only rises."""

    RUNNING = 0
    DRAINING = 1
    TERMINATED = 2
    KILLED = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended.  ``errors``: the last exception of each task that had one, the one to look at first.

    ``culprit``: see :class:`ExecutionState`; else the task that had the first of the ``errors``.
    """

    state: RunState
    reason: str
    seconds: float
    components: Mapping[str, Totals]
    errors: Sequence[str]
    culprit: str = ""


class LocalRun:
    """Starts a topology, keeps it, ends it.  One thread; :meth:`wake` may come from a signal handler."""

    def __init__(
        self,
        submission: Submission,
        home: Home,
        *,
        give_up: float = PATIENCE,
        patient: bool = False,
        keep: bool = False,
        scheduler: Callable[[Definition, Path], LocalProcesses] = LocalProcesses,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Touches nothing.

        Args:
            submission: what to run.
            home: the state directory.
            give_up: seconds without an ack after which failures (:class:`NothingAcked`) end the topology; 0: never.
            patient: whatever fails once every task has reported is tried for ever.
            keep: the state keeps the topology after its end; its logs stay in any case.
            scheduler: makes what writes down who runs where, of a definition and the topology's folder.
            clock: seconds, steady.
        """
        self.submission = submission
        self.topology = submission.definition.topology
        self.folder = home.folder(self.topology)
        self.status: Status | None = None
        self.stage = Stage.RUNNING
        self.came_up = False  # every container has registered, and every task has reported, at least once
        self._home, self._patient, self._keep, self._clock = home, patient, keep, clock
        self._scheduler = scheduler
        self._settings = Settings.of(submission.plan.config)
        self._tasks = {instance.name: instance for instance in submission.packing.instances}
        self._nothing_acked, self._nothing_done = NothingAcked(give_up), NothingDone()
        self._dies_in_vain = DiesInVain(give_up)
        self._exits = ExitRecords(self.folder, self._tasks)
        self._spouts = {component.name for component in submission.plan.spouts}
        self._failure: Cause | None = None
        self._deadline: float | None = None  # of the present stage
        self._ordered = False  # the master has answered since it was told to drain
        self._heard = 0.0
        self._next_ask = self._started = 0.0
        self._code: int | None = None
        self._undo = contextlib.ExitStack()  # what start() began

    # --- the start --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Registers the topology and starts its processes; if anything fails, nothing of it is left.

        Raises:
            Conflict: a topology of this name runs.
            ClusterError: the machine is too small, or a port is taken.
            StateError: the state directory cannot be written.
        """
        capacity.check(self.submission.packing, capacity.Machine.here())
        capacity.check_ports(self._settings.metrics_port, len(self.submission.packing.containers))
        self._started = self._clock()
        with contextlib.ExitStack() as undo:
            self._home.make_folder(self.topology)
            undo.callback(shutil.rmtree, self.folder, ignore_errors=True)
            with contextlib.ExitStack() as keep:
                try:
                    if self.submission.code is not None:
                        self.submission.code.write(self.folder)
                    self._take(keep)
                    self._spawn(keep)
                except OSError as error:
                    raise self._home.refusal(error) from error
                self._undo = keep.pop_all()
            undo.pop_all()
        self._home.prune()

    def _take(self, undo: contextlib.ExitStack) -> None:
        lock = hold(self.folder)
        undo.callback(os.close, lock)
        self._lock = lock
        self._state: StateManager = undo.enter_context(self._home.open_state())
        self._keeper_lease = KeeperLease(self._state, self.topology)
        undo.callback(self._keeper_lease.release)
        record, active = self.submission.record(), self.submission.definition.active
        register(self._state, record, active=active)
        undo.callback(self._forget)
        self._keeper_lease.begin(
            lambda: register(self._state, record.changed_to(self.submission.definition), active=active)
        )
        self._forget_former()

    def _spawn(self, undo: contextlib.ExitStack) -> None:
        scheduler = self._scheduler(self.submission.definition, self.folder)
        command = scheduler.prepare()
        self._follower = Follower(self._state, self.submission.definition, scheduler)
        self._log = LogFile(self.folder / "logs" / f"{SUPERVISOR}.log", self._settings.log_size_mb << 20, 2)
        undo.callback(self._log.close)
        self._client = undo.enter_context(MasterClient(self._state, self.topology, self.folder, clock=self._clock))
        environment = {**os.environ, "ARDEA_FOLDER": str(self.folder), "ARDEA_NAME": SUPERVISOR, "ARDEA_LIFE": "1"}
        self._child = Child.spawn(command, environment, self._lock)
        undo.callback(self._child.close)
        undo.callback(self._kill)

    # --- the run ----------------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the last process is gone."""
        return self._code is not None

    @property
    def seconds(self) -> float:
        """Since the start."""
        return self._clock() - self._started

    def wake(self) -> None:
        """Ends the wait of :meth:`step`."""
        self._client.wake()

    def step(self) -> None:
        """Waits a moment, takes the news, does what is due."""
        self._client.wait(LOOK_EVERY)
        now = self._clock()
        while output := self._child.output():
            self._log.write(output)
        self._child.beats()
        code = self._child.process.poll()
        if code is not None:
            self._ended(code)
            return
        if (answer := self._client.receive()) is not None:
            self._note_status(answer, now)
        if now >= self._next_ask:
            self._next_ask = now + ASK_EVERY
            self._ask()
            self._keeper_lease.renew()
            self._follow()
            if self._keeper_lease.ended and self.stage < Stage.TERMINATED:
                self._escalate()
            self._consider(now)
        if self._deadline is not None and now >= self._deadline:
            self._escalate()

    def stop(self) -> Stage:
        """The first call drains, the second ends the processes, the third kills them; returns where it is now."""
        if self.stage is Stage.RUNNING:
            self.stage = Stage.DRAINING
            self._deadline = self._clock() + ANSWER_WITHIN
            self._ask()
        else:
            self._escalate()
        return self.stage

    def _ask(self) -> None:
        if self._failure:
            self._client.send("fail", reason=self._failure.reason, culprit=self._failure.culprit)
        else:
            self._client.send("status" if self.stage is Stage.RUNNING else "drain")

    def _note_status(self, status: Status, now: float) -> None:
        self.status = status
        self.came_up = self.came_up or status.complete
        self._heard = now
        if RunState(status.state).final:
            self._end_by(now + (GIVEN_UP_END_WITHIN if self._failure else END_WITHIN))
        elif self.stage is Stage.DRAINING and not self._ordered:
            self._ordered = True
            self._deadline = now + self._settings.drain + END_WITHIN

    def _follow(self) -> None:
        """An update has changed the plan."""
        if (definition := self._follower.step()) is None:
            return
        self.submission = submission = Submission.restored(definition, self.submission.topology_class)
        self._settings = Settings.of(submission.plan.config)
        self._tasks = {instance.name: instance for instance in submission.packing.instances}
        self._exits = ExitRecords(self.folder, self._tasks)
        self._spouts = {component.name for component in submission.plan.spouts}

    @property
    def ends(self) -> dict[str, list[Exit]]:
        """The last ends of each process that ended, oldest first."""
        return self._exits.read()

    def _end_by(self, deadline: float) -> None:
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def _consider(self, now: float) -> None:
        """Gives up if the run is hopeless; notices the end if the master could not tell it."""
        if now - self._heard > ANSWER_WITHIN and self._client.master_watch.final:
            self._end_by(now + END_WITHIN)
        if self._failure or self.stage is not Stage.RUNNING or (self._patient and self.came_up):
            return
        status = self.status
        if status is not None and status.update is not None and status.update.running:
            return  # a version that does not come up is put back
        spouts = [t for n, t in (status.components if status else {}).items() if n in self._spouts]
        failed = sum(t.failed + t.timed_out + t.lost for t in spouts)
        worked = {p.process for p in (status.processes if status else ()) if p.totals.emitted or p.totals.executed}
        pending = sum(t.pending for t in spouts)
        acked, ends = sum(t.acked for t in spouts), self.ends
        cause = self._nothing_acked.observe(now, acked, failed, pending)
        if cause and status is not None and status.erring:
            cause = Cause(f"{cause.reason}; the last error: {status.errors[-1]}", status.erring[-1])
        cause = cause or self._dies_in_vain.observe(time.time(), acked, ends, self._tasks.keys())
        if cause := cause or self._nothing_done.observe(ends, self._tasks.keys(), worked):
            self._failure = Cause(f"given up: {cause.reason}", cause.culprit)
            self._end_by(now + ANSWER_WITHIN)
            self._ask()

    def _escalate(self) -> None:
        if self.stage < Stage.TERMINATED:
            self.stage = Stage.TERMINATED
            self._child.signal(signal.SIGTERM)
            self._deadline = None  # the supervisor kills who does not end
        elif self.stage is Stage.TERMINATED:
            self.stage = Stage.KILLED
            self._child.signal(signal.SIGKILL)

    def _ended(self, code: int) -> None:
        self._log.write(self._child.last_output())
        self._kill()
        self._code = code
        self._deadline = None

    def _kill(self) -> None:
        """Nothing survives the supervisor; waits until each container has let its folder go."""
        if self.over:
            return  # the pid may be another's by now
        self._child.kill_group()
        self._child.process.wait()
        deadline = self._clock() + END_WITHIN
        locks = [self.folder / "lock", *self.folder.glob(f"{CONTAINERS}/lock")]
        while any(map(is_locked, locks)) and self._clock() < deadline:
            self._client.wait(0.02)

    # --- the end ----------------------------------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """How it ended; written into the state if the master could not."""
        path = paths.execution_state(self.topology)
        try:
            held = self._state.get(path)
        except NotFound:
            execution = ExecutionState(RunState.FAILED, FORGOTTEN)
        else:
            execution = records.decode(held.data, ExecutionState, path)
            if not execution.state.final:
                execution = self._verdict()
                self._state.set(path, records.encode(execution), held.version)
        errors = self.status.errors if self.status else []
        culprit = execution.culprit or next(iter(self.status.erring if self.status else ()), "")
        return Outcome(execution.state, execution.reason, self.seconds, self._totals(), errors, culprit)

    def _verdict(self) -> ExecutionState:
        """Of a topology whose master had no last word."""
        left = take_reason(self.folder, SUPERVISOR)
        if self._failure:
            return ExecutionState(RunState.FAILED, self._failure.reason, culprit=self._failure.culprit)
        if self._keeper_lease.ended:
            return ExecutionState(RunState.FAILED, self._keeper_lease.ended)
        if self.stage is not Stage.RUNNING:
            return ExecutionState(RunState.KILLED, "its processes were ended before all tuples had been processed")
        code = self._code
        how = f"killed by {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit {code}"
        cause = permanent(self.ends) or Cause(left or f"the topology's supervisor ended: {how}")
        return ExecutionState(RunState.FAILED, cause.reason, culprit=cause.culprit)

    def _totals(self) -> dict[str, Totals]:
        """The last word of each metrics manager; where there is none, what the master knew."""
        overview = Overview()
        for summary in self.folder.glob(f"{CONTAINERS}/metrics.summary"):
            overview.accept(summary.read_bytes(), self._clock())
        return {**(self.status.components if self.status else {}), **by_component(overview.processes())}

    def log_to_read(self, outcome: Outcome) -> Path:
        """The log of the outcome's culprit; the folder of all if there is none, or it has left no log."""
        container, _, process = outcome.culprit.rpartition("/")
        if (task := self._tasks.get(outcome.culprit)) is not None:
            container = container_name(self.submission.packing.container_of(task.task))
        log_file = self.folder / container / "logs" / f"{process}.log"
        return log_file if log_file.is_file() else self.folder

    def close(self) -> None:
        """Ends what is left, and forgets the topology, its logs apart.  Can be repeated.

        A state that cannot be written keeps what it has: the processes are gone even so, and how it went is known.
        """
        try:
            self._undo.close()
        except StateError as error:
            log.warning("%s; `ardea doctor --prune` removes what is left of %s", error.message, self.topology)

    def _forget_former(self) -> None:
        """Those of this name that have ended, or died, leave the state to this one; their logs stay."""
        for former in listing(self._state, self.submission.plan.name):
            kept = self._state.exists(paths.scheduler(former.id))
            if former.problem is None and not kept:
                failed = former.execution is not None and former.execution.state is RunState.FAILED
                with contextlib.suppress(Conflict):  # somebody else removes it at this moment
                    self._home.forget(self._state, former.id, snapshots=not failed)

    def _forget(self) -> None:
        if not (self._keep and self.over):
            self._home.forget(self._state, self.topology, snapshots=not self._failed)

    @property
    def _failed(self) -> bool:
        """Then what it remembers stays, to be looked at."""
        with contextlib.suppress(StateError):
            execution = status(self._state, self.topology).execution
            return execution is not None and execution.state is RunState.FAILED
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
