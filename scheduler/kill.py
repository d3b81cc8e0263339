"""Ends a local topology, alive, dying or dead, and leaves neither process nor state of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable

from ardea.errors import ArdeaError, ClusterError, Conflict, NotFound, StateError, TimedOut
from ardea.plan.names import CONTAINERS
from ardea.scheduler.control import MasterClient, Unreadable
from ardea.scheduler.home import Home, is_held
from ardea.scheduler.patience import Patience
from ardea.state import StateManager, paths, records
from ardea.state.files import is_locked
from ardea.state.manager import Unavailable
from ardea.state.records import SchedulerLocation
from ardea.state.topologies import TopologyStatus, status
from ardea.supervision import kernel

ENDS_WITHIN = 20.0
"""Seconds beyond the drain that the processes of a topology have to end."""
STOPS_WITHIN = 30.0
"""What its keeper has to end it after SIGTERM: the orders, the grace of the supervisors."""
DIES_WITHIN = 10.0
LOOK_EVERY = 0.1


class Killing:
    """One kill.  Whatever a former one left half done is found done, or done again."""

    def __init__(
        self,
        state: StateManager,
        home: Home,
        topology: TopologyStatus,
        say: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """``say`` takes a sentence for people."""
        self._state, self._home, self._say = state, home, say
        self._id, self._folder = topology.id, home.folder(topology.id)
        self._clock = clock
        self._patience = Patience(LOOK_EVERY, clock, pause)

    def kill(self, wait_secs: float) -> None:
        """Stops the spouts, gives open tuples ``wait_secs``, ends the processes, forgets the topology.

        Raises:
            TimedOut: somebody of it still lives.  Nothing was removed; the same again goes on.
        """
        final = self._final()
        if self._kept():
            if final or self._ordered(wait_secs):
                self._patience.within(wait_secs + ENDS_WITHIN, lambda: not self._kept() or self._abandoned())
            self._end_keeper()
        elif not final:
            self._say(f"{self._id} is dead: nobody keeps its processes any more; what it left is removed")
        if not self._patience.within(DIES_WITHIN, lambda: not self._alive()):
            raise TimedOut(
                f"{self._id}: its keeper is gone, and a process of it still lives after {DIES_WITHIN:g} s",
                hint=f"`lsof {self._folder}/*.lock {self._folder}/lock {self._folder}/container-*/lock` shows which",
            )
        self._forget()

    def _ordered(self, wait_secs: float) -> bool:
        """Whether the master drains the topology now."""
        self._say(f"{self._id}: no new tuples; open ones have {wait_secs:g} s")
        try:
            with MasterClient(self._state, self._id, self._folder, clock=self._clock) as client:
                client.ask("drain", wait=str(wait_secs))
        except Unreadable as error:
            self._say(f"{error.message}; it ends the topology")
        except ArdeaError as error:  # silent, refusing, or without its token
            self._say(f"{error.message}; its keeper ends it")
            return False
        return True

    def _end_keeper(self) -> None:
        """Nothing to do for a keeper that has done its work; one that is frozen has to go."""
        for number, patience in ((signal.SIGTERM, STOPS_WITHIN), (signal.SIGKILL, DIES_WITHIN)):
            keeper = self._keeper()
            if keeper is None:
                return
            if number is signal.SIGTERM and self._abandoned():
                continue
            if keeper.host != socket.gethostname():
                raise TimedOut(
                    f"{self._id} still runs; process {keeper.pid} on {keeper.host} keeps it",
                    hint=f"repeat `ardea kill {self._id}` on {keeper.host}",
                )
            self._say(f"{self._id} still runs; {number.name} goes to process {keeper.pid}, which keeps it")
            try:
                os.kill(keeper.pid, number)
            except ProcessLookupError:
                pass
            except PermissionError as error:
                raise ClusterError(
                    f"{self._id} still runs; process {keeper.pid}, which keeps it, belongs to another user",
                    hint=f"repeat `ardea kill {self._id}` as that user",
                ) from error
            if self._gone_within(patience):
                return
        raise TimedOut(
            f"{self._id} still runs although its keeper was sent SIGKILL", hint=f"repeat `ardea kill {self._id}`"
        )

    def _keeper(self) -> SchedulerLocation | None:
        """None: there is none, or it cannot be read who it is."""
        try:
            return self._location()
        except Unavailable:
            raise
        except StateError:
            return None

    def _location(self) -> SchedulerLocation:
        path = paths.scheduler(self._id)
        return records.decode(self._state.get(path).data, SchedulerLocation, path)

    def _kept(self) -> bool:
        """Where the record of the keeper is damaged, the locks of its processes say whether it lives."""
        try:
            self._location()
        except NotFound:
            return False
        except Unavailable:
            raise
        except StateError:
            return self._alive()
        return True

    def _abandoned(self) -> bool:
        """Whether the topology has ended, and its keeper is frozen and will not notice."""
        keeper = self._keeper()
        if keeper is None or keeper.host != socket.gethostname():
            return False
        seen = kernel.look(keeper.pid)
        return seen is not None and seen.stopped and self._final()

    def _final(self) -> bool:
        with contextlib.suppress(StateError):
            execution = status(self._state, self._id).execution
            return execution is not None and execution.state.final
        return False

    def _alive(self) -> bool:
        """Each process of it, its keeper included, holds one of these."""
        locks = [self._folder / "lock", *self._folder.glob(f"{CONTAINERS}/lock")]
        return is_held(self._folder) or any(map(is_locked, locks))

    def _gone_within(self, patience: float) -> bool:
        return self._patience.within(patience, lambda: not self._kept())

    def _forget(self) -> None:
        """Another kill may be doing the same at this moment."""
        import tenacity  # with asyncio, which the other verbs do without

        again = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type((Conflict, NotFound)),
            wait=tenacity.wait_random(0.01, 0.1),
            stop=tenacity.stop_after_attempt(10),
            reraise=True,
        )
        again(self._home.forget, self._state, self._id)
