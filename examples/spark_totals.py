"""A Spark job as a bounded spout: Spark filters orders, a bolt adds up what each customer has spent.

    ardea run examples/spark_totals.py --logs total

Needs `pip install 'ardea[spark]'` and Java 17.
"""

from __future__ import annotations

from collections import Counter

from ardea import Bolt, Grouping, Topology
from ardea.spark import SparkSpout


def orders(spark):
    rows = [("ann", 30), ("bob", 5), ("ann", 12), ("carla", 0)]  # or spark.read.parquet("/data/orders")
    return spark.createDataFrame(rows, "customer string, amount int").where("amount > 0")


class Total(Bolt):
    def initialize(self, config, context):
        self.totals = Counter()

    def process(self, tup):
        self.totals[tup["customer"]] += tup["amount"]

    def end_of_input(self):
        for customer, total in self.totals.items():
            print(customer, total)


class Orders(Topology):
    orders = SparkSpout(orders, schema="customer string, amount int").spec(par=2)
    total = Total.spec(inputs={orders: Grouping.fields("customer")}, par=2)
    config = {
        "heron.resources.instance.cpu": 0.1,  # on a cluster
        "topology.container.cpu.padding": 0.2,
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": 2,
    }
