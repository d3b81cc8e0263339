"""What is wrong with a join's place in a topology."""

from __future__ import annotations

from collections.abc import Iterator

from ardea.joins.declared import LATE, Join
from ardea.plan import ComponentPlan, LogicalPlan
from ardea.validation import stream_of
from ardea.watermarks import timed


def problems_of_join(join: Join, component: ComponentPlan, plan: LogicalPlan) -> Iterator[str]:
    """A sentence each."""
    where = f"Component: [{component.name}]"
    names = [":".join(side) for side in join.sides]
    inputs = {(entry.component, entry.stream): entry for entry in component.inputs}
    if {*inputs} != {*join.sides}:
        read = ", ".join(sorted(map(":".join, inputs)))
        yield f"{where} joins {names[0]} with {names[1]}, and its inputs are [{read}]; they have to be these two"
        return
    groupings = [inputs[side].grouping for side in join.sides]
    alike = len({len(grouping.fields) for grouping in groupings}) == 1
    if not alike or any(grouping.kind != "fields" for grouping in groupings):
        ways = " and ".join(f"{name} by {each.describe()}" for name, each in zip(names, groupings, strict=True))
        yield f"{where} joins {ways}: both have to be grouped by fields, and by equally many; the key is their values"
    if join.stamps is not None:
        yield from _stamps(where, join, plan)
    for stream in component.streams:
        if stream.name == LATE.name and stream.fields != tuple(LATE.fields):
            fields = ", ".join(LATE.fields)
            yield f"{where}: rows that cannot be joined go to stream: [{LATE.name}], which has [{fields}]: write LATE"


def _stamps(where: str, join: Join, plan: LogicalPlan) -> Iterator[str]:
    known, components = timed(plan), {each.name: each for each in plan}
    for (name, stream), stamps in zip(join.sides, join.stamps or (), strict=True):
        found = stream_of(components[name], stream) if name in components else None
        if found is None:
            continue  # said by another check
        if stamps.field not in found.fields:
            fields = ", ".join(found.fields)
            yield f"{where} joins {name}:{stream} on '{stamps.field}', which is none of its fields: [{fields}]"
        if name not in known:
            yield (
                f"{where} joins {name}:{stream} by event time, and its rows have none: neither it nor a spout that it"
                " reads has timestamps="
            )
