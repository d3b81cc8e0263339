"""The master's side of ``ardea update``: takes the request, drains, switches, and lets go on (docs/updating.md).

Pure, as the master is.  A request may come any number of times, also to a new master: it joins what is under way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import msgspec

from ardea.config import Settings
from ardea.errors import ProtocolError
from ardea.plan.change import UpdateProgress, UpdateRequest
from ardea.plan.definition import Definition
from ardea.plan.physical import PhysicalPlan
from ardea.plan.wire import packing_from_bytes
from ardea.state.records import Switch
from ardea.topology_master.changing import Advice, Draining, PlanDifference, Switching, renumbered
from ardea.topology_master.ending import Ending

KNOWN = 8
"""Of so many updates it is known how they went, for callers that did not hear it at the time."""


class UpdateOrders(Protocol):
    """What an update orders."""

    def hold(self, spouts: Sequence[str], leaving: Sequence[int], *, settle: bool) -> int:
        """Orders these spouts to rest; returns the number of the order."""

    def resume(self) -> None:
        """Orders all spouts to go on."""


class UpdateWrites(Protocol):
    """What an update does to the topology; each write is one transaction under the master's term."""

    def switch(self, wanted: Definition, former: Definition | None, switch: Switch) -> None:
        """Writes the plan and the way back from it, then tells everybody.

        Raises:
            ProtocolError: they are too large; nothing was changed.
        """

    def settled(self) -> None:
        """Writes that the update is over: there is no way back any more."""


class Memory(Protocol):
    """What must be known of state that the topology has in snapshots."""

    def settle(self, now: float) -> bool:
        """Whether all that was done is in a snapshot that counts; takes one if not."""

    def restoring(self) -> list[str]:
        """For whom one waits, and why, until all have their state; empty: they have."""

    def stuck(self, *, late: bool) -> bool:
        """Whether no snapshot can be taken, and none is needed: what was done since the last one is void.

        ``late``: for as long as one waits; else only where a task has said that it cannot begin.
        """

    def owing(self, tasks: Iterable[int]) -> list[str]:
        """Those of these tasks, by name, that have rows to be written outside, or may have."""

    def bound(self, tasks: Iterable[int]) -> list[str]:
        """Those of these tasks, by name, whose state no other task can have, or may have: nobody has said so yet."""


