"""The example: the last count of each word is that of the whole text."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from ardea.testing.kit import LocalTopology

ROOT = Path(__file__).parents[3]


def test_words_of_a_topic_are_counted_into_another(broker, tmp_path):
    lines = (ROOT / "LICENSE").read_text().splitlines()
    broker.topic(2, "lines")
    broker.topic(2, "word-counts")
    broker.write("lines", lines)
    expected = Counter(word for line in lines for word in re.findall(r"\w+", line.lower()))
    config = {"kafka.bootstrap.servers": broker.servers}
    with LocalTopology(str(ROOT / "examples/kafka_word_count.py"), tmp_path, containers=2, config=config) as topology:
        topology.until(lambda: len(broker.read("word-counts")) >= expected.total(), "all words are counted", 60)
    counts: dict[str, int] = {}
    for message in broker.messages("word-counts"):
        word = message.key().decode()
        counts[word] = max(counts.get(word, 0), int(message.value()))
    assert counts == expected
