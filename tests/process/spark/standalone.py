"""A standalone Spark cluster of one worker, from pyspark's own jars, on loopback."""

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
def cluster(folder: Path, cores: int) -> Iterator[str]:
    """Gives the master's URL; whatever its processes write is below ``folder``."""
    with contextlib.ExitStack() as stack:

        def start(name: str, *arguments: str) -> Path:
            log = folder / f"{name}.log"
            command = [JAVA, "-cp", f"{SPARK}/jars/*", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
            command += [f"-Djava.io.tmpdir={folder}", f"org.apache.spark.deploy.{name.lower()}.{name}", *arguments]
            environment = {**os.environ, "SPARK_HOME": str(SPARK), "SPARK_LOCAL_DIRS": str(folder)}
            environment["SPARK_SCALA_VERSION"] = "2.13"  # else looked up in folders that pyspark does not have
            with log.open("wb") as output:
                process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=folder)
            stack.callback(lambda: (process.kill(), process.wait()))
            return log

        folder.mkdir()
        common = ("--host", HOST, "--port", "0", "--webui-port", "0")
        master = told(start("Master", *common), r"Starting Spark master at (spark://\S+)")
        worker = start("Worker", *common, "--cores", str(cores), "--memory", "1g", "--work-dir", str(folder), master)
        told(worker, "Successfully registered with (master)")
        yield master


def told(log: Path, pattern: str) -> str:
    """What the first group of the pattern is in the log, once it is there."""
    found = eventually(lambda: re.search(pattern, log.read_text()), 60, lambda: log.read_text()[-2000:])
    assert found is not None
    return found[1]
