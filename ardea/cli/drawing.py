"""The plan of a topology, drawn: components, what they do, what they read."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.table import Table

from ardea.cli import console, submission
from ardea.cli.graphs import DRAWN
from ardea.documents.plan import PlanDocument, of_plan
from ardea.errors import ArdeaError
from ardea.loader import load
from ardea.scheduler.schedulers import Handle
from ardea.topology import Topology


class PlanOutput(enum.StrEnum):
    """What ``-o`` takes of a verb that can draw a plan."""

    TABLE = "table"
    JSON = "json"
    MERMAID = "mermaid"
    DOT = "dot"


def draw_file(target: str, output: PlanOutput) -> None:
    """Prints the plan of ``FILE[:Class]``."""
    with submission.authors_prints():
        topology = load(target)
        plan = topology.plan()
    _print(of_plan(plan, _operations(topology)), output)


def draw_submitted(found: Handle, output: PlanOutput) -> None:
    """Prints the plan that runs; operations of Trident as far as the code that was submitted can be loaded here."""
    definition = found.definition()
    operations: Mapping[str, Sequence[str]] = {}
    with contextlib.suppress(ArdeaError):
        if (code := found.code()) is not None:
            with submission.authors_prints():
                operations = _operations(load(definition.location, code))
    _print(of_plan(definition.shape.plan(), operations), output)


def _operations(topology: type[Topology]) -> Mapping[str, Sequence[str]]:
    operations: Mapping[str, Sequence[str]] = getattr(topology, "operations", {})
    return operations


def _print(plan: PlanDocument, output: PlanOutput) -> None:
    document = msgspec.to_builtins(plan)
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
