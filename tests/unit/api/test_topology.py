"""Plans that topologies give: names, streams, parallelism, resources, configuration."""

from __future__ import annotations

from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea import (
    Bolt,
    Component,
    CustomStreamGrouping,
    Grouping,
    Spout,
    Stream,
    Topology,
    TopologyBuilder,
    TopologyError,
    UserError,
)
from ardea.config import merge
from ardea.plan import GroupingPlan, InputPlan, Resource, StreamPlan
from ardea.plan.resource import GIB, MIB

KEY = "topology.max.task.parallelism"


class Lines(Spout):
    outputs = ("line",)

    def next_tuple(self): ...


class Middle(Bolt):
    outputs = ("line",)

    def process(self, tup): ...


class Split(Bolt):
    outputs = ("word", "length", Stream(fields=["text"], name="errors"), Stream(["n"], name="to", direct=True))

    def process(self, tup): ...


class Count(Bolt):
    def process(self, tup): ...


class First(CustomStreamGrouping):
    def choose_tasks(self, values):
        return []


class WordCount(Topology):
    lines = Lines.spec(par=1)
    split = Split.spec(inputs=[lines], par=2, cpu=0.5, ram="256MB")
    count = Count.spec(
        inputs={split: Grouping.fields("word"), split["errors"]: Grouping.ALL, split["to"]: Grouping.DIRECT},
        par=2,
        tasks=4,
    )
    config = MappingProxyType({"topology.message.timeout.secs": 10, "topology.workers": 2})


def chain(**count) -> TopologyBuilder:
    builder = TopologyBuilder("chain")
    lines = builder.add_spout("lines", Lines)
    builder.add_bolt("count", Count, **{"inputs": [lines], **count})
    return builder


def test_components_are_named_after_attributes_and_sorted():
    plan = WordCount.plan()
    assert (plan.name, [c.name for c in plan]) == ("WordCount", ["count", "lines", "split"])
    assert plan.task_ids() == {"count": range(1, 5), "lines": range(5, 6), "split": range(6, 8)}
    assert [(c.kind, c.cls) for c in plan] == [("bolt", Count), ("spout", Lines), ("bolt", Split)]


def test_streams_keep_their_order():
    assert WordCount.plan()["split"].streams == (
        StreamPlan("default", ("word", "length")),
        StreamPlan("errors", ("text",)),
        StreamPlan("to", ("n",), direct=True),
    )


def test_inputs_and_groupings():
    plan = WordCount.plan()
    assert plan["split"].inputs == (InputPlan("lines", "default", Grouping.SHUFFLE),)
    assert plan["count"].inputs == (
        InputPlan("split", "default", GroupingPlan("fields", ("word",))),
        InputPlan("split", "errors", Grouping.ALL),
        InputPlan("split", "to", Grouping.DIRECT),
    )


def test_the_ten_groupings():
    groupings = [
        Grouping.SHUFFLE,
        Grouping.fields("line"),
        Grouping.partial_key("line"),
        Grouping.ALL,
        Grouping.GLOBAL,
        Grouping.NONE,
        Grouping.LOCAL_OR_SHUFFLE,
        Grouping.LOAD_AWARE,
        Grouping.custom(First),
        Grouping.custom(First()),
    ]
    for grouping in groupings:
        plan = chain(inputs={"lines": grouping}).plan()
        assert plan["count"].inputs[0].grouping is grouping
    assert " ".join(g.kind for g in groupings[:-1]) == (
        "shuffle fields partial_key all global none local_or_shuffle load_aware custom"
    )
    assert groupings[8].describe() == groupings[9].describe() == "custom(First)"
    assert Grouping.LOWEST is Grouping.GLOBAL


def test_resources_come_from_spec_then_defaults():
    plan = WordCount.plan({"heron.resources.instance.ram": "1GiB"})
    assert plan["split"].resource == Resource(0.5, 256_000_000, GIB)
    assert plan["lines"].resource == Resource(1.0, GIB, GIB)
    assert WordCount.plan()["lines"].resource == Resource(1.0, 512 * MIB, GIB)


def test_resource_maps_win_over_spec():
    maps = {"topology.component.rammap": "split:1GiB", "topology.component.cpumap": {"lines": 2}}
    plan = WordCount.plan({**maps, "topology.component.diskmap": "count:5"})
    assert (plan["split"].resource.ram, plan["lines"].resource.cpu, plan["count"].resource.disk) == (GIB, 2.0, 5)


def test_configuration_is_normalised_and_overridden():
    assert WordCount.plan().config == {"topology.message.timeout.secs": 10.0, "topology.stmgrs": 2}
    plan = WordCount.plan({"topology.name": "night", "topology.stmgrs": 5, "mine": "x"})
    assert (plan.name, plan.config["topology.stmgrs"], plan.config["mine"]) == ("night", 5, "x")


