"""An order about snapshots reaches local tasks once their manager has met everybody in the life that it names."""

from __future__ import annotations

import pytest

from ardea.protocol.wire_pb2 import ORDER, SNAPSHOTS, Order, SnapshotOrder
from tests.unit.stream_manager.mesh import Mesh


class Ordered(Mesh):
    """Three containers in which all tasks are there."""

    def __init__(self):
        super().__init__(3, 2)
        self.begins(*self.plan.tasks)
        self.second()
        self.said.clear()

    def orders(self, version=1, **changed):
        """The master's order with everybody's present life, but for what is ``changed``."""
        members = self.managers[1].members
        lives = dict(members.lives) | changed.get("lives", {})
        managers = {number: manager.members.me for number, manager in self.managers.items()}
        order = SnapshotOrder(timeline=2, lives=lives, managers=managers | changed.get("managers", {}), committed=4)
        self.managers[1].ordered(Order(kind=SNAPSHOTS, term=1, version=version, snapshots=order))
        self.flush()

    def told(self):
        """Local task -> the versions of the orders that it heard."""
        found = {}
        for _, to, header, frames in self.said:
            if header.kind == ORDER and to.startswith("task"):
                found.setdefault(int(to.split()[1]), []).append(Order.FromString(frames[0]).version)
        return found


@pytest.fixture
def mesh():
    return Ordered()


def test_all_local_tasks_hear_it_at_once_if_all_have_met(mesh):
    mesh.orders()
    local = [place.task for place in mesh.plan.tasks_in(1)]
    assert mesh.told() == {task: [1] for task in local}


@pytest.mark.parametrize("who", ["manager", "task"])
def test_nobody_hears_it_before_the_manager_has_met_the_life_that_it_names(mesh, who):
    there = mesh.tasks(3, "keep")[0]
    life = mesh.managers[1].members.lives[there]
    risen = {"lives": {there: life + 1}} if who == "task" else {"managers": {3: mesh.managers[3].members.me + 1}}
    mesh.orders(**risen)
    mesh.second()
    assert mesh.told() == {}
    mesh.orders(version=2)
    assert {tuple(versions) for versions in mesh.told().values()} == {(2,)}


def test_it_is_said_once_to_each_life_of_a_task(mesh):
    mesh.orders()
    mesh.second()
    mesh.second()
    assert {tuple(versions) for versions in mesh.told().values()} == {(1,)}
