"""What is read of the control topic, and when nothing can be said of it; the cluster is a script."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ardea.kafka import control_topic
from ardea.kafka.control_topic import ROUND, ControlTopic, Unread

UNKNOWN, FORBIDDEN = "no such topic", "not permitted"
EOF = 1


class Cluster:
    """Consumer, administrator and connection.  Each look finds the next of ``shown``, and in the end the last again.

    One of these is an error, or how many partitions there are.  Each partition has one record.
    """

    def __init__(self, *shown):
        self.shown, self.now, self.closed = [*shown], 0.0, False

    def open(self, kind, *_):
        return self

    def clock(self):
        return self.now

    def check(self):
        pass

    def refuse(self, error):
        if error == FORBIDDEN:
            raise PermissionError(error)

    def list_topics(self, name, timeout):
        found = self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]
        error, count = (found, 0) if isinstance(found, str) else (None, found)
        return SimpleNamespace(topics={name: SimpleNamespace(error=error, partitions=dict.fromkeys(range(count)))})

    def list_offsets(self, asked, **_):
        return {point: SimpleNamespace(result=lambda: SimpleNamespace(offset=1)) for point in asked}

    def assign(self, points):
        self.assigned = points

    def poll(self, timeout):
        self.now += timeout

    def consume(self, count, timeout):
        self.now += timeout
        return [Message(number) for _, number, _ in self.assigned]

    def close(self):
        self.closed = True


class Message:
    def __init__(self, partition):
        self._partition = partition

    def partition(self):
        return self._partition

    def offset(self):
        return 0

    def error(self):
        return None

    def key(self):
        return b"%d" % self._partition

    def value(self):
        return b"x"


def topic(cluster, monkeypatch):
    lib = SimpleNamespace(
        OFFSET_BEGINNING=-2,
        TopicPartition=lambda *point: point,
        IsolationLevel=SimpleNamespace(READ_UNCOMMITTED=0),
        KafkaError=SimpleNamespace(_PARTITION_EOF=EOF),
    )
    admin = SimpleNamespace(OffsetSpec=SimpleNamespace(latest=lambda: None))
    monkeypatch.setattr(control_topic, "kafka", lambda: lib)
    monkeypatch.setattr(control_topic, "kafka_admin", lambda: admin)
    return ControlTopic("control", "reader", cluster)


@pytest.mark.parametrize("shown", [UNKNOWN, 0])
def test_a_topic_that_no_broker_shows_is_not_taken_for_an_empty_one(shown, monkeypatch):
    cluster = Cluster(shown)
    with pytest.raises(Unread, match="waits for its control topic control, which no broker shows yet"):
        topic(cluster, monkeypatch).read()
    assert cluster.closed


def test_one_that_a_broker_has_not_heard_of_yet_is_awaited(monkeypatch):
    cluster = Cluster(UNKNOWN, UNKNOWN, 2)
    assert topic(cluster, monkeypatch).read() == [(b"0", b"x"), (b"1", b"x")]
    assert cluster.now == pytest.approx(3 * ROUND)


def test_one_that_may_not_be_seen_is_not_awaited(monkeypatch):
    with pytest.raises(PermissionError, match=FORBIDDEN):
        topic(Cluster(FORBIDDEN), monkeypatch).read()
