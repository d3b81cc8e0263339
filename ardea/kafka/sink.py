"""A bolt that writes its tuples to topics: exactly once by snapshots, or acking each when the broker has its record."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from ardea.component import Inputs, Spec
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import ArdeaError
from ardea.kafka.client import PRODUCER, Connection, kafka, properties
from ardea.kafka.record import Record, fields_of
from ardea.kafka.source import refuse
from ardea.kafka.transactions import Transactions
from ardea.metrics.user import CountMetric
from ardea.rejections import Rejections, problems
from ardea.sinks import Mark, Row, TwoPhaseSink
from ardea.tuples import Tuple

POLL = 0.05
ROOM = 0.1


class KafkaSink:
    """Writes topics: ``KafkaSink("counts", lambda tup: Record(tup["word"])).spec(inputs=[count])``.

    Guarantees and failures: docs/kafka.md.
    """

    def __init__(
        self,
        topic: str,
        record: Callable[[Tuple], Record | None] = fields_of,
        *,
        control: str = "ardea-control",
        rejected: Literal["fail", "dead-letter"] = "fail",
        dead_letters: str | None = None,
    ) -> None:
        """Nothing is opened.

        Args:
            topic: where records go that do not say otherwise.
            record: what is written for a tuple; None: nothing.
            control: where snapshots are taken: the compacted topic that remembers what is written; made if it is not
                there.
            rejected: what becomes of a record that the broker refuses for itself, where snapshots are taken: ``fail``
                keeps it and all after it until the broker takes it, ``dead-letter`` writes it elsewhere.
            dead_letters: the topic for that; it has to be there.

        Raises:
            TopologyError: a topic is no name.
        """
        given = {"the topic": topic, "control=": control}
        wrong = [
            f"{what} is a name, not {name!r}" for what, name in given.items() if not name or not isinstance(name, str)
        ]
        refuse("KafkaSink", [*wrong, *problems(rejected, dead_letters)])
        self._record = record
        self._given = {"topic": topic, "control": control, "dead_letters": dead_letters}

    def spec(
        self,
        name: str | None = None,
        par: int = 1,
        inputs: Inputs | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        tasks: int | None = None,
        cpu: float | None = None,
        ram: int | str | None = None,
        disk: int | str | None = None,
    ) -> Spec:
        """Places it in a topology, as :meth:`ardea.Component.spec` does."""
        given = {**self._given, "record": staticmethod(self._record)}
        cls: type[SinkBolt] = type("KafkaSink", (SinkBolt,), given)
        return cls.spec(name, par, inputs, config, tasks=tasks, cpu=cpu, ram=ram, disk=disk)


class SinkBolt(TwoPhaseSink):
    """Without snapshots it holds tuples until the client has heard from the broker; a thread waits for that."""

    auto_ack = False
    auto_fail = False
    topic: str
    control: str
    dead_letters: str | None
    record: Callable[[Tuple], Record | None]
    clock: Callable[[], float] = staticmethod(time.monotonic)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Connects."""
        timeout = int(Settings.of(config).message_timeout * 1000)
        self._connection = Connection(properties(config), self.logger, self.clock)
        self._delivered = context.register_metric("kafka-delivered", CountMetric())
        if self.two_phase:
            self.auto_ack = True
            self._set_aside = context.register_metric("kafka-rejected", CountMetric())
            self._transactions = Transactions(self.topic, self.control, self._connection, Rejections(self.dead_letters))
            return
        self._producer = self._connection.open(
            "Producer", PRODUCER | {"enable.idempotence": True, "delivery.timeout.ms": timeout}
        )
        self._lib = kafka()
        self._context = context
        self._settled: deque[tuple[Tuple, Record, Any]] = deque()  # what the broker has said, error or None
        self._failed = context.register_metric("kafka-failed", CountMetric())
        self._called = False  # whether the executor will settle soon
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="kafka-deliveries", daemon=True)
        self._thread.start()

    def row(self, tup: Tuple) -> Row | None:
        """A record's parts."""
        record = self.record(tup)
        return None if record is None else record.row

    def commit(self, mark: Mark | None, rows: Iterable[Row]) -> None:
        """One transaction."""
        assert mark is not None
        written = self._transactions.commit(mark, rows)
        self._delivered.value += written.records
        self._set_aside.value += written.dead_letters

    def disconnect(self) -> None:
        """Ends the producer."""
        self._transactions.close()

    def process_batch(self, rows: Sequence[Tuple]) -> None:
        """Gives the records to the client; waits while it has no room."""
        if self.two_phase:
            super().process_batch(rows)
            return
        record = self.record
        for tup in rows:
            try:
                written = record(tup)
                refused = None if written is None else self._produce(tup, written)
            except ArdeaError:
                raise
            except Exception:
                self.logger.exception("record= cannot make a record of %s", tup.id)
                self.fail(tup)
                continue
            if written is None:
                self.ack(tup)
            elif refused is not None:
                self._fail(tup, written, refused)
        self._settle()

    def flush(self) -> None:
        """Waits until the broker has confirmed or refused everything."""
        if self.two_phase:
            return
        while self._producer.flush(ROOM):
            self._connection.check()
            self._settle()
        self._settle()

    def close(self) -> None:
        """Ends the thread; what is not confirmed is replayed."""
        if self.two_phase:
            return
        self._over.set()
        self._thread.join()
        self._producer.purge()
        self._producer.flush(ROOM)

    def _produce(self, tup: Tuple, record: Record) -> Any:
        """Returns why the client refuses it; None: it does not."""
        on_delivery = partial(self._heard, tup, record)
        arguments = record.traced(tup.traceparent).arguments(self.topic)
        while True:
            try:
                self._producer.produce(**arguments, on_delivery=on_delivery)
                return None
            except self._lib.KafkaException as error:
                return error.args[0]
            except BufferError:
                self._producer.poll(ROOM)  # full: while this task waits, no input is taken, and spouts pause
                self._connection.check()

    def _heard(self, tup: Tuple, record: Record, error: Any, _: Any) -> None:
        """Called by the client, in whichever thread polls."""
        self._settled.append((tup, record, error))

    def _poll(self) -> None:
        while not self._over.is_set():
            self._producer.poll(POLL)
            if (self._settled or self._connection.troubled) and not self._called:
                self._called = True
                self._context.submit(self._settle)

    def _settle(self) -> None:
        self._called = False
        settled = self._settled
        for _ in range(len(settled)):
            tup, record, error = settled.popleft()
            if error is None:
                self._delivered.value += 1
                self.ack(tup)
            else:
                self._fail(tup, record, error)
        self._connection.check()

    def _fail(self, tup: Tuple, record: Record, error: Any) -> None:
        self._connection.refuse(error)
        if error.fatal():
            # The supervisor starts this task again, with a producer that can go on.
            raise RuntimeError(f"Kafka's producer cannot go on: {error.str()}")
        self._failed.incr()
        topic = record.topic or self.topic
        what = f"a record of {record.size:,} bytes for topic {topic} was refused: {error.str()}"
        what += f"; its tuple {tup.id} fails and comes again"
        self._connection.quiet.say(logging.ERROR, (topic, error.code()), what)
        self.fail(tup)
