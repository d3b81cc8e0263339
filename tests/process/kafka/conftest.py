"""A real broker, and topologies on real processes that use it (docs/kafka.md says which variables name the broker)."""

from __future__ import annotations

import fcntl
import itertools
import os
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.machine import patient
from tests.process.patience import PatientTopology
from tests.process.waiting import eventually

SERVERS = "KAFKA_BOOTSTRAP_SERVERS"
SASL_SERVERS = "ARDEA_KAFKA_SASL_BOOTSTRAP_SERVERS"
CA = "ARDEA_KAFKA_CA"
STOP, START = "ARDEA_KAFKA_STOP", "ARDEA_KAFKA_START"
WAIT = 30.0
HEAD = """
from ardea import Bolt, Grouping, Topology
from ardea.kafka import KafkaSink, KafkaSpout, KafkaState, KafkaTridentSpout, KafkaWriter, Record
"""
HELD = """
import threading
from pathlib import Path

class Hold(Bolt):
    outputs = ["line"]
    def process(self, tup):
        while Path("{gate}").exists():
            Path("{gate}.held").touch()
            threading.Event().wait(0.05)
        self.emit([tup["line"]])

class Made(Topology):
    lines = KafkaSpout("{source}", ["line"], lambda message: [message.value()]).spec()
    hold = Hold.spec(inputs=[lines])
    out = KafkaSink("{out}", lambda tup: Record(tup["line"])).spec(inputs=[hold])
    config = {{
        "topology.enable.message.timeouts": False,
        "topology.max.spout.pending": 100,
        "kafka.session.timeout.ms": 6000,
        "kafka.max.poll.interval.ms": 6000,
    }}
"""


def pytest_collection_modifyitems(items) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.cluster)
            if SERVERS not in os.environ:
                reason = f"no Kafka broker: {SERVERS} is not set; `eval $(scripts/kafka.sh up)` starts one and sets it"
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def in_turn(request) -> Iterator[None]:
    """Two of these tests may run at a time, but whoever kills the broker has it alone."""
    with Path(__file__).open() as shared:
        fcntl.flock(shared, fcntl.LOCK_EX if "mortal" in request.fixturenames else fcntl.LOCK_SH)
        yield


class Broker:
    """What a test does to the broker and its topics."""

    def __init__(self, servers: str, topics: Iterator[int]) -> None:
        from confluent_kafka.admin import AdminClient

        self.servers, self.stopped = servers, False
        self._numbers, self._made = topics, []
        self.admin = AdminClient({"bootstrap.servers": servers})

    def topic(self, partitions: int = 1, name: str | None = None, **config: str) -> str:
        from confluent_kafka.admin import NewTopic

        name = name or f"test-{os.getpid()}-{next(self._numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        for done in self.admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values():
            done.result(WAIT)
        self._made.append(name)
        eventually(lambda: self._count(name) == partitions, WAIT, f"the broker knows {name}")
        return name

    def also(self, topic: str) -> None:
        """A topic that somebody else has made, to be removed."""
        self._made.append(topic)

    def grow(self, topic: str, partitions: int) -> None:
        from confluent_kafka.admin import NewPartitions

        for done in self.admin.create_partitions([NewPartitions(topic, partitions)]).values():
            done.result(WAIT)
        eventually(lambda: self._count(topic) == partitions, WAIT, f"{topic} has grown")

    def configure(self, topic: str, name: str, value: str) -> None:
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        for done in self.admin.incremental_alter_configs([resource]).values():
            done.result(WAIT)

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        from confluent_kafka import TopicPartition

        for done in self.admin.delete_records([TopicPartition(topic, partition, offset)]).values():
            done.result(WAIT)

    def producer(self, **settings):
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.servers, **settings})

    def write(self, topic: str, values, partition: int | None = None, key=None, at: float = 0.0, **settings) -> None:
        """Each value is a record; they go round the partitions, unless one is named.  ``at``: their time, or now."""
        from confluent_kafka import KafkaException

        def confirmed(error, _):
            if error is not None:
                raise KafkaException(error)

        count = self._count(topic)
        producer = self.producer(**{"linger.ms": 20, "queue.buffering.max.messages": 2_000_000, **settings})
        for number, value in enumerate(values):
            place = number % count if partition is None else partition
            producer.produce(topic, value, key, partition=place, on_delivery=confirmed, timestamp=int(at * 1000))
            producer.poll(0)
        assert producer.flush(60) == 0

    def read(self, *topics: str, isolation: str = "read_committed") -> list[bytes]:
        """The values of all records that there are now."""
        return [message.value() for message in self.messages(*topics, isolation=isolation)]

    def messages(self, *topics: str, isolation: str = "read_committed"):
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "test-reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
            }
        )
        try:
            listed = self.admin.list_topics(timeout=WAIT).topics
            places = {(topic, number) for topic in topics for number in listed[topic].partitions}
            consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in places])
            found = []
            while places:
                for message in consumer.consume(10_000, 0.1):
                    if message.error() is None:
                        found.append(message)
                    else:
                        places.discard((message.topic(), message.partition()))
            return found
        finally:
            consumer.close()

    def committed(self, group: str, topic: str) -> dict[int, int]:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": group})
        try:
            points = [TopicPartition(topic, number) for number in range(self._count(topic))]
            points = consumer.committed(points, WAIT)
            return {point.partition: point.offset for point in points}
        finally:
            consumer.close()

    def _count(self, topic: str) -> int:
        return len(self.admin.list_topics(topic, WAIT).topics[topic].partitions)

    def stop(self) -> None:
        self.stopped = True
        _command(STOP)

    def start(self) -> None:
        _command(START)
        self.stopped = False

    def clean(self) -> None:
        there = self.admin.list_topics(timeout=WAIT).topics
        if made := [topic for topic in self._made if topic in there]:
            for done in self.admin.delete_topics(made).values():
                done.result(WAIT)


