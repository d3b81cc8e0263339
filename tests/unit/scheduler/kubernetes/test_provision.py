"""Updates at the same moment, one call of the cluster at a time, in every order: no plan in force lacks its code."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from ardea.errors import Conflict
from ardea.scheduler.kubernetes import names
from ardea.scheduler.kubernetes.provision import Provision
from tests.sizes import share
from tests.unit.scheduler.kubernetes.fake import FakeCluster

TOPOLOGY = "Sums-00000000"


def code(version, plan):
    metadata = {"name": version, "labels": names.labels(TOPOLOGY) | {names.ROLE: names.CODE}}
    return {
        "kind": "ConfigMap",
        "metadata": {**metadata, "annotations": {names.PLAN: str(plan)}},
        "data": {"version": version},
    }


class Turns:
    """Threads that take turns: each waits at :meth:`turn` until it is chosen."""

    def __init__(self):
        self.changed = threading.Condition()
        self.waiting, self.chosen, self.living = set(), None, 0

    def turn(self):
        me = threading.current_thread().name
        with self.changed:
            self.waiting.add(me)
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.chosen == me)
            self.chosen = None
            self.waiting.discard(me)

    def run(self, works, choose, look):
        """``works`` by name; ``choose`` picks the next of those that wait; ``look`` after each turn."""
        failures = []

        def guarded(work):
            try:
                self.turn()
                work()
            except BaseException as error:
                failures.append(error)
            finally:
                with self.changed:
                    self.living -= 1
                    self.changed.notify_all()

        self.living = len(works)
        for name, work in works.items():
            threading.Thread(target=guarded, args=[work], name=name, daemon=True).start()
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.chosen is None and len(self.waiting) == self.living)
                look()
                if not self.living:
                    break
                self.chosen = choose(sorted(self.waiting))
                self.changed.notify_all()
        assert failures == []


@dataclass
class World:
    """A namespace, and the plan that its master works by."""

    turns: Turns = field(default_factory=Turns)
    cluster: FakeCluster = field(default_factory=FakeCluster)
    epoch: int = 1
    version: str = "a"

    def __post_init__(self):
        self.cluster.create(code("a", 1))

    def find(self, *arguments):
        self.turns.turn()
        return self.cluster.find(*arguments)

    def list(self, *arguments):
        self.turns.turn()
        return self.cluster.list(*arguments)

    def create(self, *arguments):
        self.turns.turn()
        return self.cluster.create(*arguments)

    def patch(self, *arguments):
        self.turns.turn()
        return self.cluster.patch(*arguments)

    def delete(self, *arguments, **options):
        self.turns.turn()
        return self.cluster.delete(*arguments, **options)

    def update(self, name, version):
        """As the verb does it."""
        base, present = self.epoch, self.version
        provision = Provision(self, TOPOLOGY, name)
        try:
            provision.bring([code(version, base + 1)])
        except Conflict:
            return  # it came and went too often
        self.turns.turn()
        if version != self.version and base != self.epoch:
            provision.withdraw()  # stale
            return
        if version != self.version:
            self.epoch, self.version = self.epoch + 1, version
        provision.sweep(base if version == present else base + 1, {version})

    def versions(self):
        return {name for _, name in self.cluster.objects}

    def look(self):
        assert self.version in self.versions(), f"plan {self.epoch} has no code {self.version}"


@settings(max_examples=share(150), deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=4), st.data())
def test_whatever_the_order_the_code_in_force_is_there_and_nothing_stays_for_ever(wanted, data):
    world = World()
    works = {
        f"verb-{n}": lambda n=n, version=version: world.update(f"verb-{n}", version) for n, version in enumerate(wanted)
    }
    world.turns.run(works, lambda waiting: data.draw(st.sampled_from(waiting)), world.look)
    world.turns.run({"last": lambda: world.update("last", "z")}, lambda waiting: waiting[0], world.look)
    assert world.versions() == {"z"}


def test_a_verb_that_is_behind_does_not_take_what_a_later_one_has_claimed():
    cluster = FakeCluster()
    cluster.create(code("a", 1))
    Provision(cluster, TOPOLOGY, "later").bring([code("a", 3)])
    Provision(cluster, TOPOLOGY, "behind").bring([code("a", 2)])
    Provision(cluster, TOPOLOGY, "first").sweep(2, set())
    assert cluster.find("ConfigMap", "a") is not None
    Provision(cluster, TOPOLOGY, "later").sweep(3, set())
    assert cluster.find("ConfigMap", "a") is None
