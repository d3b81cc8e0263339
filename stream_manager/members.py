"""Who takes part by the plan: links to local tasks and to other managers, and the incarnations of all tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from ardea.config import Settings
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link, Port
from ardea.protocol.pulse import PATIENT, REST_AFTER
from ardea.protocol.wire_pb2 import TASKS, Address, Header, Tasks
from ardea.stream_manager.acks import ControlOutbox

SOON = 0.05
"""Seconds within which local tasks hear of an incarnation: what rises meanwhile comes in the same message."""


class Members:
    """Those of one manager; :meth:`planned` comes before anything else.

    ``instances``: task -> its link; ``peers``: container -> the link to its manager; each has an outbox.  ``lives``:
    the incarnations of all tasks that are known.  Others may hold these tables, and only read them.
    """

    plan: PhysicalPlan

    def __init__(self, container: int, me: int, port: Port) -> None:
        """``me`` is the incarnation."""
        self.container = container
        self.me = me
        self.addresses: dict[int, Address] = {}
        self.instances: dict[int, Link] = {}
        self.peers: dict[int, Link] = {}
        self.outboxes: dict[Link, ControlOutbox] = {}
        self._unsent: dict[ControlOutbox, None] = {}
        self.lives: dict[int, int] = {}
        self._port = port
        self._named: dict[
            int, dict[int, int]
        ] = {}  # container -> tasks that its manager names, by this plan or the next
        self._returning: set[int] = set()  # tasks whose manager has a new life, and has not named them yet
        self._risen: dict[int, bool] = {}  # tasks whose incarnation rose in this round -> whether it is the same again
        self._untold: dict[int, bool] = {}  # those of which the instances have not heard
        self.next_telling = math.inf
        """When they will."""
        self._dropped_acks = 0  # of links that are gone
        self._left_out: dict[tuple[str, int], int] = {}  # whom a plan took from this manager -> in which life

    # --- links ------------------------------------------------------------------------------------------------

    def planned(self, plan: PhysicalPlan) -> None:
        """A plan of a higher epoch; acks wait as long as its trees may be open."""
        self.plan = plan
        timeout = self._timeout
        for outbox in self.outboxes.values():
            outbox.timeout = timeout

    @property
    def _timeout(self) -> float:
        return Settings.of(self.plan.logical.config).tree_timeout

    def addressed(self, addresses: Iterable[Address]) -> set[int]:
        """Where managers listen; whoever is new gets a link.  Returns the containers whose address has changed."""
        new: set[int] = set()
        for address in addresses:
            if self.addresses.get(address.container) != address:
                new.add(address.container)
            self.addresses[address.container] = address
            if address.container != self.container and address.container not in self.peers:
                patience = PATIENT if address.container > self.container else REST_AFTER
                self._link(self.peers, address.container, f"manager {address.container}", patience)
        return new

    def instance(self, task: TaskPlan) -> Link:
        """The link to a task of this container."""
        return self.instances.get(task.task) or self._link(self.instances, task.task, task.name)

    def _link(self, table: dict[int, Link], key: int, name: str, patience: int = REST_AFTER) -> Link:
        link = table[key] = Link(key, name, self.me, self._port, patience)
        self.outboxes[link] = ControlOutbox(link, self._timeout, self._unsent)
        return link

    def met(self, link: Link, life: int, now: float) -> list[Message] | None:
        """The other end calls itself ``life``; None: as before.

        Returns:
            The data that its former life, if it had one, has never confirmed.
        """
        words = link.lanes[Lane.CONTROL].since(1)
        left = link.meet(life)
        if left is not None:
            self.outboxes[link].met(words, now)
            if self.peers.get(link.key) is link:
                self._named.pop(link.key, None)
        return left

    def was_left_out(self, link: Link, life: int) -> bool:
        """Whether a plan has taken the peer from this manager in that very life.

        What the two have told each other, and which rows they have counted, is forgotten here, and not there.
        """
        return self._left_out.get((link.name, link.key)) == life

    def without_instance(self, task: int) -> list[Message]:
        """A task is of this container no longer; returns the data that it has never confirmed."""
        return self._without(self.instances.pop(task))

    def without_peer(self, container: int) -> list[Message]:
        """A container is gone; returns the data that its manager has never confirmed."""
        self._named.pop(container, None)
        self.addresses.pop(container, None)
        return self._without(self.peers.pop(container))

    def _without(self, link: Link) -> list[Message]:
        outbox = self.outboxes.pop(link)
        self._unsent.pop(outbox, None)
        self._dropped_acks += outbox.dropped
        if link.peer:
            self._left_out[link.name, link.key] = link.peer
        return link.lanes[Lane.DATA].restart()

    def flush(self, now: float) -> None:
        """Tells of incarnations that rose, peers at the end of the round, and sends what has waited for room."""
        if self._risen:
            self._untold |= self._risen
            self.next_telling = min(self.next_telling, now + SOON)
            self._tell(self.peers, {task: again for task, again in self._risen.items() if task in self.instances})
            self._risen = {}
        if now >= self.next_telling:
            self._tell(self.instances, self._untold)
            self._untold, self.next_telling = {}, math.inf
        for outbox in list(self._unsent):
            outbox.flush(now)
            if not outbox.waiting:
                del self._unsent[outbox]

    @property
    def dropped_acks(self) -> int:
        """Acks that could not leave in time, of all links that there were."""
        return self._dropped_acks + sum(outbox.dropped for outbox in self.outboxes.values())

    # --- incarnations -----------------------------------------------------------------------------------------

    def is_there(self, task: int) -> bool:
        """Whether the task's present incarnation is known."""
        return self.lives.get(task, 0) != 0 and task not in self._returning

    @property
    def local_lives(self) -> dict[int, int]:
        """The incarnations of the local tasks that are known."""
        return {task: life for task in self.instances if (life := self.lives.get(task, 0))}

    def risen(self, task: int, life: int) -> int | None:
        """A task's incarnation as somebody knows it; the same one counts when it comes back to a new manager.

        Returns:
            The one before, 0 if there was none; None if nothing is new.  If it is, everybody hears of it soon.
        """
        known = self.lives.get(task, 0)
        again = task in self._returning and life >= known
        if life < known or (life == known and not again) or not life:
            return None
        self.lives[task] = life
        self._returning.discard(task)
        self._risen[task] = again
        return known

    def _tell(self, links: Mapping[int, Link], risen: Mapping[int, bool]) -> None:
        """The incarnations of these tasks."""
        for again in set(risen.values()):
            lives = {task: self.lives[task] for task in risen if risen[task] == again and task in self.lives}
            if lives:
                self._spread(links, Tasks(lives=lives, again=again))

    def _spread(self, links: Mapping[int, Link], tasks: Tasks) -> None:
        """In one message a link, or in one a task where it must wait.  A peer that is met later hears of all then."""
        body = tasks.SerializeToString()
        for link in links.values():
            outbox = self.outboxes[link]
            if outbox.free:
                outbox.newest("tasks", Header(kind=TASKS), [body])
            elif link.peer:
                for task, life in tasks.lives.items():
                    one = Tasks(lives={task: life}, again=tasks.again).SerializeToString()
                    outbox.newest(("task", task), Header(kind=TASKS), [one])

    def forget(self, task: int) -> bool:
        """A task is not where it was; whether it had an incarnation there."""
        self._returning.discard(task)
        return self.lives.pop(task, 0) != 0

    def left_behind(self, container: int) -> list[TaskPlan]:
        """A manager's new life knows none of its tasks; returns those that are not there until it names them."""
        found = [task for task in self.plan.tasks_in(container) if self.lives.get(task.task)]
        self._returning.update(task.task for task in found)
        return found

    def named(self, container: int, lives: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        """A manager names its tasks; those that another plan gives it count as soon as that plan is here.

        Returns:
            The incarnations that count now.
        """
        self._named.setdefault(container, {}).update(lives)
        return self._by_plan(container, lives)

    def all_named(self) -> dict[int, int]:
        """What the managers have named that the plan gives them."""
        return dict(each for container, lives in self._named.items() for each in self._by_plan(container, lives))

    def _by_plan(self, container: int, lives: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        tasks = self.plan.tasks
        return ((task, life) for task, life in lives.items() if task in tasks and tasks[task].container == container)
