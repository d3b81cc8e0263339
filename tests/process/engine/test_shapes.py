"""Heron's Python integration tests (its functional table), all in one topology over two containers."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster


def test_every_shape_delivers_every_tuple_where_its_grouping_says(tmp_path):
    with Running("shapes.py", tmp_path) as topology:
        outcome = topology.finish()

    def received(component):
        return [Counter(each) for each in topology.left(component)]

    fives = Counter(A=5, B=5)
    assert received("everyone") == [fives, fives]
    assert received("single") == [fives]
    assert received("doubled") == [Counter(A=10, B=10)]
    for component in ("shuffled", "whichever"):
        parts = received(component)
        assert sum(parts, Counter()) == fives
        assert sorted(part.total() for part in parts) == [3, 3, 4]
    assert received("lowest") == [fives, Counter(), Counter()]
    assert topology.left("lowest_sum") == [[0, 0, 2]]
    assert received("three_to_one") == [Counter(A=15, B=15)]
    assert sum(received("three_to_three"), Counter()) == Counter(A=15, B=15)
    assert received("six_to_one") == [Counter(A=30, B=30)]
    counted = received("counts")
    assert sum(counted, Counter()) == Counter(A=200, B=200)
    assert all(set(a).isdisjoint(b) for a, b in [counted])
    assert sum(topology.left("counts_sum")[0]) == 2
    assert [outcome.components[c].acked for c in ("one", "three", "other_three", "many")] == [10, 30, 30, 400]
