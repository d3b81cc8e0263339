"""A grouping of your own: large orders go to a task of theirs, the others share the rest.

ardea run examples/custom_grouping.py --logs pack
"""

from __future__ import annotations

from ardea import Bolt, CustomStreamGrouping, Grouping, Spout, Topology


class BySize(CustomStreamGrouping):
    def __init__(self, limit):
        self.limit = limit

    def prepare(self, context, component, stream, target_tasks):
        self.large, *self.others = target_tasks
        self.turn = 0

    def choose_tasks(self, values):
        _, amount = values
        if amount >= self.limit or not self.others:
            return [self.large]
        self.turn += 1
        return [self.others[self.turn % len(self.others)]]


class Orders(Spout):
    outputs = ["order", "amount"]

    def next_tuple(self):
        for order, amount in enumerate([30, 500, 12, 7, 900, 41]):
            self.emit([order, amount], tup_id=order)
        self.finish()


class Pack(Bolt):
    def initialize(self, config, context):
        self.task = context.this_task_index

    def process(self, tup):
        print(f"table {self.task}: order {tup['order']}, {tup['amount']}")


class Packing(Topology):
    orders = Orders.spec()
    pack = Pack.spec(inputs={orders: Grouping.custom(BySize(100))}, par=3)
    config = {"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2}  # on a cluster
