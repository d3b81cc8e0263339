"""Intervals of a two-phase sink as Kafka's transactions: their records, and the mark in the control topic."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from ardea.errors import ArdeaError
from ardea.kafka import control
from ardea.kafka.client import PRODUCER, Connection, kafka
from ardea.kafka.control_topic import ROUND, ControlTopic, Unread
from ardea.kafka.record import Record
from ardea.rejections import RejectedError, Rejections
from ardea.sinks import Mark, Row

TIMEOUT = 60_000
"""Milliseconds after which the broker gives up a transaction that nobody ends, unless kafka.* says otherwise."""
PATIENCE = 10.0
"""Seconds without an answer after which the interval is tried again, with another producer."""
PIECE = 512 << 10
"""Bytes of a value that one dead letter has: what is too large for its own topic fits into another one in pieces."""


class NotWrittenError(ArdeaError):
    """An interval was not written, or nobody knows."""


class Written(NamedTuple):
    """How many there are now."""

    records: int
    dead_letters: int


class Transactions:
    """Of one sink.  ``transactional.id`` is the owner of the mark: a task that has been replaced cannot write.

    The broker refuses a whole batch of records.  An interval of which a record was refused is tried again with batches
    of one; those that are refused then are known.  When the sink gives them up they are left out, and the others leave
    in whole batches, until one of these is refused, too: batches of one may take longer than a transaction may last.
    """

    def __init__(self, topic: str, control_topic: str, connection: Connection, rejections: Rejections) -> None:
        self._topic, self._connection, self._lib = topic, connection, kafka()
        self._control_name = control_topic
        self._control: ControlTopic | None = None
        self._producer: Any = None
        self._owner, self._last = "", 0  # whose producer it is, and the number of its owner that is there
        self._rejections, self._careful = rejections, False
        self._all_known = False  # whether the rows that were refused are, as far as anybody has seen
        self._refused: list[Any] = []
        self._left, self._since = 0, 0.0  # records that were not confirmed then

    def commit(self, mark: Mark, rows: Iterable[Row]) -> Written:
        """All or nothing, once.

        Raises:
            NotWrittenError: it has to be called again; whatever happened is looked at then.
            RejectedError: likewise; the broker refuses a record for itself.
            ConfigError: somebody has to change the settings or the permissions.
        """
        rejections = self._rejections
        while True:
            known = len(rejections.found)
            try:
                return self._try(mark, rows)
            except ArdeaError as error:
                refused = any(map(self._is_of_row, self._refused))
                if refused:
                    self._all_known = self._careful
                if rejections.gives_up(mark) and (len(rejections.found) > known or (refused and not self._careful)):
                    continue  # without those that are known now, or to find those that are not
                if refused or isinstance(error, RejectedError):
                    rejections.count(mark)
                if refused and rejections.found:
                    raise next(reversed(rejections.found.values())) from error
                raise

    def _try(self, mark: Mark, rows: Iterable[Row]) -> Written:
        all_known = self._all_known and self._rejections.gives_up(mark)
        careful = self._rejections.careful(mark) and not all_known
        self._refused = []  # a producer before this one may still say something
        try:
            if self._producer is None or self._owner != mark.owner or careful is not self._careful:
                self._open(mark, careful=careful)
            return self._write(mark, rows) if mark.number > self._last else Written(0, 0)
        except self._lib.KafkaException as error:
            self._connection.check()
            self._connection.refuse(error.args[0])
            other = self._refused and self._refused[0] is not error.args[0]
            refused = f"; refused: {self._refused[0].str()}" if other else ""
            raise NotWrittenError(f"Kafka at {self._connection.servers}: {error.args[0].str()}{refused}") from error

    def _write(self, mark: Mark, rows: Iterable[Row]) -> Written:
        producer, count, letters = self._producer, 0, 0
        name, committed = f"{mark.topology}/{mark.component}", control.Committed(mark.number, 0)
        self._producer = None  # unless all goes well, the next attempt fences this one and asks what is there
        self._left, self._since = 0, self._connection.clock()
        producer.begin_transaction()
        try:
            for place, row in enumerate(rows):
                refusal = self._give(producer, place, row, mark)
                if refusal is None:
                    count += 1
                    continue
                if not self._rejections.gives_up(mark):
                    raise refusal
                letters += 1
                self._set_aside(producer, mark, row, refusal)
            key, value = control.encode(name, mark.task, committed)
            self._produce(producer, {"topic": self._control_name, "key": key, "value": value})
            while len(producer):
                self._await(producer)
            producer.commit_transaction(PATIENCE)
        except BaseException:
            producer.poll(0)  # what was refused is known
            producer.purge()
            raise
        self._producer, self._last = producer, mark.number
        return Written(count, letters)

    def close(self) -> None:
        """Nothing is open."""
        self._producer = None

    def _open(self, mark: Mark, *, careful: bool) -> None:
        """A producer that fences all before it, and then, when nobody else can write, what they have committed."""
        self._producer, self._owner, self._careful = None, mark.owner, careful
        if self._control is None:
            topic = ControlTopic(self._control_name, "ardea-control", self._connection)
            topic.make()
            self._control = topic
        fixed = {"transactional.id": mark.owner, **({"batch.num.messages": 1} if careful else {})}
        producer = self._connection.open("Producer", PRODUCER | {"transaction.timeout.ms": TIMEOUT}, fixed)
        producer.init_transactions(PATIENCE)
        try:
            found = control.decode(f"{mark.topology}/{mark.component}", self._control.read())
        except Unread as error:
            raise NotWrittenError(f"it {error}") from error
        self._last = found[mark.task].txid if mark.task in found else 0
        self._producer = producer

    # --- a record ---------------------------------------------------------------------------------------------

    def _give(self, producer: Any, place: int, row: Row, mark: Mark) -> RejectedError | None:
        """To the client; returns why the broker has refused it before, or the client does at once."""
        if self._rejections.gives_up(mark) and place in self._rejections.found:
            return self._rejections.found[place]
        heard = partial(self._heard_of, place, row) if self._careful else _heard
        heard = partial(heard, self._refused)
        try:
            self._produce(producer, Record.of(row).arguments(self._topic), heard)
        except self._lib.KafkaException as error:
            if not self._is_of_row(error.args[0]):
                raise
            return self._rejected(row, error.args[0].str())
        except (TypeError, ValueError, OverflowError) as error:  # of what the client takes for a key, a header, a time
            return self._rejected(row, error)
        return None

    def _rejected(self, row: Row, why: object) -> RejectedError:
        _, _, topic, *_ = row
        return RejectedError(row, f"topic {topic or self._topic}", why)

    def _set_aside(self, producer: Any, mark: Mark, row: Row, refusal: RejectedError) -> None:
        """Its parts, as text where the client takes them as they are for none."""
        value, key, topic, _, _, headers = row
        pieces = list(_pieces(_content(value)))
        for number, piece in enumerate(pieces, 1):
            said = [
                *_headers(headers),
                ("ardea-error", refusal.why),
                ("ardea-topic", _content(topic) or self._topic),
                ("ardea-interval", f"{mark.owner}/{mark.number}"),
                ("ardea-part", f"{number}/{len(pieces)}"),
            ]
            letter = {"topic": self._rejections.dead_letters, "key": _content(key), "value": piece, "headers": said}
            self._produce(producer, letter)
        where = f"topic {self._rejections.dead_letters}"
        self._connection.quiet.say(logging.ERROR, "dead letter", f"{refusal}; it goes to {where}")

    def _produce(self, producer: Any, arguments: Mapping[str, Any], heard: Callable[..., None] | None = None) -> None:
        while True:
            try:
                producer.produce(**arguments, on_delivery=heard or partial(_heard, self._refused))
                return
            except BufferError:
                self._await(producer)

    def _await(self, producer: Any) -> None:
        """A round of confirmations."""
        producer.poll(ROUND)
        self._connection.check()
        if self._refused:  # nothing more is sent in this transaction
            raise self._lib.KafkaException(self._refused[0])
        now, left = self._connection.clock(), len(producer)
        if left != self._left:
            self._left, self._since = left, now
        elif now - self._since > PATIENCE:
            what = f"no broker of {self._connection.servers} has confirmed a record for {PATIENCE:g} s"
            raise NotWrittenError(f"{what}; {left:,} wait")

    def _heard_of(self, place: int, row: Row, refused: list[Any], error: Any, message: Any) -> None:
        _heard(refused, error, message)
        if error is not None and self._is_of_row(error):
            self._rejections.found.pop(place, None)  # the last one is the newest
            self._rejections.found[place] = RejectedError(row, f"topic {message.topic()}", error.str())

    def _is_of_row(self, error: Any) -> bool:
        """Whether the record is the reason, and not the broker, the topic or the permissions."""
        codes = self._lib.KafkaError
        return error.code() in {
            codes.MSG_SIZE_TOO_LARGE,
            codes.RECORD_LIST_TOO_LARGE,
            codes.INVALID_RECORD,
            codes._INVALID_DIFFERENT_RECORD,
            codes.INVALID_TIMESTAMP,
            codes.TOPIC_EXCEPTION,
            codes._UNKNOWN_PARTITION,
            codes._INVALID_ARG,
        }


def _heard(refused: list[Any], error: Any, _: Any) -> None:
    """What is purged, the client gives up for another one's sake."""
    if error is not None and error.code() not in (error._PURGE_QUEUE, error._PURGE_INFLIGHT):
        refused.append(error)


def _content(part: Any) -> bytes | None:
    if part is None or isinstance(part, bytes):
        return part
    return (part if isinstance(part, str) else repr(part)).encode(errors="backslashreplace")


def _headers(headers: Any) -> list[tuple[str, bytes | None]]:
    try:
        return [(_name(name), _content(content)) for name, content in headers]
    except (TypeError, ValueError):  # it is no list of pairs
        return [("ardea-headers", _content(headers))]


def _name(name: Any) -> str:
    return str(name).encode(errors="backslashreplace").decode()


def _pieces(content: bytes | None) -> Iterator[bytes | None]:
    if not content:
        yield content
        return
    for begin in range(0, len(content), PIECE):
        yield content[begin : begin + PIECE]
