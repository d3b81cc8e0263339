"""Records of 100 bytes from a topic through a spout to a bolt, acked; against the same client reading them alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from ardea.kafka.client import CONSUMER
from benchmarks.harness import run_topology
from benchmarks.results import BenchmarkError, Case, Comparison, Round, compare

SERVERS = "KAFKA_BOOTSTRAP_SERVERS"
RECORDS = 6_000_000
SIZE = 100
PARTITIONS = 4
PENDING = 100_000
WITHIN = 300.0
RATE = re.compile(r"([\d.]+) records/s")
TOPOLOGY = """
import pyarrow as pa
from confluent_kafka import Message

from ardea import Bolt, Topology
from ardea.kafka import KafkaSpout


class NothingOfRows(Bolt):
    def process(self, tup):
        pass


class NothingOfColumns(Bolt):
    def process_columns(self, columns):
        pass


def values(messages):
    return pa.record_batch({{"value": pa.array(map(Message.value, messages), pa.binary(), size=len(messages))}})


class KafkaBenchmark(Topology):
    records = KafkaSpout("{topic}", ["value"], {translate}, group="{group}").spec()
    bolt = {bolt}.spec(inputs=[records])
    config = {{
        "kafka.bootstrap.servers": "{servers}",
        "topology.max.spout.pending": {pending},
        "topology.executor.batch.rows": {batch},
    }}
"""
KINDS: dict[str, dict[str, Any]] = {
    "rows": {"translate": "lambda message: (message.value(),)", "bolt": "NothingOfRows", "batch": 1000},
    "columns": {"translate": "translate_batch=values", "bolt": "NothingOfColumns", "batch": 8192},
}
ALONE: dict[str, dict[str, Any]] = {"as it comes": {}, "with the spout's settings": CONSUMER}


def rounds(case: Case, count: int) -> list[Comparison]:
    """So many rounds: rows, columns, the client alone as it comes and with the settings that the spout gives it."""
    servers = os.environ.get(SERVERS)
    if servers is None:
        raise BenchmarkError(f"{SERVERS} does not name a broker", hint="`eval $(scripts/kafka.sh up)` starts one.")
    ours: dict[str, list[float]] = {kind: [] for kind in KINDS}
    alone: dict[str, list[float]] = {how: [] for how in ALONE}
    with _topic(servers) as topic:
        for _ in range(count):
            for kind in KINDS:
                ours[kind].append(_ours(servers, topic, kind))
            for how, settings in ALONE.items():
                alone[how].append(_alone(servers, topic, settings))
    case = msgspec.structs.replace(case, pending=PENDING)
    return [
        compare(list(map(Round, ours[kind], alone[how])), f"{kind} against the same client alone, {how}", case)
        for kind in KINDS
        for how in ALONE
    ]


def _ours(servers: str, topic: str, kind: str) -> float:
    """Records acked a second, from the first report that has some to the last one before all are."""
    seen: list[tuple[float, int]] = []
    group = f"benchmark-{uuid.uuid4().hex}"
    source = TOPOLOGY.format(servers=servers, topic=topic, group=group, pending=PENDING, **KINDS[kind])
    with run_topology(lambda _: source) as running:

        def all_acked() -> bool | None:
            acked = running.totals("records").acked
            if acked and (not seen or acked > seen[-1][1]):
                seen.append((time.monotonic(), acked))
            return acked >= RECORDS or None

        running.wait_for(all_acked, "all records were acked", WITHIN)
        running.drain()
    if len(seen) < 4:
        raise BenchmarkError(f"{RECORDS:,} records were acked too fast to be measured")
    (began, first), (ended, last) = seen[0], seen[-2]
    return (last - first) / (ended - began)


def _alone(servers: str, topic: str, settings: dict[str, Any]) -> float:
    command = [sys.executable, "-m", "benchmarks.kafka_alone", servers, topic, str(RECORDS), json.dumps(settings)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN, check=True)
    except subprocess.SubprocessError as error:
        raise BenchmarkError(f"the client alone did not read the topic: {error}") from error
    found = RATE.search(done.stdout)
    if found is None:
        raise BenchmarkError(f"the client alone printed no rate, but {done.stdout!r}")
    return float(found[1])


@contextmanager
def _topic(servers: str) -> Iterator[str]:
    """A topic of so many records, which goes when it is not needed any more."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    topic = f"ardea-benchmark-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(WITHIN)
    try:
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": RECORDS})
        for number in range(RECORDS):
            producer.produce(topic, b"%0*d" % (SIZE, number), partition=number % PARTITIONS)
        producer.flush(WITHIN)
        yield topic
    finally:
        admin.delete_topics([topic])[topic].result(WITHIN)
