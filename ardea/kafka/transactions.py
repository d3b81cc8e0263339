"""Intervals of a two-phase sink as Kafka's transactions: their records, and the mark in the control topic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ardea.errors import ArdeaError
from ardea.kafka import control
from ardea.kafka.client import PRODUCER, Connection, kafka
from ardea.kafka.control_topic import ROUND, ControlTopic, Unread
from ardea.kafka.record import Record
from ardea.sinks import Mark

TIMEOUT = 60_000
"""Milliseconds after which the broker gives up a transaction that nobody ends, unless kafka.* says otherwise."""
PATIENCE = 10.0
"""Seconds without an answer after which the interval is tried again, with another producer."""


class NotWrittenError(ArdeaError):
    """An interval was not written, or nobody knows."""


class Transactions:
    """Of one sink.  ``transactional.id`` is the owner of the mark: nobody writes for one who has been replaced."""

    def __init__(self, topic: str, control_topic: str, connection: Connection) -> None:
        self._topic, self._connection, self._lib = topic, connection, kafka()
        self._control_name = control_topic
        self._control: ControlTopic | None = None
        self._producer: Any = None
        self._owner, self._last = "", 0  # whose producer it is, and the number of its owner that is there
        self._refused: list[Any] = []
        self._left, self._since = 0, 0.0  # records that were not confirmed then

    def commit(self, mark: Mark, records: Iterable[Record]) -> int:
        """All or nothing, once; returns how many records were written.

        Raises:
            NotWrittenError: it has to be called again; whatever happened is looked at then.
            ConfigError: somebody has to change the settings or the permissions.
        """
        try:
            if self._producer is None or self._owner != mark.owner:
                self._open(mark)
            return self._write(mark, records) if mark.number > self._last else 0
        except self._lib.KafkaException as error:
            self._connection.check()
            self._connection.refuse(error.args[0])
            refused = f"; refused: {self._refused[0].str()}" if self._refused else ""
            raise NotWrittenError(f"Kafka at {self._connection.servers}: {error.args[0].str()}{refused}") from error

    def _write(self, mark: Mark, records: Iterable[Record]) -> int:
        producer, count = self._producer, 0
        name, committed = f"{mark.topology}/{mark.component}", control.Committed(mark.number, 0)
        self._producer = None  # unless all goes well, the next attempt fences this one and asks what is there
        self._refused.clear()
        self._left = 0
        producer.begin_transaction()
        try:
            for record in records:
                self._produce(producer, record.arguments(self._topic))
                count += 1
            key, value = control.encode(name, mark.task, committed)
            self._produce(producer, {"topic": self._control_name, "key": key, "value": value})
            while len(producer):
                self._await(producer)
            producer.commit_transaction(PATIENCE)
        except BaseException:
            producer.purge()
            raise
        self._producer, self._last = producer, mark.number
        return count

    def close(self) -> None:
        """Nothing is open."""
        self._producer = None

    def _open(self, mark: Mark) -> None:
        """A producer that fences all before it, and then, when nobody else can write, what they have committed."""
        self._producer, self._owner = None, mark.owner
        if self._control is None:
            topic = ControlTopic(self._control_name, "ardea-control", self._connection)
            topic.make()
            self._control = topic
        fixed = {"transactional.id": mark.owner}
        producer = self._connection.open("Producer", PRODUCER | {"transaction.timeout.ms": TIMEOUT}, fixed)
        producer.init_transactions(PATIENCE)
        try:
            found = control.decode(f"{mark.topology}/{mark.component}", self._control.read())
        except Unread as error:
            raise NotWrittenError(f"it {error}") from error
        self._last = found[mark.task].txid if mark.task in found else 0
        self._producer = producer

    def _produce(self, producer: Any, arguments: Mapping[str, Any]) -> None:
        while True:
            try:
                producer.produce(**arguments, on_delivery=self._heard)
                return
            except BufferError:
                self._await(producer)

    def _await(self, producer: Any) -> None:
        """A round of confirmations."""
        producer.poll(ROUND)
        self._connection.check()
        now, left = self._connection.clock(), len(producer)
        if left != self._left:
            self._left, self._since = left, now
        elif now - self._since > PATIENCE:
            what = f"no broker of {self._connection.servers} has confirmed a record for {PATIENCE:g} s"
            raise NotWrittenError(f"{what}; {left:,} wait")

    def _heard(self, error: Any, _: Any) -> None:
        if error is not None:
            self._refused.append(error)
