"""What makes a topology impossible to run.

The checks work on a plan that is complete but perhaps wrong, and return a sentence for each problem, so that the author
sees all of them at once.  The words are Storm's where Storm has them.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from ardea.calls import left_out, not_made, wrong_calls
from ardea.component import Bolt, Spout, overrides
from ardea.config import Settings
from ardea.errors import UserError
from ardea.grouping import CustomStreamGrouping, problems_of_grouping
from ardea.keyed import KeyedState, keyed_of, prefix_of, states_of
from ardea.plan import ComponentPlan, InputPlan, LogicalPlan, StreamPlan
from ardea.plan.logical import ComponentKind
from ardea.ready_made import calls_of, problems_of_place
from ardea.sinks import Sink, TwoPhaseSink
from ardea.timers import Timers
from ardea.watermarks import FUTURE, NO_EVENT_TIME, Timestamps, divided, future_of, timed

T = TypeVar("T")

MAX_TASKS = (1 << 16) - 1
"""A task id has 16 bits, and the ids begin at 1."""

SYSTEM_STREAM = StreamPlan("__system", ("event",))
DEAD_LETTER_STREAM = StreamPlan("__dead_letter", ("tup_id", "stream", "values"))
IMPLICIT_STREAMS: Mapping[ComponentKind, tuple[StreamPlan, ...]] = {
    "spout": (SYSTEM_STREAM, DEAD_LETTER_STREAM),
    "bolt": (SYSTEM_STREAM, DEAD_LETTER_STREAM),
}
"""Streams that a component has without declaring them; a plan holds them where somebody reads them."""

_EACH = {
    "initialize": ("config", "context"),
    "update": ("context",),
    **dict.fromkeys(("snapshot", "restored", "committed"), ("number",)),
    "close": (),
}
CALLED: Mapping[type, Mapping[str, tuple[str, ...]]] = {
    Spout: {
        **_EACH,
        **dict.fromkeys(("next_tuple", "idle", "activate", "deactivate"), ()),
        **dict.fromkeys(("ack", "fail", "describe_tup_id"), ("tup_id",)),
        "ack_batch": ("tup_ids",),
    },
    Bolt: {
        **_EACH,
        **dict.fromkeys(("process", "process_tick"), ("tup",)),
        **dict.fromkeys(("flush", "end_of_input"), ()),
        "on_timer": ("name", "key", "at"),
        "process_batch": ("rows",),
        "process_columns": ("columns",),
    },
    Sink: {"row": ("tup",), "write_batch": ("rows",)},
    TwoPhaseSink: {"commit": ("mark", "rows"), "disconnect": ()},
}
"""The methods of each base that the engine calls, and with what, by position."""

# Names end up in the names of files (255 bytes), in "split:2", in log lines and on terminals.
_NAME = re.compile(r"[^\s/\\:,]+")
_MAX_NAME_BYTES = 128


def problems_of(plan: LogicalPlan) -> list[str]:
    """Everything that is wrong with the plan's names, classes, streams, inputs and size; empty if nothing is."""
    declared = {component.name: component for component in plan}
    found = [*wrong_name(plan.name), *_duplicates(plan)]
    for component in plan:
        found += _component_name(component)
        found += _class(component)
        found += _streams(component)
        found += _timestamps(component)
        found += _inputs(component, declared)
        found += _columns(component, declared)
        found += _types_of_states(component)
        found += problems_of_place(component, plan)
    if Settings.of(plan.config).remembers:
        found += [problem for component in plan for problem in _goes_back(component)]
    else:
        found += [problem for component in plan for problem in _dead_letters(component, declared)]
    return [*found, *_event_time(plan), *_shape(plan), *_cycles(plan), *problems_of_numbers(plan)]


def stream_of(component: ComponentPlan, name: str) -> StreamPlan | None:
    """The stream of that name, declared or implicit; None if there is none."""
    streams = (*component.streams, *IMPLICIT_STREAMS[component.kind], future_of(component))
    return next((stream for stream in streams if stream is not None and stream.name == name), None)


def wrong_name(name: str) -> Iterator[str]:
    """The sentence that says so, if a topology cannot have this name."""
    if not _is_name(name) or "." in name:
        yield (
            f"{name!r} is not a valid topology name: it has 1 to {_MAX_NAME_BYTES} bytes in UTF-8, of printable"
            " characters but '.', '/', '\\', ':', ',' and white space"
        )


