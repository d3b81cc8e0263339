"""What makes an image with Spark of the tests' one: this machine's Java and PySpark, as far as the tests need them.

`make image EXTRAS="... spark"` fetches both, which takes minutes.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from pathlib import Path

PACKAGES = ("pandas", "py4j", "pyarrow", "pyspark", "python-dateutil", "pytz", "six", "tzdata")
JARS = (
    "algebra", "arpack", "bcprov", "blas", "breeze", "cats", "curator", "datanucleus", "derby", "hive", "lapack",
    "rocksdbjni", "scala-compiler", "spark-connect", "spark-hive", "spark-mllib", "spark-yarn", "spire", "zookeeper",
)  # fmt: skip
"""Those that SQL does well without, on one machine and in pods."""
LEFT_OUT = (
    *(f"{jar}*.jar" for jar in JARS),
    *("__pycache__", "examples", "include", "libarrow_flight*", "licenses", "tests"),
    *("ct.sym", "docs", "jmods", "legal", "libatk*", "man", "src.zip"),
)
PYTHON = "opt/ardea/lib/python3.11/site-packages"
DOCKERFILE = """
FROM {base}
COPY opt /opt
ENV JAVA_HOME=/opt/java
"""


def lay_out(folder: Path, base: str) -> None:
    """The context of the build: all that is copied into the image, and the Dockerfile."""
    java = Path(os.environ.get("JAVA_HOME") or Path(shutil.which("java") or "java").resolve().parents[1])
    _copy(java, folder / "opt" / "java")
    for package in PACKAGES:
        distribution = importlib.metadata.distribution(package)
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}:
            _copy(Path(str(distribution.locate_file(top))), folder / PYTHON / top)
    (folder / "Dockerfile").write_text(DOCKERFILE.format(base=base))


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(*LEFT_OUT), ignore_dangling_symlinks=True)
    else:
        shutil.copy(source, target)
