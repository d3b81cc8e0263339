"""Topologies that cannot run: each problem names component, stream and field, and all come at once."""

from __future__ import annotations

import pytest

from ardea import Bolt, Grouping, Spout, Stream, Topology, TopologyBuilder, TopologyError
from ardea.keyed import KeyedState, TaskState
from ardea.timers import Timers
from ardea.trident import TridentTopology


class Lines(Spout):
    outputs = ("line", Stream(["text"], name="errors"), Stream(["n"], name="to", direct=True))

    def next_tuple(self): ...


class Count(Bolt):
    outputs = ("word",)

    def process(self, tup): ...


def problems(build, overrides=None) -> list[str]:
    """What is wrong with a topology of a spout, a bolt that reads it, and what ``build(builder, lines)`` adds."""
    builder = TopologyBuilder("t")
    lines = builder.add_spout("lines", Lines)
    builder.add_bolt("reader", Count, inputs=[lines])
    build(builder, lines)
    with pytest.raises(TopologyError) as caught:
        builder.plan(overrides or {})
    return list(caught.value.problems)


def bolt(**options):
    return lambda builder, lines: builder.add_bolt("b", Count, **{"inputs": [lines], **options})


def reading(grouping, stream="default"):
    return lambda builder, lines: builder.add_bolt("b", Count, inputs={lines[stream]: grouping})


def also(name, cls, **options):
    def build(builder, lines):
        add = builder.add_spout if issubclass(cls, Spout) else builder.add_bolt
        add(name, cls, **({"inputs": [lines]} if issubclass(cls, Bolt) else {}), **options)

    return build


class NoOutput(Spout):
    def next_tuple(self): ...


class NoNext(Spout):
    outputs = ("x",)


class NoProcess(Bolt):
    pass


class Generates(Count):
    def process(self, tup):
        yield tup


class Async(Count):
    async def flush(self): ...


class AsyncGenerator(Count):
    async def process_tick(self, tup):
        yield tup


class AsyncUpdate(Count):
    async def update(self, context): ...


class NeedsArguments(Count):
    def __init__(self, path): ...


class Twice(Count):
    outputs = ("a", "a", Stream(["x", "y", "y"], name="s"), Stream(["z"], name="s"))


class Reserved(Count):
    outputs = (Stream(["z"], name="__z"),)


class NumberedStream(Count):
    outputs = (Stream(["z"], name=5),)


class Unhashable(Count):
    outputs = (Stream([["a"]], name="s"),)


class BareText(Count):
    outputs = "word"


class Numbers(Count):
    outputs = ("word", 5)


class Empty(Count):
    outputs = (Stream([""], name="s"),)