def _command(variable: str) -> None:
    # Without the mark of this run: the broker is not what a test leaves behind.
    environment = {name: value for name, value in os.environ.items() if name != "ARDEA_TEST_RUN"}
    subprocess.run(
        os.environ[variable], shell=True, check=True, timeout=patient(90), env=environment, stdout=subprocess.DEVNULL
    )


_numbers = itertools.count(1)


@pytest.fixture
def broker() -> Iterator[Broker]:
    broker = Broker(os.environ[SERVERS], _numbers)
    yield broker
    broker.clean()


@pytest.fixture
def mortal(broker: Broker) -> Iterator[Broker]:
    """A broker that can be stopped and started."""
    if STOP not in os.environ or START not in os.environ:
        pytest.skip(f"{STOP} and {START} do not say how the broker is stopped and started")
    yield broker
    if broker.stopped:  # the test has failed; those after it need not
        broker.start()


class Running:
    """Makes topologies of a few lines."""

    def __init__(self, folder: Path, servers: str) -> None:
        self.folder, self.servers = folder, servers

    def __call__(self, body: str, *, containers: int = 1, lives: str = "a", **config) -> PatientTopology:
        """``body`` is what follows the imports; ``t_x_y`` stands for the key ``t.x.y``."""
        file = self.folder / "made.py"
        file.write_text(HEAD + textwrap.dedent(body))
        settings = {key.replace("_", "."): value for key, value in config.items()}
        settings = {"kafka.bootstrap.servers": self.servers, "topology.stmgrs": containers, **settings}
        return PatientTopology(f"{file}:Made", self.folder / lives, containers=containers, config=settings)


@pytest.fixture
def running(tmp_path: Path, broker: Broker) -> Running:
    return Running(tmp_path, broker.servers)


def logs(topology: PatientTopology, task: str) -> str:
    """What a task has logged."""
    return "".join(path.read_text() for path in topology.folder.glob(f"container-*/logs/{task}.log*"))


def lag(topology: PatientTopology) -> float | None:
    """Records between what is committed and the end, of all partitions that its containers tell of; None: of none."""
    found = []
    for port in topology.folder.glob("container-*/metrics.port"):
        with urlopen(f"http://127.0.0.1:{port.read_text().strip()}/metrics", timeout=10) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        found += [
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == "ardea_user_value" and sample.labels["metric"].startswith("kafka-lag/")
        ]
    return sum(found) if found else None
