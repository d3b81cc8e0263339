"""Counts the words of a Kafka topic, and writes each new count to another.

    ardea run examples/kafka_word_count.py --set kafka.bootstrap.servers=localhost:9092

Reads the topic ``lines`` from where it was left, until Ctrl-C, and writes to ``word-counts``: word as key, its count
as value.  Needs ``pip install 'ardea[kafka]'``, and a broker that has both topics or makes them when they are used.
"""

from __future__ import annotations

import re
from collections import Counter

from ardea import Bolt, Grouping, Topology
from ardea.kafka import KafkaSink, KafkaSpout, Record

words_in = re.compile(r"\w+").findall


class Split(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit_many(zip(words_in(tup["line"].lower())))


class Count(Bolt):
    outputs = ["word", "count"]

    def initialize(self, config, context):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["word"]] += 1
        self.emit([tup["word"], self.counts[tup["word"]]])


class KafkaWordCount(Topology):
    lines = KafkaSpout("lines", ["line"], lambda message: [message.value().decode()]).spec()
    split = Split.spec(inputs=[lines], par=2)
    count = Count.spec(inputs={split: Grouping.fields("word")}, par=2)
    written = KafkaSink("word-counts", lambda tup: Record(str(tup["count"]), tup["word"])).spec(inputs=[count])
    config = {"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2}  # on a cluster
