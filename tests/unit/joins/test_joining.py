"""Rows that one version of a topology has kept, and the next one, whose bounds are others, tells."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import pytest

from ardea.component import DEFAULT_STREAM
from ardea.joins import IntervalJoin
from ardea.joins.joining import Joining

SOURCES = [("left", DEFAULT_STREAM), ("right", DEFAULT_STREAM)]
CONTEXT = SimpleNamespace(
    this_component_id="joined",
    this_task_index=0,
    this_streams=(),
    this_input_fields=dict.fromkeys(SOURCES, ("key", "name", "at")),
    this_sources=dict.fromkeys(SOURCES, SimpleNamespace(fields=("key",))),
    register_metric=lambda name, metric: metric,
)


class Task:
    """A left join; ``told``: (left, right, stamp)."""

    def __init__(self):
        self.rows, self.times, self.told, self.watermark = defaultdict(list), {}, [], None

    def version(self, after):
        """Begins with rows and timers of the former one."""
        self.join = IntervalJoin("left", "right", on="at", after=after, how="left")
        self.joining = Joining(self, CONTEXT, self.rows, SimpleNamespace(set=self.times.__setitem__))

    def joined(self, left, right):
        self.told.append((left["name"], right and right["name"], self.joined_at))

    def left(self, name, at):
        self.joining.came(self.joining.left.tuple(("k", name, at)))

    def rise(self, watermark):
        """What is told comes ahead of the watermark, and must not lie below the one before."""
        before, self.watermark, first = self.watermark, watermark, len(self.told)
        while self.times and self.times["k"] <= watermark:
            self.joining.passed("k", self.times.pop("k"))
        assert all(at >= before for _, _, at in self.told[first:]), "it would be late further down"


@pytest.fixture
def task():
    """Has a row since 100, which could find a pair up to 200; it is 150."""
    task = Task()
    task.version(after=100)
    task.left("a", 100.0)
    task.rise(150.0)
    return task


def test_with_shorter_bounds_a_row_comes_alone_when_the_former_ones_have_passed(task):
    task.version(after=10)
    task.rise(199.0)
    assert task.told == []
    task.rise(201.0)
    assert task.told == [("a", None, 200.000001)]


def test_with_shorter_bounds_it_comes_with_the_next_row_of_its_key(task):
    task.version(after=10)
    task.left("b", 151.0)
    task.rise(155.0)
    assert task.told == [("a", None, 150.0)]
    task.rise(170.0)
    assert task.told[1:] == [("b", None, 161.000001)]


def test_with_longer_bounds_it_waits_for_these(task):
    task.version(after=200)
    task.rise(290.0)
    assert task.told == []
    task.rise(301.0)
    assert task.told == [("a", None, 300.000001)]