WRONG = {
    "Component: [b] subscribes from non-existent component [x]": bolt(inputs=["x"]),
    "Component: [b] subscribes from non-existent component [Lines.spec(), which is not part of this topology]": bolt(
        inputs=[Lines.spec()]
    ),
    "Component: [b] subscribes from non-existent stream: [s] of component [lines], which has [default, errors, to]": (
        reading(Grouping.SHUFFLE, "s")
    ),
    "Component: [b] subscribes from stream: [errors] of component [lines] with non-existent fields: [line];"
    " it has [text]": reading(Grouping.fields("text", "line"), "errors"),
    "Component: [b] subscribes from stream: [default] of component [lines] with non-existent fields: [w];"
    " it has [line]": reading(Grouping.partial_key("w")),
    "Component: [b] subscribes from stream: [default] of component [lines] by fields, but names no field": reading(
        Grouping.fields()
    ),
    "Component: [b] subscribes from stream: [default] of component [lines] by fields: duplicate field 'line'": reading(
        Grouping.fields("line", "line")
    ),
    "Component: [b] subscribes from stream: [default] of component [lines] directly, yet the stream is not declared"
    " with direct=True": reading(Grouping.DIRECT),
    "Component: [b] subscribes from stream: [to] of component [lines] by shuffle, yet the stream is direct: use"
    " Grouping.DIRECT": reading(Grouping.SHUFFLE, "to"),
    "Component: [b] subscribes from stream: [default] of component [lines] with 5, which is no CustomStreamGrouping": (
        reading(Grouping.custom(5))
    ),
    "Component: [b] subscribes twice from stream: [default] of component [lines]; one grouping has to do": (
        lambda builder, lines: builder.add_bolt("b", Count, inputs={lines: Grouping.ALL, "lines": Grouping.NONE})
    ),
    "Component: [b] reads [lines] by 'shuffle', which is no Grouping": bolt(inputs={"lines": "shuffle"}),
    "Component: [b]: 5 is no input: give a spec, or a component's name": bolt(inputs=[5]),
    "Component: [b]: inputs are a list of specs, or a dict from specs to groupings": (
        lambda builder, lines: builder.add_bolt("b", Count, inputs=lines["errors"])
    ),
    "Component: [b]: Parallelism must be positive. par=0": bolt(par=0),
    "Component: [b]: Parallelism must be positive. par=1.5": bolt(par=1.5),
    "Component: [b]: the number of tasks must be positive. tasks=-1": bolt(tasks=-1),
    "Component: [b]: cpu= takes a number above 0, not 0": bolt(cpu=0),
    "Component: [b]: disk= takes a number of bytes, or a text like '256MB' (millions) or '512MiB' (2^20), not 'a'": (
        bolt(disk="a")
    ),
    "Component: [b]: unknown configuration key 'topology.debg'; did you mean 'topology.debug'?": bolt(
        config={"topology.debg": True}
    ),
    "Component: [b]: 'topology.stmgrs' belongs to the topology's configuration and cannot be set for one component": (
        bolt(config={"topology.stmgrs": 2})
    ),
    "Component: [b] is a bolt without inputs: nothing would reach it": bolt(inputs=[]),
    "Component: [c] is a spout without output: say outputs = [...] in its class": also("c", NoOutput),
    "Component: [c] is a spout that nobody reads": also("c", Lines),
    "Component: [c]: May not declare inputs for a spout": lambda builder, lines: (
        builder._add("Spout", "c", Lines.spec("c", inputs=[lines])),
        builder.add_bolt("b", Count, inputs=["lines", "c"]),
    ),
    "Component: [c]: NoProcess has no process(tup)": also("c", NoProcess),
    "Component: [c]: Generates.process is a generator: called by the engine, it would do nothing": also("c", Generates),
    "Component: [c]: Async.flush is async: called by the engine, it would do nothing": also("c", Async),
    "Component: [c]: AsyncGenerator.process_tick is async: called by the engine, it would do nothing": also(
        "c", AsyncGenerator
    ),
    "Component: [c]: AsyncUpdate.update is async: called by the engine, it would do nothing": also("c", AsyncUpdate),
    "Component: [c]: the engine calls NeedsArguments() without arguments, and that fails: missing a required argument:"
    " 'path'": also("c", NeedsArguments),
    "Component: [c]: __z is not a valid stream id: names that begin with '__' are reserved": also("c", Reserved),
    "Component: [c]: outputs are a list of field names and Streams, not 'word'": also("c", BareText),
    "Component: [c]: outputs are a list of field names and Streams, not ('word', 5)": also("c", Numbers),
    "Component: [c] stream: [s]: '' is no field name": also("c", Empty),
    "__c is not a valid component id: names that begin with '__' are reserved": also("__c", Count),
    "'a/b' is not a valid component id: it has 1 to 128 bytes in UTF-8, of printable characters but '/', '\\', ':', ','"
    " and white space, and does not begin with '.'": also("a/b", Count),
    "Component: [c]: 5 is not a valid stream id: it is a text that can be printed": also("c", NumberedStream),
    "Component: [b] subscribes from stream: [default] of component [lines] by fields: ['line'] is no field name; give"
    " each as an argument of its own": reading(Grouping.fields(["line"])),
    "Component: [c] stream: [s]: ['a'] is no field name": also("c", Unhashable),
}


@pytest.mark.parametrize("problem", WRONG)
def test_the_one_problem_is(problem):
    assert problems(WRONG[problem]) == [problem]


def test_duplicates_of_streams_and_fields():
    assert problems(also("c", Twice)) == [
        "Component: [c] declares stream: [s] twice",
        "Component: [c] stream: [default]: duplicate field 'a'",
        "Component: [c] stream: [s]: duplicate field 'y'",
    ]


@pytest.mark.parametrize("name", ["a\0b", "\x1b[31mred", "\ud800", "\u200b", "鳥" * 43, "..", ".hidden"])
def test_a_name_fits_into_the_name_of_a_file_and_onto_a_terminal(name):
    [problem] = problems(also(name, Count))
    assert problem.startswith(f"{name!r} is not a valid component id")


@pytest.mark.parametrize("name", ["鳥" * 42, "été", "🐦", "a.b", "$x-1"])
def test_a_name_may_be_of_any_script(name):
    builder = TopologyBuilder("t")
    builder.add_bolt(name, Count, inputs=[builder.add_spout("lines", Lines)])
    assert name in {component.name for component in builder.plan()}


@pytest.mark.parametrize("name", ["a.b", "a/b", "", "a b", "a:b", "x" * 129])
def test_topology_name(name):
    if not name:
        assert problems(bolt(), {"topology.name": name})[0].startswith("the overrides: 'topology.name' takes a text")
    else:
        [problem] = problems(bolt(), {"topology.name": name})
        assert problem.startswith(f"{name!r} is not a valid topology name")


