"""The topology master: admits containers, makes the plan, gives orders, declares the end.

Pure: messages come in through :meth:`Master.received`, writes to the state go out through ``Store``, and time
passes in :meth:`Master.tick`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

from ardea.config import Settings
from ardea.errors import ProtocolError
from ardea.plan.change import UpdateRequest
from ardea.plan.definition import Definition
from ardea.plan.names import container_name
from ardea.protocol.incarnations import describe
from ardea.protocol.link import Port
from ardea.protocol.wire_pb2 import (
    END,
    EXIT,
    HELLO,
    LEAVING,
    REGISTER,
    REPORT,
    Header,
    Hello,
    Registration,
    TaskReport,
    TaskState,
)
from ardea.snapshots.savepoint import ended_with
from ardea.state.records import ExecutionState, RunState, Switch
from ardea.topology_master.admissions import Admissions
from ardea.topology_master.coordination import Coordination
from ardea.topology_master.departures import Departures
from ardea.topology_master.ending import Ending, Phase
from ardea.topology_master.exceptions import Exceptions
from ardea.topology_master.execution import Execution
from ardea.topology_master.orders import Orders
from ardea.topology_master.savepoints import SavepointRequest, Savepoints
from ardea.topology_master.store import Store
from ardea.topology_master.stories import UPDATE, Stories
from ardea.topology_master.updates import Updates, plan_of

HEARTBEAT_EVERY = 1.0
A_HUNDRED_TASKS = 0.002
"""Seconds between two looks at all tasks, for each hundred of them: what each look takes is a small part of that."""


class Master:
    """One master's life; ``found`` is what the former ones left, ``now`` seconds on the clock of :meth:`tick`."""

    def __init__(
        self,
        definition: Definition,
        former: Definition | None,
        term: int,
        store: Store,
        port: Port,
        *,
        found: ExecutionState,
        now: float,
    ) -> None:
        self.term = term
        self.stories = Stories(now)
        self.execution = Execution(store, found)
        self.admissions = Admissions(definition, term, store, port, self.stories, now, came_up=found.came_up)
        self.orders = Orders(self.admissions, self.stories, term, active=found.state is not RunState.PAUSED)
        remembers = Settings.of(self.admissions.plan.logical.config).remembers
        self.ending = Ending(self.admissions.plan, found.end, goes_back=remembers)
        self.coordination: Coordination | None = None
        if remembers:
            self.coordination = Coordination(term, self.admissions.plan, self.orders, store, self, definition.begins)
        self.updates = Updates(self.orders, self, self.coordination, definition, former, found.switch, now)
        self.departures = Departures(self.orders, self.coordination)
        self.savepoints = Savepoints(self.orders, self.coordination, definition.topology)
        self.exceptions = Exceptions()
        self._leaving_at_the_end: set[int] = set()  # containers that are to be emptied if the end is taken back
        self._drain_until = math.inf
        self._next_heartbeat = 0.0
        self._news = False  # managers or tasks have said something since the last look at all of them
        self._next_look = 0.0
        if found.state is RunState.ENDING:
            self._declare(now)
        if found.end.drain is not None:
            self._drain_until = now + found.end.drain
            self.orders.drain()
        if term > 1:
            self.orders.set_active(active=self.orders.active)  # a manager may remember what held before
            self.updates.begun()
            if not self.updates.running:
                self.departures.begun(self.admissions.plan, now)  # by which spouts that were held go on, too

    # --- messages ---------------------------------------------------------------------------------------------

    def received(self, container: int, header: Header, frames: Sequence[bytes], now: float) -> None:
        """One message of a container's manager."""
        self.stories.now = now
        if header.kind == HELLO:
            self._met(container, header, Hello.FromString(frames[0]), now)
        elif self.admissions.accepts(container, header, frames, now):
            if header.kind == REGISTER:
                registration = Registration.FromString(frames[0])
                if registration.container == container:  # each speaks for itself
                    self._register(container, registration, now)
            elif header.kind == REPORT:
                self._report(container, TaskReport.FromString(frames[0]), now)
            elif header.kind == LEAVING:
                self._leaving(container, now)

    def _met(self, container: int, header: Header, hello: Hello, now: float) -> None:
        """What its tasks report may come ahead of its registration; that it has risen is known before."""
        if self.admissions.met(container, header, hello, now) and self.coordination is not None:
            self.coordination.manager_met(container, now)

    def _register(self, container: int, registration: Registration, now: float) -> None:
        admissions = self.admissions
        if admissions.replaces(container):
            self._leaving_at_the_end.discard(container)
            self.departures.replaced(container, admissions.plan, self.ending, now)
        recipients = admissions.admit(container, registration.address, now)
        for known in (admissions.containers[container], *recipients):
            if known.admission and known.address is not None:
                self.ending.manager_met(known.link.key, known.address.incarnation)
                if self.coordination is not None:
                    self.coordination.manager_rose(known.link.key, known.address.incarnation, now)
        self.orders.send_plan(recipients)
        if not recipients:  # it may work by a plan already, and obey a former master until it hears of this one
            self.orders.repeat([admissions.containers[container]])
        self._news = True

    def _report(self, container: int, report: TaskReport, now: float) -> None:
        place = self.admissions.plan.tasks.get(report.task)
        if report.HasField("inspected"):
            if place is not None and place.container == container:
                self.orders.inspections.answered(place.name, report.inspected, now)
            return
        if self.coordination is not None and place is not None and place.container == container:
            self.coordination.reported(report, now)
        # One that has moved may still report from where it was.
        if place is not None and place.container == container and self.ending.reported(report):
            self.stories.tell(place.name, f"{describe(report.life)} reports {TaskState.Name(report.state)}")
            self.exceptions.reported(place, report.life, report.raised, now)
            self._news = True

    def _leaving(self, container: int, now: float) -> None:
        """An update's own pods go at once, also once it is over; where the topology ends for good, all go with it."""
        self.stories.tell(container_name(container), "wants to leave")
        removed = container not in self.admissions.plan.containers
        if removed or self.updates.running or self.savepoints.ends:
            self.orders.leave([container])
        elif self.ending.phase is Phase.ENDING:
            self._leaving_at_the_end.add(container)
        elif self.execution.drain is None and self.ending.phase is Phase.RUNNING:
            self.departures.asked(container, self.admissions.plan, self.ending, now)

    # --- verbs ------------------------------------------------------------------------------------------------

    def set_active(self, now: float, *, active: bool) -> None:
        """Activates or deactivates the topology."""
        self.stories.now = now
        if self.ending.phase is not Phase.RUNNING or active == self.orders.active:
            return
        self.execution.write(self.ending, RunState.RUNNING if active else RunState.PAUSED)
        self.orders.set_active(active=active)
        self._consider(now)

    def drain(self, now: float, wait: float | None = None) -> None:
        """Stops the spouts, waits for what is open, then ends as KILLED; repeated with less time, it hurries."""
        self.stories.now = now
        wait = Settings.of(self.admissions.plan.logical.config).drain if wait is None else wait
        if self.over or now + wait >= self._drain_until:
            return
        self.execution.write(self.ending, self.execution.state, drain=wait)
        self._drain_until = now + wait
        self.updates.ended("the topology is being killed")
        self.savepoints.ended("the topology is being killed")
        if self.departures.running:
            self.departures.forgotten()
            self.orders.resume()
        self.orders.drain()
        self._consider(now)

    def fail(self, reason: str, culprit: str = "") -> None:
        """Ends the topology as FAILED."""
        self._finish(RunState.FAILED, reason, culprit)

    def unusable(self, reason: str, culprit: str) -> None:
        """See :class:`ardea.topology_master.coordination.Topology`, as for :meth:`tell`."""
        if self.updates.unusable(reason):
            self._news = True
        else:
            self.fail(reason, culprit)

    def tell(self, name: str, what: str) -> None:
        """A story goes on."""
        self.stories.tell(name, what)

    def debug(self, target: str, seconds: int) -> None:
        """Has a component, or one task by its name, log a sample of what it emits, for so long."""
        self.orders.debug(target, seconds)

    # --- an update --------------------------------------------------------------------------------------------

    def update(self, request: UpdateRequest, now: float) -> None:
        """Begins or joins an update; :attr:`updates` knows how far it is.

        Raises:
            ProtocolError: it is refused; nothing was changed.
        """
        self.stories.now = now
        if self.savepoints.running:
            raise ProtocolError("SAVEPOINT_RUNS", "a savepoint is under way; wait until it is done")
        self.updates.requested(request, self.ending, now, ends=self._ends)
        self._tell_of_update()
        if self.updates.running:
            self.departures.cancelled()

    @property
    def _ends(self) -> str:
        """Why nothing is begun any more; empty: the topology goes on."""
        if self.ending.phase is Phase.RUNNING and self.execution.drain is None:
            return ""
        drained = ", and is drained" if self.execution.drain is not None and not self.over else ""
        return f"the topology is ending: it is {self.execution.state}{drained}"

    def save(self, request: SavepointRequest, now: float) -> None:
        """Begins or joins a savepoint; :attr:`savepoints` knows how far it is.

        Raises:
            ProtocolError: it is refused; nothing was changed.
        """
        self.stories.now = now
        ends = self._ends or ("an update is under way; wait until it is done" if self.updates.running else "")
        self.savepoints.requested(request, self.admissions.plan, now, ends=ends)
        if self.savepoints.ends:
            self.departures.cancelled()

    def switch(self, wanted: Definition, former: Definition | None, switch: Switch) -> None:
        """See :class:`ardea.topology_master.updates.Topology`."""
        plan, ending = plan_of(wanted), copy.copy(self.ending)
        ending.replanned(plan)
        coordination = self.coordination
        between = None if coordination is None else coordination.snapshots.between
        self.execution.switch(wanted, former, switch, ending, between)
        self.ending = ending
        self.admissions.replanned(wanted, plan)
        if coordination is not None:
            coordination.replanned(plan, between, self.stories.now)
        self.orders.send_plan(self.admissions.registered)

    def settled(self) -> None:
        """See :class:`ardea.topology_master.updates.Topology`."""
        self.execution.settled(self.ending)

    def _tell_of_update(self) -> None:
        if (progress := self.updates.progress()) is not None:
            waits = f", waiting for {', '.join(progress.late[:3])}" if progress.late else ""
            self.stories.tell(
                UPDATE, f"{progress.id}: {progress.step}{waits}{progress.reason and f': {progress.reason}'}"
            )

    # --- the end ----------------------------------------------------------------------------------------------

    def _consider(self, now: float) -> None:
        ending, drained = self.ending, self.execution.drain is not None
        if ending.phase is Phase.OVER:
            return
        if not self.execution.came_up and self._all_heard and not self.admissions.missing and not self.begins:
            self.execution.came_up = ending.unsaved = True
        if ending.failure:
            self._finish(RunState.FAILED, ending.failure, ending.culprit)
        elif ending.all_ended:
            succeeded, reason, culprit = ending.verdict()
            self._finish(RunState.SUCCEEDED if succeeded else RunState.FAILED, reason, culprit)
        elif drained and (ending.quiet or now >= self._drain_until or not self._begun):
            left = sum(last.open for last in ending.tasks.values())
            self._finish(
                RunState.KILLED, f"{left:,} tuple{'s were' if left > 1 else ' was'} still open" if left else ""
            )
        elif not drained and self.orders.active and not self._waits and self._quiet:
            # Written down before the first end marker: a new master continues from it.
            self.execution.write(ending, RunState.ENDING)
            self.updates.ended("the topology has ended")
            self.savepoints.ended("the topology has ended")
            self._declare(now)
        else:
            if ending.unsaved:
                self.execution.write(ending, self.execution.state)
            self.updates.look(ending, now)
            self._tell_of_update()
            while self._leaving_at_the_end and ending.phase is Phase.RUNNING:
                self._leaving(self._leaving_at_the_end.pop(), now)
            held = self.departures.running
            self.departures.look(ending, self.admissions.plan, now)
            self._news |= held and not self.departures.running  # the end may have waited for that
            self._save(now)

    def _save(self, now: float) -> None:
        ends = self.savepoints.ends
        self.savepoints.look(self.ending, now)
        done = self.savepoints.progress()
        if ends and done is not None and done.step == "done":
            self._finish(RunState.KILLED, ended_with(done.folder))

    @property
    def ended_saved(self) -> bool:
        """Whether it has ended with a savepoint."""
        done = self.savepoints.progress()
        return self.over and done is not None and self.execution.reason == ended_with(done.folder)

    @property
    def _quiet(self) -> bool:
        """Whether the end may be declared; where the last snapshot was found in the store, it was before."""
        if self.coordination is None:
            return self.ending.quiet
        if self.coordination.snapshots.record.final:
            return self.ending.phase is Phase.RUNNING
        return self.ending.quiet and self.coordination.flows

    def _declare(self, now: float) -> None:
        """With a last snapshot, if there are any; it is written down already."""
        self.ending.declared()
        if self.coordination is None:
            self.orders.give(END)
        else:
            self.coordination.snapshots.end(now)

    def undeclared(self) -> None:
        """See :class:`ardea.topology_master.coordination.Topology`: somebody has died before the last one counted."""
        if self.ending.phase is Phase.ENDING:
            self.ending.undeclared()
            self.execution.write(self.ending, RunState.RUNNING)
            self._news = True

    def _finish(self, state: RunState, reason: str, culprit: str = "") -> None:
        if self.over:
            return
        self.execution.write(self.ending, state, reason, culprit)
        self.savepoints.ended(f"the topology is {state}")
        self.ending.phase = Phase.OVER
        self.orders.give(EXIT)

    @property
    def _waits(self) -> bool:
        """Whether somebody's new life is to come, which would have to hear of the end."""
        return self.updates.switching or self.departures.running or self.savepoints.ends

    @property
    def _begun(self) -> bool:
        """Whether there may be tuples: a spout has reported, or a former master may have heard of one."""
        return self.term > 1 or self.ending.begun

    @property
    def over(self) -> bool:
        """Whether the final state is stored."""
        return self.ending.phase is Phase.OVER

    # --- time -------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> float:
        """After each round of messages: what follows from them, and what is due; returns when to be called again."""
        self.stories.now = now
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_EVERY
            self.admissions.beat()
        if self.over:
            return self._next_heartbeat
        if now >= self._due:
            self._news = False
            self._next_look = now + A_HUNDRED_TASKS * (len(self.ending.tasks) // 100)
            self._consider(now)
        coordinated = math.inf if self.coordination is None else self._coordinate(self.coordination, now)
        return min(self._next_heartbeat, max(now, self._due), coordinated)

    def _coordinate(self, coordination: Coordination, now: float) -> float:
        before = coordination.snapshots.record
        last = self.savepoints.ends and coordination.demanded is not None  # what comes after it would count twice
        coordination.snapshots.schedule.hold(quiet=self.updates.running or self.departures.running or last)
        due = coordination.tick(now)
        self._news |= coordination.snapshots.record is not before  # an update or a departure may wait for it
        return due

    @property
    def _due(self) -> float:
        """When all tasks are to be looked at."""
        return min(
            self._next_look if self._news else math.inf,
            self._drain_until,
            self.updates.due,
            self.departures.due,
            self.savepoints.due,
        )

    @property
    def _all_heard(self) -> bool:
        ending = self.ending
        never = not self.orders.active and len(ending.unheard) == len(ending.tasks)
        return never or not ending.unheard

    @property
    def begins(self) -> str:
        """What keeps the topology from beginning, other than processes that are not there; empty: nothing does."""
        return "" if self.coordination is None else self.coordination.begins

    @property
    def came_up(self) -> bool:
        """See :class:`ardea.topology_master.coordination.Topology`."""
        return self.execution.came_up

    @property
    def silent_tasks(self) -> list[str]:
        """Tasks that have not reported yet; nobody waits for those of a topology that was never active."""
        tasks = self.admissions.plan.tasks
        return [] if self._all_heard else [tasks[task].name for task in self.ending.unheard]
