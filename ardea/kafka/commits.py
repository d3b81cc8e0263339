"""Which records of a spout's task are done, and what their consumer group hears of it."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.kafka.client import Connection, kafka
from ardea.kafka.marks import Marks, Numbers, PartitionId, offsets_by_place, to_commit

COMMIT = 1.0
RENEW = 3600.0


class Commits:
    """Of one task.  Acks are worked off now and then.

    Args:
        group: the consumer group.
        mark: what is written beside each offset.
        marks: of the partitions that are the task's at present.
        numbers: of partitions whose rows come as batches.
    """

    def __init__(
        self, connection: Connection, group: str, mark: str, marks: Mapping[PartitionId, Marks], numbers: Numbers
    ) -> None:
        self._quiet, self._lib, self._group, self._mark = connection.quiet, kafka(), group, mark
        self._marks, self._numbers = marks, numbers
        self._acked: list[Any] = []
        self._acked_numbers: list[NDArray[np.int64]] = []
        self._next = -math.inf
        self._renewed: float | None = None
        self.unconfirmed = 0

    def acked(self, tup_ids: Any) -> None:
        """Records are done."""
        if isinstance(tup_ids, np.ndarray):
            self._acked_numbers.append(tup_ids)
        else:
            self._acked += tup_ids

    def settle(self) -> None:
        """The marks hear of all that is done."""
        acked, self._acked = self._acked, []
        arrays, self._acked_numbers = self._acked_numbers, []
        if self._numbers:  # rows of a batch that were sent again come one by one
            arrays.append(np.array([one for one in acked if type(one) is int], dtype=np.int64))
            acked = [one for one in acked if type(one) is tuple]
        done: defaultdict[PartitionId, list[int]] = defaultdict(list)
        for place, offset in acked:
            done[place].append(offset)
        numbers = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
        by_number = offsets_by_place(numbers)
        for place, marks in self._marks.items():
            marks.done(done[place])
            marks.done(by_number.get(self._numbers.get(place, -1), ()))

    def keep(self, consumer: Any, now: float) -> None:
        """Commits, if that is due; once in a long time all of it, lest the group forget it."""
        if now < self._next:
            return
        self._next = now + COMMIT
        if self._renewed is None:
            self._renewed = now
        elif now >= self._renewed + RENEW:
            self._renewed = now
            for marks in self._marks.values():
                marks.committed = None
        self.commit(consumer)

    def commit(self, consumer: Any) -> None:
        """What has changed."""
        if changed := to_commit(self._marks):
            self.send(consumer, changed)

    def send(self, consumer: Any, offsets: Mapping[PartitionId, int]) -> None:
        """These; :meth:`heard` is told what came of it."""
        points = [self._lib.TopicPartition(*place, offset, self._mark) for place, offset in offsets.items()]
        consumer.commit(offsets=points, asynchronous=True)
        self.unconfirmed += 1

    def heard(self, error: Any, points: list[Any]) -> None:
        """Called by the client, inside ``consume`` and ``poll``."""
        self.unconfirmed -= 1
        for point in points:
            reason = error or point.error
            if reason is None:
                continue
            if (marks := self._marks.get(PartitionId(point.topic, point.partition))) is not None:
                marks.committed = None
            codes = self._lib.KafkaError
            why = reason.str()
            if reason.code() in (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION, codes.REBALANCE_IN_PROGRESS):
                why = "somebody else has subscribed with it"
            self._quiet.say(
                logging.ERROR, "commit", f"offsets cannot be committed to group {self._group}: {why}; tries again"
            )
