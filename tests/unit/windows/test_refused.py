"""What can be no windows, and what no input has: one message each."""

from __future__ import annotations

import pytest

from ardea import Grouping, KeyedState, Stream, Timestamps, Topology
from ardea.errors import TopologyError, UserError
from ardea.windows import (
    Count,
    CountSliding,
    CountTumbling,
    Fold,
    Folds,
    Global,
    PartialWindows,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowBolt,
)
from tests.simulation.watermarks.timed import Stamped


class Numbers(WindowBolt):
    outputs = ("key", "rows")

    def on_window(self, key, window, value):
        self.emit((key, value))


class Longest(Fold):
    """That cannot merge."""


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Tumbling(0), "size takes a number of seconds above 0"),
        (lambda: Tumbling("x"), "size takes"),
        (lambda: Tumbling(-5), "size takes"),
        (lambda: Sliding(5, 10), "rows between two windows would be in none"),
        (lambda: Session(None), "gap takes"),
        (lambda: Tumbling(5, on="at", allowed_lateness=-1), "allowed_lateness takes"),
        (lambda: Tumbling(5, allowed_lateness=1), "no late rows by the clock"),
        (lambda: Tumbling(5, early=0), "early takes"),
        (lambda: Tumbling(5, on=""), "field takes the name"),
        (lambda: Tumbling(5, on="at", unit="m"), "unit takes"),
        (lambda: Tumbling(5, unit="m"), "unit takes"),
        (lambda: Tumbling(1e13), "size takes a microsecond or more, and 10,000 years at most"),
        (lambda: Tumbling(5, offset=1e13), "offset takes"),
        (lambda: Tumbling(1e-9), "size takes a microsecond or more"),
        (lambda: Tumbling(5, fold=Count), "fold takes an object"),
        (lambda: Tumbling(5, fold=Sum(1)), "takes the name of a field"),
        (lambda: Folds(), "takes folds by name"),
        (lambda: Sliding(6, 2, fold=Longest()), "has no merge"),
        (lambda: CountSliding(6, 2, fold=Longest()), "rows are kept until they leave"),
        (lambda: CountSliding(6, 2, fold=Folds(longest=Longest())), "rows are kept until they leave"),
        (lambda: Global(), "has no trigger"),
        (lambda: Global(rows=0), "rows takes a number of rows"),
        (lambda: CountTumbling(0), "rows takes a number of rows"),
        (lambda: CountTumbling(3, on="at"), "in the order in which they come"),
        (lambda: type("B", (WindowBolt,), {"windows": 5}), "windows is 5"),
        (lambda: type("B", (WindowBolt,), {"process": print}), "its rows go to windows"),
    ],
)
def test_what_can_be_no_windows_is_refused_at_once(wrong, message):
    with pytest.raises(UserError, match=message):
        wrong()


@pytest.mark.parametrize(
    ("kind", "stamped", "message"),
    [
        (
            Tumbling(5, on="when"),
            True,
            r"windows go by the field 'when', which stream \[default\] of \[rows\] does not have",
        ),
        (Tumbling(5, on="at", fold=Sum("price")), True, "fold reads the field 'price'"),
        (Tumbling(5, on="at"), False, "no spout that it reads says"),
        (None, True, "declares no windows"),
    ],
)
def test_what_no_input_has_is_refused_when_the_topology_is_built(kind, stamped, message, monkeypatch):
    if not stamped:
        monkeypatch.setattr(Stamped, "timestamps", None)
    windowed = type("Windowed", (Numbers,), {} if kind is None else {"windows": kind})

    class Made(Topology):
        rows = Stamped.spec()
        windows = windowed.spec(inputs={rows: Grouping.fields("spout")})

    with pytest.raises(TopologyError, match=message):
        Made.plan({})


class Remembers(Numbers):
    windows = CountTumbling(3)
    seen = KeyedState(default=0)