def test_cycle_is_printed_in_the_direction_of_the_data():
    def build(builder, lines):
        builder.add_bolt("a", Count, inputs=[lines, "c"])
        builder.add_bolt("b", Count, inputs=["a"])
        builder.add_bolt("c", Count, inputs=["b"])
        builder.add_bolt("loop", Count, inputs=["b", "loop"])

    found = [p.removeprefix("cycle: ").partition(";")[0] for p in problems(build)]
    rotations = {"a -> b -> c -> a", "b -> c -> a -> b", "c -> a -> b -> c"}
    assert len(found) == 2
    assert "loop -> loop" in found
    assert rotations & set(found)


def test_a_topology_without_spout():
    builder = TopologyBuilder("t")
    with pytest.raises(TopologyError, match="topology 't' has no spout"):
        builder.plan()


def test_task_ids_are_limited():
    assert problems(bolt(par=65_534)) == [
        (
            "topology 't' has 65536 tasks, and at most 65535 are possible, because a task id has 16 bits;"
            " most of them, 65534, are those of component [b]"
        )
    ]


def test_names_in_maps_must_exist():
    assert problems(bolt(), {"topology.component.rammap": "bb:1MB"}) == [
        "topology.component.rammap names the non-existent component [bb]"
    ]


def test_hooks_must_exist():
    [problem] = problems(bolt(), {"topology.auto.task.hooks": "no_such_module:Hook,ardea:TaskHook"})
    assert problem.startswith("topology.auto.task.hooks: task hook 'no_such_module:Hook' cannot be found")


def test_watermarks_must_be_in_order():
    [problem] = problems(bolt(), {"heron.streammgr.network.backpressure.lowwatermark.mb": 100})
    assert "must be below" in problem


def test_a_name_is_taken_once():
    builder = TopologyBuilder("t")
    builder.add_spout("a", Lines)
    builder.add_bolt("b", Count)
    with pytest.raises(TopologyError, match="Spout has already been declared for id b"):
        builder.add_spout("b", Lines)
    with pytest.raises(TopologyError, match="Bolt has already been declared for id a"):
        builder.add_bolt("a", Count)


def declared(attributes) -> tuple[str, ...]:
    with pytest.raises(TopologyError) as caught:
        type("Declared", (Topology,), attributes).plan()
    return caught.value.problems


def test_names_given_twice_in_a_class():
    one, two = Lines.spec(name="x"), Lines.spec(name="x")
    found = declared({"a": one, "b": two, "c": Count.spec(inputs=[one])})
    assert "Duplicate component ids: [x]" in found


def test_one_spec_cannot_be_two_components():
    one = Lines.spec()
    found = declared({"a": one, "b": one, "c": Count.spec(inputs=[one])})
    assert "Component: [a] shares its spec with another; call spec() twice" in found


def test_a_class_is_no_spec():
    assert declared({"lines": Lines})[0] == "Component: [lines] is a class; write lines = Lines.spec(...)"


def test_all_problems_at_once():
    def build(builder, lines):
        builder.add_bolt("b", Count, 0, {lines: Grouping.fields("nope")}, {"topology.debug": 3})
        builder.add_bolt("c", NoProcess)

    found = problems(build, {"topology.stmgrs": 0, "topology.name": "a.b"})
    assert len(found) == 7


class Kept(Count):
    counts = KeyedState(default=0)


class KeptSpout(Lines):
    counts = KeyedState(default=0)


def kept(lines, *groupings, par=2):
    """A topology whose bolt keeps a state, and reads as many streams."""
    builder = TopologyBuilder("t")
    spouts = [builder.add_spout(f"s{number}", lines) for number in range(len(groupings))]
    builder.add_bolt("b", Kept, par, dict(zip(spouts, groupings, strict=True)))
    return builder


WORD, TWO = Grouping.fields("word"), Grouping.fields("word", "length")
HAS = "Component: [b] has keyed state: [counts], "


class Measured(Lines):
    outputs = ("word", "length")


@pytest.mark.parametrize(
    ("groupings", "says"),
    [
        ([Grouping.SHUFFLE], f"{HAS}in 2 tasks, and no input is grouped by fields: nothing says whose a key is"),
        (
            [WORD, Grouping.partial_key("word")],
            f"{HAS}and gets rows of [s1] by partial_key: two tasks could own one key",
        ),
        (
            [WORD, TWO],
            f"{HAS}and its inputs are grouped by 1 and 2 fields: their keys never meet; by= names how many do",
        ),
    ],
)
def test_a_key_has_one_task(groupings, says):
    with pytest.raises(TopologyError) as caught:
        kept(Measured, *groupings).plan()
    assert list(caught.value.problems) == [says]
    assert kept(Measured, *groupings, par=1).plan()["b"].tasks == 1


