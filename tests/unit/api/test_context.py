"""What a task learns of its topology."""

from __future__ import annotations

import json

import pytest

from ardea import Bolt, CountMetric, EmitInfo, Grouping, Spout, Stream, TaskHook, TopologyBuilder, UserError
from ardea.config import merge
from ardea.context import TopologyContext, hook_class
from ardea.plan import ContainerPlan, InstancePlan, PackingPlan, PhysicalPlan, Resource


class Lines(Spout):
    outputs = ("line", Stream(["text"], name="errors"))

    def next_tuple(self): ...


class Split(Bolt):
    outputs = ("word", "length")

    def process(self, tup): ...


def context(task: int, **options) -> TopologyContext:
    """Tasks: count 1-2, lines 3, split 4-6; odd ones in container 1, even ones in container 2."""
    builder = TopologyBuilder("words")
    lines = builder.add_spout("lines", Lines)
    split = builder.add_bolt("split", Split, 3, {lines: Grouping.SHUFFLE, lines["errors"]: Grouping.ALL}, cpu=0.5)
    builder.add_bolt("count", Split, 2, {split: Grouping.fields("word")})
    builder.set_config({"topology.message.timeout.secs": 12})
    logical = builder.plan()
    instances = [
        InstancePlan(task, component, index, index, logical[component].resource)
        for component, ids in logical.task_ids().items()
        for index, task in enumerate(ids)
    ]
    containers = tuple(
        ContainerPlan(number, tuple(i for i in instances if i.task % 2 == number % 2), Resource()) for number in (1, 2)
    )
    physical = PhysicalPlan.build(logical, PackingPlan("test", containers), 1)
    return TopologyContext(physical, task, merge(logical.config), **options)


def test_this_task():
    split = context(5)
    assert (split.this_task_id, split.this_task_index, split.this_component_id) == (5, 1, "split")
    assert split.this_worker_tasks == (1, 3, 5)
    assert split.resource.cpu == 0.5


def test_this_streams_and_fields():
    assert context(3).this_streams == ("default", "errors")
    assert context(3).this_output_fields("errors") == ("text",)
    assert context(5).this_output_fields() == ("word", "length")
    assert {"default", "errors"} <= context(3).this_output_fields_for_streams.keys() == set(context(3).this_streams)
    assert context(3).this_output_fields_for_streams["errors"] == ("text",)
    assert context(5).this_input_fields == {("lines", "default"): ("line",), ("lines", "errors"): ("text",)}


def test_this_sources_and_targets():
    assert context(5).this_sources == {("lines", "default"): Grouping.SHUFFLE, ("lines", "errors"): Grouping.ALL}
    assert context(3).this_targets == {"default": {"split": Grouping.SHUFFLE}, "errors": {"split": Grouping.ALL}}
    assert context(5).this_targets == {"default": {"count": Grouping.fields("word")}}
    assert (context(3).this_sources, context(1).this_targets) == ({}, {})


def test_the_topology():
    anyone = context(1)
    assert anyone.component_ids == ("count", "lines", "split")
    assert anyone.component_tasks("split") == (4, 5, 6)
    assert anyone.component_id(3) == "lines"
    assert anyone.task_to_component == {1: "count", 2: "count", 3: "lines", 4: "split", 5: "split", 6: "split"}
    assert anyone.component_streams("lines") == ("default", "errors")
    assert anyone.component_output_fields("lines", "errors") == ("text",)
    assert anyone.sources("count") == {("split", "default"): Grouping.fields("word")}
    assert anyone.targets("split") == {"default": {"count": Grouping.fields("word")}}
    assert anyone.max_topology_message_timeout == 12.0


def test_topology_id_is_the_name_unless_the_engine_gives_one():
    assert (context(1).topology_id, context(1, topology_id="words-7").topology_id) == ("words", "words-7")


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: c.component_id(99),
        lambda c: c.component_tasks("x"),
        lambda c: c.component_streams("x"),
        lambda c: c.component_output_fields("lines", "x"),
        lambda c: c.this_output_fields("x"),
    ],
)
def test_unknown_names_are_key_errors(ask):
    with pytest.raises(KeyError):
        ask(context(1))


