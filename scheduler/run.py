"""One topology on this machine, from its start to the last trace of it: for `ardea run` and `ardea submit local`.

The topology's supervisor is on a parent link that this process holds: however this process ends, everything does.
"""

from __future__ import annotations

import contextlib
import enum
import logging
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ardea.config import Settings
from ardea.errors import ArdeaError, StateError
from ardea.metrics import Overview, Totals, by_component
from ardea.plan.definition import Definition
from ardea.plan.names import CONTAINERS, container_name
from ardea.plan.packing import InstancePlan
from ardea.scheduler import capacity
from ardea.scheduler.control import MasterClient, Status
from ardea.scheduler.exits import ExitRecords
from ardea.scheduler.follow import Follower
from ardea.scheduler.home import Home
from ardea.scheduler.hopeless_run import PATIENCE, Cause, HopelessRun, permanent
from ardea.scheduler.local_processes import LocalProcesses
from ardea.scheduler.local_supervisor import LocalSupervisor
from ardea.scheduler.registration import Registration
from ardea.scheduler.submission import Submission
from ardea.state.records import ExecutionState, RunState
from ardea.supervision.records import Exit

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
        self.over = False  # the last process is gone
        self._home, self._scheduler, self._clock = home, scheduler, clock
        self._hopeless = HopelessRun(give_up, patient=patient)
        self._registration = Registration(
            submission, home, lambda: keep and self.over, lambda: self.submission.definition
        )
        self._exits = ExitRecords(self.folder, self._tasks)
        self._failure: Cause | None = None
        self._deadline: float | None = None  # of the present stage
        self._ordered = False  # the master has answered since it was told to drain
        self._refused = ""  # what the master said last when it refused
        self._heard = self._next_ask = self._started = 0.0
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
                    self._registration.begin(keep)
                    self._spawn(keep)
                except OSError as error:
                    raise self._home.refusal(error) from error
                self._undo = keep.pop_all()
            undo.pop_all()
        self._home.prune()

    def _spawn(self, undo: contextlib.ExitStack) -> None:
        scheduler = self._scheduler(self.submission.definition, self.folder)
        command, state, lock = scheduler.prepare(), self._registration.state, self._registration.lock
        self._follower = Follower(state, self.submission.definition, scheduler)
        self._client = undo.enter_context(MasterClient(state, self.topology, self.folder, clock=self._clock))
        self._supervisor = LocalSupervisor(
            command, self.folder, lock, self._settings.log_size_mb << 20, self._client.wait, self._clock
        )
        undo.callback(self._supervisor.close)

    # --- the run ----------------------------------------------------------------------------------------------

    @property
    def _settings(self) -> Settings:
        return Settings.of(self.submission.plan.config)

    @property
    def _tasks(self) -> dict[str, InstancePlan]:
        return {instance.name: instance for instance in self.submission.packing.instances}

    @property
    def came_up(self) -> bool:
        """Whether every container has registered, and every task has reported, at least once."""
        return self._hopeless.came_up

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
        self._supervisor.attend()
        if self._supervisor.code is not None:
            self.over, self._deadline = True, None
            return
        if (answer := self._answer()) is not None:
            self._note_status(answer, now)
        if now >= self._next_ask:
            self._next_ask = now + ASK_EVERY
            self._ask()
            self._registration.lease.renew()
            self._follow()
            if self._registration.lease.ended and self.stage < Stage.TERMINATED:
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

    def _answer(self) -> Status | None:
        """The newest.  A refusal is none: then the deadlines end what was ordered."""
        try:
            return self._client.receive()
        except ArdeaError as error:
            if error.message != self._refused:
                log.error("%s", error.message)
            self._refused = error.message
            return None

    def _ask(self) -> None:
        if self._failure:
            self._client.send("fail", reason=self._failure.reason, culprit=self._failure.culprit)
        else:
            self._client.send("status" if self.stage is Stage.RUNNING else "drain")

    def _note_status(self, status: Status, now: float) -> None:
        self.status = status
        self._hopeless.heard(status)
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
        self.submission = Submission.restored(definition, self.submission.topology_class)
        self._exits = ExitRecords(self.folder, self._tasks)

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
        if self._failure or self.stage is not Stage.RUNNING:
            return
        spouts = [component.name for component in self.submission.plan.spouts]
        cause = self._hopeless.observe(now, time.time(), self.status, self.ends, self._tasks, spouts)
        if cause is not None:
            self._failure = cause
            self._end_by(now + ANSWER_WITHIN)
            self._ask()

    def _escalate(self) -> None:
        if self.stage < Stage.TERMINATED:
            self.stage = Stage.TERMINATED
            self._supervisor.signal(signal.SIGTERM)
            self._deadline = None  # the supervisor kills who does not end
        elif self.stage is Stage.TERMINATED:
            self.stage = Stage.KILLED
            self._supervisor.signal(signal.SIGKILL)

    # --- the end ----------------------------------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """How it ended; written into the state if the master could not do that, and this process can."""
        execution = self._registration.outcome(self._verdict)
        errors = self.status.errors if self.status else []
        culprit = execution.culprit or next(iter(self.status.erring if self.status else ()), "")
        return Outcome(execution.state, execution.reason, self.seconds, self._totals(), errors, culprit)

    def _verdict(self) -> ExecutionState:
        """Of a topology whose master had no last word, or one that nobody can read."""
        if self.status and (told := RunState(self.status.state)).final:
            return ExecutionState(told, self.status.reason)
        if self._failure:
            return ExecutionState(RunState.FAILED, self._failure.reason, culprit=self._failure.culprit)
        if lease_ended := self._registration.lease.ended:
            return ExecutionState(RunState.FAILED, lease_ended)
        if self.stage is not Stage.RUNNING:
            return ExecutionState(RunState.KILLED, "its processes were ended before all tuples had been processed")
        cause = permanent(self.ends) or Cause(self._supervisor.how_it_ended())
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
