"""Asks a master for a savepoint until it is done, or refused; whichever master that is (docs/snapshots.md)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from ardea.errors import ArdeaError, ClusterError, NotFound, TimedOut, Unreachable
from ardea.scheduler.control import ControlPort, Status
from ardea.scheduler.update import ASK_PATIENCE, LOOK_EVERY, Refused
from ardea.snapshots.place import place_at
from ardea.snapshots.savepoint import SavepointProgress, ended_with, read
from ardea.state.records import RunState

MARGIN = 15.0
"""Seconds beyond its patience in which a master says how it went."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A savepoint of a topology: ``id`` is the caller's own; ``ends``: the topology is killed with it."""

    topology: str
    id: str
    folder: str
    patience: float
    ends: bool = False


def new_id() -> str:
    """When it is asked for, and who asks."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


class Saving:
    """One request."""

    def __init__(
        self,
        control: ControlPort,
        wanted: Wanted,
        say: Callable[[str], None],
        why: Callable[[], str | None] = str,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Asks nobody yet.

        Args:
            control: the way to the master.
            wanted: what it is asked for.
            say: hears how far it is.
            why: the reason of the topology's state, where no master answers; None: it is gone.
            clock: seconds, steady.
            pause: waits so many seconds.
        """
        self._control, self._wanted, self._say, self._why = control, wanted, say, why
        self._clock, self._pause = clock, pause
        self._said = ""

    def save(self) -> SavepointProgress:
        """Returns when all of it is there; with ``ends``, when the topology has also ended.

        Raises:
            Refused: there is none, and the topology goes on; or it has ended meanwhile, or is gone.
            TimedOut: nobody has said how it went.
        """
        wanted = self._wanted
        deadline, silent = self._clock() + wanted.patience + MARGIN, ""
        while self._clock() < deadline:
            try:
                status = self._ask()
            except (Unreachable, NotFound) as error:
                if (done := self._left()) is not None:
                    return done
                if isinstance(error, NotFound):
                    raise Refused(error.message, hint=error.hint or self._whole_if) from error
                silent = f": {error.message}"
                self._tell("waiting for the topology master")
            else:
                silent = ""
                if (done := self._over(status)) is not None:
                    return done
            self._pause(LOOK_EVERY)
        raise TimedOut(
            f"{wanted.topology}: no master has said within {wanted.patience + MARGIN:g} s how the savepoint went"
            + silent,
            hint=self._whole_if + ("; `ardea list` shows whether the topology goes on" if wanted.ends else ""),
        )

    def _ask(self) -> Status:
        wanted = self._wanted
        arguments = {"id": wanted.id, "folder": wanted.folder, "wait": str(wanted.patience)}
        if wanted.ends:
            arguments["kill"] = "yes"
        try:
            return self._control.ask("savepoint", patience=ASK_PATIENCE, body=b"", **arguments)
        except (Unreachable, NotFound):
            raise
        except ClusterError as error:  # of the way to the master, which may go on with the savepoint
            raise Unreachable(error.message, hint=error.hint) from error
        except ArdeaError as error:
            raise Refused(error.message, hint=self._goes_on) from error

    def _over(self, status: Status) -> SavepointProgress | None:
        progress, state = status.savepoint, RunState(status.state)
        ours = progress if progress is not None and progress.id == self._wanted.id else None
        if ours is not None and ours.step == "done":
            return ours
        if state.final:
            raise Refused(f"{status.topology} is {state}; there is no savepoint of it")
        if ours is not None:
            if ours.step == "refused":
                raise Refused(f"there is no savepoint of {status.topology}: {ours.reason}", hint=self._goes_on)
            late = f": {', '.join(ours.late[:4])}" if ours.late else ""
            self._tell(f"{ours.step}{late}")
        return None

    def _left(self) -> SavepointProgress | None:
        """What lies there, where a master has ended the topology before it could say so.

        Nobody but pods may reach it: then the topology's state says only that it is there.  While the topology goes on,
        one that lies there says nothing: the next master lets rows flow, and replaces it.
        """
        if not self._wanted.ends:
            return None
        why = self._why()
        if why == ended_with(self._wanted.folder):
            known = SavepointProgress(id=self._wanted.id, step="done", folder=self._wanted.folder)
            return self._read() or known
        return self._read() if why is None else None

    def _read(self) -> SavepointProgress | None:
        try:
            found = read(place_at(self._wanted.folder))
        except (OSError, ArdeaError):
            return None
        if found.request != self._wanted.id:
            return None
        manifest = found.manifest
        return SavepointProgress(
            id=found.request,
            step="done",
            folder=self._wanted.folder,
            number=found.number,
            bytes=manifest.bytes,
            files=len(manifest.names),
        )

    @property
    def _whole_if(self) -> str:
        return f"the savepoint is whole if {self._wanted.folder}/savepoint.json is there"

    @property
    def _goes_on(self) -> str:
        return "nothing was killed; the topology goes on" if self._wanted.ends else "the topology goes on"

    def _tell(self, what: str) -> None:
        if what != self._said:
            self._said = what
            self._say(what)
