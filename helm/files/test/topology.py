"""What `helm test` submits: three components in two containers, whose end says whether every tuple arrived."""

from __future__ import annotations

from ardea import Bolt, Grouping, Spout, Topology, UserError

TUPLES = 10_000


class Numbers(Spout):
    outputs = ["number"]

    def initialize(self, config, context):
        self.next = 0

    def next_tuple(self):
        if self.next == TUPLES:
            self.finish()
            return
        self.emit((self.next,), tup_id=self.next)
        self.next += 1


class Square(Bolt):
    outputs = ["number", "square"]

    def process(self, tup):
        (number,) = tup.values
        self.emit((number, number * number))


class Check(Bolt):
    """Counts a number once, however often it comes: at least once is what is promised."""

    def initialize(self, config, context):
        self.squares = {}

    def process(self, tup):
        number, square = tup.values
        self.squares[number] = square

    def end_of_input(self):
        if self.squares != {number: number * number for number in range(TUPLES)}:
            raise UserError(f"{len(self.squares)} of {TUPLES} numbers arrived, or not all squares are right")


class HelmTest(Topology):
    config = {
        "topology.stmgrs": 2,
        "topology.container.cpu.padding": 0.2,
        "heron.resources.instance.cpu": 0.1,
        "heron.resources.instance.ram": 128 * 1024 * 1024,
    }
    numbers = Numbers.spec()
    square = Square.spec(inputs={numbers: Grouping.fields("number")}, par=2)
    check = Check.spec(inputs={square: Grouping.GLOBAL})
