"""What travels between two containers: rows in order over alternating streams, and every kind of value."""

from __future__ import annotations

import datetime as dt
import enum
import math
import random
import uuid
from decimal import Decimal

from leaving import LeavingBolt, LeavingSpout

from ardea import GlobalStreamId, Grouping, Stream, Topology


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


LEAP_DAY = dt.date(2024, 2, 29)

ARRIVE_AS_THEY_ARE = [
    *(None, True, False, 0, 1, -1, 127, 128, -32, -33, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**64 - 1, 2**64),
    *(-(2**200), 0.5, -0.0, 1e308, math.inf, -math.inf, math.nan),
    *("", "a", "ÿ", "日本語 🐦", "\0", "x" * 31, "x" * 32, "x" * 70_000),
    *(b"", b"\0\xff", bytes(range(256)), b"x" * 70_000),
    *([], [1, [2, [3, [None]]]], list(range(20)), list(range(70_000))),
    *({}, {"a": [1, {"b": 2.5}]}, {1: "one", None: b"k", (1, 2): 3}, {str(n): n for n in range(70)}),
    *({b"k": 1, b"": 2, b"\xff" * 300: 3}, {0.5: "half", -0.0: "zero", math.inf: "more"}, {True: 1, False: 0}),
    *({"s": 1, b"s": 2, 7: 3, 7.5: 4, None: 5}, {2.0: {b"in": {False: []}}}),
    *(dt.datetime(2024, 2, 29, 23, 59, 59, 999_999, dt.UTC), dt.datetime.combine(LEAP_DAY, dt.time(1, 2))),
    *(LEAP_DAY, dt.date(1969, 12, 31), dt.time(1, 2, 3, 4), dt.timedelta(-1, 5, 7)),
    *(uuid.UUID(int=2**127 + 5), Decimal("1.10"), Decimal("-0E-7"), Decimal("1E+400")),
]
CHANGE = [  # (sent, received)
    ((), []),
    ((1, (2, "x")), [1, [2, "x"]]),
    ({"t": (1, 2)}, {"t": [1, 2]}),
    (Colour.RED, "red"),
    (Level.HIGH, 3),
    (bytearray(b"ab"), b"ab"),
]
VALUES = [*((value, value) for value in ARRIVE_AS_THEY_ARE), *CHANGE]


def same(got, expected):
    """Equal, and of the same type all the way down; the zero's sign and NaN count too."""
    if type(got) is not type(expected):
        return False
    if isinstance(got, list):
        return len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(got, dict):
        return list(map(repr, got)) == list(map(repr, expected)) and all(map(same, got.values(), expected.values()))
    return repr(got) == repr(expected)


class Values(LeavingSpout):
    outputs = ["number", "value"]

    def begin(self):
        self.left = list(enumerate(sent for sent, _ in VALUES))

    def next_tuple(self):
        if not self.left:
            self.finish()
            return
        number, value = self.left.pop(0)
        self.emit([number, value], tup_id=number)


class Compare(LeavingBolt):
    """Leaves the numbers of those that came as they should, and what the others came as."""

    def begin(self):
        self.equal, self.wrong = [], []

    def process(self, tup):
        number, value = tup.values
        if same(value, VALUES[number][1]):
            self.equal.append(number)
        else:
            self.wrong.append([number, repr(value)[:200]])

    def end_of_input(self):
        self.leave({"equal": self.equal, "wrong": self.wrong})


class Alternating(LeavingSpout):
    """Counts, in runs of one to ten thousand rows on either stream, one to five runs a call; until told to end."""

    outputs = [Stream(["number", "ballast"], "odd"), Stream(["number"], "even")]

    def begin(self):
        self.number = self.runs = 0
        self.random = random.Random(7)

    def next_tuple(self):
        if self.flag("enough"):
            self.finish()
            return
        for _ in range(self.random.randint(1, 5)):
            length = int(10 ** self.random.uniform(0, 4))
            stream, ballast = (("odd", [bytes(300)]), ("even", []))[self.runs % 2]
            for number in range(self.number, self.number + length):
                self.emit([number, *ballast], stream=stream)
            self.number += length
            self.runs += 1

    def close(self):
        self.leave(self.number)


class InOrder(LeavingBolt):
    """Leaves how many rows came, and the first that were not the next."""

    def begin(self):
        self.next = 0
        self.streams = set()
        self.wrong = []

    def process_batch(self, rows):
        self.streams.add(rows[0].stream)
        for tup in rows:
            number = tup.values[0]
            if number != self.next and len(self.wrong) < 10:
                self.wrong.append([self.next, number])
            self.next = number + 1

    def end_of_input(self):
        self.leave({"next": self.next, "wrong": self.wrong, "streams": sorted(self.streams)})


class Wire(Topology):
    """One task of every bolt in each container, and everything to all of them."""

    alternating = Alternating.spec()
    in_order = InOrder.spec(
        inputs={
            GlobalStreamId(alternating, "odd"): Grouping.ALL,
            GlobalStreamId(alternating, "even"): Grouping.ALL,
        },
        par=2,
    )
    values = Values.spec()
    compare = Compare.spec(inputs={values: Grouping.ALL}, par=2)

    config = {"topology.stmgrs": 2, "topology.executor.batch.rows": 10_000}


class Pair(Topology):
    """A spout and a bolt in two containers, which the test plays itself."""

    near = Values.spec()
    far = Compare.spec(inputs=[near])

    config = {"topology.stmgrs": 2}