@pytest.mark.parametrize(
    ("tasks", "limit", "hint", "expected"),
    [
        (4, 3, 2, (2, 3)),
        (4, None, 2, (2, 4)),
        (None, 3, 6, (3, 3)),
        (None, None, 6, (6, 6)),
        (5, None, 3, (3, 5)),
        (2, None, 8, (2, 2)),
    ],
)
def test_parallelism_is_normalised_as_storm_does(tasks, limit, hint, expected):
    config = {KEY: limit}
    for builder, overrides in (
        (chain(par=hint, tasks=tasks), config),
        (chain(par=hint, config={"topology.tasks": tasks}), config),
        (chain(par=hint, tasks=tasks, config={KEY: limit}), {KEY: 1}),
        (chain(par=hint), {**config, "topology.tasks": tasks}),
    ):
        component = builder.plan(overrides)["count"]
        assert (component.executors, component.tasks) == expected


@given(st.integers(1, 50), st.none() | st.integers(1, 50), st.none() | st.integers(1, 50))
def test_executors_never_outnumber_tasks_nor_tasks_their_limit(hint, tasks, limit):
    component = chain(par=hint, tasks=tasks).plan({"topology.max.task.parallelism": limit})["count"]
    assert 1 <= component.executors <= min(hint, component.tasks)
    assert component.tasks == min(tasks or hint, limit or 50)


def test_component_configuration_as_storm_merges_it():
    """The case of Storm's TopologyIntegrationTest: the declarer wins over the class, both over the topology."""

    class Configured(Count):
        config = MappingProxyType({"fake.config": 123, KEY: 20, "topology.max.spout.pending": 30})

    builder = TopologyBuilder("merged")
    lines = builder.add_spout("lines", Lines)
    builder.add_bolt("b", Configured, 5, [lines], {"fake.config2": 987, "topology.max.task.parallelism": 2})
    builder.set_config({"fake.config": 1, "topology.max.spout.pending": 7, "other": 2})
    plan = builder.plan()
    seen = merge(plan.config, plan["b"].config)
    assert (seen["fake.config"], seen["fake.config2"], seen["other"]) == (123, 987, 2)
    assert (seen["topology.max.task.parallelism"], seen["topology.max.spout.pending"]) == (2, 30)
    assert plan["b"].tasks == 2
    assert merge(plan.config, plan["lines"].config)["fake.config"] == 1


def test_builder_and_class_build_the_same():
    builder = TopologyBuilder("WordCount")
    lines = builder.add_spout("lines", Lines)
    split = builder.add_bolt("split", Split, 2, [lines], cpu=0.5, ram="256MB")
    groupings = {split: Grouping.fields("word"), split["errors"]: Grouping.ALL, split["to"]: Grouping.DIRECT}
    builder.add_bolt("count", Count, 2, groupings, tasks=4)
    builder.set_config(WordCount.config)
    plan, declared = builder.plan(), WordCount.plan()
    assert plan.components == declared.components
    assert plan.config == {**declared.config, "topology.name": "WordCount"}
    assert plan.digests() == declared.digests()


def test_two_builds_have_one_digest_and_a_change_shows_in_its_component():
    assert WordCount.plan().digest() == WordCount.plan().digest()

    class Wider(WordCount):
        lines = Lines.spec(par=2)

    before, after = WordCount.plan().digests(), Wider.plan().digests()
    assert {name for name in before if before[name] != after[name]} == {"lines"}


def test_a_subclass_replaces_a_component_for_those_who_read_it():
    class Slow(Lines):
        pass

    class Tested(WordCount):
        lines = Slow.spec()
        extra = Count.spec(inputs=[WordCount.split])

    plan = Tested.plan()
    assert (plan["lines"].cls, plan["split"].inputs[0].component) == (Slow, "lines")
    assert [c.name for c in plan] == ["count", "extra", "lines", "split"]
    assert WordCount.plan()["lines"].cls is Lines


def test_one_spec_in_two_topologies():
    shared = Lines.spec(par=3, config={"mine": 1})

    class A(Topology):
        here = shared
        count = Count.spec(inputs=[shared])

    class B(Topology):
        there = shared
        count = Count.spec(inputs=[shared])

    for _ in range(2):
        assert A.plan()["count"].inputs[0].component == "here"
        assert B.plan()["count"].inputs[0].component == "there"
    A.plan()["here"].config["mine"] = 2
    assert B.plan()["there"].config == {"mine": 1}


def test_several_specs_of_one_class_and_explicit_names():
    class Both(Topology):
        a = Lines.spec(name="config")
        b = Lines.spec()
        count = Count.spec(inputs=[a, b])

    plan = Both.plan()
    assert [i.component for i in plan["count"].inputs] == ["config", "b"]


