"""How far partitions are read ahead; the client is a script."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from ardea.kafka import fetching
from ardea.kafka.fetching import Fetcher
from ardea.kafka.marks import PartitionId

PLACE = PartitionId("t", 0)


def message(offset):
    return SimpleNamespace(topic=lambda: "t", partition=lambda: 0, offset=lambda: offset, error=lambda: None)


class Consumer:
    """Of one partition without an end."""

    def __init__(self):
        self.paused, self.at = False, None

    def incremental_assign(self, places):
        self.at = places[0].offset

    def incremental_unassign(self, places):
        self.at = None

    def pause(self, places):
        self.paused = True

    def resume(self, places):
        self.paused = False

    def consume(self, most, seconds):
        if self.paused or self.at is None:
            return []
        self.at += most
        return [message(offset) for offset in range(self.at - most, self.at)]


@pytest.fixture
def consumer(monkeypatch):
    point = lambda topic, partition, offset=None: SimpleNamespace(offset=offset)  # noqa: E731
    monkeypatch.setattr(fetching, "kafka", lambda: SimpleNamespace(TopicPartition=point))
    return Consumer()


def fetcher(consumer, most):
    return Fetcher(SimpleNamespace(check=lambda: None), consumer, most, itertools.count(0, 0.05).__next__)


def offsets(messages):
    return messages and [each.offset() for each in messages]


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("most", [100, 400, 500, 1000])
def test_a_batch_that_is_larger_than_batches_are_now_comes_again(consumer, most, ahead):
    """``records=`` was larger when it was stored.  The partition may be paused already, as enough was read ahead."""
    made = fetcher(consumer, most)
    if ahead:
        made._at(PLACE, 0)
        for _ in range(3):
            made._poll(0.0)
        assert consumer.paused
    assert offsets(made.again(PLACE, 0, 1000, 5.0)) == [*range(1000)]
    assert offsets(made.new(PLACE, 1000, None, 1.0)[0])[0] == 1000


def test_no_more_is_read_ahead_than_two_batches(consumer):
    made = fetcher(consumer, 10)
    made.again(PLACE, 0, 100, 5.0)
    for _ in range(10):
        made._poll(0.0)
    assert (consumer.paused, consumer.at) == (True, 120)
