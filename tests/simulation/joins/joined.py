"""Topologies that join two stamped streams, what must come of that, and what committed snapshots say came."""

from __future__ import annotations

import random
from collections import Counter

from ardea import Bolt, Grouping, KeyedState, Spout, TaskState, Timestamps, Topology
from ardea.backends.values import Packed
from ardea.joins import JoinBolt
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import tables_of

LATENESS, KEYS, MOST = 3.0, 3, 20


def rows_of(side, task):
    """(key, name, stamp) of one spout's task, in a disorder that is smaller than the lateness."""
    chance = random.Random(f"{side} {task}")
    every = 0.5 if side == "left" else 0.3
    stamps = [
        round(place * every + chance.uniform(-LATENESS / 2, LATENESS / 2), 3)
        for place in range(MOST if side == "left" else 2 * MOST)
    ]
    return [(chance.randrange(KEYS), f"{side[0]}{task}.{place}", at) for place, at in enumerate(stamps)]


class Rows(Spout):
    timestamps = Timestamps("at", lateness=LATENESS)
    position = TaskState(default=0)
    side = ""

    def initialize(self, config, context):
        self._rows = rows_of(self.side, context.this_task_index)

    def next_tuple(self):
        if self.position < len(self._rows):
            place = self.position
            self.position += 1
            self.emit(self._rows[place], tup_id=place)
        else:
            self.finish()


class Left(Rows):
    outputs = ("key", "name", "at")
    side = "left"


class Right(Rows):
    outputs = ("number", "label", "at")
    side = "right"


class Told(JoinBolt):
    """Emits what belongs together."""

    outputs = ("left", "right", "at")

    def joined(self, left, right):
        assert left is None or right is None or left["key"] == right["number"]
        self.emit((left and left["name"], right and right["label"], self.joined_at))


class Results(Bolt):
    """``seen``: of the whole process."""

    times = KeyedState(default=0)
    seen = []

    def process(self, tup):
        assert tup["at"] is None or self.watermark is None or tup["at"] >= self.watermark, "a result comes late"
        self.times[tup["left"], tup["right"]] += 1
        self.seen.append((tup["left"], tup["right"]))


def topology(join, par=2, told=Told):
    """Two tasks of the left, one of the right, and so many of the join."""
    bolt = type("Joins", (told,), {"join": join})
    left, right = Left.spec(par=2), Right.spec()
    joined = bolt.spec(par=par, inputs={left: Grouping.fields("key"), right: Grouping.fields("number")})
    results = Results.spec(inputs={joined: Grouping.fields("left", "right")})
    return type("Joined", (Topology,), {"left": left, "right": right, "joined": joined, "results": results})


def expected(fits, how):
    """What must come: (left, right) -> once."""
    lefts = [row for task in (0, 1) for row in rows_of("left", task)]
    rights = rows_of("right", 0)
    pairs = [(a, b) for key, a, at in lefts for number, b, other in rights if key == number and fits(at, other)]
    paired = {name for pair in pairs for name in pair}
    pairs += [(a, None) for _, a, _ in lefts if how in ("left", "outer") and a not in paired]
    pairs += [(None, b) for _, b, _ in rights if how in ("right", "outer") and b not in paired]
    return Counter(pairs)


def last_versions(within):
    """What must come of a left join with the last right row."""
    rights = sorted((at, key, name) for key, name, at in rows_of("right", 0))
    found = Counter()
    for task in (0, 1):
        for key, name, at in rows_of("left", task):
            known = [(since, label) for since, number, label in rights if number == key and since <= at]
            since, label = known[-1] if known else (at, None)
            found[name, label if at - since <= within else None] += 1
    return found


def committed(cluster):
    """What the last snapshot says came, and the numbers of left and right rows that the join keeps of each key."""
    store, times, kept = Inside(cluster).store, Counter(), []
    for tables in tables_of(store, store.records[-1].committed):
        times.update(tables.get("times", {}))
        stored = map(Packed, tables.get("__join", {}).values())
        kept += [tuple(len(rows) for _, rows in packed.unpacked()[:2]) for packed in stored]
    return times, kept
