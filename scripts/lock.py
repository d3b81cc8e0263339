"""Writes anew what images install, with the versions of today.

``requirements-engine.txt`` is all that processes of a topology need, on Kubernetes too.  ``requirements-extras.txt``
holds the versions of what an image can have besides: the constraints of its EXTRAS.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from requirements import ENGINE, required

ROOT = Path(__file__).parents[1]
ALWAYS = (ENGINE, "kubernetes", "zookeeper")


def resolved(requirements: Sequence[str], *options: str) -> dict[str, str]:
    """Name and version of each package that pip would install into an empty environment."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-"]
    wheels = ["--only-binary", ":all:", "--no-binary", "pyspark"]  # as the Dockerfile has it
    ended = subprocess.run([*command, *wheels, *options, *requirements], check=True, stdout=subprocess.PIPE)
    found = (each["metadata"] for each in json.loads(ended.stdout)["install"])
    return {each["name"].lower().replace("_", "-"): each["version"] for each in found}


def _write(name: str, head: str, pins: dict[str, str]) -> None:
    lines = "".join(f"{package}=={version}\n" for package, version in sorted(pins.items()))
    (ROOT / name).write_text(f"# {head}\n# Written by `make lock`.\n{lines}")


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    engine = resolved([requirement for extra in ALWAYS for requirement in required(project, extra)])
    _write("requirements-engine.txt", "What processes of a topology need, for `pip install --no-deps -r`.", engine)
    others = [extra for extra in project["optional-dependencies"] if extra not in (*ALWAYS, "all")]
    wanted = [requirement for extra in others for requirement in required(project, extra)]
    every = resolved(wanted, "--constraint", str(ROOT / "requirements-engine.txt"))
    besides = {name: version for name, version in every.items() if name not in engine}
    _write(
        "requirements-extras.txt", "Versions of what images can have besides, for `pip install --constraint`.", besides
    )
