"""What a supervisor decides: events in, instructions out; no processes, pipes or clocks here.

    WAITING --Start--> STARTING --Started--> RUNNING --Exited--> WAITING (after a back-off) or DONE

A process is started only from WAITING and leaves RUNNING only by ``Exited``, so there are never two of one name.
"""

from __future__ import annotations

import enum
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from ardea.errors import ExitCode
from ardea.supervision.spec import RESTARTED, Policy, ProcessSpec

BACKOFF = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before the first, second ... restart in a row."""
SETTLED = 60.0
"""A process that lived so long starts again at the beginning of BACKOFF."""
REMOVED = "it is in the specification no longer"
EARLY = "before its work was done"
"""The reason of an exit 0 that is not to be believed."""
IDLE = 0.01
"""Below this share of a core a silent process is idle."""
STARTS = 4
"""Processes that a tick starts: each takes its time, and the supervisor has to beat, and to hear of others, between."""

_MIB = 1 << 20


class Phase(enum.StrEnum):
    """Where a process is in its life."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Look:
    """What the kernel says of a process: resident bytes, CPU seconds so far, stopped by a signal or debugger.

    ``ready``: it would work if it got a core, or what it reads from a disk.
    """

    resident: int
    cpu: float
    stopped: bool
    ready: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """The process of that name runs."""

    name: str


@dataclass(frozen=True, slots=True)
class Beat:
    """Its I/O loop is alive.

    ``in_user_code``: its executor is inside a user's method; ``same_call``: and was at the last beat, in the same call.
    """

    name: str
    in_user_code: bool
    same_call: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """It says that its work is done: it will exit with 0, and is to be believed."""

    name: str


@dataclass(frozen=True, slots=True)
class Observed:
    """A look at a running process."""

    name: str
    look: Look


@dataclass(frozen=True, slots=True)
class Exited:
    """It ended, or could not be started.  ``code`` is negative for a signal; ``said``: what it left as its reason."""

    name: str
    code: int
    said: str | None = None


@dataclass(frozen=True, slots=True)
class LeaderEnded:
    """The one that leads, under another supervisor, has ended for good.

    ``well``: it has done its work; otherwise there is nothing to wait for.
    """

    well: bool


@dataclass(frozen=True, slots=True)
class Hopeless:
    """A former life, before this supervisor, has ended with 78: it is not started, and the end of all awaited."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Everything has to end."""


@dataclass(frozen=True, slots=True)
class RestartRequested:
    """Every process that runs has to end, and starts again at once."""


