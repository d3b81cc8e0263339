"""`check_sink` passes a sink that writes each interval once, and says of any other what is wrong with it."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ardea import TwoPhaseSink
from ardea.errors import UserError
from ardea.testing import check_sink

ROWS = [(f"w{number}", number) for number in range(6)]


class Good(TwoPhaseSink):
    """In memory that outlives it: rows and marks."""

    def __init__(self):
        super().__init__()
        self.mine = {}

    def commit(self, mark, rows):
        if self.known(mark) < mark.number:
            self.write(list(rows))
            self.remember(mark)

    def known(self, mark):
        return OUTSIDE["marks"].get(mark.owner, 0)

    def remember(self, mark):
        OUTSIDE["marks"][mark.owner] = mark.number

    def write(self, rows):
        OUTSIDE["rows"] += rows


OUTSIDE = {"rows": [], "marks": {}}


class Early(Good):
    def initialize(self, config, context):
        self.write([("early", 0)])


class Twice(Good):
    def known(self, mark):
        return 0


class Remembers(Good):
    def known(self, mark):
        return self.mine.get(mark.owner, 0)

    def remember(self, mark):
        self.mine[mark.owner] = mark.number


class Piecemeal(Good):
    def commit(self, mark, rows):
        if self.known(mark) < mark.number:
            for row in rows:
                self.write([row])
            self.remember(mark)


class MarksFirst(Good):
    def commit(self, mark, rows):
        if self.known(mark) < mark.number:
            self.remember(mark)
            self.write(list(rows))


class Swallows(Good):
    def commit(self, mark, rows):
        with suppress(OSError):
            super().commit(mark, rows)


class Counts(Good):
    """As if they were a list."""

    def commit(self, mark, rows):
        if self.known(mark) < mark.number and len(rows):
            self.write([rows[0], *rows[1:]])
            self.remember(mark)


class Wraps(Good):
    def commit(self, mark, rows):
        try:
            super().commit(mark, rows)
        except OSError as error:
            raise RuntimeError("it is not written") from error


class Backwards(Good):
    def write(self, rows):
        super().write(rows[::-1])


class OneNumber(Good):
    def known(self, mark):
        return max(OUTSIDE["marks"].values(), default=0)


class Forgets(Good):
    """Compares with the last mark only."""

    def known(self, mark):
        return mark.number if OUTSIDE["marks"].get(mark.owner) == mark.number else 0


@pytest.fixture(autouse=True)
def empty():
    OUTSIDE.update(rows=[], marks={})


def check(kind):
    check_sink(kind, lambda: OUTSIDE["rows"], ROWS)


@pytest.mark.parametrize("kind", [Good, Wraps])
def test_a_good_sink_passes(kind):
    check(kind)


def test_rows_come_as_a_store_gives_them():
    """Once only those that go through them work; values are those that docs/keys.md has."""
    with pytest.raises(TypeError, match="has no len"):
        check(Counts)
    check_sink(Good, lambda: OUTSIDE["rows"], [(("a", number), number) for number in range(6)])
    assert OUTSIDE["rows"][0] == (["a", 0], 0)
    with pytest.raises(UserError, match="as value 1 of a row, which cannot be stored"):
        check_sink(Good, lambda: OUTSIDE["rows"], [("a", object())] * 6)


def test_a_tuple_that_is_read_back_is_the_list_that_was_stored():
    def read():
        return [(word, tuple(pair)) for word, pair in OUTSIDE["rows"]]

    check_sink(Good, read, [(word, (number, [])) for word, number in ROWS])


def test_a_nan_that_is_read_back_is_that_which_was_written():
    def read():
        return [(word, float(text)) for word, text in OUTSIDE["rows"]]

    class Texts(Good):
        def write(self, rows):
            super().write([(word, str(number)) for word, number in rows])

    check_sink(Texts, read, [(word, math.nan if number == 3 else float(number)) for word, number in ROWS])


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (Early, "nothing may be written before commit"),
        (Twice, "committed twice is there twice"),
        (Remembers, "the mark is to be outside, not in memory"),
        (Piecemeal, "rows and mark are to be one transaction"),
        (MarksFirst, "was repeated and wrote nothing"),
        (Swallows, "let what they raise pass"),
        (Backwards, "whole and in order"),
        (OneNumber, "for mark.owner only"),
        (Forgets, "which woke up, wrote an interval that is there"),
    ],
)
def test_each_mistake_is_named(kind, said):
    with pytest.raises(AssertionError, match=said):
        check(kind)


def test_the_sink_of_the_page_passes_by_the_test_of_the_page(tmp_path, monkeypatch):
    page = (Path(__file__).parents[3] / "docs" / "sinks.md").read_text()
    blocks = [block.split("```")[0] for block in page.split("```python\n")[1:]]
    totals, test = ModuleType("totals"), dict[str, Any]()
    exec(blocks[0], totals.__dict__)
    monkeypatch.setitem(sys.modules, "totals", totals)
    exec(next(block for block in blocks if "from totals import" in block), test)
    test["test_totals"](tmp_path)
