"""A standalone Spark cluster from pyspark's own jars, on loopback, where each worker has an address of its own."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark

from tests.process.waiting import eventually

SPARK = Path(pyspark.__file__).parent
HOST = "127.0.0.1"
JAVA = f"{os.environ['JAVA_HOME']}/bin/java" if os.environ.get("JAVA_HOME") else "java"


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """Workers of one core; gives the master's URL; whatever its processes write is below ``folder``."""
    with contextlib.ExitStack() as stack:

        def start(name: str, host: str, *arguments: str) -> Path:
            log = folder / f"{name}-{host}.log"
            command = [JAVA, "-cp", f"{SPARK}/jars/*", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
            command += [f"-Djava.io.tmpdir={folder}", f"org.apache.spark.deploy.{name.lower()}.{name}"]
            command += ["--host", host, "--port", "0", "--webui-port", "0", *arguments]
            environment = {**os.environ, "SPARK_HOME": str(SPARK), "SPARK_LOCAL_DIRS": str(folder)}
            environment["SPARK_SCALA_VERSION"] = "2.13"  # else looked up in folders that pyspark does not have
            with log.open("wb") as output:
                process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=folder)
            stack.callback(lambda: (process.kill(), process.wait()))
            return log

        folder.mkdir()
        master = logged(start("Master", HOST), r"Starting Spark master at (spark://\S+)")
        common = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder), master)
        for log in [start("Worker", f"127.0.0.{number}", *common) for number in range(1, workers + 1)]:
            logged(log, "Successfully registered with (master)")
        yield master


def logged(log: Path, pattern: str) -> str:
    """What the first group of the pattern is in the log, once it is there."""
    found = eventually(lambda: re.search(pattern, log.read_text()), 60, lambda: log.read_text()[-2000:])
    assert found is not None
    return found[1]