@pytest.mark.parametrize(
    ("kind", "grouping", "message"),
    [
        (Remembers, Grouping.SHUFFLE, r"has keyed state: \[seen\], in 2 tasks, and no input is grouped by fields"),
        (
            type("Three", (Numbers,), {"windows": CountTumbling(3)}),
            Grouping.partial_key("spout"),
            "two tasks could own",
        ),
    ],
)
def test_windows_of_tasks_have_no_keys(kind, grouping, message):
    class Made(Topology):
        rows = Stamped.spec()
        windows = kind.spec(par=2, inputs={rows: grouping})

    with pytest.raises(TopologyError, match=message):
        Made.plan({})


# --- ahead of windows -------------------------------------------------------------------------------------------------


class Minutes(Numbers):
    windows = Tumbling(60, on="at", fold=Count())


class TellsLate(Minutes):
    outputs = ("key", "rows", Stream(Stamped.outputs, "late"))


def windows(kind):
    return type("Kind", (Numbers,), {"windows": kind})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"of": Stamped}, "of is Stamped, which is no class that derives from WindowBolt"),
        ({"of": 5}, "of is 5, which is no class"),
        ({"of": Numbers}, "whose windows are not Tumbling or Sliding by event time"),
        ({"of": windows(Session(5, on="at", fold=Count()))}, "whose windows are not Tumbling or Sliding"),
        ({"of": windows(CountTumbling(5))}, "whose windows are not Tumbling or Sliding"),
        ({"of": windows(Tumbling(5, fold=Count()))}, "by event time"),
        ({"of": windows(Tumbling(5, on="at", fold=Longest()))}, "whose fold .* has no merge"),
        ({"of": Minutes, "process": print}, "its rows are added up ahead of windows"),
    ],
)
def test_what_can_be_no_parts_of_windows_is_refused_at_once(body, message):
    with pytest.raises(UserError, match=message):
        type("Parts", (PartialWindows,), {"outputs": (*Stamped.outputs, "part"), **body})


PART = (*Stamped.outputs, "part")


@pytest.mark.parametrize(
    ("body", "reader", "grouping", "message"),
    [
        ({"outputs": PART}, Minutes, Grouping.fields("spout"), "does not say ahead of which windows"),
        ({"outputs": ("spout", "part"), "of": Minutes}, Minutes, Grouping.fields("spout"), "and one more"),
        ({"outputs": Stamped.outputs, "of": Minutes}, Minutes, Grouping.fields("spout"), "and one more"),
        (
            {"outputs": (*PART, Stream(PART, "more")), "of": Minutes},
            Minutes,
            Grouping.fields("spout"),
            "has 2 streams, and takes one",
        ),
        ({"outputs": PART, "of": Minutes}, TellsLate, Grouping.fields("spout"), "Minutes alone may"),
        ({"outputs": PART, "of": Minutes}, Minutes, Grouping.SHUFFLE, "by Grouping.fields"),
        ({"outputs": PART, "of": TellsLate}, TellsLate, Grouping.fields("spout"), "idle_after"),
    ],
)
def test_parts_that_no_windows_can_read_are_refused_when_the_topology_is_built(body, reader, grouping, message):
    source = type("Idles", (Stamped,), {"timestamps": Timestamps("at", idle_after=5)})

    class Made(Topology):
        rows = source.spec()
        parts = type("Parts", (PartialWindows,), body).spec(inputs=[rows])
        windows = reader.spec(inputs={parts: grouping})

    with pytest.raises(TopologyError, match=message):
        Made.plan({})


def test_parts_whose_readers_have_different_keys_are_refused():
    class Made(Topology):
        rows = Stamped.spec()
        parts = type("Parts", (PartialWindows,), {"outputs": PART, "of": Minutes}).spec(inputs=[rows])
        one = Minutes.spec(inputs={parts: Grouping.fields("spout")})
        other = Minutes.spec(inputs={parts: Grouping.fields("place")})

    with pytest.raises(TopologyError, match="its readers group by different fields"):
        Made.plan({})
