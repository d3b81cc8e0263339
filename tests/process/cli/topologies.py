"""Topologies that end, that do not, and that go wrong in every way."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from ardea import Bolt, ConfigError, Grouping, Spout, Topology


class Numbers(Spout):
    """So many numbers: ``test.numbers``."""

    outputs = ("number",)

    def initialize(self, config, context):
        self.left = config.get("test.numbers", 2000)
        self.logger.info("numbers from %d", self.left)

    def next_tuple(self):
        if not self.left:
            self.finish()
            return
        self.left -= 1
        self.emit((self.left,), tup_id=self.left)


class Gated(Numbers):
    """The second half as soon as the file ``test.gate`` is there."""

    def initialize(self, config, context):
        super().initialize(config, context)
        self.half, self.gate = self.left // 2, Path(config["test.gate"])

    def next_tuple(self):
        if self.left != self.half or self.gate.exists():
            super().next_tuple()


class Endless(Spout):
    outputs = ("number",)

    def initialize(self, config, context):
        self.number = 0

    def next_tuple(self):
        self.number += 1
        self.emit((self.number,), tup_id=self.number)


class Paced(Endless):
    """A hundred a second, at most."""

    def initialize(self, config, context):
        super().initialize(config, context)
        self.began = time.monotonic()

    def next_tuple(self):
        if self.number < 100 * (time.monotonic() - self.began):
            super().next_tuple()


class Add(Bolt):
    outputs = ("sum",)

    def initialize(self, config, context):
        self.sum = 0

    def process(self, tup):
        self.sum += tup["number"]

    def end_of_input(self):
        print("the sum is", self.sum)
        self.emit((self.sum,))


class Ignore(Bolt):
    def process(self, tup):
        pass


class Burns(Bolt):
    """Has one thing to do only."""

    def initialize(self, config, context):
        print("logs in with", config["db.password"])

    def process(self, tup):
        self.hot_loop()

    def hot_loop(self):
        sum(number * number for number in range(20_000))


class RaisesAlways(Bolt):
    def process(self, tup):
        raise ValueError("no number is good enough")


class RaisesSometimes(Bolt):
    def process(self, tup):
        if tup["number"] % 10 == 0:
            raise ValueError("no tens")


class Hangs(Bolt):
    """For ever, as for an answer that does not come."""

    def process(self, tup):
        threading.Event().wait()


class RaisesWhatCannotBePrinted(Bolt):
    def process(self, tup):
        print("half \ud800 a pair")
        raise ValueError("half \ud800 a pair" + "x" * 1_000_000)


class DiesOfWhatCannotBePrinted(Bolt):
    auto_fail = False

    def process(self, tup):
        raise ValueError("half \ud800 a pair")


class RaisesInInitialize(Spout):
    outputs = ("number",)

    def initialize(self, config, context):
        raise RuntimeError("the database is closed")

    def next_tuple(self):
        pass


class RefusesItsConfiguration(RaisesInInitialize):
    def initialize(self, config, context):
        raise ConfigError("my.url is not set")


class RaisesAtOnce(RaisesInInitialize):
    def initialize(self, config, context):
        pass

    def next_tuple(self):
        raise KeyError("row 1")


class Unencodable(Numbers):
    def next_tuple(self):
        self.emit((object(),), tup_id=1)
        self.finish()


class Huge(Numbers):
    def next_tuple(self):
        self.emit(("x" * 20_000_000,), tup_id=1)
        self.finish()


class Unhurried(Bolt):
    """Always has something to do, and leaves the cores to others."""

    def process(self, tup):
        time.sleep(0.03)


class Sum(Topology):
    numbers = Numbers.spec(par=2)
    add = Add.spec(inputs={numbers: Grouping.GLOBAL})
    ignore = Ignore.spec(inputs=[add])


class Halves(Topology):
    numbers = Gated.spec(par=2)
    add = Add.spec(inputs={numbers: Grouping.GLOBAL})
    ignore = Ignore.spec(inputs=[add])


class Never(Topology):
    numbers = Endless.spec(config={"topology.max.spout.pending": 20})
    ignore = Unhurried.spec(inputs=[numbers], par=2)


class Steady(Topology):
    numbers = Paced.spec()
    ignore = Ignore.spec(inputs=[numbers])


class Flawed(Topology):
    numbers = Paced.spec()
    flawed = RaisesSometimes.spec(inputs=[numbers])


class Hung(Topology):
    numbers = Paced.spec()
    hangs = Hangs.spec(inputs=[numbers])


class Wide(Topology):
    numbers = Paced.spec()
    ignore = Ignore.spec(inputs=[numbers], par=199)


class BadBolt(Topology):
    numbers = Endless.spec()
    bad = RaisesAlways.spec(inputs=[numbers])


class FewBad(Topology):
    numbers = Numbers.spec(config={"test.numbers": 3})
    bad = RaisesAlways.spec(inputs=[numbers])
    up = Ignore.spec(inputs=[numbers])  # what is given up is not this one


class BadTexts(Topology):
    numbers = Endless.spec(config={"topology.max.spout.pending": 200})
    bad = RaisesWhatCannotBePrinted.spec(inputs=[numbers])


class BadTextKills(Topology):
    numbers = Endless.spec()
    bad = DiesOfWhatCannotBePrinted.spec(inputs=[numbers])


class BadSpout(Topology):
    numbers = RaisesInInitialize.spec()
    ignore = Ignore.spec(inputs=[numbers])


class BadConfiguration(Topology):
    numbers = RefusesItsConfiguration.spec()
    ignore = Ignore.spec(inputs=[numbers])


class BadRow(Topology):
    numbers = RaisesAtOnce.spec()
    ignore = Ignore.spec(inputs=[numbers])


class BadValue(Topology):
    numbers = Unencodable.spec()
    ignore = Ignore.spec(inputs=[numbers])


class BadSize(Topology):
    numbers = Huge.spec()
    ignore = Ignore.spec(inputs=[numbers])


class Shifting(Topology):
    """No two processes build the same."""

    numbers = Numbers.spec()
    ignore = Ignore.spec(inputs=[numbers], config={"my.process": os.getpid()})


class Many(Topology):
    numbers = Numbers.spec(par=10_000)
    ignore = Ignore.spec(inputs=[numbers])


class Waits(Bolt):
    """Acks nothing, so that a drain waits."""

    auto_ack = False

    def process(self, tup):
        pass


class Talks(Endless):
    def next_tuple(self):
        super().next_tuple()
        print("a line")


class Floods(Bolt):
    def process(self, tup):
        print("a line\n" * 1_000)


class Flood(Topology):
    numbers = Endless.spec(config={"topology.max.spout.pending": 10})
    floods = Floods.spec(inputs=[numbers], par=2)


class Stuck(Topology):
    numbers = Endless.spec(config={"topology.max.spout.pending": 10})
    waits = Waits.spec(inputs=[numbers])


class Chatty(Topology):
    numbers = Talks.spec(config={"topology.max.spout.pending": 10})
    ignore = Ignore.spec(inputs=[numbers])


class Burning(Topology):
    numbers = Paced.spec()
    burns = Burns.spec(inputs=[numbers])
    config = {"db.password": "hunter2hunter2"}
