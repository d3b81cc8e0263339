"""Another definition of a running topology, made from the one in force: what `ardea update` may change, and to what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from ardea import loader
from ardea.code import Code
from ardea.component import Component
from ardea.config import Settings
from ardea.config_check import stored
from ardea.errors import UserError
from ardea.metrics.sinks import check_sinks
from ardea.plan import LogicalPlan
from ardea.plan.definition import Definition, canonical
from ardea.plan.keyed import ANOTHER_NAME, OTHER_KEYS, keyed_components, other_keys
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_from_bytes, packing_to_bytes
from ardea.scheduler import capacity
from ardea.scheduler.packing import packing_for
from ardea.scheduler.packing.whole import repack_whole
from ardea.scheduler.submission import check_size
from ardea.state.address import MOST_AT_ONCE, SCHEME, TLS_SCHEME
from ardea.validation import problems_of_numbers

BESIDE = 64 << 10
"""Bytes that are kept for what is written together with two plans."""
KEYED = frozenset({"fields", "partial_key", "custom", "direct"})
"""Groupings by which what a task keeps in memory belongs to the rows that come to it, and to no other task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The code that is to run: where its processes find the topology's file, and what the scheduler calls it.

    ``complete``: nothing belongs to it that this name does not stand for; the same again is no other version.
    """

    location: str
    code: str = ""
    complete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What the command line asks for.

    ``parallelism``: component -> tasks; ``overrides``: configuration; ``version``: None, if it is the present one;
    ``moves_keys``: rescale although what tasks keep in memory of a key stays where it is; ``drop_state``: although
    state is not declared any more.
    """

    parallelism: Mapping[str, int] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    version: Version | None = None
    moves_keys: bool = False
    drop_state: bool = False


def plan_of(target: str, overrides: Mapping[str, Any], code: Code | None = None) -> LogicalPlan:
    """What an author's file builds, or built when its ``code`` was kept."""
    return loader.load(target, code).plan(overrides)


def code_of(target: str) -> Code:
    """The present code of an author's file, to be kept."""
    loader.load(target)
    return loader.kept(target)


def next_of(
    present: Definition, change: Change, build: Callable[[Mapping[str, Any]], LogicalPlan], *, half_done: bool
) -> Definition:
    """The definition that a change makes of the one in force.

    Args:
        present: the one in force.
        change: what is asked for.
        build: makes the plan of the file that is to run, with this configuration above its own.
        half_done: an update to ``present`` is under way; the same again is no third version.

    Raises:
        UserError: nothing would change, or something that must not.
        TopologyError: the tasks cannot be packed.
    """
    config, plan = _built(present, change, build, half_done=half_done)
    location, code = present.location, present.code
    if change.version is not None:
        location, code = change.version.location, change.version.code
    settings = Settings.of(plan.config)
    check_sinks(settings.metrics_sinks or {})
    if settings.curve != Settings.of(present.shape.config).curve:
        raise UserError("heron.streammgr.curve cannot be changed while the topology runs; nothing was changed")
    if settings.remembers:
        check_states(present, plan, drop_state=change.drop_state)
    same_config = canonical(config) == canonical(stored(present.config, present.topology))
    rebuilt = not (same_config and _same(present, change.version, half_done=half_done))
    next_ = wanted(
        present, plan, parallelism=change.parallelism, location=location, code=code, config=config, rebuilt=rebuilt
    )
    if left := [] if change.moves_keys else moves_keys(present, next_, plan):
        raise UserError(
            f"{', '.join(left)}: rows are grouped by keys, and what a task keeps in memory of a key does not move "
            "with it; nothing was changed",
            hint="--moves-keys does it even so; `rescalable = True` in the class says that nothing is lost",
        )
    _check_room(present, next_)
    return next_


