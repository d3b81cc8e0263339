"""What the author's code raises beside ``process``, in a topology that goes back to its last snapshot."""

from __future__ import annotations

import traceback
from typing import NoReturn

from ardea.backends.contract import ScratchError
from ardea.errors import ArdeaError, printable
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.lifecycle import Lifecycle
from ardea.heron_instance.reporter import Reporter
from ardea.heron_instance.snapshots import RollingBack
from ardea.loader import place_of


class Faults:
    """Of one executor."""

    def __init__(self, env: Environment, lifecycle: Lifecycle, reporter: Reporter) -> None:
        self._env, self._lifecycle, self._reporter = env, lifecycle, reporter

    def passes(self, error: Exception) -> bool:
        """Whether it may not come again once the state is that of the last snapshot.

        Else it ends the process: what an author must mend first, and the first ``initialize`` of a process.
        """
        return self._lifecycle.came_up and not (isinstance(error, ArdeaError) and error.lasts)

    def end_timeline(self, error: Exception) -> NoReturn:
        """All go back; raises the error where they cannot, or where that would not help."""
        snapshots = self._env.snapshots
        if snapshots is None or not self.passes(error):
            raise error
        most = self._env.settings.max_rollbacks
        follows = f"the topology goes back to its last snapshot, and fails after {most} times without another one"
        snapshots.broke(f"{self._env.task.name} {self.note(error, follows)}")
        raise RollingBack

    def note(self, error: Exception, follows: str) -> str:
        """Logs it, with what ``follows``; returns what was raised, and where, in words."""
        env, place = self._env, place_of(error)
        env.instruments.exception(error)
        if isinstance(error, ScratchError):  # none of the author's
            said = printable(error, most=2000)
            env.component.logger.error("%s: %s; %s", env.task.name, said, follows)
            self._reporter.error = f"{env.task.name}: {said}"
            return said
        said = f"raised {type(error).__name__}: {printable(error)}" + (f" at {place}" if place else "")
        text = printable("".join(traceback.format_exception(error)).rstrip(), most=20_000)
        env.component.logger.error("%s raised an exception; %s:\n%s", env.task.name, follows, text)
        self._reporter.error = f"{env.task.name} {said}"
        self._reporter.exceptions.note(error, text)
        env.observer.raised_beside(error)
        return said
