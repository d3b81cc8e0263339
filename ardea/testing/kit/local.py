"""A topology on real processes of this machine, for a test to disturb."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

from ardea.errors import UserError
from ardea.scheduler.control import Status
from ardea.scheduler.home import Home
from ardea.scheduler.local_processes import LocalProcesses
from ardea.scheduler.run import LocalRun, Outcome
from ardea.scheduler.submission import Submission
from ardea.state import paths, records
from ardea.state.records import ExecutionState, RunState
from ardea.testing.kit.faults import Faults
from ardea.testing.kit.forwarder import Forwarder
from ardea.testing.kit.machines import Machines
from ardea.testing.kit.processes import Processes, targets
from ardea.transport import PROXY

T = TypeVar("T")
BEFORE_THE_END = (RunState.RUNNING, RunState.PAUSED)
LINES_OF_A_LOG = 20


class LocalTopology:
    """Starts when entered; leaves no process behind when left.

    Attributes:
        faults: what disturbs it.
        processes: who runs, and with how much memory.
        targets: what faults can befall.
        folder: logs, lives, exits.
        machines: who keeps the containers, and kept them; None: the topology's supervisor does.
    """

    def __init__(
        self,
        target: str,
        root: Path,
        *,
        containers: int = 2,
        config: Mapping[str, Any] = MappingProxyType({}),
        journal: Path | None = None,
        machines: bool = False,
    ) -> None:
        """Touches nothing.

        Args:
            target: ``FILE`` or ``FILE:Class``, as on the command line.
            root: a folder for state, logs and the journal.
            containers: how many.
            config: wins over the topology's own.
            journal: where each fault is written; None: ``ROOT/journal.jsonl``.
            machines: each container runs as on a machine of its own: one that stands still for ten seconds is
                replaced, and goes on when the fault is over.

        Raises:
            NotFound: there is no such file.
            UserError: the file, the topology or a key is wrong.
        """
        if not isinstance(target, str):
            raise UserError(
                f"LocalTopology takes FILE:Class as a text, not {target!r}",
                hint="its processes import a file; ardea.run(WordCount) takes the class, in a notebook, too",
            )
        self._home = Home(root / "ardea")
        submission = Submission.of(target, {**config, "topology.stmgrs": containers}, self._home.state_url)
        self._topology = submission.definition.topology
        # Whoever is killed again and again by a test is not given up for that.
        self.folder = self._home.folder(self._topology)
        self.machines = Machines(self.folder) if machines else None
        scheduler = LocalProcesses if self.machines is None else self.machines.scheduler
        self._run = LocalRun(submission, self._home, give_up=0, patient=True, scheduler=scheduler)
        self.processes = Processes(self.folder, self.machines.running if self.machines else dict)
        self.targets = targets(submission.packing)
        self._forwarder = Forwarder(self.processes.listener)
        self.faults = Faults(
            self.targets, self.processes, self._forwarder, self._declared, journal=journal or root / "journal.jsonl"
        )
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as undo:
            undo.enter_context(self._forwarder)
            self._state = undo.enter_context(self._home.open_state())
            undo.enter_context(self._run)
            with _environment(PROXY, self._forwarder.address):
                self._run.start()
                if self.machines is not None:
                    undo.callback(self.machines.close)
                    self.machines.begin(dict(os.environ))
            undo.callback(self.faults.stop)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    # --- waiting ----------------------------------------------------------------------------------------------

    @property
    def status(self) -> Status | None:
        """What the master last said; it says so twice a second while there is one."""
        return self._run.status

    @property
    def over(self) -> bool:
        """Whether the last process is gone."""
        return self._run.over and (self.machines is None or self.machines.over)

    def links(self) -> set[frozenset[str]]:
        """The pairs of processes that have a connection which can be cut, now."""
        return self._forwarder.links()

    def step(self) -> None:
        """Lets a tenth of a second pass, and does what is due."""
        if self._run.over:
            time.sleep(0.1)  # until the machines have ended too
        else:
            self._run.step()
            self.faults.step()
        if self.machines is not None:
            self.machines.step()

    def until(self, condition: Callable[[], T | None], what: str, seconds: float = 60.0) -> T:
        """The first true value of ``condition``.

        Raises:
            TimeoutError: there was none within ``seconds``, or before the topology's end.
        """
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if self.over:
                raise TimeoutError(f"the topology ended before {what}: {self._run.outcome()}\n{self.logs()}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {seconds:g} s for this: {what}; {self.status}\n{self.logs()}")
            self.step()
        return value

    def ready(self, seconds: float = 60.0) -> Status:
        """Waits until every task has reported."""

        def reported() -> Status | None:
            return self.status if self.status is not None and self.status.complete else None

        return self.until(reported, "every task has reported", seconds)

    def disturbed(self, seconds: float) -> None:
        """Waits until the last fault has happened and ended."""
        self.until(lambda: not self.faults.pending, "the last fault is over", seconds)

    def finish(self, seconds: float = 120.0) -> Outcome:
        """Waits until nothing of it is left.

        Raises:
            TimeoutError: something is, after ``seconds``.
        """
        deadline = time.monotonic() + seconds
        while not self.over:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the topology was not over within {seconds:g} s; {self.status}\n{self.logs()}")
            self.step()
        return self._run.outcome()

    # --- for people -------------------------------------------------------------------------------------------

    def logs(self) -> str:
        """The last lines of every log."""
        files = sorted(self.folder.rglob("*.log"))
        return "\n".join(
            f"[{file.relative_to(self.folder)}]\n"
            + "\n".join(file.read_text(errors="replace").splitlines()[-LINES_OF_A_LOG:])
            for file in files
        )

    def _declared(self) -> bool:
        """The state is asked, not the master: it may be dead or frozen."""
        path = paths.execution_state(self._topology)
        return records.decode(self._state.get(path).data, ExecutionState, path).state not in BEFORE_THE_END


@contextlib.contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """For the processes that are started meanwhile."""
    former = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if former is None:
            del os.environ[name]
        else:
            os.environ[name] = former
