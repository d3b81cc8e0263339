"""Numbers of a Spark job, whose driver is in a pod of its own; what arrived is told by the log of the last bolt.

``Sparked`` computes them in the driver's pod, ``Spread`` in pods of Spark's executors.
"""

from __future__ import annotations

import time
from pathlib import Path

from ardea import Bolt, Grouping, Topology
from ardea.spark import SparkSpout

PARTITIONS, ROWS = 4, 2000
GO = Path("/tmp/go")
"""Where the workers of Spark are: the second half of the job waits for it."""


def numbers(spark):
    """One partition after the other."""
    from pyspark.sql.functions import udf

    rows = spark.range(0, PARTITIONS * ROWS, numPartitions=PARTITIONS)
    return rows.select(udf(gated, "bigint")("id").alias("n"))


def gated(number):
    while number >= PARTITIONS * ROWS // 2 and not GO.exists():
        time.sleep(0.05)
    return number


class Arrived(Bolt):
    """Takes each number once, whatever is replayed."""

    def initialize(self, config, context):
        self.numbers = set()

    def process(self, tup):
        self.numbers.add(tup["n"])

    def end_of_input(self):
        self.logger.info("arrived: %d numbers, sum %d", len(self.numbers), sum(self.numbers))


JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.sql.shuffle.partitions": 1,
    "heron.metrics.export.interval.sec": 1,
    "heron.class.packing.algorithm": "FirstFitDecreasing",
    "topology.container.max.ram.hint": "1536MiB",  # the driver, the managers, and no room for another task
}
TOKEN = {"name": "spark-token", "mountPath": "/run/spark", "secret": {"secretName": "spark-token"}}
"""Of an account that may do what Spark asks for."""


class Sparked(Topology):
    rows = SparkSpout(numbers, "n bigint", rows=100, storage="serve", deterministic=True).spec(
        par=2, driver_cpu=0.5, driver_ram="1GiB"
    )
    arrived = Arrived.spec(inputs={rows: Grouping.GLOBAL})

    config = {**SETTINGS, "spark.master": "local[1]"}


class Spread(Topology):
    rows = SparkSpout(numbers, "n bigint", rows=100, deterministic=True).spec(
        par=2, driver_cpu=0.3, driver_ram="1GiB", config={"heron.kubernetes.volumes": [TOKEN]}
    )
    arrived = Arrived.spec(inputs={rows: Grouping.GLOBAL})

    config = {
        **SETTINGS,
        "spark.master": "k8s://https://kubernetes.default.svc",
        "spark.kubernetes.authenticate.oauthTokenFile": f"{TOKEN['mountPath']}/token",
        "spark.kubernetes.authenticate.caCertFile": f"{TOKEN['mountPath']}/ca.crt",
        "spark.executor.instances": 1,
        "spark.executor.memory": "512m",
        "spark.kubernetes.executor.request.cores": "0.3",
        "spark.executor.extraJavaOptions": JAVA,
    }
