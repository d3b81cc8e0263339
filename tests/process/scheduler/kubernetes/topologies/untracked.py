"""Numbers that nobody sends again: one that is on its way to a pod when it dies is gone."""

from __future__ import annotations

import time

import counted

from ardea import Grouping, Topology


class Numbers(counted.Numbers):
    """Fewer than the sink can take, so that none of them waits for long."""

    def next_tuple(self):
        time.sleep(0.005)
        super().next_tuple()


class Counted(Topology):
    numbers = Numbers.spec()
    middle = counted.Pass.spec(inputs=[numbers], par=2)
    written = counted.Written.spec(inputs={middle: Grouping.fields("number")}, par=2)

    config = {**counted.Counted.config, "topology.reliability.mode": "ATMOST_ONCE"}
