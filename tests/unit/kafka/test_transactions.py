"""Which attempts an interval takes of which the broker refuses records; the broker is a script."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ardea.errors import ArdeaError
from ardea.kafka import transactions
from ardea.kafka.record import Record
from ardea.kafka.transactions import Transactions, Written
from ardea.rejections import RETRIES, Rejections
from ardea.sinks import Mark

BATCH = 10
REQUESTS = 50
"""That a transaction has time for."""
CODES = (
    "MSG_SIZE_TOO_LARGE",
    "RECORD_LIST_TOO_LARGE",
    "INVALID_RECORD",
    "_INVALID_DIFFERENT_RECORD",
    "INVALID_TIMESTAMP",
    "TOPIC_EXCEPTION",
    "_UNKNOWN_PARTITION",
    "_INVALID_ARG",
)


class Error:
    _PURGE_QUEUE, _PURGE_INFLIGHT = "purged", "purged in flight"

    def __init__(self, code):
        self._code = code

    def code(self):
        return self._code

    def str(self):
        return self._code


class RefusedError(Exception):
    """As the client raises it."""


class Producer:
    """A batch leaves with each poll; ``out`` takes no record whose value is in ``bad``."""

    def __init__(self, settings, bad, there):
        self._most, self._bad, self._there = settings.get("batch.num.messages", BATCH), bad, there
        self._waiting, self._sent, self._requests = [], [], 0

    def __len__(self):
        return len(self._waiting)

    def init_transactions(self, timeout):
        pass

    def begin_transaction(self):
        self._sent, self._requests = [], 0

    def produce(self, topic, value, on_delivery, **_):
        self._waiting.append((topic, value, on_delivery))

    def poll(self, timeout):
        batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        self._requests += 1
        error = None
        if self._requests > REQUESTS:
            error = Error("TIMED_OUT")
        elif any(topic == "out" and value in self._bad for topic, value, _ in batch):
            error = Error("MSG_SIZE_TOO_LARGE")
        for topic, value, heard in batch:
            heard(error, SimpleNamespace(topic=lambda topic=topic: topic))
            if error is None and topic != "control":
                self._sent.append((topic, value))

    def commit_transaction(self, timeout):
        self._there += self._sent

    def purge(self):
        self._waiting.clear()


@pytest.mark.parametrize("bad", [{b"3"}, {b"3", b"4"}, {b"3", b"30"}], ids=["one", "neighbours", "apart"])
def test_when_refused_records_are_known_the_others_leave_in_whole_batches(bad, monkeypatch):
    """One by one they would not be there before the transaction's time is over."""
    there, opened = [], []

    def opens(kind, defaults, fixed):
        opened.append(fixed)
        assert len(opened) < 10, "each attempt finds one more, or is the last"
        return Producer(fixed, bad, there)

    connection = SimpleNamespace(
        open=opens,
        clock=lambda: 0.0,
        check=lambda: None,
        refuse=lambda error: None,
        quiet=SimpleNamespace(say=lambda *_: None),
        servers="here:9092",
    )
    lib = SimpleNamespace(KafkaException=RefusedError, KafkaError=SimpleNamespace(**{code: code for code in CODES}))
    monkeypatch.setattr(transactions, "kafka", lambda: lib)
    control = SimpleNamespace(make=lambda: None, read=list)
    monkeypatch.setattr(transactions, "ControlTopic", lambda *_: control)
    made = Transactions("out", "control", connection, Rejections("letters"))
    values = [b"%d" % number for number in range(2 * REQUESTS)]
    rows, mark = [Record(value).row for value in values], Mark("t-1", "sink", 0, 1)
    for _ in range(RETRIES):
        with pytest.raises(ArdeaError, match="MSG_SIZE_TOO_LARGE"):
            made.commit(mark, rows)
    assert there == []
    assert made.commit(mark, rows) == Written(len(values) - len(bad), len(bad))
    assert sorted(there) == sorted(("letters" if value in bad else "out", value) for value in values)
