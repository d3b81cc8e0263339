"""Settings, Java and causes, without starting Spark."""

from __future__ import annotations

import dataclasses
import os
import pickle
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ardea.errors import ConfigError, UserError
from ardea.spark.job import SparkJob
from ardea.spark.schema import parse_schema
from ardea.spark.session import cause_of, end_jvm, jvm_death, require_hadoop, require_java, spark_settings
from ardea.spark.work import Stages, differences, stages_of

JOB = SparkJob(lambda spark: spark, (), None, 100, "early", False, 1 << 20, None)


def test_settings_of_the_configuration_go_to_spark_as_they_are(tmp_path):
    config = {
        "spark.sql.shuffle.partitions": 8, "spark.ui.enabled": True, "topology.debug": True,
        "spark.driver.extraJavaOptions": "-Dx=y",
    }  # fmt: skip
    settings = spark_settings(JOB, config, tmp_path)
    assert settings["spark.sql.shuffle.partitions"] == "8"
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.master"] == "local[*]"
    assert settings["spark.sql.execution.arrow.maxRecordsPerBatch"] == "100"
    assert settings["spark.driver.extraJavaOptions"] == f"-Djava.io.tmpdir={tmp_path} -Dx=y"
    assert "topology.debug" not in settings


def test_adaptive_execution_is_off_for_an_early_start_only(tmp_path):
    key = "spark.sql.adaptive.enabled"
    complete = dataclasses.replace(JOB, start="complete")
    assert spark_settings(JOB, {}, tmp_path)[key] == "false"
    assert key not in spark_settings(complete, {}, tmp_path)
    assert spark_settings(complete, {key: True}, tmp_path)[key] == "true"
    with pytest.raises(ConfigError, match=key):
        spark_settings(JOB, {key: True}, tmp_path)


def test_another_master_reaches_the_driver_and_imports_what_it_does(tmp_path, monkeypatch):
    monkeypatch.setenv("POD_IP", "10.1.2.3")
    settings = spark_settings(JOB, {"spark.master": "spark://head:7077"}, tmp_path)
    assert (settings["spark.driver.host"], settings["spark.driver.bindAddress"]) == ("10.1.2.3", "10.1.2.3")
    assert settings["spark.executorEnv.PYTHONPATH"].split(":") == [path for path in sys.path if path]
    assert "spark.local.dir" not in settings
    assert spark_settings(JOB, {}, tmp_path)["spark.driver.host"] == "127.0.0.1"
    with pytest.raises(ConfigError, match=r"spark\.local\.dir"):
        spark_settings(JOB, {"spark.local.dir": "/x"}, tmp_path)


class Routes:
    """A socket of a machine with two networks, whose routing table is all that is asked."""

    own = {"head": "10.0.0.5", "10.9.8.7": "10.0.0.5", "127.0.0.1": "127.0.0.1", "192.0.2.1": "192.168.1.5"}

    def __init__(self, *kind):
        assert kind == (socket.AF_INET, socket.SOCK_DGRAM)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def connect(self, address):
        if address[0] not in self.own:
            raise socket.gaierror("unknown")
        self.found = self.own[address[0]]

    def getsockname(self):
        return self.found, 4711


@pytest.mark.parametrize(
    ("master", "host"),
    [
        ("local[2]", "127.0.0.1"),
        ("spark://127.0.0.1:7077", "127.0.0.1"),
        ("spark://head:7077", "10.0.0.5"),
        ("spark://head:7077,other:7077", "10.0.0.5"),
        ("k8s://https://10.9.8.7:6443", "10.0.0.5"),
        ("k8s://10.9.8.7", "10.0.0.5"),
        ("yarn", "192.168.1.5"),
        ("spark://nowhere:7077", "127.0.0.1"),
    ],
)
def test_executors_on_other_machines_reach_the_driver(tmp_path, monkeypatch, master, host):
    monkeypatch.delenv("POD_IP", raising=False)
    monkeypatch.setattr(socket, "socket", Routes)
    settings = spark_settings(JOB, {"spark.master": master}, tmp_path)
    assert (settings["spark.driver.host"], settings["spark.driver.bindAddress"]) == (host, host)
    given = spark_settings(JOB, {"spark.master": master, "spark.driver.host": "edge"}, tmp_path)
    assert (given["spark.driver.host"], given["spark.driver.bindAddress"]) == ("edge", "edge")


