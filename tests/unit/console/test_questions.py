"""What a topology is asked for, and what is made of its answers: how often, and which parts are new."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

from ardea.console.questions import FIGURES, SLOWEST, TASKS_A_SECOND, Questions
from ardea.metrics import ProcessTotals, Totals
from ardea.scheduler.control import StoryEvent
from tests.unit.cli.memory import Found, Memory


class Asked:
    """One topology, asked at chosen seconds; ``change`` gets the answer of its master before it is heard."""

    def __init__(self, topology: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.emitted, self.tasks, self.term = 100.0, 0, 2, 1
        self.change = lambda description: description
        self._topology, self._before, self._record = topology, None, None
        self._ask = Questions(Memory(), clock=lambda: self.now).all["topology"]
        monkeypatch.setattr(Found, "describe", self._described(Found.describe))

    def at(self, second: float, **changes):
        """The answer then; ``changes``: attributes of this."""
        self.now = 100.0 + second
        self.__dict__ |= changes
        answer = self._ask(self._topology, self._before)
        self._before = answer.said
        return answer

    def _described(self, former):
        def describe(found):
            description = former(found)
            self._record = self._record or description.topology  # that of the fake is of this moment
            description = dataclasses.replace(description, topology=self._record)
            totals = Totals(tasks=1, emitted=self.emitted, cpu_seconds=self.now)
            rows = [ProcessTotals(1, f"numbers-{each}", "numbers", each, totals) for each in range(self.tasks)]
            status = msgspec.structs.replace(description.status, processes=rows, term=self.term)
            stories = {name: [StoryEvent(self.now, "came", 1)] for name in status.stories}
            status = msgspec.structs.replace(status, stories=stories)
            return self.change(dataclasses.replace(description, status=status))

        return describe


@pytest.fixture
def asked(submit, monkeypatch):
    return Asked(submit(), monkeypatch)


def told(answer):
    return answer.said.described.document


def test_figures_of_a_description_are_new_each_five_seconds_and_rates_with_each_answer(asked):
    first = asked.at(0)
    later = asked.at(1, emitted=50)
    assert told(later) is told(first)
    assert later.said.top.rows[0].emitted == 2 * 50.0
    assert told(asked.at(FIGURES - 0.1, emitted=60)) is told(first)
    newest = told(asked.at(FIGURES, emitted=70))
    assert {each.totals.emitted for each in newest.status.processes} == {70}


def test_no_rate_is_of_what_two_masters_have_counted(asked):
    """A metrics manager was restarted long ago: what it has counted since is less than what its master had added up."""
    asked.at(0, emitted=5000)
    assert asked.at(1, emitted=3000, term=2).said.top.rows[0].emitted == 0
    assert asked.at(2, emitted=3010).said.top.rows[0].emitted == 2 * 10.0


def with_status(**fields):
    return lambda description: dataclasses.replace(
        description, status=msgspec.structs.replace(description.status, **fields)
    )


CHANGES = {
    "state": with_status(state="PAUSED"),
    "silent": with_status(silent_tasks=["numbers-0"]),
    "errors": with_status(errors=["odd"], erring=["numbers-0"]),
    "story": with_status(stories={"numbers-0": [StoryEvent(0.0, "came", 2)]}),
    "tasks": with_status(tasks={}),
    "process": lambda description: dataclasses.replace(description, processes=description.processes[:1]),
    "pods": lambda description: dataclasses.replace(description, pods=[{"pod": "numbers"}]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_otherwise_is_told_at_once(asked, change):
    before = told(asked.at(0))
    after = told(asked.at(1, emitted=5, change=CHANGES[change]))
    assert after is not before
    assert {each.totals.emitted for each in after.status.processes} == {5}


def test_what_a_master_has_said_stays_while_it_is_silent(asked):
    before = told(asked.at(0, emitted=7))

    def silent(description):
        return dataclasses.replace(description, status=None, silence="nobody answers")

    for second in (1, 2 * FIGURES):
        answer = asked.at(second, change=silent)
        assert (told(answer).status, told(answer).master_silent) == (before.status, "nobody answers")
        assert (answer.trouble, answer.said.top.rows[0].component) == ("nobody answers", "numbers")
    assert told(asked.at(3 * FIGURES, emitted=9, change=lambda each: each)).status.processes[0].totals.emitted == 9


def test_many_tasks_are_asked_less_often_once_there_are_rates(asked):
    assert asked.at(0, tasks=TASKS_A_SECOND // 2).slower == 1.0
    assert asked.at(1).slower == 1.0
    many = Asked(asked._topology, pytest.MonkeyPatch())
    assert many.at(0, tasks=2 * TASKS_A_SECOND).slower == 1.0
    assert many.at(1).slower == pytest.approx(2.0, rel=0.02)
    assert many.at(3, tasks=100 * TASKS_A_SECOND).slower == SLOWEST
