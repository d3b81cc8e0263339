"""``python -m benchmarks.kafka_alone SERVERS TOPIC RECORDS SETTINGS``: what the client reads, alone."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

CHUNK = 1000


def main(servers: str, topic: str, records: int, settings: dict[str, Any]) -> None:
    consumer = Consumer(
        settings | {"bootstrap.servers": servers, "group.id": "benchmark-alone", "enable.auto.commit": False}
    )
    numbers = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
    read = size = 0
    began = 0.0
    while read < records:
        messages = consumer.consume(CHUNK, 1.0)
        began = began or time.monotonic()
        size += sum(len(message.value()) for message in messages if message.error() is None)
        read += len(messages)
    print(f"{read / (time.monotonic() - began):.0f} records/s, {size:,} bytes")
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]))
