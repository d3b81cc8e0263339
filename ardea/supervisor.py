"""The parent of processes: starts, watches, restarts and ends them, and leaves none behind (docs/supervisor.md).

``python -m ardea.supervisor --folder FOLDER --spec FILE`` is PID 1 of a Kubernetes container and, locally, the
supervisor of one container, itself on the parent link of ``ardea run``.  It exits with

    0   every process ended by itself with 0: the work is done
    75  stopped, or a process is not to be restarted: start the supervisor again
    76  another container has the place of this one
    78  a process exited with 78 (its configuration is wrong), or this one's is: starting again will not help
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import selectors
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import assert_never

from ardea import logs, parent_link
from ardea.errors import ArdeaError, ClusterError, ConfigError, ExitCode
from ardea.supervision import kernel, records
from ardea.supervision.child import Child
from ardea.supervision.folder import Folder
from ardea.supervision.outputs import Outputs
from ardea.supervision.signals import RESTART, STOPS, Signals
from ardea.supervision.spawner import Spawner
from ardea.supervision.spec import Policy, ProcessSpec, SpecFile, load
from ardea.supervision.supervisor_state import (
    Beat,
    Done,
    Ended,
    Event,
    Exited,
    Finish,
    Hopeless,
    Instruction,
    Kill,
    LeaderEnded,
    Observed,
    ReportStuck,
    Respecified,
    RestartRequested,
    Start,
    Started,
    StopRequested,
    SupervisorState,
    Tick,
)

logger = logging.getLogger(logs.SUPERVISOR)

OUT_OF_MEMORY = "out of memory: killed by the kernel, at the limit of its container or of the machine"
_LOCK_PATIENCE = 15.0
_FORKSERVER_PATIENCE = 10.0


class Supervisor:
    """Runs processes until they have ended.

    Args:
        processes: what to run; names are unique.
        folder: logs, lives, exits and status; made if missing; one supervisor at a time.
        policy: patience and log sizes; None: the defaults.
        id_: what it is known by; None: a random one.
        stdout: what the processes print goes to this one's stdout instead of log files; one whose last end in
            ``folder`` was permanent is not started, but what it printed last is printed again.
        clock: seconds, monotonic.
        wall: Unix seconds, for the exit records.
        spec: the file that ``processes`` are from, looked at each second; another file in its place changes what runs.
        leader: a process that leads, by the folder of its own supervisor and its name; None: one of ``processes``, if
            any.

    Attributes:
        id: its processes see it as ARDEA_SUPERVISOR_ID.
        cause: the process and the reason that stopped the others, or for which it was not started; None if none did.

    Raises:
        ConfigError: no process, or two of one name.
    """

    def __init__(
        self,
        processes: Sequence[ProcessSpec],
        folder: Path,
        policy: Policy | None = None,
        *,
        id_: str | None = None,
        stdout: bool = False,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        spec: Path | None = None,
        leader: tuple[Path, str] | None = None,
    ) -> None:
        names = [process.name for process in processes]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"supervisor of {folder}: needs processes of different names, got {names}")
        self.id = id_ or uuid.uuid4().hex
        self._files = Folder(folder)
        self._policy = policy or Policy()
        self._clock, self._wall = clock, wall
        self._state = SupervisorState(processes, self._policy, clock())
        self._children: dict[str, Child] = {}
        self._outputs = Outputs(self._files.path, self._policy, stdout=stdout, wall=wall)
        self._selector = selectors.DefaultSelector()
        self._spawner = Spawner(self._files, self.id, self._selector)
        self._signals = Signals()
        self._memory_kills = kernel.MemoryKills()
        self._result: ExitCode | None = None
        self._spec = None if spec is None else SpecFile(spec)
        self._leader = leader

    @property
    def cause(self) -> str | None:
        """The process and the reason that stopped the others; None if none did."""
        return self._state.cause

    def run(self) -> ExitCode:
        """Supervise until everything has ended; once, in the main thread, whose signals it handles meanwhile.

        Raises:
            ClusterError: another supervisor, or a process of a former one, holds the folder.
            OSError: the folder cannot be written.
        """
        try:
            self._selector.register(self._signals, selectors.EVENT_READ, self._on_signals)
            with self._signals.caught():
                self._take_folder()
                return self._supervise()
        finally:
            self._leave_nothing()

    def stop(self) -> None:
        """What SIGTERM does; from any thread."""
        self._signals.stop()

    # -- the loop

    def _supervise(self) -> ExitCode:
        self._recall()
        self._prepare()
        look_every = min(1.0, self._policy.silence / 8)
        look_at = self._clock()
        while self._result is None:
            self._wait(min(look_at, self._state.wakeup()) - self._clock())
            self._reap()
            now = self._clock()
            if now >= look_at:
                look_at = now + look_every
                self._look()
                self._follow_spec()
                self._follow_leader()
                self._files.beat()
                parent_link.beat(in_user_code=False)
            self._handle(Tick())
            self._show_status()
        return self._result

    def _prepare(self) -> None:
        """The forkserver, if there is to be one."""
        self._spawner.preload(self._policy.preload)
        deadline = self._clock() + _FORKSERVER_PATIENCE
        while not self._spawner.ready and self._result is None:
            if self._clock() >= deadline:
                self._spawner.give_up(f"not ready after {_FORKSERVER_PATIENCE:g} s")
            parent_link.beat(in_user_code=False)
            self._wait(0.05)

    def _wait(self, seconds: float) -> None:
        for key, _ in self._selector.select(max(0.0, seconds)):
            key.data()

    def _handle(self, event: Event) -> None:
        self._follow(self._state.handle(event, self._clock()))

    def _follow(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Start(name):
                    self._start(name)
                case Kill(name, number):
                    self._children[name].signal(number)
                case ReportStuck(name, seconds):
                    self._outputs.of(name).mark(f"in one call of user code for {seconds:.1f} s; its stack follows")
                    logger.warning("%s: in one call of user code for %.1f s; its stack is in its log", name, seconds)
                    self._children[name].signal(signal.SIGUSR1)
                case Ended():
                    self._write_down(instruction)
                case Finish(code):
                    self._result = code
                case _:
                    assert_never(instruction)

    def _look(self) -> None:
        for name, child in self._children.items():
            if (seen := kernel.look(child.pid)) is not None:
                self._handle(Observed(name, seen))

    def _follow_spec(self) -> None:
        if self._spec is None:
            return
        try:
            processes = self._spec.news()
        except ConfigError as error:
            logger.error("%s", error)
        else:
            if processes is not None:
                self._handle(Respecified(tuple(processes)))

    def _follow_leader(self) -> None:
        if self._leader is not None and (end := records.final_end(*self._leader)) is not None:
            self._leader = None
            self._handle(LeaderEnded(well=end.code == ExitCode.OK))

    def _recall(self) -> None:
        """Kubelet starts PID 1 of a container again, whatever its exit code says; when all ends, others will say."""
        if not self._outputs.stdout:
            return
        for name in self._state.processes:
            end = records.final_end(self._files.path, name)
            if end is not None and end.code == ExitCode.PERMANENT:
                log = self._outputs.of(name)
                with self._tolerating("what it printed could not be read", name):
                    log.repeat()
                log.mark(f"not started again: {end.reason}; waits for the end of the topology")
                self._handle(Hopeless(name, end.reason))

    def _on_beat(self, name: str, child: Child) -> None:
        if beats := child.beats():
            self._heard(name, beats)
        else:
            self._selector.unregister(child.beat_fd)

    def _heard(self, name: str, beats: bytes) -> None:
        if last := beats.replace(b"d", b""):
            self._handle(Beat(name, in_user_code=not last.endswith(b"i"), same_call=not last.strip(b"c")))
        if b"d" in beats:
            self._handle(Done(name))

    def _on_output(self, name: str, child: Child) -> None:
        if output := child.output():
            self._outputs.of(name).write(output)
        else:
            self._selector.unregister(child.output_fd)

    def _on_signals(self) -> None:
        numbers = self._signals.take()
        if not numbers.isdisjoint(STOPS):
            self._handle(StopRequested())
        if RESTART in numbers:
            self._handle(RestartRequested())

    # -- starting and ending

    def _start(self, name: str) -> None:
        try:
            log = self._outputs.of(name)
            child = self._spawner.spawn(self._state.processes[name].spec)
        except (OSError, ClusterError) as error:
            permanent = isinstance(error, ClusterError | FileNotFoundError | PermissionError)
            code = ExitCode.PERMANENT if permanent else ExitCode.TEMPORARY
            self._handle(Exited(name, code, f"could not be started: {_with_hint(error)}"))
        else:
            self._children[name] = child
            self._selector.register(child.beat_fd, selectors.EVENT_READ, lambda: self._on_beat(name, child))
            self._selector.register(child.output_fd, selectors.EVENT_READ, lambda: self._on_output(name, child))
            log.mark(f"life {self._spawner.lives[name]} started, pid {child.pid}")
            self._handle(Started(name))

    def _reap(self) -> None:
        for name, child in list(self._children.items()):
            code = child.process.poll()
            if code is not None:
                self._close_child(name, child, code)
        self._spawner.reap(self._children.values())

    def _close_child(self, name: str, child: Child, code: int) -> None:
        child.kill_group()
        self._outputs.of(name).write(child.last_output())
        self._heard(name, child.last_beats())
        for fd in (child.beat_fd, child.output_fd):
            with contextlib.suppress(KeyError):
                self._selector.unregister(fd)
        child.close()
        said = None
        with self._tolerating("the reason that it left could not be read", name):
            said = records.take_reason(self._files.path, name)
        if self._memory_kills.look() and code == -signal.SIGKILL:
            said = OUT_OF_MEMORY
        self._handle(Exited(name, code, said))

    def _write_down(self, ended: Ended) -> None:
        name, life = ended.name, self._spawner.lives.get(ended.name, 0)
        child = self._children.pop(name, None)
        then = "not started again" if ended.again is None else f"starts again in {ended.again:g} s"
        level = logging.INFO if ended.code == ExitCode.OK else logging.WARNING
        logger.log(level, "%s: life %d ended: %s; %s", name, life, ended.reason, then)
        with self._tolerating("what it printed could not be kept", name):
            log = self._outputs.of(name)
            log.mark(f"life {life} ended: {ended.reason}; {then}")
            if ended.code == ExitCode.PERMANENT:
                log.keep()
        number = signal.Signals(-ended.code).name if ended.code < 0 else None
        code = None if number else ended.code
        pid, again = child.pid if child else None, ended.again is not None
        record = records.Exit(name, life, pid, code, number, ended.reason, self._wall(), again)
        with self._tolerating("its exit could not be recorded", name):
            records.write_exit(self._files.path, record)

    # -- the folder

    def _take_folder(self) -> None:
        """Wait for the last process of a former supervisor: each holds the lock until it has ended."""
        deadline = self._clock() + _LOCK_PATIENCE
        while self._result is None and not self._files.take():
            if self._clock() >= deadline:
                raise ClusterError(
                    f"supervisor of {self._files.path}: the folder is still in use after {_LOCK_PATIENCE:g} s, by "
                    "another supervisor or a process of a former one; nothing was started",
                    hint=f"lsof {self._files.path / records.LOCK} shows who it is",
                )
            parent_link.beat(in_user_code=False)
            self._wait(0.05)

    def _show_status(self) -> None:
        processes = {
            name: {
                "state": process.state,
                "pid": self._children[name].pid if name in self._children else None,
                "life": self._spawner.lives.get(name, 0),
                "restarts": process.restarts,
                "reason": process.reason,
            }
            for name, process in self._state.processes.items()
        }
        state = "ended" if self._result is not None else "stopping" if self._state.stopping else "running"
        status = {"supervisor": self.id, "pid": os.getpid(), "state": state, "processes": processes}
        with self._tolerating("could not be written", "status.json"):
            self._files.show(status)

    @contextlib.contextmanager
    def _tolerating(self, what: str, name: str) -> Iterator[None]:
        """A full disk costs records, not processes."""
        try:
            yield
        except OSError as error:
            logger.warning("%s: %s: %s; the processes go on", name, what, error)

    def _leave_nothing(self) -> None:
        for child in self._children.values():  # only if an error ended the loop
            child.kill_group()
            child.process.wait()
            child.close()
        self._spawner.close()
        self._outputs.close()
        self._selector.close()
        self._signals.close()
        self._files.close()


def _with_hint(error: Exception) -> str:
    hint = error.hint if isinstance(error, ArdeaError) else None
    return f"{error}; {hint}" if hint else str(error)


def _leave(reason: str, file: Path | None) -> None:
    parent_link.report(reason)
    if file is not None:
        with contextlib.suppress(OSError):
            file.write_text(f"{reason}\n")


def main() -> int:
    """The command; returns its exit code."""
    parent_link.attach()
    kernel.allow_files()
    parser = argparse.ArgumentParser(prog="python -m ardea.supervisor", description="Runs processes until they end.")
    parser.add_argument("--folder", type=Path, required=True, help="where logs, lives, exits and status go")
    parser.add_argument("--spec", type=Path, required=True, help="the processes and the policy, as JSON")
    parser.add_argument("--id", help="what it is known by, such as a pod's UID; default: a random id")
    parser.add_argument("--stdout", action="store_true", help="pass on what the processes print; keep no log files")
    parser.add_argument(
        "--leader",
        nargs=2,
        metavar=("FOLDER", "NAME"),
        help="another supervisor's process whose exit 0 or 78 ends this one",
    )
    parser.add_argument("--reason-file", type=Path, help="where one line goes that says why it ended with an error")
    arguments = parser.parse_args()
    logs.configure(stream=sys.stderr)
    try:
        processes, policy = load(arguments.spec)
        logs.configure(policy.log_format, sys.stderr)
        supervisor = Supervisor(
            processes, arguments.folder, policy, id_=arguments.id, stdout=arguments.stdout, spec=arguments.spec,
            leader=(Path(arguments.leader[0]), arguments.leader[1]) if arguments.leader else None,
        )  # fmt: skip
        code = supervisor.run()
    except (ArdeaError, OSError) as error:
        reason = _with_hint(error)
        logger.error("%s", reason)
        _leave(reason, arguments.reason_file)
        return ExitCode.PERMANENT if isinstance(error, ConfigError) else ExitCode.TEMPORARY
    if supervisor.cause is not None:
        _leave(supervisor.cause, arguments.reason_file)
    return parent_link.ended(code)


if __name__ == "__main__":
    sys.exit(main())
