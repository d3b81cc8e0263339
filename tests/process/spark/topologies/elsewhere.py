"""The gated job of jobs.py, its files in other places."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from jobs import Gated, gated

from ardea.spark import SparkSpout


class Served(Gated):
    """Many files: each has one batch."""

    rows = SparkSpout(gated, "n bigint", rows=500, deterministic=True, file_bytes=1, storage="serve").spec(par=2)


class InAFileSystem(Gated):
    rows = SparkSpout(gated, "n bigint", rows=500, storage=os.environ.get("ARDEA_TEST_STORAGE")).spec(par=2)


def mortal(spark):
    """Sixteen thousand rows; the Python worker of the first task dies half-way, once.

    With the setting ``spark.test.gate`` each attempt of the last task waits for that file, with rows yet to come.
    """
    from pyspark import TaskContext
    from pyspark.sql.functions import udf

    scar = spark.conf.get("spark.test.scar")
    gate = spark.conf.get("spark.test.gate", None)

    def struck(number):
        if number == 500:
            with contextlib.suppress(FileExistsError):
                Path(scar).touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        while number == 15_000 and gate is not None and not os.path.exists(gate):  # noqa: PTH110
            time.sleep(0.01)
        return number

    def attempt(number):
        return TaskContext.get().taskAttemptId()

    rows = spark.range(0, 16_000, numPartitions=3)
    return rows.select(udf(struck, "bigint")("id").alias("n"), udf(attempt, "bigint")("id").alias("attempt"))


class Mortal(Gated):
    """Many files; each row says which attempt has made it."""

    rows = SparkSpout(mortal, "n bigint, attempt bigint", rows=500, file_bytes=1).spec(par=2)


def bereft(spark):
    """Sixteen thousand rows; the JVM of the executor that has the first task dies half-way, once."""
    from pyspark.sql.functions import udf

    scar = spark.conf.get("spark.test.scar")

    def struck(number):
        if number == 2500:
            with contextlib.suppress(FileExistsError):
                Path(scar).touch(exist_ok=False)
                daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
                os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
        return number

    return spark.range(0, 16_000, numPartitions=3).select(udf(struck, "bigint")("id").alias("n"))


class Bereft(Gated):
    rows = SparkSpout(bereft, "n bigint", rows=100).spec(par=2)
