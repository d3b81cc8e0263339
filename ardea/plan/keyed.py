"""By which fields the keys of a component's state are: what another version must leave as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ardea.plan.logical import LogicalPlan

KEYED = "KeyedState", "Timers"
"""How the kinds of states that have keys begin."""


_WINDOWS = "KeyedState(windows)"
"""The kind of what windows keep, in older plans and savepoints; later ones say which windows, in the brackets too."""


class KeyedInput(msgspec.Struct, frozen=True):
    """One input.

    Args:
        component: whose rows it takes.
        stream: of that component.
        kind: of its grouping.
        fields: of its grouping.
        places: where those stand in the rows of its stream.
        all_fields: of its stream; older savepoints do not say them.
    """

    component: str
    stream: str
    kind: str
    fields: tuple[str, ...]
    places: tuple[int, ...]
    all_fields: tuple[str, ...] = ()

    def keys_as(self, former: KeyedInput) -> bool:
        """Whether rows of a stream have the keys that they had: a field may have another name, or another place."""
        if "fields" not in (self.kind, former.kind):
            return True
        if self.kind != former.kind or len(self.fields) != len(former.fields):
            return False
        others = {was for was, field in zip(former.fields, self.fields, strict=True) if was != field}
        return not others or (self.places == former.places and others.isdisjoint(self.all_fields))

    def __str__(self) -> str:
        return f"{self.kind}({', '.join(self.fields)})" if self.fields else self.kind


class KeyedComponent(msgspec.Struct, frozen=True):
    """``states``: the kind of each of its states that has keys, by name."""

    states: dict[str, str]
    inputs: tuple[KeyedInput, ...]

    @property
    def _grouped(self) -> KeyedInput | None:
        """One that says how many fields a key has, which is the same for all."""
        return next((entry for entry in self.inputs if entry.kind == "fields"), None)

    def differences(self, former: KeyedComponent) -> Iterator[str]:
        """What would give keys to others, or mean others by them."""
        known = {(entry.component, entry.stream): entry for entry in former.inputs}
        fresh, before = self._grouped, former._grouped
        for entry in self.inputs:
            was = known.get((entry.component, entry.stream))
            if was is not None and not entry.keys_as(was):
                yield f"{entry.component}:{entry.stream} was grouped by {was} and would be by {entry}"
                return
        if fresh is not None and (before is None or len(fresh.fields) != len(before.fields)):
            yield f"rows were grouped by {before or 'no fields'} and would be by {fresh}"


def keyed_components(plan: LogicalPlan) -> dict[str, KeyedComponent]:
    """Those that have states with keys, by name."""
    fields = {(c.name, s.name): s.fields for c in plan for s in c.streams}
    found = {}
    for component in plan:
        states = {name: kind for name, kind in component.states.items() if kind.startswith(KEYED)}
        if not states:
            continue
        inputs = []
        for entry in component.inputs:
            names, there = entry.grouping.fields, fields.get((entry.component, entry.stream), ())
            places = tuple(there.index(name) for name in names if name in there)
            inputs.append(KeyedInput(entry.component, entry.stream, entry.grouping.kind, names, places, there))
        found[component.name] = KeyedComponent(states, tuple(inputs))
    return found


def other_keys(before: Mapping[str, KeyedComponent], after: Mapping[str, KeyedComponent]) -> list[str]:
    """Of each state that both have, and that would have other keys, or the same at other tasks: which, and why."""
    said = []
    for name, component in sorted(after.items()):
        former = before.get(name)
        if former is None:
            continue
        kept = sorted(component.states.keys() & former.states.keys())
        said += [
            f"{name}.{state} was a {former.states[state]} and would be a {component.states[state]}"
            for state in kept
            if not _same_kind(component.states[state], former.states[state])
        ]
        if kept and (why := next(component.differences(former), "")):
            said += [f"{name}.{state}: {why}" for state in kept]
    return said


def _same_kind(kind: str, former: str) -> bool:
    return kind == former or (former == _WINDOWS and kind.startswith(_WINDOWS[:-1]))


OTHER_KEYS = "what is stored would have other keys, or belong to other tasks"
"""What is said of those."""
ANOTHER_NAME = (
    "keep the grouping and the windows, or give the state (of windows the component) another name, and --drop-state "
    "for what the former one holds"
)
"""What can be done."""
