"""Storm's even scheduler: executors in task order, dealt round robin over the sorted slots of the nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple, TypeVar

from ardea.config import Settings
from ardea.plan import LogicalPlan, PackingPlan
from ardea.scheduler.packing.containers import OpenContainer, check, finish, no_room
from ardea.scheduler.packing.executors import executors_of
from ardea.scheduler.packing.round_robin import repack_evenly
from ardea.scheduler.packing.rules import Rules

T = TypeVar("T")


class Slot(NamedTuple):
    """Room for one container on a node.  The port is Storm's name for it."""

    node: str
    port: int


def sort_slots(slots: Iterable[Slot]) -> list[Slot]:
    """One slot of each node in turn, nodes with more free slots first, ports ascending.

    Neighbours in this order are on different nodes, so that what is dealt over it does not all depend on one.
    """
    nodes: dict[str, list[Slot]] = {}
    for slot in sorted(slots):
        nodes.setdefault(slot.node, []).append(slot)
    by_size = sorted(nodes.values(), key=lambda free: (-len(free), free[0].node))
    return [slot for turn in zip_longest(*by_size) for slot in turn if slot is not None]


def assign(executors: Sequence[T], workers: int, slots: Iterable[Slot]) -> dict[Slot, list[T]]:
    """Deals ``executors`` over at most ``workers`` of the slots; slots that get none are left out."""
    used = sort_slots(slots)[:workers]
    return {slot: list(executors[place :: len(used)]) for place, slot in enumerate(used[: len(executors)])}


class EvenPacking:
    """A container is a slot taken on the one node there is; the number of slots bounds that of containers."""

    name = "Even"

    def pack(self, plan: LogicalPlan) -> PackingPlan:
        """Deals the executors in task order over ``topology.stmgrs`` slots."""
        settings = Settings.of(plan.config)
        rules, executors = Rules.of(settings), executors_of(plan)
        slots = _local_slots(settings)
        check(plan, executors, rules, containers=settings.containers, slots=len(slots))
        open_containers: list[OpenContainer] = []
        for number, dealt in enumerate(assign(executors, settings.containers, slots).values(), 1):
            open_containers.append(OpenContainer(number, rules))
            for executor in dealt:
                if not open_containers[-1].fits(executor):
                    raise no_room(plan, executor, settings.containers)
                open_containers[-1].add(executor)
        return finish(self.name, open_containers)

    def repack(self, current: PackingPlan, plan: LogicalPlan, *, highest: int = 0) -> PackingPlan:
        """Storm deals anew what a changed number of slots makes uneven; this moves only the surplus."""
        settings = Settings.of(plan.config)
        return repack_evenly(self.name, current, plan, settings, highest=highest, slots=len(_local_slots(settings)))


def _local_slots(settings: Settings) -> list[Slot]:
    """The slots of the one node; where only their number is given, Storm's ports name them."""
    ports = range(6700, 6700 + settings.slots) if isinstance(settings.slots, int) else settings.slots
    return [Slot("local", port) for port in ports]
