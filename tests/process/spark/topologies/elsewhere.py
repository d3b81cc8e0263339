"""The gated job of jobs.py, its files in other places."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from jobs import Gated, gated

from ardea.spark import SparkSpout


class Served(Gated):
    """Many files: each has one batch."""

    rows = SparkSpout(gated, "n bigint", rows=500, deterministic=True, file_bytes=1, storage="serve").spec(par=2)


class InAFileSystem(Gated):
    rows = SparkSpout(gated, "n bigint", rows=500, storage=os.environ.get("ARDEA_TEST_STORAGE")).spec(par=2)


def mortal(spark):
    """Sixteen thousand rows; the Python worker of the first task dies half-way, once."""
    from pyspark.sql.functions import udf

    scar = spark.conf.get("spark.test.scar")

    def struck(number):
        if number == 500:
            with contextlib.suppress(FileExistsError):
                Path(scar).touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        return number

    return spark.range(0, 16_000, numPartitions=3).select(udf(struck, "bigint")("id").alias("n"))


class Mortal(Gated):
    rows = SparkSpout(mortal, "n bigint", rows=100).spec(par=2)
