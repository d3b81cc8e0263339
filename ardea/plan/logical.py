"""The logical plan: what the author wrote, as frozen values.

Built by :meth:`ardea.Topology.plan` in every process from the same file; its
:attr:`LogicalPlan.digest` says whether two processes built the same thing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from ardea.plan.resource import Resource

GroupingKind = Literal[
    "shuffle",
    "fields",
    "partial_key",
    "all",
    "global",
    "none",
    "direct",
    "local_or_shuffle",
    "custom",
    "load_aware",
]
ComponentKind = Literal["spout", "bolt"]


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """An output stream that a component declares; its place in the component's tuple is its number."""

    name: str
    fields: tuple[str, ...]
    direct: bool = False


@dataclass(frozen=True, slots=True)
class GroupingPlan:
    """How a consumer's tasks share a stream.  ``custom`` is the author's object, rebuilt in each process."""

    kind: GroupingKind
    fields: tuple[str, ...] = ()
    custom: Any = None

    def describe(self) -> str:
        """One line for tables and digests: ``fields(word)``, ``custom(NGrouping)``; ``custom`` without its object."""
        if self.custom is not None:
            return f"custom({type(self.custom).__qualname__})"
        return f"{self.kind}({', '.join(self.fields)})" if self.fields else self.kind


@dataclass(frozen=True, slots=True)
class InputPlan:
    """One subscription of a bolt: at most one for each (component, stream)."""

    component: str
    stream: str
    grouping: GroupingPlan


@dataclass(frozen=True, slots=True)
class ComponentPlan:
    """A spout or bolt.

    ``executors`` is Storm's parallelism hint after normalisation, ``tasks`` the number of processes;
    ``config`` holds only what the component overrides; ``cls`` is the author's class; ``states`` has the kind of each
    state that it declares, by name.
    """

    name: str
    kind: ComponentKind
    cls: type
    executors: int
    tasks: int
    streams: tuple[StreamPlan, ...] = ()
    inputs: tuple[InputPlan, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    resource: Resource = field(default_factory=Resource)
    states: Mapping[str, str] = field(default_factory=dict)

    def stream(self, name: str) -> StreamPlan:
        """The stream of that name; KeyError if the component does not declare it."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        raise KeyError(name)

    def describe(self) -> dict[str, Any]:
        """What two builds of one topology must agree on, as plain values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "class": f"{self.cls.__module__}.{self.cls.__qualname__}",
            "executors": self.executors,
            "tasks": self.tasks,
            "streams": [[s.name, list(s.fields), s.direct] for s in self.streams],
            "inputs": [[i.component, i.stream, i.grouping.describe()] for i in self.inputs],
            "config": {key: repr(self.config[key]) for key in sorted(self.config)},
        }

    def digest(self) -> str:
        """Sixteen hex digits over :meth:`describe`."""
        return hashlib.blake2b(msgspec.json.encode(self.describe()), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """A validated topology.  ``components`` are sorted by name, which fixes the task ids."""

    name: str
    components: tuple[ComponentPlan, ...]
    config: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> ComponentPlan:
        for component in self.components:
            if component.name == name:
                return component
        raise KeyError(name)

    def __iter__(self) -> Iterator[ComponentPlan]:
        return iter(self.components)

    @property
    def spouts(self) -> tuple[ComponentPlan, ...]:
        """The components without inputs."""
        return tuple(c for c in self.components if c.kind == "spout")

    def consumers(self, component: str, stream: str) -> tuple[tuple[ComponentPlan, GroupingPlan], ...]:
        """Who reads that stream, in component order, and how."""
        return tuple(
            (reader, entry.grouping)
            for reader in self.components
            for entry in reader.inputs
            if entry.component == component and entry.stream == stream
        )

    def downstream(self, component: str) -> frozenset[str]:
        """Every component that tuples of ``component`` can reach, itself excluded."""
        reached: set[str] = set()
        frontier = [component]
        while frontier:
            source = frontier.pop()
            for reader in self.components:
                if reader.name not in reached and any(i.component == source for i in reader.inputs):
                    reached.add(reader.name)
                    frontier.append(reader.name)
        return frozenset(reached)

    def upstream(self, component: str) -> frozenset[str]:
        """Every component whose tuples can reach ``component``, itself excluded."""
        inputs = {each.name: each.inputs for each in self.components}
        reached: set[str] = set()
        frontier = [component]
        while frontier:
            fresh = {entry.component for entry in inputs.get(frontier.pop(), ())} & inputs.keys() - reached
            reached |= fresh
            frontier += fresh
        return frozenset(reached)

    def task_ids(self) -> dict[str, range]:
        """Component -> its task ids: from 1, contiguous, in component name order."""
        ids: dict[str, range] = {}
        first = 1
        for component in self.components:
            ids[component.name] = range(first, first + component.tasks)
            first += component.tasks
        return ids

    def scaled(self, parallelism: Mapping[str, tuple[int, int]]) -> LogicalPlan:
        """The same topology with so many (executors, tasks) of these components."""
        return replace(
            self,
            components=tuple(
                replace(c, executors=parallelism[c.name][0], tasks=parallelism[c.name][1])
                if c.name in parallelism
                else c
                for c in self.components
            ),
        )

    def digests(self) -> dict[str, str]:
        """Component -> digest, so that a difference can name the first differing component."""
        return {component.name: component.digest() for component in self.components}

    def digest(self) -> str:
        """Sixteen hex digits; two processes whose plans differ refuse each other."""
        body = [self.name, self.digests(), {k: repr(self.config[k]) for k in sorted(self.config)}]
        return hashlib.blake2b(msgspec.json.encode(body), digest_size=8).hexdigest()
