"""What a viewer is told of the last fifteen minutes."""

from __future__ import annotations

import pytest

from ardea.console.questions import Questions
from ardea.console.readings import Answer
from ardea.health import Raised
from ardea.metrics import Samples
from tests.unit.cli import memory
from tests.unit.cli.memory import Found, Memory
from tests.unit.console.conftest import ACT


def test_all_components_or_those_that_are_named(browser, submit):
    submit()
    told = browser.get("/topologies/Endless/history").json()
    assert (told["since"], told["interval"], len(told["times"]), {*told["series"]}) == (1, 5, 20, {"ignore", "numbers"})
    assert told["reading"]["state"] == "live"
    named = browser.get("/topologies/Endless/history?names=ignore-0,ignore-0&since=90").json()
    assert (named["times"], named["series"]) == ([95, 100], {"ignore-0": {"executed": [95, 100]}})


@pytest.mark.parametrize(
    "query",
    ["since=yesterday", "since=nan", "since=-1", "since=", "names=" + "%2C".join(map(str, range(101))), "names=a+b"],
)
def test_a_question_that_cannot_be_is_refused(browser, submit, query):
    submit()
    told = browser.get(f"/topologies/Endless/history?{query}")
    assert told.status_code == 400, told.text


def test_a_topology_that_there_is_not_has_none(browser):
    assert browser.get("/topologies/Missing/history").status_code == 404


def test_exceptions_are_for_those_who_may_act(browser, submit):
    """Stacks and rows are secrets."""
    submit()
    whole = {"type": "ValueError", "message": "odd", "stack": "...", "row": "(1,)", "first": 1.0, "last": 2.0}
    memory.RUNNING["Endless"].raised = [Raised(component="ignore", count=3, tasks={"ignore-0": 3}, **whole)]
    assert browser.get("/topologies/Endless/exceptions").status_code == 403
    (group,) = browser.get("/topologies/Endless/exceptions", ACT).json()["exceptions"]
    assert group == {"component": "ignore", "count": 3, "tasks": {"ignore-0": 3}, **whole}


def test_a_master_is_asked_for_what_is_new_only(submit, monkeypatch):
    topology, asked = submit(), []

    def history(_, names=(), since=0.0):
        asked.append(since)
        times = [at for at in (5.0, 10.0, 15.0)[: len(asked) + 1] if at > since]
        return Samples(1.0, 5.0, times, {"ignore": {"executed": [*times]}})

    monkeypatch.setattr(Found, "history", history)
    ask = Questions(Memory()).all["history"]
    first: Answer = ask(f"{topology} ignore", None)
    second = ask(f"{topology} ignore", first.said)
    assert asked == [0.0, 10.0]
    assert (second.said.times, second.said.series) == ([5.0, 10.0, 15.0], {"ignore": {"executed": [5.0, 10.0, 15.0]}})


def of(since, times, interval=5.0, name="count"):
    return Samples(since, interval, times, {name: {"acked": [at / 2 for at in times]}})


def test_those_of_another_master_plan_or_interval_do_not_follow():
    mine = of(1.0, [5.0])
    for other in (of(2.0, [10.0]), of(1.0, [10.0], interval=10.0), of(1.0, [10.0], name="other")):
        assert mine.followed_by(other) is None


def test_together_they_are_of_fifteen_minutes():
    both = of(1.0, [float(at) for at in range(5, 905, 5)]).followed_by(of(1.0, [905.0, 910.0]))
    assert (both.times[0], both.times[-1], len(both.times)) == (15.0, 910.0, 180)
    assert both.series["count"]["acked"] == [at / 2 for at in both.times]
    assert both.after(905.0) == of(1.0, [910.0])
    nothing = of(1.0, [])
    assert nothing.followed_by(nothing) == nothing