def _component_name(component: ComponentPlan) -> Iterator[str]:
    if component.name.startswith("__"):
        yield f"{component.name} is not a valid component id: names that begin with '__' are reserved"
    elif not _is_name(component.name) or component.name.startswith("."):
        yield (
            f"{component.name!r} is not a valid component id: it has 1 to {_MAX_NAME_BYTES} bytes in UTF-8, of"
            " printable characters but '/', '\\', ':', ',' and white space, and does not begin with '.'"
        )


def _is_name(name: str) -> bool:
    # What cannot be printed cannot be encoded either (half a surrogate pair), or is not what a terminal would show.
    return _NAME.fullmatch(name) is not None and name.isprintable() and len(name.encode()) <= _MAX_NAME_BYTES


def _duplicates(plan: LogicalPlan) -> Iterator[str]:
    if twice := _repeated(component.name for component in plan):
        yield f"Duplicate component ids: [{', '.join(twice)}]"


def _class(component: ComponentPlan) -> Iterator[str]:
    cls, where = component.cls, f"Component: [{component.name}]"
    if missing := _missing(cls):
        yield f"{where}: {cls.__qualname__} has no {missing}"
    called = {name: given for base, calls in CALLED.items() if issubclass(cls, base) for name, given in calls.items()}
    for problem in (*wrong_calls(cls, {**called, **calls_of(cls)}, may_yield="row"), *not_made(cls)):
        yield f"{where}: {problem}"


def _missing(cls: type) -> str:
    """The method that the author has to write, and has not; empty: there is none."""
    if issubclass(cls, Spout):
        return "" if overrides(cls, "next_tuple") else "next_tuple()"
    if overrides(cls, "process_columns"):
        return ""
    for base, method in ((TwoPhaseSink, "commit"), (Sink, "write_batch")):
        if issubclass(cls, base) and left_out(cls, base, "process_batch") and left_out(cls, base, method):
            return f"{method}({', '.join(CALLED[base][method])})"
    return "" if overrides(cls, "process") or overrides(cls, "process_batch") else "process(tup)"


def _streams(component: ComponentPlan) -> Iterator[str]:
    where = f"Component: [{component.name}]"
    for name in _repeated(stream.name for stream in component.streams):
        yield f"{where} declares stream: [{name}] twice"
    for stream in component.streams:
        if not isinstance(stream.name, str) or not (stream.name and stream.name.isprintable()):
            yield f"{where}: {stream.name!r} is not a valid stream id: it is a text that can be printed"
        elif stream.name.startswith("__"):
            yield f"{where}: {stream.name} is not a valid stream id: names that begin with '__' are reserved"
        for field in _repeated(stream.fields):
            yield f"{where} stream: [{stream.name}]: duplicate field '{field}'"


def _timestamps(component: ComponentPlan) -> Iterator[str]:
    where, timestamps = f"Component: [{component.name}]", getattr(component.cls, "timestamps", None)
    if component.kind != "spout" or timestamps is None:
        return
    if not isinstance(timestamps, Timestamps):
        yield f"{where}: timestamps is {timestamps!r}; write timestamps = Timestamps('FIELD')"
    elif not any(timestamps.field in stream.fields for stream in component.streams):
        yield f"{where}: its timestamps stand in the field '{timestamps.field}', which none of its streams has"
    elif not divided(component) and any(stream.name == FUTURE for stream in component.streams):
        yield (
            f"{where}: rows whose stamps are ahead go to its stream: [{FUTURE}], which has not the fields of any other"
            " of its streams with stamps"
        )


def _event_time(plan: LogicalPlan) -> Iterator[str]:
    known = timed(plan)
    for component in plan:
        if component.name not in known:
            for state in states_of(component.cls):
                own = not state.name.startswith("__")
                if own and isinstance(state, Timers | KeyedState) and state.time == "event":
                    verb = "go" if isinstance(state, Timers) else "goes"
                    yield f"Component: [{component.name}]: {state.name} {verb} by event time, and {NO_EVENT_TIME}"


def _inputs(component: ComponentPlan, declared: Mapping[str, ComponentPlan]) -> Iterator[str]:
    where = f"Component: [{component.name}]"
    if component.kind == "spout" and component.inputs:
        yield f"{where}: May not declare inputs for a spout"
        return
    for source, name in _repeated((entry.component, entry.stream) for entry in component.inputs):
        yield f"{where} subscribes twice from stream: [{name}] of component [{source}]; one grouping has to do"
    for entry in component.inputs:
        if entry.component not in declared:
            near = _meant(entry.component, declared)
            yield f"{where} subscribes from non-existent component [{entry.component}]{near}"
        elif (stream := stream_of(declared[entry.component], entry.stream)) is None:
            names = ", ".join(str(each.name) for each in declared[entry.component].streams)
            yield (
                f"{where} subscribes from non-existent stream: [{entry.stream}] of component [{entry.component}],"
                f" which has [{names}]"
            )
        else:
            yield from _grouping(f"{where} subscribes from stream: [{entry.stream}] of component", entry, stream)


