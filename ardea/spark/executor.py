"""The command ``executor`` of Ardea's image: what Spark starts in the pods of its executors.

With ``spark.master: k8s://...`` Spark gives a pod's container the argument ``executor`` and says all else by
environment variables, as the entry point of Spark's own image reads them (its documentation, "Running on Kubernetes").
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ardea.errors import UserError
from ardea.spark.session import require_java

BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_OPTION = "SPARK_JAVA_OPT_"
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def command(java: str, spark: Path, environment: Mapping[str, str]) -> list[str]:
    """The JVM of an executor; ``spark`` is the folder of PySpark.

    Raises:
        UserError: Spark has not started this container.
    """
    needed = (*_ARGUMENTS.values(), "SPARK_EXECUTOR_MEMORY")
    if missing := [name for name in needed if name not in environment]:
        raise UserError(
            f"executor: {', '.join(missing)} unset",
            hint="it is Spark that starts this command, in the pods of its executors; see docs/spark.md",
        )
    numbered = {int(name.removeprefix(_OPTION)): text for name, text in environment.items() if name.startswith(_OPTION)}
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    classes = [f"{spark}/jars/*", environment.get("SPARK_CLASSPATH", ""), environment.get("SPARK_CONF_DIR", "")]
    arguments = [part for name, variable in _ARGUMENTS.items() for part in (name, environment[variable])]
    options = [numbered[number] for number in sorted(numbered)]
    return [
        java, *options, f"-Xms{memory}", f"-Xmx{memory}", "-cp", ":".join(filter(None, classes)), BACKEND, *arguments
    ]  # fmt: skip


def main() -> None:
    """Becomes the JVM."""
    try:
        java = require_java()
        if (found := find_spec("pyspark")) is None or found.origin is None:
            raise UserError("pyspark is not installed here", hint="pip install 'ardea[spark]'")
        argv = command(java, Path(found.origin).parent, os.environ)
    except UserError as error:
        sys.exit(f"error: {error.message}; {error.hint}")
    os.execv(argv[0], argv)  # noqa: S606 -- no shell is wanted


if __name__ == "__main__":
    main()
