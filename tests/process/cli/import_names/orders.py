"""An author whose modules are called as the folders of Ardea: in every process it is these that are imported."""

from __future__ import annotations

from heron_instance.birds import KINDS  # a folder without __init__.py
from stream_manager.fords import Ford  # a package

from ardea import Bolt, Spout, Topology
from metrics_manager import legs
from scheduler import turns


class Herons(Spout):
    outputs = ["kind"]

    def initialize(self, config, context):
        self.turns = turns(KINDS)

    def next_tuple(self):
        if (kind := next(self.turns, None)) is None:
            self.finish()
        else:
            self.emit([kind], tup_id=kind)


class Crossing(Bolt):
    outputs = ["legs"]

    def initialize(self, config, context):
        self.ford = Ford()

    def process(self, tup):
        import topology_master  # only now, when all of Ardea is there

        self.ford.cross(tup[0])
        self.emit([topology_master.HERONS * legs(tup[0])])


class Orders(Topology):
    herons = Herons.spec()
    crossing = Crossing.spec(inputs=[herons])


if __name__ == "__main__":
    from ardea.testing import run

    result = run(Orders)
    print(result.state, sorted(result.tuples("crossing")))
