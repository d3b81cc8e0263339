"""State that no snapshot could hold, or that nobody has any more: said at once, or gone for good."""

from __future__ import annotations

import re
from typing import TypedDict

import msgspec
import pytest

from ardea import Bolt, Grouping, KeyedState, ListState, TaskState, Timers, Topology
from ardea.testing import Cluster
from tests.simulation.snapshots.counted import EffectivelyOnce, Endless

CONFIG = {"topology.stateful.checkpoint.interval.secs": 1.0}


class Sale(msgspec.Struct):
    at: int = 0


class Discounted(Sale):
    share: float = 0.0


class User(TypedDict):
    name: str


class Assigns(Bolt):
    counts = KeyedState(default=0)
    seen = ListState()
    timers = Timers()
    users = KeyedState(type=User)
    sales = KeyedState(type=list[Sale])
    bags = KeyedState(type=dict)
    what = value = None

    def process(self, tup):
        self.counts[tup["word"]] = self.counts.get(tup["word"], 0) + 1
        if self.what in ("users", "sales", "bags"):
            getattr(self, self.what)[tup["word"]] = self.value
        elif self.what is not None:
            setattr(self, self.what, self.value)

    def on_timer(self, name, key, at):
        pass


def made(bolt):
    class Made(Topology):
        words = Endless.spec()
        count = bolt.spec(inputs={words: Grouping.fields("word")})

    return Made


@pytest.mark.parametrize(
    ("what", "value", "says"),
    [
        ("counts", {}, r"Bad\.counts, declared at test_unfit\.py:\d+, was assigned a dict: no snapshot would have it"),
        ("timers", None, r"Bad\.timers, declared at .*, was assigned a NoneType"),
        ("seen", None, r"Bad\.seen, declared at .*, was assigned a NoneType"),
        ("users", {"name": "ann", "mail": "a@b"}, "'users' holds at .* which cannot be stored"),
        ("sales", [Discounted(1, 0.5)], "'sales' holds at .* which cannot be stored"),
        ("bags", {"seen": {1}}, "'bags' holds at .* which cannot be stored"),
    ],
)
def test_what_a_snapshot_would_lose_fails_the_topology_with_the_name_of_the_state(what, value, says):
    bolt = type("Bad", (Assigns,), {"what": what, "value": value})
    with Cluster(EffectivelyOnce(made(bolt)), config=CONFIG, cost={"words": 0.01}) as cluster:
        cluster.run_until(lambda: cluster.over, timeout=60)
        assert cluster.state == "FAILED"
        assert re.search(says, cluster.reason), cluster.reason


class First(Bolt):
    counts = KeyedState(default=0)
    total = TaskState(default=0)

    def process(self, tup):
        self.counts[tup["word"]] += 1
        self.total += 1


class Without(Bolt):
    others = KeyedState(default=0)

    def process(self, tup):
        self.others[tup["word"]] += 1


class Again(Without):
    counts = KeyedState(default=0)
    total = TaskState(default=-1)


def test_what_a_version_has_dropped_does_not_come_back_with_the_next():
    with Cluster(EffectivelyOnce(made(First)), config=CONFIG, cost={"words": 0.01}) as cluster:
        cluster.advance(5.0)
        assert cluster.task("count-0", First).total > 100
        for bolt in (Without, Again):
            done = cluster.updated(cluster.update_request(EffectivelyOnce(made(bolt))))
            assert (done.step, done.reason) == ("done", "")
            cluster.advance(5.0)
        found = cluster.task("count-0", Again)
        assert (dict(found.counts), found.total) == ({}, -1)
        assert sum(found.others.values()) > 500


class Aged(Bolt):
    counts = KeyedState(default=0, ttl=20)

    def process(self, tup):
        pass


def test_values_that_get_a_time_to_live_with_a_version_have_it_once_whoever_dies():
    with Cluster(EffectivelyOnce(made(First)), config=CONFIG, cost={"words": 0.01}) as cluster:
        cluster.advance(5.0)
        cluster.updated(cluster.update_request(EffectivelyOnce(made(Aged))))
        for _ in range(3):
            cluster.advance(10.0)
            cluster.kill("count-0")
        cluster.advance(5.0)
        assert dict(cluster.task("count-0", Aged).counts) == {}
