"""Spouts and bolts outside of the engine, and what the engine installs in them."""

from __future__ import annotations

import pydoc

import pytest

import ardea
from ardea import Bolt, Spout, Stream, UserError
from ardea.component import Component, install, overrides


class Recorder:
    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*args):
            self.calls.append((name, *args))
            return [1]

        return call


class Lines(Spout):
    outputs = ("line",)

    def next_tuple(self):
        self.emit(["x"])


class Count(Bolt):
    def process(self, tup):
        self.emit([1])


@pytest.mark.parametrize(
    "call",
    [
        lambda: Lines().next_tuple(),
        lambda: Lines().finish(),
        lambda: Count().process(None),
        lambda: Count().ack(None),
        lambda: Count().fail(None),
    ],
)
def test_without_an_engine_the_calls_say_so(call):
    with pytest.raises(UserError, match="not running in a topology"):
        call()


def test_spout_calls_reach_its_collector():
    spout, recorder = Lines(), Recorder()
    install(spout, "lines", recorder)
    assert spout.emit(["a"], tup_id=7, stream="s", direct_task=4, need_task_ids=True) == [1]
    spout.next_tuple()
    spout.finish()
    assert recorder.calls == [
        ("emit", ["a"], 7, "s", 4, True),
        ("emit", ["x"], None, "default", None, False),
        ("finish",),
    ]


def test_bolt_calls_reach_its_collector():
    bolt, recorder = Count(), Recorder()
    install(bolt, "count", recorder)
    bolt.emit(["a"], stream="s", anchors=["t"], direct_task=4)
    bolt.ack("t")
    bolt.fail("u")
    assert recorder.calls == [("emit", ["a"], "s", ["t"], 4, False), ("ack", "t"), ("fail", "u")]


def test_logger_is_named_after_the_component_of_each_object():
    first, second = Count(), Count()
    install(first, "left", Recorder())
    install(second, "right", Recorder())
    assert (first.logger.name, second.logger.name) == ("left", "right")


def test_installing_leaves_other_objects_alone():
    install(Lines(), "lines", Recorder())
    with pytest.raises(UserError):
        Lines().next_tuple()


def test_a_class_may_have_an_init_that_knows_nothing_of_its_base():
    class Own(Bolt):
        def __init__(self):
            self.seen = []

        def process(self, tup):
            self.emit([1])

    bolt, recorder = Own(), Recorder()
    install(bolt, "own", recorder)
    bolt.process(None)
    assert recorder.calls == [("emit", [1], "default", None, None, False)]


def test_overrides():
    class Replays(Lines):
        def fail(self, tup_id):
            return True

    class Deeper(Replays):
        pass

    class Batches(Bolt):
        def process_batch(self, rows): ...

    assert [overrides(cls, "fail") for cls in (Lines, Replays, Deeper)] == [False, True, True]
    assert [overrides(cls, "process_batch") for cls in (Count, Batches)] == [False, True]
    assert not overrides(Batches, "flush")


def test_process_batch_processes_each():
    class Sum(Bolt):
        seen = ()

        def process(self, tup):
            self.seen += (tup,)

    bolt = Sum()
    bolt.process_batch([1, 2, 3])
    assert bolt.seen == (1, 2, 3)


def test_defaults_of_attributes():
    assert (Bolt.auto_anchor, Bolt.auto_ack, Bolt.auto_fail, Bolt.rescalable) == (True, True, True, False)
    assert Lines().fail(1) is None


def test_methods_that_must_be_overridden():
    with pytest.raises(NotImplementedError):
        Spout().next_tuple()
    with pytest.raises(NotImplementedError):
        Bolt().process(None)


def test_a_stream_takes_a_list_of_fields():
    assert Stream(fields=["a", "b"]).fields == ("a", "b")
    with pytest.raises(UserError, match=r"fields=\['word'\]"):
        Stream(fields="word")


def test_a_spec_is_neither_iterable_nor_changeable():
    spec = Lines.spec()
    with pytest.raises(TypeError):
        list(spec)
    with pytest.raises(AttributeError):
        spec.name = "other"


def test_specs_of_one_class_are_different_keys():
    assert len({Lines.spec(), Lines.spec()}) == 2
    assert issubclass(Lines, Component)


@pytest.mark.parametrize("name", ardea.__all__)
def test_help_has_a_page_for_each_name(name):
    assert pydoc.render_doc(getattr(ardea, name), renderer=pydoc.plaintext)
