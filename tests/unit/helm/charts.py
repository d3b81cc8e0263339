"""The chart at helm/, rendered by the helm on the PATH."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

CHART = Path(__file__).parents[3] / "helm"
MATRIX = sorted((CHART / "ci").glob("*-values.yaml"))
VERSION = "1.31.0"
"""The oldest Kubernetes that the chart takes; Helm, too, needs one to render for."""
HELM = shutil.which("helm")
needs_helm = pytest.mark.skipif(HELM is None, reason="helm is not on the PATH: the chart cannot be rendered")

Object = dict[str, Any]


class RefusedError(Exception):
    """Helm took the values for wrong; the text is what it said."""


@functools.cache
def manifest(*arguments: str, helm: str | None = HELM, chart: Path = CHART) -> str:
    """What `helm template streams helm/ ARGUMENTS` prints, for the namespace ``prod``."""
    command = [helm or "helm", "template", "streams", str(chart), "--namespace", "prod", "--kube-version", VERSION]
    ended = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, timeout=30)
    if ended.returncode:
        raise RefusedError(ended.stderr)
    return ended.stdout


def render(*arguments: str, chart: Path = CHART) -> dict[tuple[str, str], Object]:
    """The objects by kind and name, each at most once."""
    found: dict[tuple[str, str], Object] = {}
    for thing in yaml.load_all(manifest(*arguments, chart=chart), Loader=yaml.CSafeLoader):
        if thing is not None:
            key = thing["kind"], thing["metadata"]["name"]
            assert key not in found, f"{key} is rendered twice"
            found[key] = thing
    return found


def of_kind(objects: dict[tuple[str, str], Object], kind: str) -> list[Object]:
    return [thing for (its, _), thing in objects.items() if its == kind]


def pod_specs(objects: dict[tuple[str, str], Object]) -> dict[str, Object]:
    """The pods' specifications by name, those of templates included."""
    kept = [*of_kind(objects, "StatefulSet"), *of_kind(objects, "Deployment")]
    specs = {thing["metadata"]["name"]: thing["spec"]["template"]["spec"] for thing in kept}
    return specs | {thing["metadata"]["name"]: thing["spec"] for thing in of_kind(objects, "Pod")}


def tcp(port: int | str) -> Object:
    """A port of a NetworkPolicy."""
    return {"port": port, "protocol": "TCP"}
