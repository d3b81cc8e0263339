"""What `ardea update` asks of a master: that the topology works by another definition.

The master decides, and whoever keeps the processes starts and stops them (docs/updating.md).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ardea.errors import ArdeaError, ClusterError, NotFound, Unreachable
from ardea.plan.change import UpdateProgress, UpdateRequest
from ardea.scheduler.control import ControlPort, Status
from ardea.state.records import RunState

ASK_PATIENCE = 3.0
LOOK_EVERY = 0.2
MASTER_WITHIN = 30.0
"""Seconds that a new master has to come up."""


class Refused(ArdeaError):  # noqa: N818 -- as its siblings in ardea.errors
    """The topology is not updated; it goes on as it was."""


class Updating:
    """Asks a master for an update until it is done, or refused; whichever master that is."""

    def __init__(
        self,
        control: ControlPort,
        request: UpdateRequest,
        say: Callable[[str], None],
        *,
        ended: Callable[[], bool],
        silence: float = MASTER_WITHIN,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Asks nobody yet.

        Args:
            control: the way to the master.
            request: what it is asked for.
            say: hears how far it is.
            ended: whether the topology has ended, of which nobody else can tell when no master answers.
            silence: seconds without an answer after which it gives up.
            clock: seconds, steady.
            pause: waits so many seconds.
        """
        self._control, self._request, self._say, self._ended, self._silence = control, request, say, ended, silence
        self._body = request.wanted.packed()
        self._clock, self._pause = clock, pause
        self._said = ""
        self._under_way = False
        self._back_by = math.inf  # the former plan, if it is put back

    def update(self) -> None:
        """Returns when the topology works by the new plan.

        Raises:
            Refused: it was refused, or put back: the topology goes on as it was, or waits for processes of its former
                plan that do not come up either; or it has ended meanwhile, or is not to be found.
            Unreachable: no master answered for a while; the same again finishes what is half done.
        """
        silent_until = self._clock() + self._silence
        while True:
            try:
                status = self._ask()
            except (Unreachable, NotFound) as error:
                self._unless_over(error)
                if self._clock() >= silent_until:
                    raise
                self._tell("waiting for the topology master")
                self._pause(LOOK_EVERY)
                continue
            silent_until = self._clock() + self._silence
            self._under_way = status.update is not None and status.update.running
            if RunState(status.state).final:
                raise Refused(f"{status.topology} is {status.state}; it was not updated")
            if self._over(status.update):
                return
            self._pause(LOOK_EVERY)

    def _unless_over(self, error: Unreachable | NotFound) -> None:
        """Refused where a master that does not answer will not do so later either."""
        if self._ended():  # by the new plan perhaps, which may have had little to do
            topology = self._request.wanted.topology
            raise Refused(
                f"{topology} has ended, before its master said by which plan",
                hint=f"`ardea describe {topology}` shows how it ended; what has FAILED is submitted again "
                "under its name, with --from if there is a savepoint",
            ) from None
        if isinstance(error, NotFound):
            raise Refused(error.message, hint=error.hint) from error

    def _ask(self) -> Status:
        """With the plan, unless the last answer was that an update is under way."""
        request, again, self._under_way = self._request, self._under_way, False
        arguments = {"id": request.id, "base": str(request.base), "wait": str(request.patience)}
        try:
            if again:
                return self._control.ask("status", patience=ASK_PATIENCE)
            return self._control.ask("update", patience=ASK_PATIENCE, body=self._body, **arguments)
        except (Unreachable, NotFound):
            raise
        except ClusterError as error:  # of the way to the master, which may work by the new plan by now
            raise Unreachable(error.message, hint=error.hint) from error
        except ArdeaError as error:
            raise Refused(error.message, hint="the topology goes on as it was") from error

    def _over(self, progress: UpdateProgress | None) -> bool:
        if progress is None:
            return False
        if progress.running:
            late = ", ".join(progress.late[:4])
            self._tell(f"{progress.step}: {late}" if late else progress.step)
            self._goes_back(progress, late)
        elif progress.id == self._request.id:
            if progress.step == "refused":
                raise Refused(
                    f"the update was not made: {progress.reason}",
                    hint="the topology goes on as it was; `ardea logs` may say why, then repeat the update",
                )
            return True
        return False

    def _goes_back(self, progress: UpdateProgress, late: str) -> None:
        """The former plan has as long to come up as the next one had."""
        if progress.step != "putting back":
            self._back_by = math.inf
        elif self._back_by == math.inf:
            self._back_by = self._clock() + self._request.patience
        elif self._clock() >= self._back_by:
            raise Refused(
                f"the update was not made: {progress.reason}; the former plan is in force again, and "
                f"{self._request.patience:g} s later {late or 'not all work by it'}",
                hint="its spouts wait until all come up; `ardea logs` may say why they do not; an update to a version "
                "that does is taken meanwhile",
            )

    def _tell(self, what: str) -> None:
        if what != self._said:
            self._said = what
            self._say(what)