def test_hooks_are_prepared_and_kept_in_order():
    seen = []

    class Hook(TaskHook):
        def prepare(self, config, context):
            seen.append((config["topology.message.timeout.secs"], context.this_task_id))

    one, other, task = Hook(), Hook(), context(4)
    task.add_task_hook(one)
    task.add_task_hook(other)
    assert seen == [(12.0, 4), (12.0, 4)]
    assert task.hooks == (one, other)


def test_a_hook_is_called_with_what_it_is_told():
    class Acks(TaskHook):
        async def bolt_ack(self, info): ...

    with pytest.raises(UserError, match=r"add_task_hook\(\): .*Acks.bolt_ack is async: called by the engine, it would"):
        context(4).add_task_hook(Acks())


def test_hooks_are_named_by_module_and_class():
    assert hook_class("ardea.context:TaskHook") is TaskHook
    for wrong in ("ardea:Nope", "no_such_module:X", "ardea", ":X", ".hooks:W"):
        with pytest.raises(UserError, match="cannot be found"):
            hook_class(wrong)
    with pytest.raises(UserError, match="no class derived from TaskHook"):
        hook_class("ardea:Topology")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("class W(", "SyntaxError: .*"),
        ("nothing", "NameError: name 'nothing' is not defined"),
        ("raise SystemExit(0)", "SystemExit: 0"),
    ],
)
def test_a_module_of_hooks_that_cannot_be_imported(tmp_path, monkeypatch, written, said):
    (tmp_path / "broken_hooks.py").write_text(written)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=f"task hook 'broken_hooks:W' cannot be found: {said}"):
        hook_class("broken_hooks:W")


def test_a_hook_overrides_what_it_needs():
    hook = TaskHook()
    hook.emit(EmitInfo(["a"], "default", 1, [2]))
    hook.cleanup()


def test_metrics_are_registered_once():
    task = context(4)
    count = task.register_metric("lines", CountMetric(), 60)
    count.incr(2)
    assert task.metrics["lines"].counts() == {"": 2}
    with pytest.raises(UserError, match="'split' registers two metrics named 'lines'"):
        task.register_metric("lines", CountMetric())
    task.task_data["client"] = count
    other = task.renewed()
    assert (other.metrics, other.task_data) == ({}, task.task_data)
    assert other.register_metric("lines", count) is count


@pytest.mark.parametrize(
    ("name", "metric", "said"),
    [
        ("bytes_read", CountMetric(), "'split' registers two metrics named 'bytes_read'"),
        ("bytes,read", CountMetric(), "'split' registers two metrics named 'bytes_read'"),
        (7, CountMetric(), "'split': the name of a metric is a text, not 7"),
        (("lines", "x"), CountMetric(), r"the name of a metric is a text, not \('lines', 'x'\)"),
        ("n", CountMetric, r"register_metric\('n', ...\) got the class CountMetric"),
        ("n", 0, r"register_metric\('n', ...\) got an object of int"),
    ],
)
def test_what_cannot_be_exported_is_no_metric(name, metric, said):
    task = context(4)
    task.register_metric("bytes read", CountMetric())
    with pytest.raises(UserError, match=said):
        task.register_metric(name, metric)
    assert list(task.metrics) == ["bytes read"]


def test_submit_hands_over_to_the_executor():
    handed = []
    made = context(1, submit=lambda *both: handed.append(both))
    made.submit(len)
    assert handed == [(made, len)]
    with pytest.raises(UserError, match="outside of a running topology"):
        context(1).submit(len)


def test_task_data_is_the_tasks_own():
    one, other = context(1), context(1)
    one.task_data["seen"] = 3
    assert other.task_data == {}


def test_json():
    body = json.loads(context(5).to_json())
    assert (body["task_id"], body["component_id"], body["worker_tasks"]) == (5, "split", [1, 3, 5])
    assert body["outputs"] == {"default": {"fields": ["word", "length"], "targets": {"count": "fields(word)"}}}
    assert body["inputs"][0] == {"component": "lines", "stream": "default", "grouping": "shuffle"}
    assert body["task_to_component"]["3"] == "lines"
