"""What a look at topics asks of brokers, and what it finds, where some partitions are not answered."""

from __future__ import annotations

import pytest

from ardea.errors import FailedException
from ardea.kafka.marks import PartitionId
from ardea.kafka.reach import NEWS, Reach

PATIENCE = 5.0


class Broker:
    """Partitions of the topic ``t`` by number; one whose end is None has no leader, and takes its time to say so."""

    def __init__(self, *ends, end=None):
        self.now, self.ends, self.asked = 0.0, [*ends], []
        self.reach = Reach(self.names, self.end_of, end, lambda: self.now)

    def names(self):
        return [f"t/{number}" for number in range(len(self.ends))]

    def end_of(self, place):
        self.asked.append(place.partition)
        self.now += PATIENCE if self.ends[place.partition] is None else 0.0
        return self.ends[place.partition]

    def look(self, *positions):
        """Which were asked, and what was found."""
        self.now, self.asked = self.now + NEWS, []
        assert self.reach.due
        self.reach.look({f"t/{number}": [0, position] for number, position in enumerate(positions)})
        assert not self.reach.due, "the next look is not at once"
        return self.asked, self.reach.ready, self.reach.over


@pytest.mark.parametrize("end", [None, "latest", {PartitionId("t", number): 7 for number in range(60)}])
def test_where_nobody_answers_a_look_waits_once(end):
    broker = Broker(*[None] * 60, end=end)
    asked = [broker.look(*[7] * 60) for _ in range(60)]
    assert asked == [([number], False, False) for number in range(60)]
    broker.ends = [7] * 60
    assert broker.look(*[7] * 60)[1:] == (False, end is not None)
    assert broker.look(*[7] * 60)[0] == [*range(60)]


UNREAD_AND_READ = {PartitionId("t", number): end for number, end in enumerate((10, 20, 10, 20))}


@pytest.mark.parametrize("end", [None, UNREAD_AND_READ])
@pytest.mark.parametrize(("number", "news"), [(1, 12), (2, 9), (3, 6)])
def test_a_partition_that_is_never_answered_keeps_nobody_waiting(end, number, news):
    """The first two have no leader: one has one again, or another one is made anew, or gets a record."""
    broker = Broker(None, None, 10, 5, end=end)
    positions = [10, 10, 10, 5]
    for _ in range(4):
        assert broker.look(*positions)[1:] == (False, False)
    broker.ends[number] = news
    assert any(broker.look(*positions)[1] for _ in range(2))


def test_a_stream_is_over_once_all_are_known_to_be_at_their_ends():
    broker = Broker(3, None, end={PartitionId("t", 0): 3, PartitionId("t", 1): 3})
    assert broker.look(3, 3) == ([0, 1], False, False)
    broker.ends[1] = 2
    assert broker.look(3, 3)[1:] == (True, False), "a new topic of that name: a batch finds it out"
    broker.ends[1] = 3
    assert broker.look(3, 3)[1:] == (False, True)
    assert broker.look(3)[1:] == (True, False), "one without a position is to be read"


def test_partitions_that_cannot_be_listed_are_listed_again_a_while_later():
    broker = Broker(3)

    def fails():
        broker.now += PATIENCE
        raise FailedException("no broker answers")

    broker.reach = Reach(fails, broker.end_of, None, lambda: broker.now)
    assert broker.look(0) == ([], False, False)
