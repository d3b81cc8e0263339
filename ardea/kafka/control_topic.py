"""The compacted topic that remembers which transactions are there: made, and read up to where it ends."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ardea.kafka.client import Connection, kafka, kafka_admin
from ardea.kafka.marks import PartitionId
from ardea.kafka.survey import PATIENCE

ROUND = 0.1
BEGIN = 60.0
"""Seconds that the broker may take to end what a former life has left open."""


class Unread(Exception):  # noqa: N818 -- the reason is a sentence about the topic
    """It cannot be read to its end at present."""


class ControlTopic:
    """Of this name; ``reader`` is the group of its consumers, which commit nothing."""

    def __init__(self, name: str, reader: str, connection: Connection) -> None:
        self.name = name
        self._reader, self._connection, self._lib = reader, connection, kafka()
        self._admin = connection.open("AdminClient")

    def make(self) -> None:
        """If it is not there.

        Raises:
            RuntimeError: it cannot be made.
            ConfigError: we may not.
        """
        new = kafka_admin().NewTopic(self.name, 1, config={"cleanup.policy": "compact"})
        for done in self._admin.create_topics([new], request_timeout=PATIENCE).values():
            try:
                done.result()
            except self._lib.KafkaException as error:
                self._connection.check()
                if error.args[0].code() != self._lib.KafkaError.TOPIC_ALREADY_EXISTS:
                    self._connection.refuse(error.args[0])
                    what = f"the control topic {self.name} cannot be made: {error.args[0].str()}"
                    raise RuntimeError(what) from error

    def read(self) -> list[tuple[Any, Any]]:
        """Keys and values up to where it ends now, also behind transactions of others that are open: ours may be there.

        Raises:
            Unread: no broker shows it yet, or it does not come to its end.
            ConfigError: we may not.
        """
        fixed = {"group.id": self._reader, "enable.partition.eof": True, "isolation.level": "read_committed"}
        consumer = self._connection.open("Consumer", {}, {**fixed, "enable.auto.commit": False})
        records = []
        try:
            left = {number: self._end(number) for number in self._partitions(consumer)}
            beginning = self._lib.OFFSET_BEGINNING
            consumer.assign([self._lib.TopicPartition(self.name, number, beginning) for number in left])
            deadline = self._connection.clock() + BEGIN
            while left:
                if self._connection.clock() > deadline:
                    ends = ", ".join(f"offset {end} of {PartitionId(self.name, place)}" for place, end in left.items())
                    raise Unread(
                        f"waits to read the control topic up to {ends}: no broker sends it, or another writer's"
                        " transaction is open before it, which ends after its transaction.timeout.ms"
                    )
                for message in consumer.consume(1000, ROUND):
                    position = message.offset()
                    if message.error() is None:
                        records.append((message.key(), message.value()))
                        position += 1
                    elif message.error().code() != self._lib.KafkaError._PARTITION_EOF:
                        continue
                    if position >= left.get(message.partition(), math.inf):
                        del left[message.partition()]
                self._connection.check()
        finally:
            consumer.close()
        return records

    def _partitions(self, consumer: Any) -> Iterable[int]:
        """A broker that has just begun, and one that has just heard of it, may not know it yet."""
        deadline = self._connection.clock() + PATIENCE
        while True:
            listed = consumer.list_topics(self.name, PATIENCE).topics.get(self.name)
            if listed is not None and listed.error is not None:
                self._connection.refuse(listed.error)
            elif listed is not None and listed.partitions:
                return list(listed.partitions)
            if self._connection.clock() > deadline:
                raise Unread(f"waits for its control topic {self.name}, which no broker shows yet")
            consumer.poll(ROUND)
            self._connection.check()

    def _end(self, number: int) -> int:
        """Where a partition of it ends, whatever is open there; what readers see as its end may be before that."""
        point, latest = self._lib.TopicPartition(self.name, number), kafka_admin().OffsetSpec.latest()
        asked = self._admin.list_offsets(
            {point: latest}, isolation_level=self._lib.IsolationLevel.READ_UNCOMMITTED, request_timeout=PATIENCE
        )
        return int(asked[point].result().offset)