def test_executors_in_pods_run_the_drivers_image_beside_it_and_go_with_it(tmp_path, monkeypatch):
    pod = {"ARDEA_IMAGE": "ardea:spark", "POD_NAME": "orders-1-x", "POD_NAMESPACE": "streams", "POD_IP": "10.1.2.3"}
    for name, value in pod.items():
        monkeypatch.setenv(name, value)
    settings = spark_settings(JOB, {"spark.master": "k8s://https://kubernetes.default.svc"}, tmp_path)
    assert settings["spark.kubernetes.container.image"] == "ardea:spark"
    assert settings["spark.kubernetes.driver.pod.name"] == "orders-1-x"
    assert settings["spark.kubernetes.namespace"] == "streams"
    assert "runAsNonRoot" in Path(settings["spark.kubernetes.executor.podTemplateFile"]).read_text()
    given = {"spark.master": "k8s://x", "spark.kubernetes.container.image": "mine:1"}
    assert spark_settings(JOB, given, tmp_path)["spark.kubernetes.container.image"] == "mine:1"
    elsewhere = spark_settings(JOB, {"spark.master": "spark://head:7077"}, tmp_path)
    assert not [key for key in elsewhere if key.startswith("spark.kubernetes")]


def test_a_driver_outside_the_cluster_is_in_no_pod(tmp_path, monkeypatch):
    for name in ("ARDEA_IMAGE", "POD_NAME", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    settings = spark_settings(JOB, {"spark.master": "k8s://https://10.0.0.1:6443"}, tmp_path)
    kept = [key for key in settings if key.startswith("spark.kubernetes")]
    assert kept == ["spark.kubernetes.executor.podTemplateFile"]


AUTHORED = """
RATE = 3

def rated(n):
    return n * RATE

def orders(spark): ...
"""


def test_udfs_of_the_authors_file_travel_whole(tmp_path):
    """As those of a script do: the reader has no such module."""
    (tmp_path / "authored.py").write_text(AUTHORED)
    write = (
        "import sys, authored; from ardea.spark.session import carry; from pyspark import cloudpickle;"
        "carry(authored.orders); sys.stdout.buffer.write(cloudpickle.dumps(authored.rated))"
    )
    path = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    pickled = subprocess.run([sys.executable, "-c", write], env=path, stdout=subprocess.PIPE, check=True, timeout=60)
    assert "authored" not in sys.modules
    assert pickle.loads(pickled.stdout)(14) == 42


def java(folder: Path, version: str) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "java").write_text(f"#!/bin/sh\necho '{version}' >&2\n")
    (folder / "bin" / "java").chmod(0o755)


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11"),
        ('java version "1.8.0_392"', "is Java 8"),
        ("segmentation fault", "does not tell its version: 'segmentation fault'"),
        (None, "there is no java in JAVA_HOME"),
    ],
)
def test_another_java_is_refused(monkeypatch, tmp_path, version, problem):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if version is not None:
        java(tmp_path, version)
    with pytest.raises(UserError, match="Spark needs Java 17 or newer") as refusal:
        require_java()
    assert problem in refusal.value.message
    assert "openjdk-17" in str(refusal.value.hint)


def test_no_java_anywhere_is_told(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="and there is no java on the PATH") as refusal:
        require_java()
    assert "openjdk-17" in str(refusal.value.hint)


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_newer_ones_are_not(monkeypatch, tmp_path, version):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java(tmp_path, f'openjdk version "{version}" 2025-04-15')
    require_java()


@pytest.mark.parametrize("name", ["HADOOP_CONF_DIR", "YARN_CONF_DIR"])
def test_yarn_needs_a_configuration_of_hadoop(monkeypatch, name):
    for each in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(each, raising=False)
    with pytest.raises(UserError, match="HADOOP_CONF_DIR and YARN_CONF_DIR are unset") as refusal:
        require_hadoop({"spark.master": "yarn"})
    assert "yarn-site.xml" in str(refusal.value.hint)
    require_hadoop({"spark.master": "local[2]"})
    monkeypatch.setenv(name, "/etc/hadoop/conf")
    require_hadoop({"spark.master": "yarn"})


