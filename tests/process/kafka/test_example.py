"""The examples, and the page's first steps."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.process.pages import Reader
from tests.process.patience import PatientTopology

ROOT = Path(__file__).parents[3]


def test_words_of_a_topic_are_counted_into_another(broker, tmp_path):
    lines = (ROOT / "LICENSE").read_text().splitlines()
    broker.topic(2, "lines")
    broker.topic(2, "word-counts")
    broker.write("lines", lines)
    expected = Counter(word for line in lines for word in re.findall(r"\w+", line.lower()))
    config = {"kafka.bootstrap.servers": broker.servers}
    with PatientTopology(str(ROOT / "examples/kafka_word_count.py"), tmp_path, containers=2, config=config) as topology:
        topology.until(lambda: len(broker.read("word-counts")) >= expected.total(), "all words are counted", 60)
    counts: dict[str, int] = {}
    for message in broker.messages("word-counts"):
        word = message.key().decode()
        counts[word] = max(counts.get(word, 0), int(message.value()))
    assert counts == expected


@pytest.mark.thorough
def test_each_word_of_a_topic_is_written_once_though_its_writers_die(broker, tmp_path):
    lines = (ROOT / "LICENSE").read_text().splitlines()
    broker.topic(2, "lines-once")
    broker.topic(2, "words-once")
    broker.also("words-control")
    broker.write("lines-once", lines)
    text = (ROOT / "examples/kafka_exactly_once.py").read_text()
    for named, here in (
        ('"lines", ["line"]', '"lines-once", ["line"]'),
        ('KafkaWriter("words"', 'KafkaWriter("words-once"'),
        ('KafkaState("words")', 'KafkaState("words", control="words-control")'),
    ):
        assert named in text
        text = text.replace(named, here)
    (tmp_path / "exactly_once.py").write_text(text)
    expected = Counter(word for line in lines for word in re.findall(r"\w+", line.lower()))
    config = {"kafka.bootstrap.servers": broker.servers}
    with PatientTopology(f"{tmp_path}/exactly_once.py", tmp_path, containers=2, config=config) as topology:
        topology.ready()
        for task in (name for name in topology.targets.processes if name.startswith("b-")):
            topology.faults.kill(task)
        topology.until(lambda: len(broker.read("words-once")) >= expected.total(), "all words are written", 90)
        assert Counter(value.decode() for value in broker.read("words-once")) == expected


@pytest.mark.thorough
def test_the_first_steps_of_the_page(broker, tmp_path):
    broker.topic(1, "sayings")
    broker.topic(1, "loud-sayings")
    reader = Reader(tmp_path, {"localhost:9092": broker.servers})
    reader.follow("docs/kafka.md", until="## Reading")
    assert reader.typed[-1] == "python client.py show"