def _check_room(present: Definition, next_: Definition) -> None:
    """UserError where ZooKeeper does not take both at once, as the switch from one to the other writes them."""
    if present.state.partition("://")[0].lower() not in (SCHEME, TLS_SCHEME):
        return
    size = len(present.packed()) + len(next_.packed()) + len(msgspec.json.encode(next_.config))
    if size > (most := MOST_AT_ONCE - BESIDE):
        raise UserError(
            f"{present.topology}: its plans before and after the update take {size >> 10:,} KiB, and ZooKeeper takes "
            f"{most >> 10:,} KiB at once; nothing was changed",
            hint="ask for fewer tasks, shorten the configuration, or kill the topology and submit it anew",
        )


def _built(
    present: Definition, change: Change, build: Callable[[Mapping[str, Any]], LogicalPlan], *, half_done: bool
) -> tuple[dict[str, Any], LogicalPlan]:
    """The configuration of the next, and the plan that the file builds with it; UserError: as of :func:`next_of`."""
    name, version = present.shape.name, change.version
    if "topology.name" in change.overrides:
        raise UserError("topology.name: a running topology cannot be renamed; nothing was changed")
    if not (change.parallelism or change.overrides or version or half_done):
        raise UserError(
            f"{present.topology}: nothing is to be changed", hint="give --component-parallelism, --set, or a new FILE"
        )
    config = {**stored(present.config, present.topology), **stored(change.overrides, "the overrides")}
    plan = build(config)
    if version is not None and plan.name != name:
        config["topology.name"] = name
        plan = build(config)
    return config, plan


def _same(present: Definition, version: Version | None, *, half_done: bool) -> bool:
    """Whether no other code is to run."""
    if version is None:
        return True
    if (version.location, version.code) != (present.location, present.code):
        return False
    return version.complete or half_done  # what it reads as it runs may have changed under its name


def wanted(
    present: Definition,
    plan: LogicalPlan,
    *,
    parallelism: Mapping[str, int],
    location: str,
    config: Mapping[str, Any],
    rebuilt: bool,
    code: str = "",
) -> Definition:
    """The next definition.

    Args:
        present: the one in force.
        plan: what the topology's file builds.
        parallelism: component -> tasks, for those that change; each task becomes an executor of its own.
        location: the topology's file.
        config: all that the submitter, and updates, override.
        rebuilt: whether code or configuration may differ: every instance is started again.
        code: what the scheduler calls the topology's code.

    Raises:
        UserError: a component is not there, or cannot have so many tasks; the plans are too large.
        TopologyError: they cannot be packed.
    """
    _check(plan, parallelism)
    names = {component.name for component in plan}
    if not rebuilt and present.rescaled(plan).digest() != present.shape.digest:
        raise UserError(
            f"{location} builds another topology now than what runs; nothing was changed",
            hint="give it as FILE too: then every instance is started again with it",
        )
    kept = {name: tasks for name, tasks in present.parallelism.items() if name in names}
    scaled = _scaled(present, plan, {**kept, **parallelism})
    current = packing_from_bytes(present.packing)
    moving = repack_whole if present.whole and not rebuilt else packing_for(scaled.config).repack
    packing = moving(current, scaled, highest=present.highest)
    epoch = present.epoch + 1
    definition = msgspec.structs.replace(
        present,
        location=location,
        config=dict(config),
        shape=shape_of(scaled),
        packing=packing_to_bytes(packing),
        epoch=epoch,
        build=epoch if rebuilt else present.build,
        parallelism={**kept, **parallelism},
        highest=max(present.highest, *(i.task for p in (current, packing) for i in p.instances)),
        code=code,
        begins=None,
    )
    check_size(definition, packing)
    return definition


def _scaled(present: Definition, plan: LogicalPlan, parallelism: Mapping[str, int]) -> LogicalPlan:
    """The plan with so many tasks; UserError: it cannot have them, or cannot follow the present one."""
    scaled = plan.scaled({name: (tasks, tasks) for name, tasks in parallelism.items()})
    for problem in problems_of_numbers(scaled):  # packing too many would take for ever
        raise UserError(f"{problem}; nothing was changed")
    _check_fixed(present, scaled)
    return scaled


