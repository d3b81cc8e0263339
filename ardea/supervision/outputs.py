"""Where what each process of a supervisor prints goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from ardea.supervision.logfile import LogFile, StandardOutput
from ardea.supervision.spec import Policy


class Outputs:
    """One for each process, made when it is first asked for: a log file, or all to this process' own stdout.

    Attributes:
        stdout: whether the latter.
    """

    def __init__(self, folder: Path, policy: Policy, *, stdout: bool, wall: Callable[[], float] = time.time) -> None:
        self.stdout = stdout
        self._folder, self._policy, self._wall = folder, policy, wall
        self._outputs: dict[str, LogFile | StandardOutput] = {}

    def of(self, name: str) -> LogFile | StandardOutput:
        """Of a process by its name; OSError if its file cannot be made."""
        if name not in self._outputs:
            path = self._folder / "logs" / f"{name}.log"
            policy, form = self._policy, self._policy.log_format
            self._outputs[name] = (
                StandardOutput(path, form=form, wall=self._wall)
                if self.stdout
                else LogFile(path, policy.log_bytes, policy.log_files, form, self._wall)
            )
        return self._outputs[name]

    def close(self) -> None:
        """Nothing is printed any more."""
        for output in self._outputs.values():
            output.close()