class Updates:
    """At most one update at a time."""

    def __init__(
        self,
        orders: UpdateOrders,
        writes: UpdateWrites,
        memory: Memory | None,
        definition: Definition,
        former: Definition | None,
        switch: Switch | None,
        now: float,
    ) -> None:
        """``former`` and ``switch``: what a former master left half done.  ``memory``: None, there are no snapshots."""
        self._orders, self._writes, self._memory = orders, writes, memory
        self._definition = definition
        self._plan = plan_of(definition)
        self._request: UpdateRequest | None = None
        self._draining: Draining | None = None
        self._switching: Switching | None = None
        self._switch = switch
        self._former = former
        self._difference: PlanDifference | None = None
        self._known: dict[str, UpdateProgress] = {}  # how the last ones went, by id
        self._late: list[str] = []
        if switch is not None:
            self._switching = Switching(self._plan, math.inf if former is None else now + switch.patience)
            if former is not None:
                rebuilt = former.build != definition.build
                self._difference = self._between(plan_of(former), self._plan, rebuilt=rebuilt, whole=definition.whole)

    def begun(self) -> None:
        """A new master goes on with a switch."""
        if self._switching is not None:
            self._hold_for_switch()

    @property
    def running(self) -> bool:
        """Whether one is under way."""
        return self._draining is not None or self._switching is not None

    @property
    def switching(self) -> bool:
        """Whether the plan is written and the spouts wait: the end must not be declared."""
        return self._switching is not None

    def progress(self, asked: str = "") -> UpdateProgress | None:
        """Of the update ``asked``, if that one is over; else of the one that is under way, else of the last one."""
        if asked in self._known:
            return self._known[asked]
        if self._draining is not None and self._request is not None:
            return UpdateProgress(self._request.id, "draining", tuple(self._late))
        if self._switching is not None and self._switch is not None:
            step = "putting back" if self._put_back else "switching"
            return UpdateProgress(self._switch.id, step, tuple(self._late), self._put_back)
        return next(reversed(self._known.values()), None)

    # --- the request ------------------------------------------------------------------------------------------

    def requested(self, request: UpdateRequest, ending: Ending, now: float, *, ends: str) -> None:
        """Begins an update, or joins the one that is under way.  ``ends``: why the topology changes no more, or "".

        Raises:
            ProtocolError: it cannot be done; nothing was changed.
        """
        wanted, present = request.wanted, self._definition
        if request.id in self._known:
            return
        if self.running:
            aim = self._request.wanted if self._draining is not None and self._request is not None else present
            if wanted.same_as(aim) or (self._switch is not None and self._switch.id == request.id):
                return
            if not self._put_back:
                raise ProtocolError("UPDATE_RUNS", "another update is under way; wait until it is done")
        if ends:
            raise ProtocolError("UPDATE_REFUSED", ends)
        if wanted.same_as(present):
            self._note(UpdateProgress(request.id, "done"))
            return
        if request.base != present.epoch:
            raise ProtocolError(
                "UPDATE_STALE", f"it was made for plan {request.base}, and plan {present.epoch} is in force; repeat it"
            )
        plan = plan_of(wanted)
        wrong = renumbered(self._plan, plan, present.highest)
        if wanted.topology != present.topology or wrong:
            raise ProtocolError("UPDATE_REFUSED", wrong or f"it is a plan of {wanted.topology}")
        difference = self._between(self._plan, plan, rebuilt=wanted.build != present.build, whole=wanted.whole)
        if self._put_back:
            self._instead(request, difference, ending, now)
            return
        self._request, self._difference = request, difference
        self._draining = Draining(self._plan, self._difference, self._timeout(), now)
        self._hold(settle=False)
        self.look(ending, now)

    @property
    def _put_back(self) -> str:
        """Why the former plan is in force again, as long as not all work by it."""
        return "" if self._switch is None else self._switch.put_back

    def _instead(self, request: UpdateRequest, difference: PlanDifference, ending: Ending, now: float) -> None:
        """Of a former plan that does not come up either: what rested for the switch from it still does."""
        rest = frozenset() if self._difference is None else self._difference.waits
        if self._memory is None and not difference.waits <= rest:
            raise ProtocolError("UPDATE_RUNS", "an update is being put back, and not all rests that this one changes")
        if left := self._left(difference, ending):
            raise ProtocolError("UPDATE_REFUSED", f"{few(left)}, and would end")
        if lost := self._bound(request) + self._owing(request):
            raise ProtocolError("UPDATE_REFUSED", f"{few(lost)} would end, with what no other task can take over")
        if self._difference is not None:  # else all spouts are held already
            self._difference = replace(self._difference, held=self._difference.held | difference.held)
        self._begin_switch(request.wanted, self._definition, Switch(request.id, patience=request.patience), now)

    def _left(self, difference: PlanDifference, ending: Ending) -> list[str]:
        """Spout tasks that leave with rows; where there are snapshots, they are read again from their source."""
        rows = {} if self._memory is not None else {t: ending.tasks[t].open for t in sorted(difference.leaving)}
        return [f"{self._plan.tasks[t].name} has {n:,} rows to send again" for t, n in rows.items() if n]

    def _between(self, former: PhysicalPlan, wanted: PhysicalPlan, *, rebuilt: bool, whole: bool) -> PlanDifference:
        difference = PlanDifference.between(former, wanted, rebuilt=rebuilt, whole=whole)
        return difference if self._memory is None else difference.everywhere(former, wanted)

    def _timeout(self) -> float:
        assert self._difference is not None
        logical = self._plan.logical
        held = [c for c in logical.spouts if c.name in self._difference.held]
        return max((Settings.of(logical.config, c.config).message_timeout for c in held), default=0.0)

    def _hold(self, *, settle: bool) -> None:
        assert self._draining is not None
        difference = self._draining.difference
        self._draining.hold = self._orders.hold(sorted(difference.held), sorted(difference.leaving), settle=settle)

    # --- its steps --------------------------------------------------------------------------------------------

    def look(self, ending: Ending, now: float) -> None:
        """After each report, and when it is due."""
        if self._draining is not None:
            self._late = self._draining.late(ending)
            self._drained(self._draining.look(ending, now), now)
        elif self._switching is not None:
            self._late = self._switching.late(ending) or self._restoring()
            self._switched(self._switching.look(self._late, now))

    def unusable(self, reason: str) -> bool:
        """The topology cannot go on with its code: whether an update has brought that, and is put back."""
        if self._switching is None or self._former is None:
            return False
        self._switching.unusable = reason
        return True

    def _restoring(self) -> list[str]:
        """Who does not have its state yet; a former plan is in force again whether it can read it or not."""
        return [] if self._memory is None or self._former is None else self._memory.restoring()

    def _drained(self, advice: Advice, now: float) -> None:
        request = self._request
        assert request is not None
        if self._memory is not None and self._memory.stuck(late=advice is Advice.REFUSE):
            self._leave(request, now, late=True)
        elif advice is Advice.SETTLE:
            self._hold(settle=True)
        elif advice is Advice.REFUSE:
            self._refuse(f"{few(self._late)} after two message timeouts")
        elif advice is Advice.GO_ON and not self._remembered(now):
            if self._draining is not None and now >= self._draining.refused_at:
                self._refuse("its last snapshot is not stored after two message timeouts")
        elif advice is Advice.GO_ON:
            self._leave(request, now, late=self._draining is not None and now >= self._draining.refused_at)

    def _leave(self, request: UpdateRequest, now: float, *, late: bool) -> None:
        """Nothing is on its way that counts: the plan may go.  ``late``: nobody is waited for any more."""
        if bound := self._bound(request):
            self._refuse(f"{few(bound)} would end, with a TaskState that no other task can take over")
        elif owing := self._owing(request):
            self._late = [f"{name} has rows that are not outside" for name in owing]
            if late:
                self._refuse(f"{few(owing)} would end, with rows that are not outside and that no other task can write")
        else:
            try:
                self._begin_switch(request.wanted, self._definition, Switch(request.id, patience=request.patience), now)
            except ProtocolError as error:
                self._refuse(error.reason)

    def _remembered(self, now: float) -> bool:
        return self._memory is None or self._memory.settle(now)

    def _owing(self, request: UpdateRequest) -> list[str]:
        """Of components that would be gone."""
        left, tasks = plan_of(request.wanted).component_tasks, self._plan.component_tasks
        gone = [task for name in sorted(tasks.keys() - left.keys()) for task in tasks[name]]
        return [] if self._memory is None else self._memory.owing(gone)

    def _bound(self, request: UpdateRequest) -> list[str]:
        left = plan_of(request.wanted).tasks
        return [] if self._memory is None else self._memory.bound(task for task in self._plan.tasks if task not in left)

    def _begin_switch(self, wanted: Definition, former: Definition | None, switch: Switch, now: float) -> None:
        wanted = msgspec.structs.replace(wanted, epoch=self._definition.epoch + 1)
        self._writes.switch(wanted, former, switch)
        self._definition, self._former, self._switch = wanted, former, switch
        self._plan = plan_of(wanted)
        self._draining = None
        self._switching = Switching(self._plan, math.inf if former is None else now + switch.patience)
        self._hold_for_switch()

    def _hold_for_switch(self) -> None:
        """Whoever leaves is about to be gone; spouts that the plan has brought wait too."""
        held = self._difference.held if self._difference else {c.name for c in self._plan.logical.spouts}
        self._orders.hold(sorted(held), (), settle=False)

    def _switched(self, advice: Advice) -> None:
        switch = self._switch
        assert switch is not None
        if advice is Advice.GO_ON:
            self._writes.settled()
            self._orders.resume()
            step = "refused" if switch.put_back else "done"
            self._note(UpdateProgress(switch.id, step, reason=switch.put_back))
            self._switch = self._former = self._switching = self._request = self._difference = None
        elif advice is Advice.REFUSE and self._former is not None:
            former, present = self._former, self._definition
            build = former.build if former.build == present.build else present.epoch + 1
            back = msgspec.structs.replace(former, build=build, highest=present.highest)
            why = (self._switching and self._switching.unusable) or f"after {switch.patience:g} s, {few(self._late)}"
            self._begin_switch(back, None, Switch(switch.id, put_back=why), 0.0)

    def _refuse(self, reason: str) -> None:
        assert self._request is not None
        self._orders.resume()
        self._note(UpdateProgress(self._request.id, "refused", reason=reason))
        self._draining = self._request = self._difference = None

    def _note(self, over: UpdateProgress) -> None:
        self._known[over.id] = over
        if len(self._known) > KNOWN:
            del self._known[next(iter(self._known))]

    def ended(self, reason: str) -> None:
        """The topology ends instead."""
        if self._draining is not None:
            self._refuse(reason)

    @property
    def due(self) -> float:
        """When to look again at the latest."""
        phase = self._draining or self._switching
        return math.inf if phase is None else phase.due


def plan_of(definition: Definition) -> PhysicalPlan:
    """The routing content as processes work by it."""
    return PhysicalPlan.build(definition.shape.plan(), packing_from_bytes(definition.packing), definition.epoch)


def few(late: Sequence[str]) -> str:
    """The first of those for whom one waits."""
    return ", ".join(late[:3]) + (f" and {len(late) - 3} more" if len(late) > 3 else "")
