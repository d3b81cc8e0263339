"""What a task says of what its author's code raises: in groups, with few words, and whole now and then."""

from __future__ import annotations

import traceback

import pytest

from ardea.heron_instance.exception_groups import MOST, ROW, STACK, WHOLE, WHOLE_AGAIN, ExceptionGroups, digest_of
from ardea.protocol.wire_pb2 import TaskReport


def odd(value):
    raise ValueError(f"{value} is odd")


def other(value):
    raise ValueError(f"{value} is odd")


def raised(call, *args) -> Exception:
    try:
        call(*args)
    except Exception as error:
        return error
    raise AssertionError("it raises nothing")


class Noting:
    def __init__(self):
        self.now = 100.0
        self.groups = ExceptionGroups(lambda: self.now)

    def note(self, error, row=""):
        self.groups.note(error, "".join(traceback.format_exception(error)), row)

    def tells(self, *, last=False):
        """None: no other report."""
        before = self.groups._version
        return None if self.groups.version(last=last) == before else self.told()

    def told(self):
        report = TaskReport(raised=self.groups.told())
        return [*TaskReport.FromString(report.SerializeToString()).raised]


@pytest.fixture
def noting():
    return Noting()


def test_what_comes_from_one_line_is_one_group_whatever_it_says(noting):
    for value in range(1, 8):
        noting.note(raised(odd, value), f"({value},)")
    noting.note(raised(other, 9))
    odds, others = noting.tells()
    assert (odds.count, odds.type, odds.message, odds.row) == (7, "ValueError", "7 is odd", "(7,)")
    assert "in odd" in odds.stack
    assert (others.count, others.row) == (1, "")


def test_the_type_counts_and_so_does_the_way(noting):
    def made(kind, depth):
        if depth:
            made(kind, depth - 1)
        raise kind

    same, deeper, type_ = (raised(made, *what) for what in ((KeyError, 0), (KeyError, 1), (ValueError, 0)))
    assert digest_of(same) == digest_of(raised(made, KeyError, 0))
    assert len({*map(digest_of, (same, deeper, type_))}) == 3


def test_a_report_a_second_while_there_are_new_ones(noting):
    noting.note(raised(odd, 1))
    assert noting.tells() is not None
    noting.note(raised(odd, 3))
    assert noting.tells() is None
    noting.now += 1.0
    assert [group.count for group in noting.tells()] == [2]
    noting.now += 1.0
    assert noting.tells() is None
    noting.note(raised(odd, 5))
    assert noting.tells() is not None


def test_the_last_report_waits_for_nothing(noting):
    noting.note(raised(odd, 1))
    noting.tells()
    noting.note(raised(odd, 3))
    assert [group.count for group in noting.tells(last=True)] == [2]


def test_it_is_whole_at_first_and_again_each_minute_in_which_it_grows(noting):
    noting.note(raised(odd, 1))
    (whole,) = noting.told()
    noting.now += WHOLE
    (short,) = noting.told()
    noting.note(raised(odd, 3))
    (still,) = noting.told()
    noting.now += WHOLE_AGAIN
    (quiet,) = noting.told()
    noting.note(raised(odd, 5))
    (again,) = noting.told()
    assert [group.message for group in (whole, short, still, quiet, again)] == ["1 is odd", "", "", "", "5 is odd"]
    assert len(short.SerializeToString()) < 20


def test_there_are_few_groups_and_the_one_that_grew_longest_ago_makes_room(noting):
    def at(depth):
        if depth:
            at(depth - 1)
        raise ValueError(str(depth))

    for depth in range(MOST):
        noting.note(raised(at, depth))
    noting.note(raised(at, 0))
    noting.note(raised(at, MOST))
    told = noting.told()
    assert len(told) == MOST
    assert [group.count for group in told].count(2) == 1


@pytest.mark.parametrize("text", ["x" * 100_000, "\ud800", "\x1b[31m", "\u202e"])
def test_whatever_an_author_says_can_be_told(noting, text):
    error = raised(odd, text)
    noting.groups.note(error, "x" * 100_000, text)
    (told,) = noting.told()
    assert len(told.stack) < STACK + 20
    assert len(told.row) < ROW + 50
    assert told.message.isprintable()
    assert (told.type, noting.told()[0].count) == ("ValueError", 1)