@dataclass(frozen=True, slots=True)
class Respecified:
    """The specification has changed: start what is new, end what is gone, start again what has another version."""

    specs: tuple[ProcessSpec, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; all beats that have arrived were handed in before."""


Event = (
    Started
    | Beat
    | Done
    | Observed
    | Exited
    | LeaderEnded
    | Hopeless
    | StopRequested
    | RestartRequested
    | Respecified
    | Tick
)


@dataclass(frozen=True, slots=True)
class Start:
    """Start that process, then hand in ``Started`` or ``Exited``."""

    name: str


@dataclass(frozen=True, slots=True)
class Kill:
    """Send it that signal; SIGKILL goes to all it has started as well."""

    name: str
    signal: signal.Signals


@dataclass(frozen=True, slots=True)
class ReportStuck:
    """Have it write its stack into its log: it has been in one call of user code for so many seconds."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Ended:
    """Write down that it ended and why; ``again``: seconds until it is started again, None for never."""

    name: str
    code: int
    reason: str
    again: float | None


@dataclass(frozen=True, slots=True)
class Finish:
    """All have ended: the supervisor ends with ``code``."""

    code: ExitCode


Instruction = Start | Kill | ReportStuck | Ended | Finish


@dataclass(slots=True)
class Process:
    """One process as the supervisor knows it; times are the injected clock's."""

    spec: ProcessSpec
    phase: Phase = Phase.WAITING
    due: float = 0.0
    failures: int = 0
    restarts: int = 0
    code: int | None = None
    reason: str | None = None
    # of the present life
    started: float = 0.0
    heard: float = 0.0
    called: float = 0.0  # the call of user code that it is in began then, or later
    beaten: bool = False
    in_user_code: bool = False
    done: bool = False
    silent: bool = False  # user code keeps the interpreter lock: not even its I/O loop runs
    look: Look | None = None
    window: tuple[float, float] | None = None  # (time, CPU seconds) since which its work is measured
    reported: float | None = None
    killed: str | None = None
    removed: bool = False
    kill_at: float = float("inf")  # if it has not followed SIGTERM by then

    def begin(self, now: float) -> None:
        """A new life."""
        self.phase = Phase.STARTING
        self.started = self.heard = self.called = now
        self.beaten = self.in_user_code = self.done = self.silent = False
        self.look = self.window = self.reported = self.killed = None
        self.kill_at = float("inf")

    @property
    def state(self) -> str:
        """For people: waiting, starting, running, stuck, silent, ending, finished or failed."""
        if self.phase is Phase.DONE:
            return "finished" if self.code == ExitCode.OK else "failed"
        if self.phase is Phase.RUNNING and (self.killed or self.reported is not None):
            return "ending" if self.killed else "silent" if self.silent else "stuck"
        return self.phase.value


class SupervisorState:
    """The decisions of one supervisor.

    Call ``handle`` with every event in turn, beats before the ``Tick`` of the same moment, and follow what it returns.
    Ticks start everything, a few each.  ``cause``: the process, and why, whose end stopped the others, or which is not
    started for that.
    """

    def __init__(self, specs: Sequence[ProcessSpec], policy: Policy, now: float) -> None:
        self.policy = policy
        self.processes = {spec.name: Process(spec, due=now) for spec in specs}
        self.stopping = False
        self.interrupted = False
        self.led_out = False
        self.finished = False
        self.cause: str | None = None
        self._ticked = now
        self._stop_at = float("inf")
        self._kill_at = float("inf")

    def handle(self, event: Event, now: float) -> list[Instruction]:
        """The instructions that follow from ``event`` at ``now`` (seconds, never falling)."""
        match event:
            case Tick():
                return self._tick(now)
            case LeaderEnded(well):
                if not (self.stopping or self.led_out):
                    self._lead_out(now, self.policy.grace if well else 0.0)
                return self._finish()
            case Hopeless(name, reason):
                self.processes[name].due, self.processes[name].code = float("inf"), ExitCode.PERMANENT
                self.cause = f"{name}: {reason}"
                return []
            case StopRequested():
                self.interrupted = self.interrupted or any(p.phase is not Phase.DONE for p in self.processes.values())
                return [*self._stop(now), *self._finish()]
            case RestartRequested():
                running = [p for p in self.processes.values() if p.phase is Phase.RUNNING]
                return [each for process in running for each in self._begin_again(process, now)]
            case Respecified():
                return [*self._respecify(event.specs, now), *self._finish()]
            case Exited():
                return [*self._exited(self.processes[event.name], event, now), *self._finish()]
            case Started() | Beat() | Done() | Observed():
                return self._news(self.processes[event.name], event, now)
            case _:
                assert_never(event)

    def wakeup(self) -> float:
        """When a ``Tick`` will start or kill something at the latest, beats and looks apart."""
        if self.stopping:
            living = (p for p in self.processes.values() if p.phase is Phase.RUNNING)
            return min((p.kill_at if p.killed else self._kill_at for p in living), default=float("inf"))
        return min((p.due for p in self.processes.values() if p.phase is Phase.WAITING), default=self._stop_at)

    def _news(self, process: Process, event: Started | Beat | Done | Observed, now: float) -> list[Instruction]:
        name = process.spec.name
        if isinstance(event, Started):
            process.phase = Phase.RUNNING
            process.heard = now
            return [Kill(name, signal.SIGTERM)] if self.stopping else []
        if process.phase is not Phase.RUNNING:
            return []
        if isinstance(event, Done):
            process.done = True
            return []
        if isinstance(event, Beat):
            process.heard, process.beaten, process.in_user_code = now, True, event.in_user_code
            process.window, process.silent = None, False
            if event.same_call:
                return self._report(process, now) if now >= process.called + self.policy.report else []
            process.called, process.reported = now, None
            return []
        process.look = event.look
        if process.window is None:
            process.window = (now, event.look.cpu)
        limit = process.spec.ram
        if limit is None or event.look.resident <= limit:
            return []
        return self._kill(
            process, f"memory limit {limit / _MIB:.0f} MiB exceeded: {event.look.resident / _MIB:.0f} MiB resident"
        )

    def _tick(self, now: float) -> list[Instruction]:
        # Time in which the supervisor itself did not run (stopped, frozen, no CPU) is nobody's silence.
        unobserved = max(0.0, now - self._ticked - self.policy.silence / 2)
        self._ticked = now
        started = 0
        instructions: list[Instruction] = []
        for process in self.processes.values():
            process.heard = min(now, process.heard + unobserved)
            if process.phase is Phase.RUNNING and now >= process.kill_at:
                process.kill_at = float("inf")
                instructions.append(Kill(process.spec.name, signal.SIGKILL))
            elif self.stopping:
                if now >= self._kill_at and process.phase is Phase.RUNNING:
                    instructions += self._kill(process, f"did not end within {self.policy.grace:g} s of SIGTERM")
            elif process.phase is Phase.WAITING and now >= process.due and started < STARTS:
                started += 1
                process.begin(now)
                instructions.append(Start(process.spec.name))
            elif process.phase is Phase.RUNNING:
                instructions += self._silent(process, now)
        return instructions if now < self._stop_at else [*instructions, *self._stop(now)]

    def _silent(self, process: Process, now: float) -> list[Instruction]:
        """Ten seconds without a beat: dead, unless user code is at work (and may hold the interpreter lock)."""
        silent = now - process.heard
        if silent < self.policy.silence or process.killed or process.spec.debugged:
            return []
        said = f"silent for {silent:.1f} s"
        if process.look is not None and process.look.stopped:
            return self._kill(process, f"{said}: it is stopped")
        if process.beaten and not process.in_user_code:
            return self._kill(process, said)
        if process.look is not None and process.window is not None:
            since, cpu = process.window
            if now - since < self.policy.silence / 2:
                return []
            if process.look.cpu - cpu < IDLE * (now - since) and not process.look.ready:
                return self._kill(process, f"{said}: it is idle")
            process.window = (now, process.look.cpu)
        if not process.beaten:
            within = self.policy.first_beat(look.cpu, look.ready) if (look := process.look) else self.policy.startup
            return self._kill(process, f"{said}: it never beat") if silent >= within else []
        process.silent = True
        return self._report(process, now)

    def _report(self, process: Process, now: float) -> list[Instruction]:
        if (
            process.killed
            or process.spec.debugged
            or (process.reported is not None and now - process.reported < self.policy.report)
        ):
            return []
        process.reported = now
        return [ReportStuck(process.spec.name, now - process.called)]

    def _kill(self, process: Process, why: str) -> list[Instruction]:
        if process.killed:
            return []
        process.killed = why
        return [Kill(process.spec.name, signal.SIGKILL)]

    def _stop(self, now: float) -> list[Instruction]:
        if self.stopping:
            return []
        self.stopping = True
        self._kill_at = now + self.policy.grace
        self._start_nothing()
        running = [p.spec.name for p in self.processes.values() if p.phase is Phase.RUNNING and not p.killed]
        return [Kill(name, signal.SIGTERM) for name in running]

    def _lead_out(self, now: float, patience: float) -> None:
        self.led_out = True
        self._stop_at = now + patience
        self._start_nothing()

    def _start_nothing(self) -> None:
        for process in self.processes.values():
            if process.phase is Phase.WAITING:
                process.phase = Phase.DONE

    def _begin_again(self, process: Process, now: float) -> list[Instruction]:
        if self.stopping or self.led_out or process.killed:
            return []
        process.killed, process.kill_at = RESTARTED, now + self.policy.grace
        return [Kill(process.spec.name, signal.SIGTERM)]

    def _respecify(self, specs: Sequence[ProcessSpec], now: float) -> list[Instruction]:
        if self.stopping or self.led_out:
            return []
        instructions: list[Instruction] = []
        wanted = {spec.name: spec for spec in specs}
        for name, process in list(self.processes.items()):
            spec = wanted.get(name)
            if spec is None:
                instructions += self._remove(process, now)
                continue
            changed = process.removed or spec.version != process.spec.version
            process.spec, process.removed = spec, False
            if changed and process.phase is Phase.RUNNING:
                process.failures = 0
                instructions += self._begin_again(process, now)
                process.killed = RESTARTED  # also one that is about to end for another reason
            elif changed and process.phase is Phase.WAITING:
                process.failures, process.due = 0, now
        for name, spec in wanted.items():
            if name not in self.processes:
                self.processes[name] = Process(spec, due=now)
        return instructions

    def _remove(self, process: Process, now: float) -> list[Instruction]:
        if process.removed:
            return []
        process.removed = True
        if process.phase is not Phase.RUNNING:
            del self.processes[process.spec.name]
            return []
        ending = process.killed
        process.killed, process.kill_at = REMOVED, now + self.policy.grace
        return [] if ending else [Kill(process.spec.name, signal.SIGTERM)]

    def _exited(self, process: Process, event: Exited, now: float) -> list[Instruction]:
        if now - process.started >= SETTLED:
            process.failures = 0
        early = event.code == ExitCode.OK and process.beaten and not process.done  # user code, or a stranger, ended it
        code = process.code = ExitCode.TEMPORARY if early else event.code
        process.reason = _reason(event, process.killed or (EARLY if early else None))
        if process.removed and not self.stopping:
            del self.processes[event.name]
            return [Ended(event.name, code, process.reason, None)]
        ending = self.stopping or self.led_out
        if process.killed == RESTARTED and not ending:
            process.phase, process.due = Phase.WAITING, now
            process.restarts += 1
            return [Ended(event.name, code, process.reason, 0.0)]
        final = code in (ExitCode.OK, ExitCode.PERMANENT) or _replaced(process)
        if ending or final or process.spec.restart == "never":
            process.phase = Phase.DONE
            ended = Ended(event.name, code, process.reason, None)
            if process.spec.leads and code == ExitCode.OK and not ending:
                self._lead_out(now, self.policy.grace)
            if code == ExitCode.OK or ending:
                return [ended]
            self.cause = f"{event.name}: {process.reason}"
            return [ended, *self._stop(now)]
        again = BACKOFF[min(process.failures, len(BACKOFF) - 1)]
        process.phase, process.due = Phase.WAITING, now + again
        process.failures += 1
        process.restarts += 1
        return [Ended(event.name, code, process.reason, again)]

    def _finish(self) -> list[Instruction]:
        if self.finished or any(p.phase is not Phase.DONE for p in self.processes.values()):
            return []
        self.finished = True
        codes = {p.code for p in self.processes.values()}
        if self.led_out:
            return [Finish(ExitCode.OK)]
        if any(map(_replaced, self.processes.values())):
            return [Finish(ExitCode.REPLACED)]
        if ExitCode.PERMANENT in codes:
            return [Finish(ExitCode.PERMANENT)]
        # Who ends in good order when told to has not done its work.
        done = codes <= {ExitCode.OK} and not self.interrupted
        return [Finish(ExitCode.OK if done else ExitCode.TEMPORARY)]


def _replaced(process: Process) -> bool:
    """Whether its container was, which only the one that leads is told."""
    return process.spec.leads and process.code == ExitCode.REPLACED


def _reason(event: Exited, killed: str | None) -> str:
    how = f"exit {event.code}" if event.code >= 0 else f"killed by {signal.Signals(-event.code).name}"
    why = killed or event.said
    if why is None and event.code == -signal.SIGKILL:
        why = "not by its supervisor: by the kernel, which does that when memory runs out, or by hand"
    return f"{how} ({why})" if why else how
