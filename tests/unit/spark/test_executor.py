"""The command that Spark starts in its executors' pods."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ardea.errors import UserError
from ardea.spark.executor import BACKEND, command

TOLD = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.7:41000",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.9",
    "SPARK_EXECUTOR_POD_NAME": "orders-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}


def test_it_is_told_by_the_environment():
    environment = TOLD | {f"SPARK_JAVA_OPT_{n}": f"-Dn={n}" for n in (10, 9, 0)} | {"SPARK_CONF_DIR": "/opt/spark/conf"}
    argv = command("/java", Path("/pyspark"), environment)
    assert argv[:6] == ["/java", "-Dn=0", "-Dn=9", "-Dn=10", "-Xms512m", "-Xmx512m"], "options by number, not by name"
    assert argv[6:9] == ["-cp", "/pyspark/jars/*:/opt/spark/conf", BACKEND]
    options = argv[9:]
    assert dict(zip(options[::2], options[1::2], strict=True)) == {
        "--driver-url": TOLD["SPARK_DRIVER_URL"],
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-1",
        "--hostname": "10.0.0.9",
        "--podName": "orders-exec-3",
        "--resourceProfileId": "0",
    }


def test_whoever_is_not_spark_is_told_what_is_missing():
    with pytest.raises(UserError, match="executor: SPARK_DRIVER_URL, SPARK_EXECUTOR_MEMORY unset"):
        command("/java", Path("/pyspark"), {k: v for k, v in TOLD.items() if not k.endswith(("_URL", "_MEMORY"))})


def test_by_hand_it_ends_in_one_line(tmp_path):
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    ended = subprocess.run(
        [sys.executable, "-m", "ardea.spark.executor"],
        env=environment | {"JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: executor: SPARK_DRIVER_URL")
    assert len(ended.stderr.splitlines()) == 1
