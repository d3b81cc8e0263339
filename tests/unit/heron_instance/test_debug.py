"""The sample of emitted rows: bounded, honest about what it leaves out, harmless to the task."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ardea import logs
from ardea.heron_instance.debug import PER_SECOND, EmitLog
from ardea.plan.logical import StreamPlan
from ardea.protocol.columns import ColumnRows
from ardea.protocol.headed import HeadedRows
from tests.sizes import share


@dataclass
class Buffer:
    rows: Sequence[Any]
    columns: Any = None
    plan: StreamPlan = field(default_factory=lambda: StreamPlan("default", ("a",), False))

    def __len__(self) -> int:
        return len(self.rows if self.columns is None else self.columns)

    @property
    def whole(self) -> Sequence[Any]:
        return self.rows

    @property
    def parcel(self) -> Buffer:
        return self


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def lines(capsys):
    shown = []

    def so_far():
        printed = capsys.readouterr().out.splitlines()
        shown.extend(logs.message_of(line, "words-0.emits") for line in printed)
        return shown

    return so_far


def test_few_rows_are_all_shown(lines):
    EmitLog("words-0", Clock(), always=True).look([Buffer([("a", 1), ["b", None]])])
    assert lines() == ["default ('a', 1)", "default ('b', None)"]


def test_it_is_on_as_long_as_asked_and_longer_when_asked_again():
    clock = Clock()
    log = EmitLog("words-0", clock, always=False)
    assert not log.on
    log.extend(15)
    clock.now += 14
    assert log.on
    log.extend(15)
    clock.now += 14
    assert log.on
    clock.now += 1
    assert not log.on
    assert EmitLog("words-0", clock, always=True).on


@pytest.fixture
def authors_logging(monkeypatch):
    """Set up by an author's file."""
    level = logging.root.level
    monkeypatch.setattr(logging.root, "handlers", [])
    logging.basicConfig(level=logging.ERROR, format="mine: %(message)s", stream=io.StringIO())
    yield
    logging.root.setLevel(level)


@pytest.mark.usefixtures("authors_logging")
def test_it_is_in_the_topologys_format_however_an_author_sets_logging_up(lines):
    for form in logs.FORMATS:
        EmitLog("words-0", Clock(), always=True, form=form).look([Buffer([(form, "\ud800")])])
    assert lines() == [r"default ('text', '\ud800')", r"default ('json', '\ud800')"]


def test_values_are_short_and_on_one_line_whatever_they_are(lines):
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    class Long:
        def __repr__(self) -> str:
            return "one\ntwo" * 1000

    EmitLog("words-0", Clock(), always=True).look([Buffer([("x" * 10**6, Odd(), Long()), 7])])
    first, second = lines()
    assert len(first) < 400
    assert second == "default (7)"


def test_rows_of_an_arrow_batch_are_read_from_it(lines):
    batch = pyarrow.record_batch({"a": [1, 2]})
    EmitLog("words-0", Clock(), always=True).look([Buffer([], columns=ColumnRows(batch))])
    assert lines() == ["default (1)", "default (2)"]


def test_a_row_that_cannot_be_read_says_so_and_the_others_are_shown(lines):
    """Python has no such year, or the row is none: the task goes on all the same, and refuses the row if it has to."""
    odd = pyarrow.record_batch({"a": pyarrow.array([2**40, 0], pyarrow.timestamp("s"))})
    headed = HeadedRows((7,), [3, ("b",)])
    EmitLog("words-0", Clock(), always=True).look([Buffer([], columns=ColumnRows(odd)), Buffer(headed)])
    cannot = "default (cannot be shown)"
    assert lines() == [cannot, "default (datetime.datetime(1970, 1, 1, 0, 0))", cannot, "default (7, 'b')"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=share(50))
@given(st.lists(st.tuples(st.floats(0, 2), st.lists(st.integers(1, 300), max_size=3)), max_size=20))
def test_at_most_ten_lines_a_second_and_every_row_is_shown_or_counted(lines, flushes):
    lines().clear()
    clock = Clock()
    log = EmitLog("words-0", clock, always=True)
    began, rows = clock.now, 0
    for pause, counts in flushes:
        clock.now += pause
        log.look([Buffer([(n,) for n in range(count)]) for count in counts])
        rows += sum(counts)
        assert len(lines()) <= PER_SECOND * (1 + clock.now - began) + 1e-6
    log.look([])
    counted = sum(int(m[1].replace(",", "")) for line in lines() if (m := re.search(r"\(([\d,]+) others", line)))
    assert len(lines()) + counted <= rows
    clock.now += 10
    log.look([Buffer([("last",)])])
    counted = sum(int(m[1].replace(",", "")) for line in lines() if (m := re.search(r"\(([\d,]+) others", line)))
    assert len(lines()) + counted == rows + 1
