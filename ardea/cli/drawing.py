"""The plan of a topology, drawn: components, what they do, what they read."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.table import Table

from ardea.cli import console, submission
from ardea.cli.graphs import DRAWN
from ardea.documents.plan import of_plan
from ardea.loader import load


class PlanOutput(enum.StrEnum):
    """What ``-o`` takes of a verb that can draw a plan."""

    TABLE = "table"
    JSON = "json"
    MERMAID = "mermaid"
    DOT = "dot"


def draw(target: str, config: Mapping[str, Any], output: PlanOutput) -> None:
    """Prints the plan of ``FILE[:Class]`` with a submitter's configuration; of Trident, each component's operations."""
    with submission.authors_prints():
        topology = load(target)
        plan = topology.plan(config)
    operations: Mapping[str, Sequence[str]] = getattr(topology, "operations", {})
    document = msgspec.to_builtins(of_plan(plan, operations))
    rows: list[dict[str, Any]] = document["components"]
    if output is PlanOutput.JSON:
        console.print_json(document)
        return
    if output in DRAWN:
        print(DRAWN[output](rows), end="")  # noqa: T201
        return
    table = Table("Component", "Tasks", "Does", "Reads", box=None, pad_edge=False)
    for row in rows:
        reads = "\n".join(f"{source}  {grouping}" for source, grouping in row["inputs"].items())
        table.add_row(row["component"], str(row["tasks"]), "\n".join(row["operations"]) or row["kind"], reads)
    console.out().print(table)
