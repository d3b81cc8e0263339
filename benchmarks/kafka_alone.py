"""``python -m benchmarks.kafka_alone SERVERS TOPIC RECORDS``: what the client reads when it does nothing else."""

from __future__ import annotations

import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

CHUNK = 1000


def main(servers: str, topic: str, records: int) -> None:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "benchmark-alone", "enable.auto.commit": False})
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
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