WORKER = """
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/x/orders.py", line 24, in rate
    raise ValueError("no rate for ZZZ")
ValueError: no rate for ZZZ

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/worker.py", line 1, in main
RuntimeError: the worker ends
"""
JAVA_STORY = """An error occurred while calling o37.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.Scheduler.abort(Scheduler.scala:1)
Caused by: java.io.IOException: No space left on device
\tat java.io.FileOutputStream.writeBytes(Native Method)
"""
KILLED = """
Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)
\tat org.apache.spark.api.python.BasePythonRunner.applyOrElse(PythonRunner.scala:1)
Caused by: java.io.EOFException
\tat java.io.DataInputStream.readInt(Unknown Source)
"""
REFUSAL = "java.net.ConnectException: Connection refused"
REFUSED = f"""An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: java.net.ConnectException: Call From vm/10.0.0.5 to head:8032 failed on connection exception: {REFUSAL}
\tat org.apache.hadoop.net.NetUtils.wrapWithMessage(NetUtils.java:1021)
Caused by: {REFUSAL}
\tat java.base/sun.nio.ch.Net.pollConnect(Native Method)
"""


@pytest.fixture
def jvm(monkeypatch):
    """What stands in for one: a process that PySpark has started."""
    with subprocess.Popen(["sleep", "600"]) as process:
        gateway = SimpleNamespace(proc=process)
        monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(SparkContext=SimpleNamespace(_gateway=gateway)))
        yield process
        process.kill()


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (signal.SIGKILL, "Spark's JVM was killed, probably for want of memory (driver_ram=)"),
        (signal.SIGABRT, "Spark's JVM was killed by SIGABRT"),
    ],
)
def test_a_jvm_that_has_died_is_a_cause(jvm, number, told):
    assert jvm_death() is None
    jvm.send_signal(number)
    assert jvm_death() == told
    end_jvm()


def test_without_a_jvm_there_is_nothing_to_end(monkeypatch):
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    end_jvm()
    assert jvm_death() is None
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace())  # another thread is importing it
    end_jvm()
    assert jvm_death() is None


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (RuntimeError(WORKER), "ValueError: no rate for ZZZ"),
        (RuntimeError(JAVA_STORY), "java.io.IOException: No space left on device"),
        (
            RuntimeError(JAVA_STORY.partition("Caused by")[0]),
            "org.apache.spark.SparkException: Job aborted due to stage failure",
        ),
        (RuntimeError(KILLED), "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"),
        (
            RuntimeError(REFUSED),
            f"java.net.ConnectException: Call From vm/10.0.0.5 to head:8032 failed on connection exception: {REFUSAL}",
        ),
        (RuntimeError("Caused by: java.net.ConnectException: Connection refused\n\tat x"), REFUSAL),
        (RuntimeError("Caused by: java.io.EOFException\n\tat x"), "java.io.EOFException"),
        (KeyError("amount"), "KeyError: 'amount'"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_the_cause_comes_first(error, cause):
    assert cause_of(error, "orders.py") == cause


def test_the_cause_names_the_authors_line():
    with pytest.raises(ValueError, match="here") as raised:
        raise ValueError("here")
    assert cause_of(raised.value, __file__).startswith("ValueError: here (test_session.py:")


def test_differences_name_each_column():
    declared = parse_schema("id bigint, prize double, at date, name string")
    found = {"id": "int", "price": "double", "at": "date", "extra": "string"}
    assert list(differences(declared, found)) == [
        "column id is int, not bigint",
        "no column prize (did you mean price?)",
        "no column name (there are id, price, at, extra)",
    ]


class Tracker:
    """What pyspark.StatusTracker answers: job -> stages, stage -> (tasks, completed)."""

    jobs = {1: [1, 2], 2: [2, 3], 3: None}
    stages = {1: (4, 4), 2: (6, 1), 3: None}

    def getActiveJobsIds(self):  # noqa: N802
        return list(self.jobs)

    def getJobInfo(self, job):  # noqa: N802
        return None if self.jobs[job] is None else SimpleNamespace(stageIds=self.jobs[job])

    def getStageInfo(self, stage):  # noqa: N802
        if self.stages[stage] is None:  # skipped, or not planned yet
            return None
        return SimpleNamespace(numTasks=self.stages[stage][0], numCompletedTasks=self.stages[stage][1])


def test_stages_of_several_jobs_count_once():
    assert stages_of(Tracker()) == Stages(tasks=10, done=5)
