"""A Trident state that is a topic: each batch is one Kafka transaction in each of its tasks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ardea.config import Settings
from ardea.errors import FailedException
from ardea.kafka import control
from ardea.kafka.client import PRODUCER, Connection, kafka, properties
from ardea.kafka.control_topic import BEGIN, ROUND, ControlTopic, Unread
from ardea.kafka.record import Record
from ardea.kafka.source import refuse
from ardea.kafka.survey import PATIENCE
from ardea.trident.operations import Collector
from ardea.trident.state import State, StateFactory, StateUpdater
from ardea.trident.tuples import TridentTuple


class KafkaState(StateFactory):
    """Writes each batch in one Kafka transaction.  Guarantees and failures: docs/kafka.md."""

    def __init__(self, name: str, *, control: str = "ardea-control") -> None:
        """Nothing is opened.

        Args:
            name: unique among those who use the cluster; ``transactional.id`` is ``NAME-PARTITION``.
            control: the compacted topic that remembers transactions; made if it is not there.

        Raises:
            TopologyError: an argument is wrong.
        """
        given = {"the name": name, "control=": control}
        refuse(
            "KafkaState",
            [f"{what} is a text, not {v!r}" for what, v in given.items() if not v or not isinstance(v, str)],
        )
        self._name, self._control = name, control

    def make_state(self, config: Mapping[str, Any], partition_index: int, num_partitions: int) -> TopicState:
        """Fences former lives of the partition, and reads what they have committed."""
        return TopicState(self._name, self._control, config, partition_index, num_partitions)


class TopicState(State):
    """One partition of a state.  Writes between ``begin_commit`` and ``commit``, unless the transaction is there."""

    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(self, name: str, control_topic: str, config: Mapping[str, Any], partition: int, count: int) -> None:
        self._name, self._control, self._partition, self._count = name, control_topic, partition, count
        self._lib = kafka()
        self._defaults = PRODUCER | {"transaction.timeout.ms": int(Settings.of(config).message_timeout * 1000)}
        logger = logging.getLogger(f"{name}-{partition}")
        self._connection = Connection(properties(config), logger, self.clock)
        self._control_topic = ControlTopic(control_topic, name, self._connection)
        self._control_topic.make()
        self._producer: Any = None
        self._begun = False
        self._written = True  # whether there is nothing to write in this transaction
        self._txid = 0
        self._refused: list[Any] = []
        self._last = 0
        with suppress(FailedException), self._said():  # a task that fails as it begins would end its process
            self._open()

    def begin_commit(self, txid: int) -> None:
        """Begins a transaction of Kafka's, unless this one was committed before.

        Raises:
            FailedException: it cannot be begun now, or the state is ahead.
        """
        with self._said():
            self._give_up()
            if self._producer is None:
                self._open()
            self._txid = txid
            self._written = control.is_committed(self._name, txid, self._last)
            if not self._written:
                self._try(self._producer.begin_transaction)
                self._begun = True

    def write(self, topic: str, records: Sequence[Record]) -> None:
        """Gives records to the client; waits while it has no room.

        Raises:
            FailedException: the client refuses one of them.
        """
        if self._written:
            return
        with self._said():
            for record in records:
                self._produce(record.arguments(topic))

    def commit(self, txid: int) -> None:
        """All or nothing.

        Raises:
            FailedException: nothing was written, or it is not known; the batch comes again, and finds out.
        """
        if self._written:
            return
        committed = control.Committed(txid, self._count)
        key, value = control.encode(self._name, self._partition, committed)
        with self._said():
            self._produce({"topic": self._control, "key": key, "value": value})
            self._try(self._producer.commit_transaction)
        self._begun = False
        self._last = txid

    def close(self) -> None:
        """What is not committed is given up."""
        self._give_up()

    @contextmanager
    def _said(self) -> Iterator[None]:
        """The engine does not log why a batch fails: authors may mean it."""
        try:
            yield
        except FailedException as failed:
            self._connection.quiet.say(logging.ERROR, "failed", f"{failed.message}; the batch fails and comes again")
            raise

    # --- the client -------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """A producer that fences all before it, and then, when nobody else can write, what they have committed."""
        fixed = {"transactional.id": f"{self._name}-{self._partition}"}
        producer = self._connection.open("Producer", self._defaults, fixed)
        try:
            producer.init_transactions(BEGIN)
            found = control.decode(self._name, self._control_topic.read())
            self._last = control.resume(self._name, found, self._partition, self._count)
        except Unread as error:
            raise FailedException(f"state {self._name} {error}") from error
        except self._lib.KafkaException as error:
            self._connection.check()
            self._connection.refuse(error.args[0])
            raise FailedException(f"state {self._name} cannot begin: {error.args[0].str()}") from error
        self._producer = producer

    def _try(self, step: Callable[[], None]) -> None:
        """A step of the transaction; its outcome may be unknown when it fails, so that the next batch begins anew."""
        try:
            step()
        except self._lib.KafkaException as error:
            reason = error.args[0]
            self._connection.check()
            self._connection.refuse(reason)
            if reason.code() in (self._lib.KafkaError._FENCED, self._lib.KafkaError.INVALID_PRODUCER_EPOCH):
                # The supervisor starts this task again, if it is still the one.
                self._producer, self._begun = None, False
                raise FailedException(f"another task has taken over {self._name}-{self._partition}") from error
            if not reason.txn_requires_abort():
                self._producer, self._begun = None, False
            refused = f"; refused: {self._refused[0].str()}" if self._refused else ""
            raise FailedException(f"transaction {self._txid} of {self._name}: {reason.str()}{refused}") from error

    def _produce(self, arguments: Mapping[str, Any]) -> None:
        while True:
            try:
                self._producer.produce(**arguments, on_delivery=self._heard)
                return
            except BufferError:
                self._producer.poll(ROUND)
                self._connection.check()
            except self._lib.KafkaException as error:
                reason = error.args[0].str()
                raise FailedException(f"a record for {arguments['topic']} was refused: {reason}") from error

    def _heard(self, error: Any, _: Any) -> None:
        if error is not None:
            self._refused.append(error)

    def _give_up(self) -> None:
        """Aborts what a former attempt has left open."""
        self._refused.clear()
        if not self._begun:
            return
        self._begun = False
        try:
            self._producer.abort_transaction(PATIENCE)
        except self._lib.KafkaException as error:
            self._connection.logger.warning("transaction %d could not be aborted: %s", self._txid, error.args[0].str())
            self._producer = None  # the next one fences it


class KafkaWriter(StateUpdater):
    """Writes the tuples of a batch; emits nothing."""

    def __init__(self, topic: str, record: Callable[[TridentTuple], Record | None]) -> None:
        """Where records go that do not say otherwise, and what is written for a tuple; None: nothing."""
        self._topic, self._record = topic, record

    def update_state(self, state: TopicState, tuples: Sequence[TridentTuple], collector: Collector) -> None:  # noqa: ARG002
        """All of one batch."""
        records = map(self._record, tuples)
        state.write(self._topic, [record for record in records if record is not None])
