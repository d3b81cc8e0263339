"""What the chart's dashboards and alerts ask, as a Prometheus is asked it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.process.metrics_manager.prometheus import Prometheus

ROOT = Path(__file__).parents[3]
DASHBOARDS = ROOT / "helm" / "files" / "dashboards"
RULES = (ROOT / "helm" / "files" / "rules" / "topology.yaml").read_text()
OBSERVED = ROOT / "tests" / "process" / "scheduler" / "kubernetes" / "topologies" / "observed.py"
"""A topology in which each of their series gets a value."""

SELECTOR = re.compile(r"\bardea_\w+(?:\{[^}]*\})?")


def rules(namespace: str) -> str:
    """The chart's rule file for that namespace."""
    return RULES.replace("NAMESPACE", namespace)


def dashboards(namespace: str) -> list[str]:
    """Every query of every panel, as Grafana would send it for that namespace and whatever topology."""
    boards = [json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))]
    queries = [target["expr"] for board in boards for panel in board["panels"] for target in panel.get("targets", ())]
    values = {"$namespace": namespace, "$topology": ".*", "$component": ".*", "$__rate_interval": "1m"}
    return [re.sub(r"\$\w+", lambda found: values[found.group()], query) for query in queries]


def answers_everything(prometheus: Prometheus, namespace: str, meanwhile: Callable[[], object] = bool) -> None:
    """Waits until each selector of dashboards and alerts finds series, and each panel has something to show.

    ``meanwhile`` is called before each look.
    """

    def something(answer: dict) -> bool:
        meanwhile()
        return bool(answer)

    panels = dashboards(namespace)
    for selector in sorted({found for query in (*panels, rules(namespace)) for found in SELECTOR.findall(query)}):
        prometheus.wait(selector, something)
    for query in panels:
        if not re.search(" > [01]$", query):  # shows only what is out of the ordinary
            prometheus.wait(query, something)
    groups = prometheus.get("rules")["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}, groups