def test_a_name_is_a_text():
    class Numbered(Topology):
        lines = Lines.spec(name=5)
        count = Count.spec(inputs=[lines], name=["count"])

    with pytest.raises(TopologyError) as refused:
        Numbered.plan()
    assert refused.value.problems == (
        "Component: [lines]: 5 is no name; give it a text",
        "Component: [count]: ['count'] is no name; give it a text",
    )


def test_builder_takes_components_that_are_called_like_attributes():
    builder = TopologyBuilder("odd")
    builder.add_spout("plan", Lines)
    builder.add_bolt("config", Count, inputs=["plan"])
    assert [c.name for c in builder.plan()] == ["config", "plan"]


@pytest.mark.parametrize("taken", ["plan", "config"])
def test_a_component_cannot_hide_the_topologys_own_attributes(taken):
    with pytest.raises(TopologyError, match=f"'{taken}' means something else"):
        type("Hiding", (Topology,), {taken: Lines.spec()})


@pytest.mark.parametrize("hides", [5, None, lambda overrides: None])
def test_nothing_but_a_classmethod_replaces_plan(hides):
    with pytest.raises(TopologyError, match="'plan' means something else"):
        type("Hiding", (Topology,), {"plan": hides})


def test_a_class_is_a_spout_or_a_bolt():
    class Both(Lines, Count):
        pass

    class Neither(Component):
        def process(self, tup): ...

    for cls, what in ((Both, "Both is both a Spout and a Bolt"), (Neither, "Neither is neither a Spout nor a Bolt")):
        with pytest.raises(TopologyError, match=rf"Component: \[c\]: .*{what}"):
            type("T", (Topology,), {"c": cls.spec()}).plan()


def test_a_class_without_a_signature_can_be_a_component():
    class Totals(Count, dict):
        pass

    class Summed(Topology):
        lines = Lines.spec()
        totals = Totals.spec(inputs=[lines])

    assert Summed.plan()["totals"].cls is Totals


class Above(Count):
    def __init__(self, threshold=0): ...


@pytest.mark.parametrize(
    "place",
    [
        lambda: Above(5).spec(inputs=["lines"]),
        lambda: TopologyBuilder("t").add_bolt("above", Above(5), inputs=["lines"]),
        lambda: TopologyBuilder("t").add_spout("lines", Lines()),
    ],
)
def test_an_object_cannot_be_placed_for_each_task_makes_its_own(place):
    with pytest.raises(UserError, match=r"an object of (Above|Lines) was to be placed in a topology: each task makes"):
        place()


def test_optional_outputs_add_streams():
    builder = TopologyBuilder("t")
    lines = builder.add_spout("lines", Lines, optional_outputs=["number", Stream(["e"], name="late")])
    builder.add_bolt("count", Count, inputs={lines["late"]: Grouping.fields("e")})
    assert builder.plan()["lines"].streams == (StreamPlan("default", ("line", "number")), StreamPlan("late", ("e",)))


def test_dead_letters_of_a_bolt_are_there_where_all_goes_back_only():
    builder = TopologyBuilder("t")
    lines = builder.add_spout("lines", Lines)
    count = builder.add_bolt("count", Count, inputs=[lines])
    builder.add_bolt("dead", Count, inputs=[count["__dead_letter"]])
    with pytest.raises(
        TopologyError, match=r"\[__dead_letter\] of the bolt \[count\]: bolts have it with .*EFFECTIVELY"
    ):
        builder.plan()


@given(st.lists(st.sets(st.integers(0, 11), max_size=3), min_size=1, max_size=12))
def test_what_lies_upstream_of_a_component_is_what_it_is_downstream_of(read):
    """``read``: of each component, which of those before it."""
    components = {}
    for place, sources in enumerate(read):
        inputs = [components[f"c{source}"] for source in sources if source < place]
        components[f"c{place}"] = Middle.spec(inputs=inputs) if inputs else Lines.spec()
    components["end"] = Count.spec(inputs=[*components.values()])
    plan = type("Graph", (Topology,), components).plan()
    for name in components:
        assert plan.upstream(name) == {other for other in components if name in plan.downstream(other)}


def test_implicit_streams_are_in_the_plan_where_they_are_read():
    builder = TopologyBuilder("t")
    lines = builder.add_spout("lines", Lines)
    builder.add_bolt("count", Count, inputs=[lines])
    assert len(builder.plan()["lines"].streams) == 1
    builder.add_bolt("dead", Count, inputs={lines["__dead_letter"]: Grouping.fields("tup_id")})
    builder.add_bolt("watch", Count, inputs={lines["__system"]: Grouping.GLOBAL})
    assert [s.name for s in builder.plan()["lines"].streams] == ["default", "__dead_letter", "__system"]
