"""Every partition has one task, whoever looks, and keeps it."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ardea.kafka.marks import PartitionId
from ardea.kafka.sharing import owner, share, wanted

NAMES = st.text("abc-._", min_size=1, max_size=8)
PLACES = st.lists(st.builds(PartitionId, NAMES, st.integers(0, 40)), unique=True)


@given(PLACES, st.integers(1, 9))
def test_tasks_share_all_partitions_and_none_twice(places, tasks):
    shares = [share(places, index, tasks) for index in range(tasks)]
    assert sorted(place for some in shares for place in some) == sorted(places)


@given(PLACES, PLACES, st.integers(1, 9))
def test_new_partitions_and_topics_move_no_other(before, added, tasks):
    for index in range(tasks):
        assert set(share(before, index, tasks)) <= set(share({*before, *added}, index, tasks))


@given(NAMES, st.integers(1, 60), st.integers(1, 9))
def test_a_topic_is_shared_evenly(topic, partitions, tasks):
    counts = Counter(owner(PartitionId(topic, number), tasks) for number in range(partitions))
    assert max(counts.values()) - min(counts[index] for index in range(tasks)) <= 1


def test_the_owner_is_the_same_in_every_process_and_release():
    assert [owner(PartitionId("lines", number), 4) for number in range(4)] == [1, 2, 3, 0]


def test_names_are_taken_as_they_are_and_patterns_match_whole_names():
    existing = ["orders", "orders.eu", "__consumer_offsets", "reorders"]
    assert wanted(["orders", "missing"], existing) == ["orders"]
    assert wanted(re.compile(r"orders(\..*)?"), existing) == ["orders", "orders.eu"]
    assert wanted(re.compile(r".*"), existing) == ["orders", "orders.eu", "reorders"]
