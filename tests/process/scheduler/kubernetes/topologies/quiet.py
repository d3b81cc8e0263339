"""As little as runs for ever; its spout keeps a note in the tasks' part of the state manager."""

from __future__ import annotations

import contextlib

from ardea import Bolt, Spout, Topology
from ardea.errors import Conflict
from ardea.state import open_state
from scheduler import await_next  # noqa: TID251 -- the author's own, beside this file

NOTE = "/notes/quiet"


class Ticks(Spout):
    outputs = ["number"]
    config = {"topology.state.access": True}

    def initialize(self, config, context):
        self.next = 0
        with open_state(context.state_address, context.state_credential) as state, contextlib.suppress(Conflict):
            state.create(NOTE, b"a note")

    def next_tuple(self):
        await_next()
        self.emit([self.next])
        self.next += 1


class Ends(Bolt):
    def process(self, tup):
        pass


class Quiet(Topology):
    ticks = Ticks.spec()
    ends = Ends.spec(inputs=[ticks])
    config = {"heron.topology.master.replicas": 1}
