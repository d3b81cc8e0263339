"""Stretches of partitions, as Trident spouts ask for them, against a real broker."""

from __future__ import annotations

import logging
import random
import time
from collections import Counter

import pytest

from ardea.kafka.client import CONSUMER, Connection, properties
from ardea.kafka.fetching import Deleted, Fetcher
from ardea.kafka.marks import PartitionId

FIXED = {"group.id": "test-fetcher", "enable.partition.eof": True, "auto.offset.reset": "error"}


@pytest.fixture
def fetcher(broker):
    connection = Connection(
        properties({"kafka.bootstrap.servers": broker.servers}), logging.getLogger("test"), time.monotonic
    )
    consumer = connection.open("Consumer", CONSUMER, {**FIXED, "enable.auto.commit": False})
    yield Fetcher(connection, consumer, 50, time.monotonic)
    consumer.close()


def test_what_was_read_once_is_read_again_in_any_order(broker, fetcher):
    topic = broker.topic(3)
    broker.write(topic, [b"%d" % number for number in range(3000)])
    random_ = random.Random(3)
    places = [PartitionId(topic, number) for number in range(3)]
    behind = dict.fromkeys(places, 0)
    stretches = []
    while min(behind.values()) < 1000:
        place = random_.choice(places)
        messages, behind_ = fetcher.new(place, behind[place], None, 5.0)
        if stretches and random_.random() < 0.3:
            earlier, begin, end, values = random_.choice(stretches)
            again = fetcher.again(earlier, begin, end, 10.0)
            assert [message.value() for message in again] == values
        stretches.append((place, behind[place], behind_, [message.value() for message in messages]))
        assert len(messages) <= 50
        behind[place] = behind_
    values = Counter(value for *_, some in stretches for value in some)
    assert values == Counter(b"%d" % number for number in range(3000))


def test_nothing_comes_where_nothing_is_and_ends_are_kept(broker, fetcher, deadline):
    topic = broker.topic()
    place = PartitionId(topic, 0)
    assert fetcher.new(place, 0, None, 0.5) == ([], 0)
    broker.write(topic, [b"a", b"b", b"c"])
    messages, behind = deadline(lambda: (found := fetcher.new(place, 0, 2, 0.5))[0] and found, "something is there")
    assert ([message.value() for message in messages], behind) == ([b"a", b"b"], 2)
    assert fetcher.again(place, 1, 1, 0.1) == []
    assert fetcher.again(place, 3, 9, 0.3) is None


def test_deleted_records_are_told(broker, fetcher):
    topic = broker.topic()
    place = PartitionId(topic, 0)
    broker.write(topic, [b"%d" % number for number in range(10)])
    broker.delete_before(topic, 0, 4)
    with pytest.raises(Deleted, match=rf"offset 2 of {topic}\[0\] is wanted, but there are only 4 to 10"):
        fetcher.again(place, 2, 6, 10.0)
    assert len(fetcher.again(place, 4, 6, 10.0)) == 2


def test_a_partition_that_its_topic_gets_is_read(broker, fetcher):
    topic = broker.topic()
    broker.write(topic, [b"a"])
    assert fetcher.span(PartitionId(topic, 0)) == (0, 1)
    broker.grow(topic, 2)
    broker.write(topic, [b"b"], partition=1)
    assert fetcher.span(PartitionId(topic, 1)) == (0, 1)
    messages, behind = fetcher.new(PartitionId(topic, 1), 0, None, 10.0)
    assert ([message.value() for message in messages], behind) == ([b"b"], 1)
