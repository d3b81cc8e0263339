"""The containers of the plan in force: who holds the place of each, where its manager listens, who is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ardea.plan.definition import Definition
from ardea.plan.names import container_name
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.incarnations import describe, incarnation, life_of
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link, Port
from ardea.protocol.wire_pb2 import ADMITTED, HELLO, REFUSED, Address, Admission, Header, Hello, Refusal
from ardea.topology_master.forgotten import ForgottenError, Memory
from ardea.topology_master.store import Place, Store
from ardea.topology_master.stories import Stories
from ardea.topology_master.updates import plan_of
from ardea.versions import PROTOCOL, protocol_differs

SILENCE = 5.0
"""Seconds after which another may take the place of a container that is not heard."""
LARGEST_ADMISSION = (1 << 31) - 1


@dataclass(slots=True)
class Container:
    """One container that has said hello."""

    link: Link
    holder: str
    address: Address | None = None
    admission: int = 0
    registered: bool = False
    told: int = 0
    """The version of the plan that it has; 0: none, or nobody knows."""
    had: int = 0
    """The admission that it has come with, by a plan."""


class Admissions:
    """One master's; ``definition`` and ``plan`` are those in force."""

    def __init__(
        self,
        definition: Definition,
        term: int,
        store: Store,
        port: Port,
        stories: Stories,
        now: float,
        *,
        came_up: bool,
    ) -> None:
        """``came_up``: what is stored says that the topology has been whole once."""
        self.definition = definition
        self.plan = plan_of(definition)
        self.containers: dict[int, Container] = {}
        self._term = term
        self._store = store
        self._port = port
        self._stories = stories
        self._holders = dict(store.holders())
        self._remembered: dict[int, int] = {}  # the admissions that managers know, by container
        self._heard = dict.fromkeys(self._holders, now)
        self._planned = False  # all have been there once, and were told the plan
        self._began_empty = not self._holders and not came_up
        self._ignorant = not self._holders  # nothing is stored: it is the beginning, or what was stored is lost

    def replanned(self, definition: Definition, plan: PhysicalPlan) -> None:
        """Another plan is in force."""
        self.definition, self.plan = definition, plan
        self._stories.forget(plan, map(container_name, plan.containers))

    # --- messages ---------------------------------------------------------------------------------------------

    def accepts(self, number: int, header: Header, frames: Sequence[bytes], now: float) -> bool:
        """Whether a message is the next of a container that has been met."""
        known = self.containers.get(number)
        if known is None or not known.link.accept(Lane.CONTROL, header, sum(map(len, frames))):
            return False
        known.link.last_heard = now
        if known.admission or known.registered:
            self._heard[number] = now
        return True

    def met(self, number: int, header: Header, hello: Hello, now: float) -> bool:
        """A container's manager says who it is; whether this master meets another life than before."""
        if why := protocol_differs("the topology master", f"the stream manager of container {number}", hello.protocol):
            self._refuse(number, header, Refusal(code="OTHER_VERSION", message=why, definite=True))
            return False
        if hello.topology == self.definition.topology:
            self._learn(hello)
        if not self._belongs(number, header, hello) or not self._has_place(number, header, hello, now):
            return False
        known = self.containers.get(number)
        if known is None or known.holder != hello.holder:
            link = Link(number, f"manager {number}", self._term, self._port)
            # The former's address stays: the others have it, and are told when the newcomer's differs.
            former = None if known is None else known.address
            known = self.containers[number] = Container(link, hello.holder, former)
            self._stories.tell(container_name(number), f"says hello, held by {hello.holder}")
        known.had = hello.admission if hello.known else 0
        link = known.link
        link.last_heard = now
        risen = link.meet(header.sender) is not None
        if risen:
            known.registered = False
        answer = Hello(protocol=PROTOCOL, topology=self.definition.topology, digest=self.definition.shape.digest)
        link.signal(Header(kind=HELLO), [answer.SerializeToString()])
        return risen

    def _learn(self, hello: Hello) -> None:
        """What the manager remembers of former masters, whose state may be lost.

        Raises:
            ForgottenError: it has heard of this term, or a later one, from another master; or of any, and nothing is
                stored of a topology that has been whole.
        """
        if hello.term and (self._began_empty or hello.term >= self._term):
            raise ForgottenError(Memory.of(hello))
        for other, admission in hello.known.items():
            if admission > LARGEST_ADMISSION:
                continue
            self._remembered[other] = max(admission, self._remembered.get(other, 0))

    def _belongs(self, number: int, header: Header, hello: Hello) -> bool:
        """Whether it is of this plan, or behind, and so about to get it; else it is told."""
        topology, digest = self.definition.topology, self.definition.shape.digest
        behind, known = hello.epoch < self.plan.epoch, number in self.plan.containers
        if not known and hello.topology == topology and behind:
            return False  # an update has removed it, and its processes are about to end
        if hello.topology == topology and known and (hello.digest == digest or behind):
            return True
        why = (
            f"this is the master of {topology}, plan {digest}; "
            f"container {number} of {hello.topology}, plan {hello.digest}, does not belong to it"
        )
        self._refuse(number, header, Refusal(code="WRONG_TOPOLOGY", message=why, definite=True))
        return False

    def _has_place(self, number: int, header: Header, hello: Hello, now: float) -> bool:
        """Whether the place is this container's, or free: who holds it was silent for long enough, or has left."""
        holder = self._holders.get(number, hello.holder)
        if 0 < hello.admission < self._remembered.get(number, 0):
            holder = ""  # another one was admitted since, before the state manager lost what it held
        if hello.holder == holder:
            self._heard[number] = -math.inf if hello.leaving else now
            return not hello.leaving
        if hello.admission:
            self._refuse(number, header, _replaced(number))
            return False
        return now >= self._heard[number] + SILENCE  # it says hello again

    def _refuse(self, number: int, header: Header, refusal: Refusal) -> None:
        link = Link(number, f"manager {number}", self._term, self._port)
        link.meet(header.sender)
        self._stories.tell(container_name(number), f"refused, {refusal.code}: {refusal.message}")
        link.signal(Header(kind=REFUSED), [refusal.SerializeToString()])

    def replaces(self, number: int) -> bool:
        """Whether who has said hello under that number is about to take another's place."""
        known = self.containers[number]
        return self._holders.get(number, known.holder) != known.holder

    def admit(self, number: int, address: Address, now: float) -> list[Container]:
        """Gives a container its place, at that address; returns those who have to hear the plan now.

        In ignorance nobody gets an admission before all are there: by then it is known what anybody remembers.
        """
        known = self.containers[number]
        self._holders[number], self._heard[number] = known.holder, now
        moved = known.address != address
        known.address = address
        known.registered, known.told = True, 0
        if self._ignorant and self.missing:
            return []
        self._give_admissions(self.members if self._ignorant else [known])
        self._ignorant = False
        if self._planned:
            return self.registered if moved else [known]  # who is not registered gets it behind its admission
        self._planned = not self.missing
        return self.registered if self._planned else []

    def _give_admissions(self, newcomers: Sequence[Container]) -> None:
        for known, admission in zip(newcomers, self._store.admit([*map(self._place, newcomers)]), strict=True):
            number, address = known.link.key, known.address
            assert address is not None
            known.admission = admission
            address.incarnation = incarnation(admission, life_of(known.link.peer))
            where = f"{address.host}:{address.data_port}"
            self._stories.tell(container_name(number), f"{describe(address.incarnation)} registered at {where}")
            body = Admission(admission=admission, term=self._term).SerializeToString()
            known.link.send(Lane.CONTROL, Header(kind=ADMITTED), [body], len(body))

    def _place(self, known: Container) -> Place:
        number, address = known.link.key, known.address
        assert address is not None
        return Place(number, known.holder, address.host, address.data_port, self._remembered.get(number, 0), known.had)

    # --- who is there -----------------------------------------------------------------------------------------

    @property
    def members(self) -> list[Container]:
        """Those of the present plan; one that an update has removed may come back if the update is put back."""
        return [container for number, container in self.containers.items() if number in self.plan.containers]

    @property
    def registered(self) -> list[Container]:
        """Those of them that are to be told plan and orders."""
        return [container for container in self.members if container.registered]

    @property
    def missing(self) -> list[int]:
        """Containers that have not registered."""
        return [c for c in self.plan.containers if c not in self.containers or not self.containers[c].registered]

    @property
    def everybody_knows(self) -> bool:
        """Whether every registered manager has confirmed what it was sent."""
        return all(c.link.lanes[Lane.CONTROL].unconfirmed_bytes == 0 for c in self.registered)

    def beat(self) -> None:
        """A heartbeat to all that are heard."""
        for container in self.containers.values():
            if container.link.up:
                container.link.heartbeat()


def _replaced(number: int) -> Refusal:
    why = f"container {number} stood still or was cut off, and another one was admitted in its place"
    return Refusal(code="REPLACED", message=why, definite=True)
