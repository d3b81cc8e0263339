"""Partial key grouping in a whole topology: two tasks count a key, and the bolt that merges them has its total."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.testing import RowsSpout, run

ROWS, TASKS = 10_000, 4


def skewed() -> list[str]:
    """Two of five are ``hot``, the others one of a thousand."""
    numbers = random.Random(7)
    return ["hot" if numbers.random() < 0.4 else f"w{numbers.randrange(1000)}" for _ in range(ROWS)]


class Count(Bolt):
    """At the end, what its own task has counted of each word."""

    outputs = ["task", "word", "count"]

    def initialize(self, config, context):
        self.task = context.this_task_index
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup[0]] += 1

    def end_of_input(self):
        for word, count in self.counts.items():
            self.emit([self.task, word, count])


class Merge(Bolt):
    """At the end, the totals of the words that came to its task."""

    outputs = ["word", "total"]

    def initialize(self, config, context):
        self.totals = Counter()

    def process(self, tup):
        self.totals[tup["word"]] += tup["count"]

    def end_of_input(self):
        for item in self.totals.items():
            self.emit(list(item))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("containers", [1, 2])
def test_the_totals_of_the_merging_bolt_are_those_of_a_counter(containers):
    words = skewed()

    class Skewed(Topology):
        spout = RowsSpout.of(["word"], [[word] for word in words]).spec(par=2)
        count = Count.spec(inputs={spout: Grouping.partial_key("word")}, par=TASKS)
        merge = Merge.spec(inputs={count: Grouping.fields("word")}, par=2)

    result = run(Skewed, containers=containers, seed=7)
    assert result.state == "SUCCEEDED"
    totals = result.tuples("merge")
    assert len(totals) == len(dict(totals)), "one task merges all of a word"
    assert dict(totals) == Counter(words)
    loads, counters = Counter(), Counter()
    for task, word, count in result.tuples("count"):
        loads[task] += count
        counters[word] += 1
    assert counters["hot"] == max(counters.values()) == 2
    assert max(loads.values()) <= 1.1 * ROWS / TASKS, "fields grouping would give 40 % to one of four"
