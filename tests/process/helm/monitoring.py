"""What the chart's dashboards and alerts ask, as a Prometheus is asked it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.process.metrics_manager.prometheus import Prometheus

ROOT = Path(__file__).parents[3]
DASHBOARDS = ROOT / "helm" / "files" / "dashboards"
RULES = ROOT / "helm" / "files" / "rules"
OBSERVED = ROOT / "tests" / "process" / "scheduler" / "kubernetes" / "topologies" / "observed.py"
"""A topology in which each of their series gets a value, but for those of snapshots."""
REMEMBERING = Path(__file__).parent / "topologies" / "remembering.py"
"""One in which these do."""
OF_SNAPSHOTS = re.compile(r"ardea_tm_(?:snapshot|rollback|sink)|ardea_instance_(?:snapshot|state_)")
"""Series that only the mode with snapshots has."""

SELECTOR = re.compile(r"\bardea_\w+(?:\{[^}]*\})?")


def rules(namespace: str, about: str = "topology", servers: int = 1) -> str:
    """The chart's rule file about topologies, or about ``zookeeper`` with so many servers, for that namespace."""
    text = (RULES / f"{about}.yaml").read_text()
    return text.replace("NAMESPACE", namespace).replace("SERVERS", str(servers))


class Query(NamedTuple):
    """What a panel asks, and the labels that its legend shows."""

    text: str
    labels: set[str]


def dashboards(namespace: str) -> list[Query]:
    """Every query of every panel, as Grafana would send it for that namespace and whatever topology."""
    boards = [json.loads(path.read_text()) for path in sorted(DASHBOARDS.glob("*.json"))]
    targets = [target for board in boards for panel in board["panels"] for target in panel.get("targets", ())]
    values = {"$namespace": namespace, "$topology": ".*", "$component": ".*", "$__rate_interval": "1m"}
    return [
        Query(
            re.sub(r"\$\w+", lambda found: values[found.group()], target["expr"]),
            set(re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))),
        )
        for target in targets
    ]


def answers_everything(
    prometheus: Prometheus, namespace: str, meanwhile: Callable[[], object] = bool, *, remembers: bool = False
) -> None:
    """Waits until each selector of dashboards and alerts finds series, and each panel has something to show.

    ``meanwhile`` is called after each look that found nothing; ``remembers``: there is a topology that takes snapshots.
    """

    def something(answer: dict) -> bool:
        if not answer:
            meanwhile()
        return bool(answer)

    def asked(text: str) -> bool:
        return remembers or not OF_SNAPSHOTS.search(text)

    panels = [query for query in dashboards(namespace) if asked(query.text)]
    texts = [*(query.text for query in panels), rules(namespace)]
    for selector in sorted({found for text in texts for found in SELECTOR.findall(text) if asked(found)}):
        prometheus.wait(selector, something)
    for query in panels:
        if not re.search(" > [01]$", query.text):  # shows only what is out of the ordinary
            prometheus.wait(query.text, something)
            shown = prometheus.get("query", query=query.text)["result"]
            assert all(query.labels <= row["metric"].keys() for row in shown), query
    groups = prometheus.get("rules")["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}, groups