def _dead_letters(component: ComponentPlan, declared: Mapping[str, ComponentPlan]) -> Iterator[str]:
    """Where rows are sent again, their spout puts them aside."""
    for entry in component.inputs:
        source, stream = declared.get(entry.component), DEAD_LETTER_STREAM.name
        if source is not None and source.kind == "bolt" and entry.stream == stream:
            yield (
                f"Component: [{component.name}] subscribes from stream: [{stream}] of the bolt [{source.name}]: bolts"
                " have it with topology.reliability.mode = EFFECTIVELY_ONCE only; read that of a spout"
            )


def _columns(component: ComponentPlan, declared: Mapping[str, ComponentPlan]) -> Iterator[str]:
    """Of a bolt that reads columns.  Its types are looked at where it runs, for that takes pyarrow."""
    cls, where = component.cls, f"Component: [{component.name}]"
    if not issubclass(cls, Bolt) or not (overrides(cls, "process_columns") or cls.column_types):
        return
    sources = ((declared[entry.component], entry) for entry in component.inputs if entry.component in declared)
    streams = [(source, stream) for source, entry in sources if (stream := stream_of(source, entry.stream))]
    for source, stream in streams:
        if not stream.fields:
            yield f"{where} reads columns, and stream: [{stream.name}] of component [{source.name}] has no fields"
    fields = [field for _, stream in streams for field in stream.fields]
    if unknown := [name for name in cls.column_types if name not in fields]:
        yield f"{where}: column_types of fields that no input has: [{', '.join(unknown)}]"


def _types_of_states(component: ComponentPlan) -> Iterator[str]:
    for state in states_of(component.cls):
        try:
            state.check()
        except UserError as error:
            yield f"Component: [{component.name}] has a state: [{state.name}] whose {error.message}"


def _keyed_state(component: ComponentPlan) -> Iterator[str]:
    states = keyed_of(component.cls)
    timers = [state for state in states_of(component.cls) if isinstance(state, Timers)]
    alone = not _grouped(component) and all(entry.grouping.kind != "partial_key" for entry in component.inputs)
    names = [state.name for state in (*(s for s in states if s.needs_keys or not alone), *timers)]
    if names:
        yield from problems_of_keys(component, names)
    if timers and component.kind == "bolt" and not overrides(component.cls, "on_timer"):
        yield f"Component: [{component.name}] has timers: [{timers[0].name}] and no on_timer(name, key, at)"
    if len(timers) > 1:
        declared = ", ".join(state.name for state in timers)
        yield f"Component: [{component.name}] has several Timers: [{declared}]; one is enough, its timers have names"
    if not states:
        return
    prefixes = {state.by for state in states}
    if len(prefixes) > 1:
        written = " and ".join(sorted(f"by={prefix}" for prefix in prefixes))
        yield f"Component: [{component.name}] has keyed states with {written}: a key of one would be another task's"
    elif (prefix := prefixes.pop()) is not None:
        fewest = min((len(fields) for fields in _grouped(component)), default=prefix)
        if not 1 <= prefix <= fewest:
            yield f"Component: [{component.name}] has keyed states with by={prefix}, and an input by {fewest} fields"


def problems_of_keys(component: ComponentPlan, names: Sequence[str]) -> Iterator[str]:
    """Why a component cannot have keyed states of these names: a key has one task, the one that gets its rows."""
    where = f"Component: [{component.name}] has keyed state: [{', '.join(names)}]"
    if component.kind == "spout":
        yield f"{where}, and a spout has no keys: a TaskState is one value of each task"
    if component.kind == "spout" or component.tasks == 1:
        return
    grouped = _grouped(component)
    if not grouped:
        yield f"{where}, in {component.tasks} tasks, and no input is grouped by fields: nothing says whose a key is"
    for entry in component.inputs:
        if entry.grouping.kind in ("partial_key", "direct", "custom"):
            source = f"[{entry.component}]"
            yield f"{where}, and gets rows of {source} by {entry.grouping.kind}: two tasks could own one key"
    sizes = sorted({len(fields) for fields in grouped})
    if len(sizes) > 1 and prefix_of(component.cls) is None:
        counts = " and ".join(map(str, sizes))
        yield f"{where}, and its inputs are grouped by {counts} fields: their keys never meet; by= names how many do"


