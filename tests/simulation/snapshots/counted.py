"""Words that two spouts emit and two counters count, effectively once, and what each committed snapshot must hold."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from ardea import Bolt, CountMetric, Grouping, Spout, TaskHook, Topology
from ardea.heron_instance.intervals import is_rows
from ardea.keyed import KeyedState, TaskState
from ardea.snapshots.manifest import decode_manifest, manifest_name
from ardea.snapshots.pieces import Kind
from ardea.snapshots.state_file import decode_state

MOST = 400
"""Words of each spout."""


def word(spout: int, place: int) -> str:
    """The one that a spout emits there."""
    return f"w{(place * 7 + spout * 3) % 31}"


class Words(Spout):
    outputs = ("word",)
    most = MOST
    position = TaskState(default=0)

    def initialize(self, config, context):
        self._me = context.this_task_index

    def next_tuple(self):
        if self.position < self.most:
            self.emit((word(self._me, self.position),))
            self.position += 1


class Count(Bolt):
    counts = KeyedState(default=0)

    def process(self, tup):
        self.counts[tup["word"]] += 1


class Counted(Topology):
    words = Words.spec(par=2)
    count = Count.spec(par=2, inputs={words: Grouping.fields("word")})


class Endless(Words):
    most = 1_000_000


class Many(Topology):
    words = Endless.spec(par=2)
    count = Count.spec(par=2, inputs={words: Grouping.fields("word")})


class Flawed(Count):
    """Raises so often at one word, after it has counted it."""

    mistakes = closed = 0

    def close(self):
        Flawed.closed += 1

    def initialize(self, config, context):
        context.register_metric("seen", CountMetric())
        context.add_task_hook(TaskHook())

    def process(self, tup):
        super().process(tup)
        if tup["word"] == word(0, 100) and Flawed.mistakes:
            Flawed.mistakes -= 1
            raise ValueError("half counted")


class Mistaken(Topology):
    words = Words.spec(par=2)
    count = Flawed.spec(par=2, inputs={words: Grouping.fields("word")})


class Flood(Words):
    """Its first call never returns by itself."""

    def next_tuple(self):
        while True:
            self.position += 1
            self.emit((word(self._me, self.position - 1),))


class Flooded(Topology):
    words = Flood.spec(par=2)
    count = Count.spec(par=2, inputs={words: Grouping.fields("word")})
    config = {"topology.max.held.bytes": 2000, "heron.instance.internal.queue.bytes": 2000}


class Rows(Spout):
    outputs = ("spout", "place")
    position = TaskState(default=0)

    def initialize(self, config, context):
        self._me = context.this_task_index

    def next_tuple(self):
        if self.position < Diamond.rows:
            self.emit((self._me, self.position))
            self.position += 1


class Pass(Bolt):
    outputs = ("spout", "place")
    count = TaskState(default=0)

    def process(self, tup):
        self.count += 1
        self.emit((tup[0], tup[1]))


class Keep(Bolt):
    seen = KeyedState(default=0)

    def process(self, tup):
        self.seen[tup[0], tup[1]] += 1


class Diamond(Topology):
    """Each row comes twice: straight, and through a bolt that is shuffled to."""

    rows = 60
    rows_ = Rows.spec(name="rows", par=2)
    passed = Pass.spec(par=2, inputs=[rows_])
    kept = Keep.spec(
        par=3, inputs={rows_: Grouping.fields("spout", "place"), passed: Grouping.fields("spout", "place")}
    )


class EffectivelyOnce:
    """The topology in the mode that takes snapshots."""

    def __init__(self, topology):
        self._topology = topology

    def plan(self, overrides=None):
        return self._topology.plan({**(overrides or {}), "topology.reliability.mode": "EFFECTIVELY_ONCE"})


def tables_of(store, number):
    """Of each task of a snapshot, in the order of tasks, also one whose files have been deleted since."""
    written = {**store.deleted, **store.files}
    manifest = decode_manifest(written[manifest_name(number)], number)
    for _, part in sorted(manifest.parts.items()):
        yield folded((written[file.name], file.name) for file in part.files if not is_rows(file.name))


def folded(files):
    """What a base and its deltas hold together: a table, or the one value, by the name of the state; read it only."""
    return _folded(tuple(files))


@lru_cache(2000)  # some ask at each step of a simulation
def _folded(files):
    tables = {}
    for content, name in files:
        for state, kind, _, rows, _ in decode_state(content, name):
            if kind is Kind.ONE:
                tables[state] = rows[0][0]
                continue
            if kind is Kind.ITEMS:
                tables[state] = [item for (item,) in rows]
                continue
            table = tables.setdefault(state, {})
            for key, *value in rows:
                key = tuple(key) if isinstance(key, list) else key
                if kind is Kind.GONE:
                    table.pop(key, None)
                else:
                    table[key] = value[0]
    return tables


def states(store, number):
    """(positions of the spouts by index, counts) of a snapshot; counters must own different words."""
    positions, counts, owned = [], Counter(), 0
    for tables in tables_of(store, number):
        if "position" in tables:
            positions.append(tables["position"])
        else:
            counts.update(tables.get("counts", {}))
            owned += len(tables.get("counts", {}))
    assert owned == len(counts)
    return positions, counts


def positions_of(store):
    """Of the last committed snapshot."""
    return states(store, store.records[-1].committed)[0]


def check(store):
    """Each committed snapshot is the fold of exactly the words before its positions; returns the last positions."""
    positions = []
    for record in store.records:
        if record.committed:
            positions, counts = states(store, record.committed)
            assert counts == Counter(word(spout, p) for spout, most in enumerate(positions) for p in range(most))
    numbers = [record.committed for record in store.records]
    assert numbers == sorted(numbers)
    return positions
