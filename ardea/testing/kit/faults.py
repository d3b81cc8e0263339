"""Carries faults out while a topology runs, ends them again, and writes the journal."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from ardea.errors import UserError
from ardea.testing.kit.processes import Found, Processes
from ardea.testing.kit.schedule import ON_LINKS, Fault, Kind, Schedule, Targets


class Links(Protocol):
    """What cuts, delays and heals the links between named processes."""

    def cut(self, one: str, other: str) -> None:
        """Until healed."""

    def delay(self, one: str, other: str, seconds: float) -> None:
        """Until healed."""

    def heal(self, one: str, other: str) -> None:
        """Ends both."""


class Faults:
    """Faults at once, or by a schedule; :meth:`step` has to be called a few times a second.

    Nothing happens any more once the topology's end is declared; what is frozen then goes on, what is cut is healed.
    """

    def __init__(
        self,
        targets: Targets,
        processes: Processes,
        links: Links,
        declared: Callable[[], bool],
        *,
        journal: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Touches nothing.

        Args:
            targets: what may be named.
            processes: whom kills and freezes befall.
            links: what is cut and delayed.
            declared: whether the topology's end is declared.
            journal: a file that gets a line for each fault as it happens.
            clock: seconds, steady.
        """
        self.done: list[Fault] = []
        self._targets, self._processes, self._links = targets, processes, links
        self._declared, self._journal, self._clock = declared, journal, clock
        self._began: float | None = None
        self._due: list[Fault] = []
        self._undo: list[tuple[float, Callable[[], None]]] = []
        self._stopped = False

    # --- now --------------------------------------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """SIGKILL; its supervisor starts it again."""
        self._now(Kind.KILL, name)

    def freeze(self, name: str, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after ``seconds``.  After ten its supervisor has killed it and started another one."""
        self._now(Kind.FREEZE, name, seconds=seconds)

    def cut(self, one: str, other: str, seconds: float) -> None:
        """No connection between the two lives for ``seconds``."""
        self._now(Kind.CUT, one, other, seconds=seconds)

    def delay(self, one: str, other: str, by: float, seconds: float) -> None:
        """For ``seconds``, each byte between the two is on its way for ``by`` seconds more."""
        self._now(Kind.DELAY, one, other, seconds=seconds, by=by)

    def _now(self, kind: Kind, target: str, other: str = "", *, seconds: float = 0.0, by: float = 0.0) -> None:
        fault = Fault(at=self._elapsed(), kind=kind, target=target, other=other, seconds=seconds, by=by)
        self._check(fault)
        self._due.insert(0, fault)
        self.step()

    # --- by a schedule ----------------------------------------------------------------------------------------

    def play(self, schedule: Schedule) -> None:
        """From now on; the times of the journal count from here.

        Raises:
            UserError: the schedule names what this topology does not have.
        """
        for fault in schedule.faults:
            self._check(fault)
        self._began = self._clock()
        self._due = list(schedule.faults)

    @property
    def pending(self) -> bool:
        """Whether a fault is still to come, or to end."""
        return bool(self._due or self._undo)

    def step(self) -> None:
        """Does what is due.  A fault whose process does not run now waits until it does."""
        if not self._stopped and self.pending and self._declared():
            self.stop()
        now = self._clock()
        for undo in [undo for undo in self._undo if undo[0] <= now]:
            self._undo.remove(undo)
            undo[1]()
        elapsed = self._elapsed()
        for fault in [fault for fault in self._due if fault.at <= elapsed]:
            if (met := self._carry_out(fault, now)) is not None:
                self._due.remove(fault)
                self._note(msgspec.structs.replace(fault, at=round(elapsed, 3), pid=met.pid, life=met.life))

    def stop(self) -> None:
        """Ends every freeze, cut and delay; nothing more happens.  Can be repeated."""
        self._stopped = True
        self._due.clear()
        while self._undo:
            self._undo.pop()[1]()

    # --- the doing --------------------------------------------------------------------------------------------

    def _elapsed(self) -> float:
        if self._began is None:
            self._began = self._clock()
        return self._clock() - self._began

    def _check(self, fault: Fault) -> None:
        if self._stopped:
            raise UserError(f"cannot {fault.kind.value} {fault.target}: the end of the topology is declared")
        if fault.kind in ON_LINKS:
            pairs = {frozenset(link) for link in self._targets.links}
            if frozenset((fault.target, fault.other)) not in pairs:
                there = ", ".join(" and ".join(link) for link in self._targets.links)
                raise UserError(
                    f"no link that can be cut is between {fault.target} and {fault.other}; there are {there}"
                )
        elif fault.target not in self._targets.processes:
            raise UserError(f"there is no process {fault.target}; there are {', '.join(self._targets.processes)}")

    def _carry_out(self, fault: Fault, now: float) -> Found | None:
        """Whom it met; None: nobody yet."""
        if fault.kind is Kind.KILL:
            return self._processes.kill(fault.target)
        if fault.kind is Kind.FREEZE:
            frozen = self._processes.freeze(fault.target)
            if frozen is None:
                return None
            found, pids = frozen
            self._undo.append((now + fault.seconds, lambda: self._processes.thaw(pids)))
            return found
        one, other = fault.target, fault.other
        if fault.kind is Kind.CUT:
            self._links.cut(one, other)
        else:
            self._links.delay(one, other, fault.by)
        self._undo.append((now + fault.seconds, lambda: self._links.heal(one, other)))
        return Found(0, 0)

    def _note(self, fault: Fault) -> None:
        self.done.append(fault)
        if self._journal is not None:
            with self._journal.open("ab") as file:
                file.write(msgspec.json.encode(fault) + b"\n")
