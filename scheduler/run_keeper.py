"""Keeps one run until nothing of it is left: its signals and its loop, for a terminal and for a daemon alike."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from ardea.scheduler.run import LocalRun, Outcome, Stage

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class RunKeeper:
    """Drives a run; what a person or a log hears of it is for the subclass to say."""

    def __init__(self, run: LocalRun) -> None:
        self.run = run
        self._signals: list[int] = []
        self._started = False

    def run_to_end(self) -> Outcome:
        """Starts it, and returns when nothing of it is left.

        Raises:
            ArdeaError: it could not be started; nothing of it is left.
        """
        with self._handled_signals(), self.run as run:
            run.start()
            self._started = True
            self.started()
            while not run.over:
                run.step()
                while self._signals:
                    self._signals.pop()
                    self.stopping(run.stop())
                self.stepped()
            outcome = run.outcome()
            self.ended(outcome)
        return outcome

    def started(self) -> None:
        """Its processes are about to come up."""

    def stopping(self, stage: Stage) -> None:
        """A signal has ended it a little more."""

    def stepped(self) -> None:
        """A moment has passed; ``run.status`` may be new."""

    def ended(self, outcome: Outcome) -> None:
        """Its last process is gone; the state still knows it."""

    @contextlib.contextmanager
    def _handled_signals(self) -> Iterator[None]:
        def take(number: int, _frame: FrameType | None) -> None:
            self._signals.append(number)
            if self._started:
                self.run.wake()

        former = {n: signal.signal(n, take) for n in _STOPS if signal.getsignal(n) is not signal.SIG_IGN}  # nohup
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)