def _check_fixed(present: Definition, plan: LogicalPlan) -> None:
    """UserError: what the state of a running topology relies on would be another."""
    before, after = Settings.of(present.shape.plan().config), Settings.of(plan.config)
    for key, was, becomes in (
        ("topology.reliability.mode", before.reliability_mode, after.reliability_mode),
        ("topology.key.groups", before.key_groups, after.key_groups),
        ("topology.stateful.storage", before.snapshot_storage, after.snapshot_storage),
    ):
        if was != becomes and (before.remembers or after.remembers):
            raise UserError(
                f"{key} is {was} and would be {becomes}, which cannot change while it runs; nothing was changed",
                hint="kill it, and submit it anew",
            )


def check_states(present: Definition, plan: LogicalPlan, *, drop_state: bool) -> None:
    """UserError: what a component remembers would be lost, or could not be read."""
    after = {component.name: component.states for component in plan}
    lost = []
    for component in present.shape.components:
        for state, kind in sorted(component.states.items()):
            becomes = after.get(component.name, {}).get(state)
            if becomes is None:
                lost.append(f"{component.name}.{state}")
            elif becomes != kind and becomes.partition("(")[0] != kind.partition("(")[0]:
                raise UserError(
                    f"{component.name}.{state} is a {kind} and would be a {becomes}: what is stored cannot be read so; "
                    "nothing was changed",
                    hint="give the new state another name",
                )
    if lost and not drop_state:
        raise UserError(
            f"{', '.join(lost)}: the topology would not declare that state any more, and what it holds would be lost; "
            "nothing was changed",
            hint="--drop-state does it even so; or give back the former name",
        )
    if others := other_keys(keyed_components(present.shape.plan()), keyed_components(plan)):
        raise UserError(f"{'; '.join(others)}: {OTHER_KEYS}; nothing was changed", hint=ANOTHER_NAME)


def _check(plan: LogicalPlan, parallelism: Mapping[str, int]) -> None:
    """UserError: a component is not there, or cannot have so many tasks."""
    names = {component.name for component in plan}
    most = Settings.of(plan.config).max_task_parallelism
    for name, tasks in parallelism.items():
        if name not in names:
            raise UserError(
                f"{plan.name} has no component {name}; it has {', '.join(sorted(names))}; nothing was changed"
            )
        if not 1 <= tasks <= (most or tasks):
            raise UserError(
                f"{name} cannot have {tasks} tasks: "
                + (f"topology.max.task.parallelism is {most}" if tasks > 0 else "at least 1 is needed")
                + "; nothing was changed"
            )
        cls = plan[name].cls
        if issubclass(cls, Component) and cls.fixed_parallelism:
            raise UserError(
                f"{name}: its tasks count on their number, which cannot change under them; nothing was changed",
                hint="change it in the topology's file (Trident: parallelism_hint), and update with that FILE, or kill "
                "and submit: all tasks start again, and Trident goes on where it was; a Spark driver has one task",
            )


def moves_keys(present: Definition, next_: Definition, plan: LogicalPlan) -> list[str]:
    """Components whose tasks become more or fewer although their rows are grouped by keys, so that state is left.

    None where snapshots are taken: there it moves with its key.
    """
    if Settings.of(plan.config).remembers:
        return []
    before, after = (packing_from_bytes(d.packing).parallelism for d in (present, next_))
    return [
        component.name
        for component in plan
        if component.name in before
        and before[component.name][1] != after[component.name][1]
        and any(entry.grouping.kind in KEYED for entry in component.inputs)
        and not (issubclass(component.cls, Component) and component.cls.rescalable)
    ]


def check_capacity(present: Definition, next_: Definition) -> None:
    """Refuses tasks for which this machine has no room beside those that run.

    Raises:
        ClusterError: memory, processes, threads or open files do not suffice.
    """
    packing = packing_from_bytes(next_.packing)
    known = {instance.task for instance in packing_from_bytes(present.packing).instances}
    fresh = [
        replace(container, instances=new)
        for container in packing.containers
        if (new := tuple(i for i in container.instances if i.task not in known))
    ]
    capacity.check(replace(packing, containers=tuple(fresh)), capacity.Machine.here())
