"""What is wrong with the place of windows in a topology."""

from __future__ import annotations

from collections.abc import Iterator

from ardea.plan import ComponentPlan, LogicalPlan
from ardea.validation import stream_of
from ardea.watermarks import timed


def problems_of_stamps(field: str, component: ComponentPlan, plan: LogicalPlan) -> Iterator[str]:
    """Of windows by event time; a sentence each."""
    if component.name not in timed(plan):
        yield (
            f"Component: [{component.name}]: its windows go by event time, and no spout that it reads says by"
            " timestamps= which time its rows have"
        )
    yield from problems_of_field(field, "its windows go by", component, plan)


def problems_of_field(field: str, use: str, component: ComponentPlan, plan: LogicalPlan) -> Iterator[str]:
    """Each input has to have that field, for such a use."""
    components = {each.name: each for each in plan}
    for entry in component.inputs:
        stream = stream_of(components[entry.component], entry.stream) if entry.component in components else None
        if stream is not None and field not in stream.fields:
            yield (
                f"Component: [{component.name}]: {use} the field '{field}', which stream [{stream.name}] of"
                f" [{entry.component}] does not have"
            )
