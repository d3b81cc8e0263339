"""Writes each word of a Kafka topic to another topic exactly once, whatever dies meanwhile.

    ardea run examples/kafka_exactly_once.py --set kafka.bootstrap.servers=localhost:9092

Reads the topic ``lines`` from its beginning, until Ctrl-C, and goes on there when it is run again.  A consumer
with ``isolation.level=read_committed`` finds each word once in the topic ``words``.  Needs
``pip install 'ardea[kafka]'``, and a broker that has both topics.
"""

from __future__ import annotations

import re

from ardea.kafka import KafkaState, KafkaTridentSpout, KafkaWriter, Record
from ardea.trident import TridentTopology

words_in = re.compile(r"\w+").findall

topology = TridentTopology("KafkaExactlyOnce")
topology.set_config({"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2})  # on a cluster
(
    topology.new_stream("lines", KafkaTridentSpout.transactional("lines", ["line"], lambda m: [m.value().decode()]))
    .each("line", lambda tup: words_in(tup["line"].lower()), "word")
    .partition_by("word")
    .partition_persist(KafkaState("words"), "word", KafkaWriter("words", lambda tup: Record(tup["word"])))
    .parallelism_hint(2)
)
KafkaExactlyOnce = topology.build()
