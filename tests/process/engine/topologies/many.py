"""As many tasks in one container as start one after the other for longer than a silent supervisor may live."""

from __future__ import annotations

from leaving import LeavingBolt, LeavingSpout

from ardea import Topology

TASKS = 118
ROWS = 10 * TASKS


class Numbers(LeavingSpout):
    outputs = ["n"]

    def begin(self):
        self.next = 0
        self.acked = 0

    def next_tuple(self):
        if self.next == ROWS:
            if self.flag("enough"):
                self.finish()
            return
        self.emit([self.next], tup_id=self.next)
        self.next += 1

    def ack(self, tup_id):
        self.acked += 1

    def close(self):
        self.leave(self.acked)


class Pass(LeavingBolt):
    def process(self, tup):
        pass


class Many(Topology):
    numbers = Numbers.spec()
    passes = Pass.spec(inputs=[numbers], par=TASKS)
