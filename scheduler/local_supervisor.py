"""The supervisor of a topology on this machine: its keeper starts it, writes down what it prints, and ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ardea.plan.names import CONTAINERS
from ardea.state.files import is_locked
from ardea.supervision.child import Child
from ardea.supervision.logfile import LogFile
from ardea.supervision.records import take_reason

NAME = "supervisor"
END_WITHIN = 15.0
"""Seconds that containers have to let their folders go once it is gone."""


class LocalSupervisor:
    """One that runs, on a parent link that this process holds; what it prints goes into its log.

    Attributes:
        code: with which it has ended; None: it runs.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        lock: int,
        log_size: int,
        wait: Callable[[float], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts it.

        Args:
            command: its command line.
            folder: the topology's.
            lock: the descriptor of that folder's lock.
            log_size: bytes, after which its log is begun anew; two are kept.
            wait: so many seconds, at most.
            clock: seconds, steady.

        Raises:
            OSError: it cannot be started.
        """
        self.code: int | None = None
        self._folder, self._wait, self._clock = folder, wait, clock
        environment = {**os.environ, "ARDEA_FOLDER": str(folder), "ARDEA_NAME": NAME, "ARDEA_LIFE": "1"}
        with contextlib.ExitStack() as undo:
            self._log = LogFile(folder / "logs" / f"{NAME}.log", log_size, 2)
            undo.callback(self._log.close)
            self._child = Child.spawn(command, environment, lock)
            undo.pop_all()

    def attend(self) -> None:
        """Takes what it prints, its beats, and its end: then nothing of it is left."""
        while output := self._child.output():
            self._log.write(output)
        self._child.beats()
        code = self._child.process.poll()
        if code is not None and self.code is None:
            self._log.write(self._child.last_output())
            self._kill()
            self.code = code

    def signal(self, number: signal.Signals) -> None:
        """As :meth:`Child.signal`."""
        self._child.signal(number)

    def how_it_ended(self) -> str:
        """In its own words, or in those of its exit code."""
        if left := take_reason(self._folder, NAME):
            return left
        code = self.code or 0
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
        return f"the topology's supervisor ended: {how}"

    def close(self) -> None:
        """Ends it if it runs."""
        if self.code is None:  # else the pid may be another's by now
            self._kill()
        self._child.close()
        self._log.close()

    def _kill(self) -> None:
        """Nothing survives it; waits until each container has let its folder go."""
        self._child.kill_group()
        self._child.process.wait()
        deadline = self._clock() + END_WITHIN
        locks = [self._folder / "lock", *self._folder.glob(f"{CONTAINERS}/lock")]
        while any(map(is_locked, locks)) and self._clock() < deadline:
            self._wait(0.02)
