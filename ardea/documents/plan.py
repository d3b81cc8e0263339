"""``ardea describe --plan``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ardea.plan import LogicalPlan
from ardea.plan.names import DRPC_LABEL


class PlanComponent(msgspec.Struct, frozen=True, kw_only=True):
    """``operations``: of Trident; ``inputs``: ``COMPONENT:STREAM`` -> grouping; ``functions``: of DRPC."""

    component: str
    kind: str
    tasks: int
    operations: list[str]
    inputs: dict[str, str]
    functions: list[str] = []


class PlanDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The components of a topology, by their names."""

    topology: str
    components: list[PlanComponent]


def of_plan(plan: LogicalPlan, operations: Mapping[str, Sequence[str]] | None = None) -> PlanDocument:
    """``operations``: component -> what it does, of Trident; known only where the author's code is loaded."""
    return PlanDocument(
        topology=plan.name,
        components=[
            PlanComponent(
                component=component.name,
                kind=component.kind,
                tasks=component.tasks,
                operations=list((operations or {}).get(component.name, ())),
                inputs={f"{i.component}:{i.stream}": i.grouping.describe() for i in component.inputs},
                functions=_functions(component.config),
            )
            for component in plan
        ],
    )


def _functions(config: Mapping[str, Any]) -> list[str]:
    """Those whose requests come in at a component of this configuration."""
    labels = config.get("heron.kubernetes.labels")
    names = labels if isinstance(labels, Mapping) else ()
    return [name.removeprefix(DRPC_LABEL) for name in names if name.startswith(DRPC_LABEL)]
