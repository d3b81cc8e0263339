"""What an update would change: the definition in force beside the next one.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from ardea.plan.definition import Definition, canonical
from ardea.plan.shape import ComponentShape
from ardea.plan.wire import packing_from_bytes

What = Literal["added", "removed", "changed", "rescaled", "same"]


class ComponentDifference(msgspec.Struct, frozen=True, kw_only=True):
    """``changed``: inputs, streams, configuration or resources; ``tasks``: before and after."""

    component: str
    what: What
    tasks: tuple[int, int]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks by their names, containers by their numbers.

    ``configuration`` are the keys that differ, without values: some may be secrets.  ``restarted``: every instance
    starts again, with other code or configuration.  ``moved`` tasks and those of ``replaced`` containers do so, too.
    """

    topology: str
    components: list[ComponentDifference]
    configuration: list[str]
    started: list[str]
    stopped: list[str]
    moved: list[str]
    containers_added: list[int]
    containers_removed: list[int]
    containers_replaced: list[int]
    restarted: bool


def difference(present: Definition, next_: Definition) -> Difference:
    """What an update from the one to the other does."""
    before, after = _places(present), _places(next_)
    containers_before, containers_after = _containers(present), _containers(next_)
    restarted = next_.build != present.build
    both = sorted(containers_before.keys() & containers_after.keys())
    return Difference(
        topology=present.topology,
        components=_components(present, next_),
        configuration=_keys({**present.shape.config, **present.config}, {**next_.shape.config, **next_.config}),
        started=sorted(after.keys() - before.keys()),
        stopped=sorted(before.keys() - after.keys()),
        moved=sorted(task for task in before.keys() & after.keys() if before[task] != after[task]),
        containers_added=sorted(containers_after.keys() - containers_before.keys()),
        containers_removed=sorted(containers_before.keys() - containers_after.keys()),
        containers_replaced=[
            number
            for number in both
            if present.whole and (restarted or containers_before[number] != containers_after[number])
        ],
        restarted=restarted,
    )


def _components(present: Definition, next_: Definition) -> list[ComponentDifference]:
    before, after = ({c.name: c for c in definition.shape.components} for definition in (present, next_))
    found = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        what: What = "same"
        if old is None:
            what = "added"
        elif new is None:
            what = "removed"
        elif old.tasks != new.tasks:
            what = "rescaled"
        elif old != new or present.shape.digests[name] != next_.shape.digests[name]:
            what = "changed"
        found.append(ComponentDifference(component=name, what=what, tasks=(_tasks(old), _tasks(new))))
    return found


def _tasks(component: ComponentShape | None) -> int:
    return 0 if component is None else component.tasks


def _keys(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    def said(config: Mapping[str, Any], key: str) -> bytes | None:
        return canonical(config[key]) if key in config else None

    return sorted(key for key in {*before, *after} if said(before, key) != said(after, key))


def _places(definition: Definition) -> dict[str, int]:
    """Task name -> container."""
    packing = packing_from_bytes(definition.packing)
    return {
        f"{instance.component}-{instance.index}": container.number
        for container in packing.containers
        for instance in container.instances
    }


def _containers(definition: Definition) -> dict[int, frozenset[int]]:
    """Container -> its tasks."""
    packing = packing_from_bytes(definition.packing)
    return {c.number: frozenset(instance.task for instance in c.instances) for c in packing.containers}
