"""Numbered rows that sinks write outside, and what must be outside at any moment."""

from __future__ import annotations

from collections import Counter, defaultdict

from ardea import Grouping, Spout, Topology, TwoPhaseSink
from ardea.keyed import TaskState
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import tables_of

ROWS = 120
"""Of each of the two spouts."""


class Table:
    """What is outside: rows in the order in which they came there, and the last number of each owner."""

    def __init__(self):
        self.rows, self.marks, self.down, self.calls = [], defaultdict(int), False, Counter()

    def write(self, mark, rows):
        """All or nothing."""
        self.calls[mark] += 1
        if self.down:
            raise ConnectionError("the database is down")
        if mark is None:
            self.rows += rows
        elif self.marks[mark.owner] < mark.number:
            self.rows += list(rows)
            self.marks[mark.owner] = mark.number


class Numbered(Spout):
    outputs = ("spout", "place", "word")
    most = ROWS
    position = TaskState(default=0)

    def initialize(self, config, context):
        self._me = context.this_task_index

    def next_tuple(self):
        if self.position < self.most:
            self.emit((self._me, self.position, f"w{self.position % 7}"), tup_id=(self._me, self.position))
            self.position += 1
        else:
            self.finish()


class Endless(Numbered):
    most = 1_000_000


class Writes(TwoPhaseSink):
    table = Table()

    def row(self, tup):
        return (tup["spout"], tup["place"])

    def commit(self, mark, rows):
        Writes.table.write(mark, rows)


class Written(Topology):
    rows = Numbered.spec(par=2)
    sink = Writes.spec(par=2, inputs={rows: Grouping.fields("word")})


class Goes(Topology):
    rows = Endless.spec(par=2)
    sink = Writes.spec(par=2, inputs={rows: Grouping.fields("word")})


def covered(cluster):
    """How many rows of each spout the last committed snapshot has."""
    store = Inside(cluster).store
    if not store.records or not store.records[-1].committed:
        return [0, 0]
    return [tables["position"] for tables in tables_of(store, store.records[-1].committed) if "position" in tables]


def in_order(rows):
    """Each spout's rows of one word are outside in the order in which they were emitted."""
    for spout in range(2):
        for word in range(7):
            places = [place for each, place in rows if each == spout and place % 7 == word]
            assert places == sorted(set(places)), "a row is outside twice, or out of order"


def check(cluster):
    """Nothing is outside that the last snapshot does not have, nothing twice, and nothing out of order."""
    rows, most = Writes.table.rows, covered(cluster)
    in_order(rows)
    assert all(place < most[spout] for spout, place in rows), "a row is outside before its snapshot counts"


def whole(*, ordered=True):
    """All rows are outside once."""
    if ordered:
        in_order(Writes.table.rows)
    assert sorted(Writes.table.rows) == [(spout, place) for spout in range(2) for place in range(ROWS)]
