"""Sums up orders in Spark, taxes each customer's sum in a bolt, and writes Parquet.

    ardea run examples/spark_orders.py --logs report
    ardea run examples/spark_orders.py --logs report --set spark.orders.rows=10000000 --set spark.orders.folder=/data

Makes its orders and customers first.  Compares with the same computed by Spark alone, number by number.
Needs `pip install 'ardea[spark]'` and Java 17.
"""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from ardea import Bolt, Grouping, Topology, UserError
from ardea.spark import SparkSpout

RATES = {"DE": Decimal("0.19"), "FR": Decimal("0.20"), "HU": Decimal("0.27"), "LU": Decimal("0.17")}
CENT = Decimal("0.01")


def make_files(spark, folder: str, rows: int) -> None:
    """As many orders as wanted, of a tenth as many customers; some orders are of nobody who is known."""
    customers = max(1, rows // 10)
    countries = ", ".join(f"'{country}'" for country in RATES)
    orders = spark.range(rows).selectExpr(
        "id as number",
        f"pmod(xxhash64(id), {customers + customers // 100}) as customer",
        "cast(pmod(xxhash64(id, 'amount'), 100000) / 100 as decimal(10,2)) as amount",
    )
    known = spark.range(customers).selectExpr(
        "id as customer", f"array({countries})[int(id % {len(RATES)})] as country"
    )
    orders.write.mode("overwrite").parquet(f"{folder}/orders")
    known.write.mode("overwrite").parquet(f"{folder}/customers")


def sums(spark):
    """A join and an aggregation: what each known customer has spent.  Leaves what the tax will have to be."""
    folder = spark.conf.get("spark.orders.folder")
    make_files(spark, folder, int(spark.conf.get("spark.orders.rows")))
    orders, customers = (spark.read.parquet(f"{folder}/{name}") for name in ("orders", "customers"))
    spent = (
        orders.join(customers, "customer")
        .groupBy("customer", "country")
        .agg({"amount": "sum", "*": "count"})
        .selectExpr("customer", "country", "`count(1)` as orders", "`sum(amount)` as spent")
    )
    rates = spark.createDataFrame(list(RATES.items()), "country string, rate decimal(4,2)")
    alone = spent.join(rates, "country").selectExpr(
        "count(*) as customers", "sum(orders) as orders", "sum(spent) as spent", "sum(round(spent * rate, 2)) as tax"
    )
    expected = {name: str(value) for name, value in alone.first().asDict().items()}
    Path(folder, "expected.json").write_text(json.dumps(expected))
    return spent


class Tax(Bolt):
    outputs = ["customer", "country", "orders", "spent", "tax"]

    def process(self, tup):
        customer, country, orders, spent = tup.values
        tax = (spent * RATES[country]).quantize(CENT, ROUND_HALF_UP)
        self.emit([customer, country, orders, spent, tax])


class Write(Bolt):
    """One Parquet file a task; a customer whose tuple was sent again is written once."""

    outputs = ["customers", "orders", "spent", "tax"]

    def initialize(self, config, context):
        import pyarrow as pa
        import pyarrow.parquet as pq

        money = pa.decimal128(24, 2)
        types = {"customer": pa.int64(), "country": pa.string(), "orders": pa.int64(), "spent": money, "tax": money}
        self.schema = pa.schema(types)
        folder = Path(config["spark.orders.folder"], "taxed")
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"part-{context.this_task_index}.parquet"
        self.file = pq.ParquetWriter(self.path, self.schema)
        self.seen = set()

    def process_batch(self, rows):
        import pyarrow as pa

        new = [tup.as_dict() for tup in {tup["customer"]: tup for tup in rows}.values()]
        new = [row for row in new if row["customer"] not in self.seen]
        self.seen.update(row["customer"] for row in new)
        if new:
            self.file.write_batch(pa.RecordBatch.from_pylist(new, self.schema))

    def end_of_input(self):
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        self.file.close()
        table = pq.read_table(self.path)
        totals = (pc.sum(table[name]).as_py() or 0 for name in ("orders", "spent", "tax"))
        self.emit([table.num_rows, *totals])


class Report(Bolt):
    def initialize(self, config, context):
        self.expected = Path(config["spark.orders.folder"], "expected.json")
        self.parts = []

    def process(self, tup):
        self.parts.append(tup.as_dict())

    def end_of_input(self):
        expected = json.loads(self.expected.read_text())
        found = {name: str(sum(part[name] for part in self.parts)) for name in expected}
        for name in expected:
            print(f"{name:10} {found[name]:>20}   by Spark alone {expected[name]:>20}")
        if found != expected:
            raise UserError("the topology and Spark alone differ")
        print("equal, number by number")


class SparkOrders(Topology):
    sums = SparkSpout(
        sums, schema="customer bigint, country string, orders bigint, spent decimal(20,2)", partitions=8
    ).spec(par=2)
    tax = Tax.spec(inputs=[sums])
    write = Write.spec(inputs={tax: Grouping.fields("customer")}, par=2)
    report = Report.spec(inputs={write: Grouping.GLOBAL})
    config = {
        "heron.resources.instance.cpu": 0.1,  # on a cluster
        "topology.container.cpu.padding": 0.2,
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": 8,
        "spark.orders.rows": 1_000_000,
        "spark.orders.folder": "/tmp/ardea-spark-orders",  # noqa: S108 -- the same in every process
    }
