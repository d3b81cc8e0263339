"""The daemon of ``ardea submit local``: keeps a topology when the submitter and its terminal are gone.

``python -m ardea.scheduler.daemon`` reads a :class:`Charge` from stdin, leads a session of its own, and tells the
submitter on stdout, a line each, how the topology comes up.  From then on it writes DIR/local/ID/logs/daemon.log.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path
from typing import Literal, Self

import msgspec

from ardea import logs
from ardea.code import Code
from ardea.config import Settings
from ardea.errors import ArdeaError, ClusterError, ExitCode
from ardea.plan.definition import Definition
from ardea.scheduler.control import waiting_for
from ardea.scheduler.home import Home
from ardea.scheduler.run import LocalRun, Outcome, Stage
from ardea.scheduler.run_keeper import RunKeeper
from ardea.scheduler.submission import Submission

DAEMON = (sys.executable, "-P", "-m", "ardea.scheduler.daemon")
"""The command of a daemon."""
LONGEST_WAIT = 3600.0
"""Seconds of one wait: what ``select`` takes has a bound, which is the machine's."""
_CHUNK = 1 << 16
logger = logging.getLogger("daemon")


class Charge(msgspec.Struct, frozen=True):
    """What a daemon is to keep; ``home`` is the state directory."""

    definition: Definition
    topology_class: str
    home: str
    code: Code | None = None


class News(msgspec.Struct, frozen=True):
    """What a daemon tells its submitter.

    ``kind``: refused (nothing was started), started, waiting (``text`` says for whom), running, or over (``text`` is
    the final state, ``reason`` why).  ``code`` is an exit code.
    """

    kind: Literal["refused", "started", "waiting", "running", "over"]
    text: str = ""
    reason: str = ""
    hint: str | None = None
    code: int = 0


class Daemon(RunKeeper):
    """Keeps one topology; tells the submitter until it runs, then only its log."""

    def __init__(self, run: LocalRun, submitter: FileIO) -> None:
        super().__init__(run)
        self._submitter = submitter
        self._last_news: News | None = None

    def started(self) -> None:
        """Leaves the submitter's streams."""
        with (self.run.folder / "logs" / "daemon.log").open("ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        logs.configure(Settings.of(self.run.submission.plan.config).log_format)
        logger.info("process %d keeps %s", os.getpid(), self.run.topology)
        self.tell(News("started"))

    def stopping(self, stage: Stage) -> None:
        """A signal came."""
        logger.info("a signal: %s", stage.name.lower())

    def stepped(self) -> None:
        """Tells who is missing, and that nobody is."""
        if self._last_news is not None and self._last_news.kind == "running":
            return
        if self.run.came_up:
            logger.info("every container has registered, every task has reported")
            self.tell(News("running"))
        else:
            self.tell(News("waiting", waiting_for(self.run.status)))

    def ended(self, outcome: Outcome) -> None:
        """The last word."""
        logger.info("%s after %.1f s %s", outcome.state, outcome.seconds, outcome.reason)
        log = f"look at {self.run.log_to_read(outcome)}"
        self.tell(News("over", outcome.state.value, outcome.reason, log))

    def tell(self, news: News) -> None:
        """Once; a submitter that is gone misses nothing that the state and the log do not say."""
        if news != self._last_news:
            self._last_news = news
            with contextlib.suppress(BrokenPipeError):
                self._submitter.write(msgspec.json.encode(news) + b"\n")


class Launch:
    """A daemon as its submitter sees it."""

    def __init__(
        self,
        submission: Submission,
        home: Home,
        command: Sequence[str] = DAEMON,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts it; it goes on whatever becomes of this process.

        Raises:
            OSError: there is no room for another process.
        """
        self._clock = clock
        charge = Charge(submission.definition, submission.topology_class, home.address, submission.code)
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._lines: list[bytes] = []
        self._rest = b""
        with contextlib.suppress(BrokenPipeError):  # it is dead already: the next news says so
            assert self._process.stdin is not None
            self._process.stdin.write(msgspec.msgpack.encode(charge))
            self._process.stdin.close()

    def news(self, deadline: float | None) -> News | None:
        """The next; None: the clock has reached ``deadline`` without any.  Without a deadline it is waited for.

        Raises:
            ClusterError: the daemon is dead.
        """
        out = self._process.stdout
        assert out is not None
        while not self._lines:
            left = math.inf if deadline is None else deadline - self._clock()
            if left <= 0:
                return None
            if not select.select([out], [], [], min(left, LONGEST_WAIT))[0]:
                continue
            chunk = os.read(out.fileno(), _CHUNK)
            if not chunk:
                raise self._death()
            *self._lines, self._rest = (self._rest + chunk).split(b"\n")
        return msgspec.json.decode(self._lines.pop(0), type=News)

    def close(self) -> None:
        """Lets the daemon go on alone."""
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        if self._process.poll() is None:
            self._process.returncode = 0  # nobody here waits for it: it may outlive this process
            threading.Thread(target=_reap, args=[self._process.pid], name="reaper", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _death(self) -> ClusterError:
        code = self._process.wait()
        assert self._process.stderr is not None
        said = self._process.stderr.read().decode(errors="replace").strip().splitlines()
        return ClusterError(
            f"the daemon of the topology ended (exit {code}){': ' + said[-1] if said else ''}",
            hint="`ardea list` shows whether anything is left, `ardea kill` removes it",
        )


def _reap(pid: int) -> None:
    """If it does not outlive this process, nothing of it stays."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def main() -> int:
    """Keeps the topology of stdin's charge to its end."""
    charge = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Charge)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    submission = Submission.restored(charge.definition, charge.topology_class, charge.code)
    run = LocalRun(submission, Home(charge.home), patient=True, keep=True)
    with os.fdopen(os.dup(1), "wb", buffering=0) as submitter:
        daemon = Daemon(run, submitter)
        try:
            daemon.run_to_end()
        except (ArdeaError, OSError) as error:
            logger.error("%s", error)
            hint = error.hint if isinstance(error, ArdeaError) else None
            code = error.exit_code if isinstance(error, ArdeaError) else ExitCode.FAILED
            daemon.tell(News("refused", str(error), hint=hint, code=code))
            return code
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
