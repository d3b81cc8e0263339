"""The stored form of a logical plan: all that a process without the author's code needs of it.

Masters and managers work from the shape; instances build the plan from the topology's file and compare digests.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ardea.plan.logical import (
    ComponentKind,
    ComponentPlan,
    GroupingKind,
    GroupingPlan,
    InputPlan,
    LogicalPlan,
    StreamPlan,
)
from ardea.plan.resource import Resource

ENGINE_KEYS = ("topology.", "heron.", "supervisor.")


class Unloaded:
    """Stands for the author's class where the author's code is not imported."""


class ComponentShape(msgspec.Struct, frozen=True):
    """A :class:`ComponentPlan` without code; ``inputs`` are (component, stream, grouping kind, fields)."""

    name: str
    kind: ComponentKind
    executors: int
    tasks: int
    streams: list[tuple[str, tuple[str, ...], bool]]
    inputs: list[tuple[str, str, GroupingKind, tuple[str, ...]]]
    config: dict[str, Any]
    resource: tuple[float, int, int]
    states: dict[str, str] = {}


class Shape(msgspec.Struct, frozen=True):
    """What is stored under ``/topologies`` beside who submitted it."""

    name: str
    digest: str
    digests: dict[str, str]
    config: dict[str, Any]
    components: list[ComponentShape]

    def plan(self) -> LogicalPlan:
        """The plan, with :class:`Unloaded` for every class and no custom grouping objects."""
        components = tuple(
            ComponentPlan(
                name=c.name,
                kind=c.kind,
                cls=Unloaded,
                executors=c.executors,
                tasks=c.tasks,
                streams=tuple(StreamPlan(*stream) for stream in c.streams),
                inputs=tuple(InputPlan(i[0], i[1], GroupingPlan(i[2], i[3])) for i in c.inputs),
                config=c.config,
                resource=Resource(*c.resource),
                states=c.states,
            )
            for c in self.components
        )
        return LogicalPlan(self.name, components, self.config)


def shape_to_bytes(shape: Shape) -> bytes:
    """For a message."""
    return msgspec.msgpack.encode(shape)


def shape_from_bytes(data: bytes) -> Shape:
    """The shape that :func:`shape_to_bytes` wrote."""
    return msgspec.msgpack.decode(data, type=Shape)


def shape_of(plan: LogicalPlan) -> Shape:
    """What to store of a plan; of the configuration only the engine's own keys."""
    return Shape(
        plan.name,
        plan.digest(),
        plan.digests(),
        _engine_keys(plan.config),
        [
            ComponentShape(
                c.name,
                c.kind,
                c.executors,
                c.tasks,
                [(s.name, s.fields, s.direct) for s in c.streams],
                [(i.component, i.stream, i.grouping.kind, i.grouping.fields) for i in c.inputs],
                _engine_keys(c.config),
                (c.resource.cpu, c.resource.ram, c.resource.disk),
                dict(c.states),
            )
            for c in plan
        ],
    )


def _engine_keys(config: Any) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key.startswith(ENGINE_KEYS)}
