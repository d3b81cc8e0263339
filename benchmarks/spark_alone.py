"""``python -m benchmarks.spark_alone ROWS FOLDER``: Spark alone writes the DataFrame as Parquet."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITIONS = 8
WORDS = 10_000
SETTINGS = {"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def frame(spark: SparkSession, rows: int) -> DataFrame:
    """So many rows of (long, string, double), in eight partitions: ids from 0, amounts of half the id."""
    word = f"substring(sha1(cast(id % {WORDS} as string)), 1, 6)"
    return spark.range(0, rows, 1, PARTITIONS).selectExpr("id", f"{word} as word", "id / 2 as amount")


def main(rows: int, folder: str) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.config(map={**SETTINGS}).getOrCreate()
    frame(spark, rows).write.mode("overwrite").parquet(folder)
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
