"""From what an author wrote to a logical plan: declaratively (Topology) or step by step (TopologyBuilder).

Every process builds the plan from the same file, so that building must not depend on time, chance or the machine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from ardea import units
from ardea.component import DEFAULT_STREAM, Bolt, Component, GlobalStreamId, Inputs, Spec, Spout, Stream
from ardea.config import Settings
from ardea.config_check import check
from ardea.context import hook_class
from ardea.errors import TopologyError, UserError
from ardea.grouping import Grouping
from ardea.keyed import prefix_of, states_of
from ardea.plan import ComponentPlan, GroupingPlan, InputPlan, LogicalPlan, Resource, StreamPlan
from ardea.validation import problems_of, stream_of

NOTHING: Mapping[str, Any] = MappingProxyType({})
_HINT = "Correct the topology's file; nothing was started."


class Topology:
    """A topology, declared: each attribute that holds a :class:`Spec` is a component of that name.

    A subclass inherits the components and may replace them (who read the former then read the new one) or add to them.

    Attributes:
        config: the topology's configuration.  ``topology.name`` is by default the name of the class.
    """

    config: ClassVar[Mapping[str, Any]] = NOTHING

    @classmethod
    def plan(cls, overrides: Mapping[str, Any] = NOTHING) -> LogicalPlan:
        """The validated plan.

        Args:
            overrides: configuration that wins over the topology's, for example from the command line.

        Raises:
            TopologyError: the topology cannot run; ``problems`` lists all that is wrong.
        """
        attributes: dict[str, Any] = {}
        places: dict[int, str] = {}
        for base in reversed(cls.__mro__):
            attributes.update(vars(base))
            places.update({id(entry): name for name, entry in vars(base).items() if isinstance(entry, Spec)})
        specs = {name: entry for name, entry in attributes.items() if isinstance(entry, Spec)}
        draft = _Draft(cls.__name__, specs, places)
        for name, entry in attributes.items():
            if isinstance(entry, type) and issubclass(entry, Component) and entry.__name__ != name:
                draft.problems.append(f"Component: [{name}] is a class; write {name} = {entry.__qualname__}.spec(...)")
            elif isinstance(entry, Component):
                kind = type(entry).__qualname__
                draft.problems.append(f"Component: [{name}] is an object of {kind}; write {name} = {kind}.spec(...)")
        return draft.finish(cls.config, overrides)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = vars(cls)
        for taken, hidden in (
            ("config", isinstance(own.get("config"), Spec)),
            ("plan", "plan" in own and not isinstance(own["plan"], classmethod)),
        ):
            if hidden:
                raise TopologyError(
                    [f"topology {cls.__name__!r}: the attribute {taken!r} means something else; give it another name"],
                    hint=f"A component itself can have it: spec(name={taken!r}).",
                )


class TopologyBuilder:
    """The same imperatively, for topologies whose components are computed.

    Keep what :meth:`build` returns in a variable of the module; the command line finds it there.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._specs: dict[str, Spec] = {}
        self._config: dict[str, Any] = {}

    def add_spout(
        self,
        name: str,
        spout: type[Spout],
        par: int = 1,
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Spec:
        """Adds a spout; ``options`` are the further ones of :meth:`Component.spec`.

        Raises:
            TopologyError: the name is taken.
        """
        return self._add("Spout", name, spout.spec(name, par, None, config, **options))

    def add_bolt(
        self,
        name: str,
        bolt: type[Bolt],
        par: int = 1,
        inputs: Inputs = (),
        config: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Spec:
        """Adds a bolt; ``inputs`` and ``options`` as for :meth:`Component.spec`.

        Raises:
            TopologyError: the name is taken.
        """
        return self._add("Bolt", name, bolt.spec(name, par, inputs, config, **options))

    def set_config(self, config: Mapping[str, Any]) -> None:
        """Adds to the topology's configuration; later calls win."""
        self._config.update(config)

    def build(self) -> type[Topology]:
        """The topology as a class; :meth:`Topology.plan` validates it."""
        config = {"topology.name": self.name, **self._config}
        # The specs carry their names; as attributes, "config" and "plan" would be taken.
        specs = {f"component_{number}": spec for number, spec in enumerate(self._specs.values())}
        return type(self.name, (Topology,), {"config": config, **specs})

    def plan(self, overrides: Mapping[str, Any] = NOTHING) -> LogicalPlan:
        """The validated plan; see :meth:`Topology.plan`."""
        return self.build().plan(overrides)

    def _add(self, kind: str, name: str, spec: Spec) -> Spec:
        if name in self._specs:
            raise TopologyError([f"{kind} has already been declared for id {name}"])
        self._specs[name] = spec
        return spec


class _Draft:
    """A plan in the making, and what is wrong with it so far."""

    def __init__(self, name: str, specs: Mapping[str, Spec], places: Mapping[int, str]) -> None:
        """``specs`` by attribute; ``places`` tells of which attribute a spec is, or was before a subclass."""
        self.problems: list[str] = []
        self._name = name
        names = {attribute: self._name_of(spec, attribute) for attribute, spec in specs.items()}
        self._specs = [(names[attribute], spec) for attribute, spec in specs.items()]
        self._specs += [(f"{name}_{role}", c) for name, spec in self._specs for role, c in spec.companions.items()]
        self._names = {spec: names[attribute] for spec, attribute in places.items() if attribute in names}
        for attribute, spec in specs.items():
            if places[id(spec)] != attribute:
                self.problems.append(f"Component: [{names[attribute]}] shares its spec with another; call spec() twice")

    def _name_of(self, spec: Spec, attribute: str) -> str:
        name: Any = spec.name or attribute
        if isinstance(name, str):
            return name
        self.problems.append(f"Component: [{attribute}]: {name!r} is no name; give it a text")
        return attribute

    def finish(self, config: Mapping[str, Any], overrides: Mapping[str, Any]) -> LogicalPlan:
        merged = self._checked(config, f"topology {self._name!r}") | self._checked(overrides, "the overrides")
        settings = Settings.of(merged)
        components = [self._component(name, spec, merged) for name, spec in self._specs]
        plan = LogicalPlan(
            settings.name or self._name, tuple(sorted(components, key=lambda component: component.name)), merged
        )
        self._check_settings(settings)
        self.problems += problems_of(plan)
        if self.problems:
            raise TopologyError(self.problems, hint=_HINT)
        return _with_implicit_streams(_grouped_by_prefix(plan))

    def _component(self, name: str, spec: Spec, topology: Mapping[str, Any]) -> ComponentPlan:
        where = f"Component: [{name}]"
        config = self._checked(spec.cls.config, where, component=True)
        config |= self._checked(spec.config, where, component=True)
        kinds = {Spout, Bolt} & {*spec.cls.__mro__}
        if len(kinds) != 1:  # no further check knows such a thing
            which = "both a Spout and a Bolt" if kinds else "neither a Spout nor a Bolt"
            raise TopologyError([*self.problems, f"{where}: {spec.cls.__qualname__} is {which}"], hint=_HINT)
        if issubclass(spec.cls, Bolt) and not spec.inputs:
            self.problems.append(f"{where} is a bolt without inputs: nothing would reach it")
        streams = self._streams(where, spec.cls.outputs, spec.optional_outputs)
        executors, tasks = self._parallelism(where, spec, Settings.of(topology, config))
        return ComponentPlan(
            name=name,
            kind="spout" if issubclass(spec.cls, Spout) else "bolt",
            cls=spec.cls,
            executors=executors,
            tasks=tasks,
            streams=streams,
            inputs=self._inputs(where, spec.inputs),
            config=config,
            resource=self._resource(where, name, spec, Settings.of(topology)),
            states={state.name: state.kind for state in states_of(spec.cls)},
        )

    def _checked(self, config: Any, where: str, *, component: bool = False) -> dict[str, Any]:
        normal, problems = check(config, where, component=component)
        self.problems += problems
        return normal

    def _parallelism(self, where: str, spec: Spec, settings: Settings) -> tuple[int, int]:
        """Storm's normalisation: (executors, tasks)."""
        hint = _count(spec.par)
        if hint is None:
            self.problems.append(f"{where}: Parallelism must be positive. par={spec.par!r}")
            hint = 1
        if spec.tasks is not None and _count(spec.tasks) is None:
            self.problems.append(f"{where}: the number of tasks must be positive. tasks={spec.tasks!r}")
        wanted = _count(spec.tasks) or settings.tasks or hint
        tasks = min(wanted, settings.max_task_parallelism or wanted)
        return min(hint, tasks), tasks

    def _streams(self, where: str, *written: Any) -> tuple[StreamPlan, ...]:
        fields: list[str] = []
        streams: list[StreamPlan] = []
        for outputs in written:
            for entry in outputs if isinstance(outputs, list | tuple) else [None]:
                if isinstance(entry, Stream):
                    streams.append(StreamPlan(entry.name, tuple(entry.fields), entry.direct))
                elif isinstance(entry, str):
                    fields.append(entry)
                else:
                    self.problems.append(f"{where}: outputs are a list of field names and Streams, not {outputs!r}")
        if fields:
            streams.insert(0, StreamPlan(DEFAULT_STREAM, tuple(fields)))
        for stream in streams:
            named: tuple[Any, ...] = stream.fields
            for field in named:
                if not isinstance(field, str) or not field:
                    self.problems.append(f"{where} stream: [{stream.name}]: {field!r} is no field name")
        return tuple(streams)

    def _inputs(self, where: str, inputs: Any) -> tuple[InputPlan, ...]:
        pairs: list[tuple[Any, Any]]
        if isinstance(inputs, list | tuple) and not isinstance(inputs, GlobalStreamId):
            pairs = [(source, Grouping.SHUFFLE) for source in inputs]
        elif isinstance(inputs, Mapping):
            pairs = list(inputs.items())
        else:
            self.problems.append(f"{where}: inputs are a list of specs, or a dict from specs to groupings")
            return ()
        plans = []
        for source, grouping in pairs:
            origin = source if isinstance(source, GlobalStreamId) else GlobalStreamId(source)
            component = self._source(origin.component)
            if component is None:
                what = f"an object of {type(source).__qualname__}" if isinstance(source, Component) else repr(source)
                self.problems.append(f"{where}: {what} is no input: give a spec, or a component's name")
            elif not isinstance(grouping, GroupingPlan):
                self.problems.append(f"{where} reads [{component}] by {grouping!r}, which is no Grouping")
            else:
                plans.append(InputPlan(component, origin.stream, grouping))
        return tuple(plans)

    def _source(self, component: Any) -> str | None:
        if isinstance(component, str):
            return component
        if isinstance(component, Spec):
            stranger = f"{component.cls.__qualname__}.spec(), which is not part of this topology"
            return self._names.get(id(component), stranger)
        return None

    def _resource(self, where: str, name: str, spec: Spec, topology: Settings) -> Resource:
        def amount(what: str, written: Any, check_unit: Any, chosen: Any, default: Any) -> Any:
            if written is not None:
                try:
                    default = check_unit(written)
                except ValueError as error:
                    self.problems.append(f"{where}: {what}= takes {error}, not {units.shown(written)}")
            return (chosen or NOTHING).get(name, default)

        return Resource(
            amount("cpu", spec.cpu, units.positive, topology.cpu_map, topology.instance_cpu),
            amount("ram", spec.ram, units.size, topology.ram_map, topology.instance_ram),
            amount("disk", spec.disk, units.size, topology.disk_map, topology.instance_disk),
        )

    def _check_settings(self, settings: Settings) -> None:
        known = {name for name, _ in self._specs}
        maps = {"cpumap": settings.cpu_map, "rammap": settings.ram_map, "diskmap": settings.disk_map}
        for key, chosen in maps.items():
            for name in sorted((chosen or NOTHING).keys() - known):
                self.problems.append(f"topology.component.{key} names the non-existent component [{name}]")
        for hook in settings.task_hooks:
            try:
                hook_class(hook)
            except UserError as error:
                self.problems.append(f"topology.auto.task.hooks: {error.message}")
        if settings.low_watermark_mb >= settings.high_watermark_mb:
            self.problems.append(
                f"heron.streammgr.network.backpressure.lowwatermark.mb is {settings.low_watermark_mb} and must be below"
                f" highwatermark.mb, which is {settings.high_watermark_mb}"
            )


def _count(value: Any) -> int | None:
    """The value if it is a whole number from 1, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else None


def _grouped_by_prefix(plan: LogicalPlan) -> LogicalPlan:
    """Rows go by the fields that keyed state goes by."""

    def grouped(entry: InputPlan, most: int | None) -> InputPlan:
        grouping = entry.grouping
        if most is None or grouping.kind != "fields":
            return entry
        return dataclasses.replace(entry, grouping=dataclasses.replace(grouping, fields=grouping.fields[:most]))

    return dataclasses.replace(
        plan,
        components=tuple(
            dataclasses.replace(each, inputs=tuple(grouped(entry, prefix_of(each.cls)) for entry in each.inputs))
            for each in plan
        ),
    )


def _with_implicit_streams(plan: LogicalPlan) -> LogicalPlan:
    """Adds ``__system`` and ``__dead_letter`` where they are read, behind the declared streams."""
    read = {(entry.component, entry.stream) for component in plan for entry in component.inputs}

    def complete(component: ComponentPlan) -> ComponentPlan:
        declared = {stream.name for stream in component.streams}
        names = sorted(stream for source, stream in read if source == component.name and stream not in declared)
        found = (stream_of(component, name) for name in names)
        return dataclasses.replace(component, streams=(*component.streams, *(s for s in found if s is not None)))

    return dataclasses.replace(plan, components=tuple(complete(component) for component in plan))
