"""Each promise of a source is tried: one that is broken is named."""

from __future__ import annotations

from decimal import Decimal

import pytest

from ardea import END, PositionLost, Source
from ardea.testing import check_source, sources


class Good(Source):
    """Two partitions of numbers."""

    outputs = ("name", "n")
    reader: type

    def __init__(self):
        self.lists = self.opens = 0

    def list_partitions(self):
        self.lists += 1
        return ["b", "a"]

    def open(self, partition, position):
        self.opens += 1
        return self.reader(self, partition, (position or {"at": 0})["at"])


class GoodReader:
    rows = 40

    def __init__(self, source, name, at):
        self.source, self.name, self.at, self.closed = source, name, at, False

    def read(self, most):
        places = range(self.at, min(self.rows, self.at + most))
        self.at += len(places)
        return [(self.name, n) for n in places] or END

    def position(self):
        return {"at": self.at}

    def close(self):
        self.closed = True


Good.reader = GoodReader


def made(body=None, **reader):
    return type("Made", (Good,), {"reader": type("Reader", (GoodReader,), reader), **(body or {})})()


def test_a_good_one_is_read_from_many_positions():
    source = made()
    assert check_source(source) == 80
    assert source.opens > 10


@pytest.fixture(autouse=True)
def slept(monkeypatch):
    """The pauses, which take no time."""
    pauses = []
    monkeypatch.setattr(sources, "sleep", pauses.append)
    return pauses


def never_ends(self, most):
    rows = GoodReader.read(self, most)
    return [] if rows is END else rows


def test_one_that_does_not_end_is_read_until_it_has_been_silent_for_a_second(slept):
    assert check_source(made(read=never_ends)) == 80
    assert sum(slept) == pytest.approx(2 * 1.0), "once for each partition"
    assert len(slept) < 20


def test_how_long_it_is_waited_for_rows_can_be_said(slept):
    assert check_source(made(read=never_ends), patience=10.0) == 80
    assert sum(slept) == pytest.approx(2 * 10.0)


def test_rows_that_are_fetched_meanwhile_are_waited_for(slept):
    def fetches(self, most):
        if len(slept) < self.next_at:
            return []
        if self.at % 20 == 0 and self.at < self.rows:  # the next part comes some pauses later
            self.next_at = len(slept) + 4
        return GoodReader.read(self, min(most, 20 - self.at % 20))

    source = made(read=fetches, next_at=1)
    assert check_source(source) == 80
    assert source.opens > 10


def test_of_a_partition_no_more_rows_are_read_than_asked_for():
    assert check_source(made(), rows=14) == 28


@pytest.mark.parametrize("nan", [lambda: float("nan"), lambda: Decimal("nan"), lambda: [{"x": (float("nan"),)}]])
def test_nan_is_the_same_as_nan(nan):
    def read(self, most):
        rows = GoodReader.read(self, most)
        return rows if rows is END else [(name, nan() if n % 10 == 0 else n) for name, n in rows]

    assert check_source(made(read=read)) == 80


class Once:
    """Ends, and then goes on."""

    def read(self, most):
        rows = GoodReader.read(self, most)
        if rows is END:
            self.at = 0
        return rows


class Shared:
    """One position for all."""

    def __init__(self, *given):
        GoodReader.__init__(self, *given)
        self.mine = {"at": self.at}

    def position(self):
        self.mine["at"] = self.at
        return self.mine


def closes_once(self):
    assert not self.closed, "closed already"
    self.closed = True


def by_opens(self, most):
    return [(name, n + (self.source.opens > 2)) for name, n in rows] if (rows := GoodReader.read(self, most)) is not END else END  # fmt: skip # noqa: E501


def other_each_time(self, most):
    rows = GoodReader.read(self, most)
    return rows if rows is END else [(name, n + self.source.opens) for name, n in rows]


def forgets_the_end(self, most):
    self.rows = 40 + (self.source.opens > 2)
    return GoodReader.read(self, most)


def never_again(self, most):
    return [] if (rows := GoodReader.read(self, most)) is END and self.source.opens > 2 else rows


def loses(self, partition, position):
    if position:
        raise PositionLost("who knows")
    return Good.open(self, partition, position)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (made({"list_partitions": lambda _: "ab"}), "list_partitions() returned 'ab': it returns a list of texts"),
        (made({"list_partitions": lambda _: ["a", "a"]}), "list_partitions() has a name twice: ['a', 'a']"),
        (made({"list_partitions": lambda _: []}), "list_partitions() has no partition"),
        (
            made({"list_partitions": lambda s: [str(Good.list_partitions(s)) + str(s.lists)]}),
            "list_partitions() returned other partitions the second time",
        ),
        (made(read=lambda *_: None), "partition a: read() returned a value of type NoneType"),
        (made(read=lambda s, most: [(s.name, n) for n in range(most + 1)]), "partition a: read(7) returned 8 rows"),
        (made(read=lambda s, _: [(s.name,)]), "partition a: the row ('a',) has 1 values, and there are 2 outputs"),
        (made(position=lambda _: object), "which cannot be stored"),
        (made(position=lambda _: None), "from position None on row 1 was"),
        (made(position=lambda s: {"at": s.at - 1}), "on row 1 was ('a', 7), and then ('a', 6)"),
        (made(position=lambda s: {"at": s.at + 1}), "on row 1 was ('a', 7), and then ('a', 8)"),
        (made(read=by_opens), "was ('a', 7), and then ('a', 8)"),
        (made(read=other_each_time, rows=5), "from position None on row 1 was ('a', 1), and then ('a', 2)"),
        (made(read=forgets_the_end), "rows, and then"),
        (made(read=never_again), "it had ended, but from position {'at': 21} on it does not end"),
        (made(read=Once.read), "partition a: read() returned END, and something else when it was called again"),
        (made(__init__=Shared.__init__, position=Shared.position), "position() returns one object again and again"),
        (made(close=closes_once), "close() raised when it was called twice: AssertionError: closed already"),
        (made({"open": loses}), "open() does not find position {'at': 7}, which position() has returned: who knows"),
    ],
)
def test_a_broken_promise_is_named(source, expected):
    with pytest.raises(AssertionError) as failure:
        check_source(source)
    assert expected in str(failure.value)
