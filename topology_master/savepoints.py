"""The master's side of ``ardea savepoint``: a snapshot at once, and its files where nothing deletes them.

Pure, as the master is.  A request may come any number of times, also to a new master, which begins it again.

    (resting --all rest-->) taking --a snapshot counts--> copying --all lies there--> done
       |                       |                             |
       +-----------------------+-----------------------------+--too late, or it failed: refused
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ardea.config import Settings
from ardea.errors import ProtocolError
from ardea.plan.physical import PhysicalPlan
from ardea.snapshots.savepoint import Savepoint, SavepointProgress
from ardea.topology_master.changing import Advice, Draining, PlanDifference
from ardea.topology_master.coordination import LOOKS_EVERY, Coordination
from ardea.topology_master.ending import Ending
from ardea.topology_master.updates import few
from ardea.versions import __version__

MOST_ABANDONED = 3
"""Snapshots in a row, after which there is no savepoint."""


class SavepointOrders(Protocol):
    """What it takes to end with one."""

    def hold(self, spouts: Sequence[str], leaving: Sequence[int], *, settle: bool) -> int:
        """Orders these spouts to rest; returns the number of the order."""

    def resume(self) -> None:
        """Orders all spouts to go on."""


@dataclass(frozen=True, slots=True)
class SavepointRequest:
    """What a caller wants: ``id`` is its own, ``patience`` the seconds that a snapshot and its copy may take.

    ``ends``: the topology is killed with it: spouts are held, and nothing comes after it.
    """

    id: str
    folder: str
    patience: float
    ends: bool = False


class Savepoints:
    """At most one at a time.  ``due``: when to look again at the latest."""

    def __init__(self, orders: SavepointOrders, coordination: Coordination | None, topology: str) -> None:
        """``coordination``: None, the topology's mode takes no snapshots."""
        self._orders, self._coordination, self._topology = orders, coordination, topology
        self._request: SavepointRequest | None = None
        self._draining: Draining | None = None
        self._done: deque[Savepoint | str] | None = None  # from another thread, while files are copied
        self._last: SavepointProgress | None = None
        self._late: tuple[str, ...] = ()
        self._until = self._abandoned = 0.0
        self.due = math.inf

    @property
    def running(self) -> bool:
        """Whether one is under way."""
        return self._request is not None

    @property
    def ends(self) -> bool:
        """Whether the topology is to end with the one that is under way: the spouts are held for it."""
        return self._request is not None and self._request.ends

    def progress(self) -> SavepointProgress | None:
        """Of the one that is under way, else of the last one."""
        if (request := self._request) is None:
            return self._last
        step = "copying" if self._done is not None else "taking" if self._draining is None else "resting"
        return SavepointProgress(id=request.id, step=step, folder=request.folder, late=self._late)

    def requested(self, request: SavepointRequest, plan: PhysicalPlan, now: float, *, ends: str) -> None:
        """Begins it, or joins it if it is under way or over.

        Raises:
            ProtocolError: there cannot be one now, or another one is under way; ``ends`` says why the topology does.
        """
        present = self.progress()
        if present is not None and present.id == request.id:
            return
        if self._coordination is None:
            mode = Settings.of(plan.logical.config).reliability_mode
            raise ProtocolError(
                "NO_SNAPSHOTS",
                f"{self._topology} is in the mode {mode}, which keeps no state; only EFFECTIVELY_ONCE takes snapshots",
            )
        if ends:
            raise ProtocolError("SAVEPOINT_REFUSED", ends)
        if self._request is not None:
            raise ProtocolError(
                "SAVEPOINT_RUNS", f"the savepoint {self._request.id} is under way; wait until it is done"
            )
        if self._coordination.sleeps:
            raise ProtocolError(
                "SAVEPOINT_REFUSED",
                f"{self._topology} is paused, and its tasks read their state when it is activated: activate it first",
            )
        self._request, self._late = request, ()
        self._until, self.due = now + request.patience, now
        if request.ends:
            everything = frozenset(plan.component_tasks)
            spouts = frozenset(component.name for component in plan.logical.spouts)
            difference = PlanDifference(frozenset(), frozenset(), everything, spouts, frozenset())
            self._draining = Draining(plan, difference, request.patience / 2, now)
            self._draining.hold = self._orders.hold(sorted(spouts), (), settle=False)
        else:
            self._take(self._coordination, now)

    def look(self, ending: Ending, now: float) -> None:
        """After each report, and when it is due."""
        request, coordination = self._request, self._coordination
        if request is None or coordination is None:
            return
        if self._draining is not None:
            self._rest(self._draining, coordination, ending, now)
        elif self._done is not None:
            self._copied(self._done, now)
        elif coordination.demanded is not None:
            self._copy(request, coordination, now)
        elif coordination.figures.abandoned - self._abandoned >= MOST_ABANDONED:
            why = coordination.figures.why
            self._refuse(f"{MOST_ABANDONED} snapshots in a row were abandoned, the last one because of {why}")
        elif now >= self._until:
            what = coordination.snapshots.phase.value
            self._refuse(f"no snapshot was stored within {request.patience:g} s: {what}")
        else:
            self._abandoned = min(self._abandoned, coordination.figures.abandoned)
            self.due = self._until

    def _rest(self, draining: Draining, coordination: Coordination, ending: Ending, now: float) -> None:
        self._late = tuple(draining.late(ending))
        advice = draining.look(ending, now)
        if advice is Advice.GO_ON:
            self._draining, self._late = None, ()
            self._take(coordination, now)
        elif advice is Advice.REFUSE:
            self._refuse(f"{few(self._late)} after {self._request.patience:g} s" if self._request else "")
        else:
            self.due = draining.due

    def _take(self, coordination: Coordination, now: float) -> None:
        coordination.demand(now)
        self._abandoned = coordination.figures.abandoned
        self.due = self._until

    def _copy(self, request: SavepointRequest, coordination: Coordination, now: float) -> None:
        manifest = coordination.demanded
        assert manifest is not None
        savepoint = Savepoint(
            request=request.id,
            topology=self._topology,
            ardea=__version__,
            groups=coordination.groups,
            keyed=coordination.keyed,
            number=manifest.number,
            timeline=manifest.timeline,
            manifest=manifest,
        )
        done = self._done = deque()
        self.due = now + LOOKS_EVERY
        coordination.save(
            savepoint, request.folder, anew=request.ends, wanted=lambda: self._done is done, done=done.append
        )

    def _copied(self, done: deque[Savepoint | str], now: float) -> None:
        request = self._request
        assert request is not None
        if done:
            said = done.popleft()
            if isinstance(said, str):
                self._refuse(f"the snapshot cannot be copied to {request.folder}: {said}")
            else:
                self._over("done", number=said.number, bytes=said.manifest.bytes, files=len(said.manifest.names))
        elif now >= self._until:
            self._refuse(f"the snapshot was not copied to {request.folder} within {request.patience:g} s")
        else:
            self.due = min(self._until, now + LOOKS_EVERY)

    def ended(self, reason: str) -> None:
        """The topology ends instead."""
        if self._request is not None:
            self._refuse(reason, resume=False)

    def _refuse(self, reason: str, *, resume: bool = True) -> None:
        ends = self.ends
        self._over("refused", reason=reason)
        if ends and resume:
            self._orders.resume()

    def _over(self, step: str, *, reason: str = "", number: int = 0, bytes: int = 0, files: int = 0) -> None:  # noqa: A002
        request, coordination = self._request, self._coordination
        assert request is not None
        assert coordination is not None
        self._last = SavepointProgress(
            id=request.id, step=step, folder=request.folder, reason=reason, number=number, bytes=bytes, files=files
        )
        self._request = self._draining = self._done = None
        self.due = math.inf
        coordination.release()
