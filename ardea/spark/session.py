"""Starting and ending Spark in this process, and saying why it failed.  The only module that starts a JVM."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ardea.errors import ConfigError, UserError
from ardea.spark.job import LOCAL, MASTER, SparkJob, driver_host, is_local

JAVA = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_INSTALL_JAVA = f"Debian, Ubuntu: apt-get install openjdk-{JAVA}-jre-headless; or set JAVA_HOME."
_DEFAULTS = {
    MASTER: LOCAL,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
_POD_TEMPLATE = "spark.kubernetes.executor.podTemplateFile"
_OF_THE_POD = {
    "spark.kubernetes.container.image": "ARDEA_IMAGE",
    "spark.kubernetes.driver.pod.name": "POD_NAME",  # executors' pods go with it
    "spark.kubernetes.namespace": "POD_NAMESPACE",
}
"""What a driver in a pod knows: executors run its own image, beside it."""
_LOOPBACK = "127.0.0.1"
_JVM_OPTIONS = "spark.driver.extraJavaOptions"
_JAVA = "An error occurred while calling "
_CAUSED_BY = "Caused by: "
_REFUSED = "java.net.ConnectException: Connection refused"
_TRACEBACK = "Traceback (most recent call last):\n"
_HADOOP_CONF = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_DYING = 0.5
"""Seconds that a JVM may take to end after its connections have."""


def require_java() -> str:
    """The Java that Spark will find.

    Raises:
        UserError: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        where = f"in JAVA_HOME, {home}" if home else "on the PATH"
        raise UserError(f"Spark needs Java {JAVA} or newer, and there is no java {where}", hint=_INSTALL_JAVA)
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = _VERSION.search(output)
    if version is None or int(version[1]) < JAVA:
        found = f"is Java {version[1]}" if version else f"does not tell its version: {output.strip()[:200]!r}"
        raise UserError(f"Spark needs Java {JAVA} or newer, and {java} {found}", hint=_INSTALL_JAVA)
    return java


def require_hadoop(settings: Mapping[str, str]) -> None:
    """Without a configuration of Hadoop a JVM for YARN ends at once, and says why on its standard error only.

    Raises:
        UserError: the master is YARN, and no folder with one is named.
    """
    if settings[MASTER].startswith("yarn") and not any(name in os.environ for name in _HADOOP_CONF):
        raise UserError(
            f"spark.master={settings[MASTER]} needs Hadoop's configuration, and {' and '.join(_HADOOP_CONF)} are unset",
            hint=f"set {_HADOOP_CONF[0]} to the folder of yarn-site.xml and core-site.xml; see docs/spark.md",
        )


def spark_settings(job: SparkJob, config: Mapping[str, Any], scratch: Path) -> dict[str, str]:
    """All ``spark.*`` settings of the job: the configuration's, over Ardea's defaults, and those that are fixed.

    Raises:
        ConfigError: the configuration has a key that is fixed.
    """
    fixed = {
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(job.rows),
    }
    if job.start == "early":
        fixed["spark.sql.adaptive.enabled"] = "false"
    defaults = dict(_DEFAULTS)
    if is_local(config):
        fixed["spark.local.dir"] = str(scratch)
        host = defaults["spark.driver.host"] = _LOOPBACK
    else:
        # Executors import what this process can, where their machines have it in the same place.
        defaults["spark.executorEnv.PYTHONPATH"] = _import_path()
        host = defaults["spark.driver.host"] = driver_host(config)
    if str(config.get(MASTER, LOCAL)).startswith("k8s://"):
        defaults[_POD_TEMPLATE] = str(Path(__file__).with_name("executor.yaml"))
        defaults |= {key: os.environ[name] for key, name in _OF_THE_POD.items() if name in os.environ}
    defaults["spark.driver.bindAddress"] = str(config.get("spark.driver.host", host))
    given = {key: _text(value) for key, value in config.items() if key.startswith("spark.")}
    if refused := sorted(given.keys() & fixed.keys()):
        raise ConfigError(
            f"{', '.join(refused)}: a Spark spout sets this itself",
            hint="rows=, storage= and start= of SparkSpout decide it; docs/spark.md says how.",
        )
    settings = defaults | given | fixed
    settings[_JVM_OPTIONS] = f"-Djava.io.tmpdir={scratch} {settings.get(_JVM_OPTIONS, '')}".strip()
    return settings


def _import_path() -> str:
    return os.pathsep.join(path for path in sys.path if path)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def open_session(name: str, settings: Mapping[str, str]) -> Any:
    """Starts Spark; returns the SparkSession.

    Raises:
        UserError: pyspark is not installed.
    """
    # Workers are Python processes that import what this one can.
    os.environ["PYSPARK_PYTHON"] = settings.get("spark.pyspark.python", sys.executable)
    os.environ["PYTHONPATH"] = _import_path()
    os.environ.pop("SPARK_LOCAL_DIRS", None)  # would win over spark.local.dir
    os.environ.setdefault("SPARK_LOCAL_IP", settings["spark.driver.host"])
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise UserError("pyspark is not installed here", hint="pip install 'ardea[spark]'") from error
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def carry(function: Callable[..., Any]) -> None:
    """Lets UDFs of the author's file travel whole, as a script's do: executors elsewhere do not have the file."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])  # type: ignore[no-untyped-call]


def end_jvm() -> None:
    """Kills the JVM of this process, if there is one: a stopped session would keep it, and its memory, to the end."""
    if (jvm := _jvm()) is not None:
        jvm.kill()
        jvm.wait()


def jvm_death() -> str | None:
    """How the JVM of this process has ended; None if it has not, or never was there."""
    if (jvm := _jvm()) is None:
        return None
    try:
        code = jvm.wait(_DYING)
    except subprocess.TimeoutExpired:
        return None
    if code == -signal.SIGKILL:  # what the kernel sends a container that takes too much
        return "Spark's JVM was killed, probably for want of memory (driver_ram=)"
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"has ended with exit code {code}"
    return f"Spark's JVM {how}"


def _jvm() -> subprocess.Popen[bytes] | None:
    # Spark has no public way to it; the gateway is the one attribute that all releases of PySpark have.
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)  # it may be in the middle of its import
    gateway = None if context is None else context._gateway
    return None if gateway is None else gateway.proc


def cause_of(error: BaseException, file: str) -> str:
    """Why a job failed, in one line, and the last line of the author's ``file`` that took part."""
    text = str(error)
    if _TRACEBACK in text:
        # A worker's exceptions; the first of them led to the others.
        story = text.split(_TRACEBACK)[1].splitlines()
        cause = next((line for line in story if line and not line[0].isspace()), text)
    elif _CAUSED_BY in text:
        outermost, *inner = text.split(_CAUSED_BY)
        causes = [each.partition("\n")[0] for each in (outermost.partition("\n: ")[2], *inner)]
        if causes[-1] == _REFUSED and any(causes[:-1]):  # by whom says the one above
            causes.pop()
        # The innermost may be a mere class: an EOFException, when a worker was killed.
        cause = next((each for each in reversed(causes) if ": " in each), causes[-1])
    elif text.startswith(_JAVA):
        cause = text.partition("\n: ")[2] or text
    elif type(error).__module__.startswith("pyspark.") and text:
        cause = text
    else:
        cause = f"{type(error).__name__}: {text}" if text else type(error).__name__
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    where = f" ({Path(file).name}:{lines[-1]})" if lines else ""
    return cause.strip().partition("\n")[0].rstrip("; ") + where