@pytest.mark.parametrize("groupings", [[WORD], [TWO, TWO], [WORD, Grouping.SHUFFLE], [WORD, Grouping.ALL]])
def test_what_else_comes_touches_own_keys_only(groupings):
    assert kept(Measured, *groupings).plan()["b"].tasks == 2


def test_a_spout_has_no_keys():
    builder = TopologyBuilder("t")
    builder.add_bolt("b", Count, inputs=[builder.add_spout("s", KeptSpout)])
    with pytest.raises(TopologyError, match=r"\[s\] has keyed state: \[counts\], and a spout has no keys: a TaskState"):
        builder.plan()


def test_a_type_that_has_no_fields_is_no_type_of_a_state():
    class Holds(KeptSpout):
        counts = TaskState(type=object())

    builder = TopologyBuilder("t")
    builder.add_bolt("b", Count, inputs=[builder.add_spout("s", Holds)])
    says = r"Component: \[s\] has a state: \[counts\] whose type=.* cannot be the type .* declared at test_validation"
    with pytest.raises(TopologyError, match=says):
        builder.plan()


ONCE = {"topology.reliability.mode": "EFFECTIVELY_ONCE"}


class Placed(Lines):
    place = TaskState(default=0)


class Heard(Lines):
    replayable = False


@pytest.mark.parametrize("spout", [Placed, Heard])
def test_a_spout_has_state_or_says_that_it_cannot_go_back(spout):
    builder = TopologyBuilder("t")
    builder.add_bolt("b", Count, inputs=[builder.add_spout("s", spout)])
    assert builder.plan(ONCE)["s"].tasks == 1


def test_a_spout_without_state_could_not_go_back():
    builder = TopologyBuilder("t")
    builder.add_bolt("b", Count, inputs=[builder.add_spout("s", Lines)])
    with pytest.raises(TopologyError) as caught:
        builder.plan(ONCE)
    (problem,) = caught.value.problems
    assert problem.startswith("Component: [s]: Lines has no state, so that it could not go back to what it had emitted")


@pytest.mark.parametrize("by", ["set_config", "the command line"])
def test_trident_and_drpc_are_refused_where_snapshots_are_taken(by):
    topology = TridentTopology("t")
    topology.new_drpc_stream("upper").map(str.upper, "text")
    if by == "set_config":
        topology.set_config(ONCE)
    with pytest.raises(TopologyError, match="Trident's, which lives on acks"):
        topology.plan({} if by == "set_config" else ONCE)


def by(*numbers):
    return type("ByPrefix", (Count,), {f"state_{place}": KeyedState(by=number) for place, number in enumerate(numbers)})


def prefixed(cls, *groupings):
    builder = TopologyBuilder("t")
    spouts = [builder.add_spout(f"s{number}", Measured) for number in range(len(groupings))]
    builder.add_bolt("b", cls, 2, dict(zip(spouts, groupings, strict=True)))
    return builder.plan()


def test_with_by_rows_of_all_inputs_go_by_the_first_fields():
    plan = prefixed(by(1, 1), WORD, TWO)
    assert [entry.grouping.fields for entry in plan["b"].inputs] == [("word",), ("word",)]


@pytest.mark.parametrize(
    ("cls", "says"),
    [
        (by(1, None), r"has keyed states with by=1 and by=None: a key of one would be another task's"),
        (by(2), r"has keyed states with by=2, and an input by 1 fields"),
        (by(0), r"has keyed states with by=0"),
    ],
)
def test_by_is_one_number_that_all_inputs_have(cls, says):
    with pytest.raises(TopologyError, match=says):
        prefixed(cls, WORD, TWO)


class Rings(Count):
    timers = Timers()

    def on_timer(self, name, key, at): ...


class Silent(Count):
    timers = Timers()


class Two(Rings):
    more = Timers()


class Wrong(Count):
    timers = Timers()

    def on_timer(self, key): ...


@pytest.mark.parametrize(
    ("cls", "grouping", "says"),
    [
        (Rings, Grouping.SHUFFLE, r"has keyed state: \[timers\], in 2 tasks, and no input is grouped by fields"),
        (Silent, WORD, r"has timers: \[timers\] and no on_timer\(name, key, at\)"),
        (Two, WORD, r"has several Timers: \[more, timers\]; one is enough"),
        (Wrong, WORD, r"the engine calls on_timer\(name, key, at\), which Wrong.on_timer does not take"),
    ],
)
def test_timers_need_keys_and_somebody_to_call(cls, grouping, says):
    with pytest.raises(TopologyError, match=says):
        prefixed(cls, grouping)
    assert prefixed(Rings, WORD)["b"].tasks == 2
