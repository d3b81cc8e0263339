"""Joins two streams in a bolt: orders with the customers who gave them, whichever comes first.

ardea run examples/joins.py --containers 2 --logs report
"""

from __future__ import annotations

from collections import defaultdict

from ardea import Bolt, Grouping, Spout, Topology

CUSTOMERS = [("ann", "Oslo"), ("bob", "Rome"), ("carla", "Lima")]
ORDERS = [("bob", 5), ("ann", 30), ("dora", 1), ("ann", 12)]


class Customers(Spout):
    outputs, rows = ["customer", "city"], CUSTOMERS

    def next_tuple(self):
        self.emit_many(self.rows, tup_ids=range(len(self.rows)))
        self.finish()


class Orders(Customers):
    outputs, rows = ["customer", "amount"], ORDERS


class Join(Bolt):
    """Rows of one customer meet in one task; an order waits here for its customer."""

    outputs = ["customer", "city", "amount"]

    def initialize(self, config, context):
        self.cities, self.waiting = {}, defaultdict(list)

    def process(self, tup):
        customer = tup["customer"]
        if tup.component == "customers":
            self.cities[customer] = tup["city"]
        else:
            self.waiting[customer].append(tup["amount"])
        if customer in self.cities:
            city = self.cities[customer]
            self.emit_many([customer, city, amount] for amount in self.waiting.pop(customer, ()))


class Report(Bolt):
    def process(self, tup):
        print(*tup)


class Joined(Topology):
    customers, orders = Customers.spec(), Orders.spec()
    join = Join.spec(inputs=dict.fromkeys([customers, orders], Grouping.fields("customer")), par=2)
    report = Report.spec(inputs=[join])
    config = {"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2}  # on a cluster