def _grouped(component: ComponentPlan) -> list[tuple[str, ...]]:
    return [entry.grouping.fields for entry in component.inputs if entry.grouping.kind == "fields"]


def _goes_back(component: ComponentPlan) -> Iterator[str]:
    """In a mode that takes snapshots: whether the component can go back to one."""
    cls, where = component.cls, f"Component: [{component.name}]"
    if issubclass(cls, Spout) and cls.replayable and not states_of(cls):
        yield (
            f"{where}: {cls.__qualname__} has no state, so that it could not go back to what it had emitted, with"
            " topology.reliability.mode EFFECTIVELY_ONCE; keep its position in a TaskState or ListState, or say"
            " replayable = False: rows since the last snapshot are then lost with each rollback"
        )


def _grouping(where: str, entry: InputPlan, stream: StreamPlan) -> Iterator[str]:
    grouping, source = entry.grouping, entry.component
    where = f"{where} [{source}]"
    if wrong := [field for field in grouping.fields if not isinstance(field, str)]:
        yield f"{where} by {grouping.kind}: {wrong[0]!r} is no field name; give each as an argument of its own"
        return
    if missing := [field for field in grouping.fields if field not in stream.fields]:
        yield f"{where} with non-existent fields: [{', '.join(missing)}]; it has [{', '.join(map(str, stream.fields))}]"
    if grouping.kind in ("fields", "partial_key") and not grouping.fields:
        yield f"{where} by {grouping.kind}, but names no field"
    for field in _repeated(grouping.fields):
        yield f"{where} by {grouping.kind}: duplicate field '{field}'"
    if grouping.kind == "direct" and not stream.direct:
        yield f"{where} directly, yet the stream is not declared with direct=True"
    if grouping.kind != "direct" and stream.direct:
        yield f"{where} by {grouping.kind}, yet the stream is direct: use Grouping.DIRECT"
    if grouping.kind == "custom" and not isinstance(grouping.custom, CustomStreamGrouping):
        yield f"{where} with {grouping.custom!r}, which is no CustomStreamGrouping"
    elif grouping.kind == "custom":
        yield from (f"{where} by custom: {problem}" for problem in problems_of_grouping(grouping.custom))


def _shape(plan: LogicalPlan) -> Iterator[str]:
    if not plan.spouts:
        yield f"topology {plan.name!r} has no spout"
    read = {entry.component for component in plan for entry in component.inputs}
    for component in plan:
        if component.kind == "spout" and not component.streams:
            yield f"Component: [{component.name}] is a spout without output: say outputs = [...] in its class"
        elif component.kind == "spout" and component.name not in read:
            yield f"Component: [{component.name}] is a spout that nobody reads"


def _cycles(plan: LogicalPlan) -> Iterator[str]:
    sources = {component.name: {entry.component for entry in component.inputs} for component in plan}
    while True:
        try:
            TopologicalSorter(sources).prepare()
        except CycleError as error:
            # Each node of the cycle feeds the next one; without its last edge the search goes on for others.
            cycle: list[str] = error.args[1]
            yield f"cycle: {' -> '.join(cycle)}; acknowledgements and the end of the data could not get through it"
            sources[cycle[-1]].discard(cycle[-2])
        else:
            return


def problems_of_numbers(plan: LogicalPlan) -> Iterator[str]:
    """What is wrong with how many tasks there are; an update can change them."""
    yield from _too_many_tasks(plan)
    settings = Settings.of(plan.config)
    for component in plan:
        yield from _keyed_state(component)
        if settings.remembers and component.tasks > settings.key_groups:
            yield (
                f"Component: [{component.name}] has {component.tasks} tasks, and topology.key.groups is"
                f" {settings.key_groups}: some would own no key"
            )


def _too_many_tasks(plan: LogicalPlan) -> Iterator[str]:
    tasks = sum(component.tasks for component in plan)
    if tasks > MAX_TASKS:
        largest = max(plan, key=lambda component: component.tasks)
        yield (
            f"topology {plan.name!r} has {tasks} tasks, and at most {MAX_TASKS} are possible, because a task id has 16"
            f" bits; most of them, {largest.tasks}, are those of component [{largest.name}]"
        )


def _meant(name: str, known: Iterable[str]) -> str:
    """``; did you mean [words]?``, if a name is near enough."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean [{near[0]}]?" if near else ""


def _repeated(values: Iterable[T]) -> list[T]:
    # By their texts: what an author wrote in place of a name may have no hash.
    named = [(repr(value), value) for value in values]
    times = Counter(text for text, _ in named)
    return [value for text, value in dict(named).items() if times[text] > 1]
