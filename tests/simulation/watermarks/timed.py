"""A timed topology, and what its bolts have seen: rows with the watermark of the moment."""

from __future__ import annotations

import random
from collections import Counter

from ardea import Bolt, Grouping, KeyedState, Spout, TaskState, Timers, Timestamps, Topology
from ardea.snapshots.manifest import decode_manifest, manifest_name
from ardea.testing.inside import Inside
from ardea.watermarks import NEVER
from tests.simulation.snapshots.counted import folded

LATENESS = 3.0


def stamps(spout, most):
    """Those of a spout: they go up, in a disorder that is no larger than the lateness."""
    chance = random.Random(spout)
    return [place * 0.5 + chance.uniform(-LATENESS / 2, LATENESS / 2) for place in range(most)]


class Stamped(Spout):
    outputs = ("spout", "place", "at")
    timestamps = Timestamps("at", lateness=LATENESS)
    position = TaskState(default=0)
    most = 100

    def initialize(self, config, context):
        self._me = context.this_task_index
        self._stamps = stamps(self._me, self.most)

    def next_tuple(self):
        if self.position < self.most:
            place = self.position
            self.position += 1
            self.emit((self._me, place, self._stamps[place]), tup_id=place)
        else:
            self.finish()


class Passes(Bolt):
    """Emits what it gets."""

    outputs = ("spout", "place", "at")

    def process(self, tup):
        self.emit(tuple(tup))


class Sees(Bolt):
    """``seen``: (task, spout, place, stamp, watermark), of the whole process; watermarks at begin and end."""

    seen, begins, ends = [], [], []
    rows = KeyedState(default=0)

    def initialize(self, config, context):
        self._me, self._highest = context.this_task_index, None
        self.begins.append(self.watermark)

    def process(self, tup):
        assert self._highest is None or self.watermark >= self._highest
        self._highest = self.watermark
        self.rows[tup["spout"], tup["place"]] += 1
        self.seen.append((self._me, *tup, self.watermark))

    def end_of_input(self):
        self.ends.append(self.watermark)


class Timed(Topology):
    """Two spouts; rows come straight, and through a bolt."""

    rows = Stamped.spec(par=2)
    passes = Passes.spec(par=2, inputs=[rows])
    sees = Sees.spec(par=2, inputs={rows: Grouping.fields("spout", "place"), passes: Grouping.fields("spout", "place")})


WINDOW = 5


class Windows(Bolt):
    """Counts the rows of each window of a spout, once time has passed its end."""

    outputs = ("spout", "end", "count")
    counts = KeyedState(default=dict)
    timers = Timers(time="event")

    def process(self, tup):
        end, counts = (int(tup["at"] // WINDOW) + 1) * WINDOW, self.counts[tup["spout"]]
        over = [each for each in counts if self.watermark is not None and each <= self.watermark]
        assert over == [], "timers that the watermark has passed are called ahead of the next row"
        counts[end] = counts.get(end, 0) + 1
        self.timers.set(tup["spout"], end, str(end))

    def on_timer(self, name, key, at):
        assert self.watermark >= at
        self.emit((key, int(at), self.counts[key].pop(int(name))))


class Results(Bolt):
    """``all``: of the whole process."""

    all = []
    rows = KeyedState(default=0)
    times = KeyedState(default=0)

    def process(self, tup):
        assert self.watermark is None or self.watermark < tup["end"], "the result comes ahead of the watermark"
        self.rows[tup["spout"], tup["end"]] += tup["count"]
        self.times[tup["spout"], tup["end"]] += 1
        self.all.append(tuple(tup))


class Windowed(Topology):
    rows = Stamped.spec(par=2)
    windows = Windows.spec(par=2, inputs={rows: Grouping.fields("spout")})
    results = Results.spec(par=2, inputs={windows: Grouping.fields("spout", "end")})


def windows():
    """What the results must be: (spout, end of a window) -> rows."""
    return Counter((spout, (int(at // WINDOW) + 1) * WINDOW) for spout in (0, 1) for at in stamps(spout, Stamped.most))


class Exact:
    """What committed snapshots must hold of time, and how far the last one is."""

    def __init__(self, cluster):
        self._cluster, self._store = cluster, Inside(cluster).store
        self._looked, self.positions, self.watermark = 0, [0, 0], NEVER

    def look(self):
        """Raises AssertionError."""
        for record in self._store.records[self._looked :]:
            if record.committed:
                self._one(record.committed)
        self._looked = len(self._store.records)

    def _one(self, number):
        manifest = decode_manifest(self._written[manifest_name(number)], number)
        times, rows, positions = {}, Counter(), []
        for _, part in sorted(manifest.parts.items()):
            tables = folded((self._written[file.name], file.name) for file in part.files)
            times.setdefault(part.component, []).append(tables["__watermark"][0][0])
            rows.update(tables.get("rows", {}))
            positions += [tables["position"]] if "position" in tables else []
        assert rows == {(spout, place): 2 for spout, most in enumerate(positions) for place in range(most)}
        assert len({*times["passes"]}) == len({*times["sees"]}) == 1, "tasks of a component have one at a barrier"
        if max(positions) < Stamped.most:  # who has finished is idle, and at the end it is infinite
            assert times["passes"][0] == min(times["rows"]), "it has heard all that its spouts have told"
            assert times["sees"][0] <= times["passes"][0]
        for spout, told in enumerate(times["rows"]):
            known = stamps(spout, Stamped.most)[: positions[spout]]
            assert told <= max(known, default=NEVER) - LATENESS
        assert times["sees"][0] >= self.watermark, "a snapshot goes back"
        self.positions, self.watermark = positions, times["sees"][0]

    @property
    def _written(self):
        return {**self._store.deleted, **self._store.files}

    @property
    def all_there(self):
        """Whether all rows are in a snapshot that counts."""
        return self.positions == [Stamped.most] * 2


def begin():
    """Nothing has been seen."""
    Sees.seen.clear()
    Results.all.clear()
    Sees.begins.clear()
    Sees.ends.clear()


def late():
    """Rows that came behind their watermark."""
    return [row for row in Sees.seen if row[4] is not None and row[3] < row[4]]
