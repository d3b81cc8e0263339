"""Records through a Trident topology into another topic: each once, while tasks and the broker are killed."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter

import pytest

from ardea.trident import SqliteState
from tests.sizes import size

EXACT = """
from ardea.trident import TridentTopology

topology = TridentTopology("Exact")
spout = KafkaTridentSpout.transactional("{source}", ["line"], lambda m: [m.value()], records={records}, end="latest")
state = KafkaState("{out}", control="{out}-control")
(
    topology.new_stream("lines", spout)
    .parallelism_hint(2)
    .each("line", lambda tup: [tup["line"].upper()], "loud")
    .shuffle()
    .partition_persist(state, "loud", KafkaWriter("{out}", lambda tup: Record(tup["loud"])))
    .parallelism_hint(2)
)
topology.set_config({{"topology.message.timeout.secs": 10, "topology.max.spout.pending": 3}})
Made = topology.build()
"""


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_output_read_committed_equals_the_input_as_a_multiset(mortal, running):
    """With session timeouts: transactions of 10 s, the message timeout."""
    records, kills, crashes = size(60_000, 1_000_000), size(5, 50), size(1, 5)
    source, out = mortal.topic(4), mortal.topic(4)
    mortal.also(f"{out}-control")
    mortal.write(source, (b"line %d" % (number % (records // 2)) for number in range(records)))
    random_ = random.Random(11)
    faults = ["kill"] * kills + ["crash"] * crashes
    random_.shuffle(faults)
    with running(EXACT.format(source=source, out=out, records=size(300, 500)), containers=2) as topology:
        tasks = [name for name in topology.targets.processes if name[:2] in ("sp", "b-", "$m", "$s")]
        for done, fault in enumerate(faults):
            share = records * done // (len(faults) + 1)
            topology.until(lambda: ends(mortal, out) >= share, f"{share} records are written", 300)  # noqa: B023
            if fault == "kill":
                topology.faults.kill(random_.choice(tasks))
            else:
                mortal.stop()
                mortal.start()
        outcome = topology.finish(600)
    assert outcome.state == "SUCCEEDED"
    expected = Counter(b"LINE %d" % (number % (records // 2)) for number in range(records))
    assert Counter(mortal.read(out)) == expected


def ends(broker, topic) -> int:
    """How many offsets the topic has, as far as the broker answers: its records and the markers of transactions."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    try:
        count = len(broker.admin.list_topics(topic, 10).topics[topic].partitions)
        asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(count)}
        return sum(done.result(10).offset for done in broker.admin.list_offsets(asked).values())
    except KafkaException:  # it has just been started again
        return 0


OPAQUE = """
from ardea.trident import Count, SqliteState, TridentTopology

topology = TridentTopology("Opaque")
spout = KafkaTridentSpout.opaque_transactional("{source}", ["word"], lambda m: [m.value()], records=100, start="latest")
(
    topology.new_stream("words", spout)
    .group_by("word")
    .persistent_aggregate(SqliteState.opaque("{counts}"), Count(), "count")
)
topology.set_config({{"topology.message.timeout.secs": 10, "topology.max.spout.pending": 3}})
Made = topology.build()
"""


@pytest.mark.thorough
def test_an_opaque_spout_counts_what_comes_after_its_start_once(mortal, running, tmp_path):
    """From the end of what is there; a partition that appears is read from its first record.  Tasks and broker die."""
    source, counts = mortal.topic(2), tmp_path / "counts.sqlite"
    mortal.write(source, [b"early"] * 50)
    words = [b"word %d" % (number % 7) for number in range(6000)]
    state = SqliteState.opaque(counts)

    def counted() -> dict[bytes, int]:
        try:
            return {key[0]: count for key, count in state.items()}
        except sqlite3.OperationalError:
            return {}  # not there yet, or being made

    with running(OPAQUE.format(source=source, counts=counts)) as topology:
        mortal.write(source, [b"first"] * 2)
        topology.until(lambda: counted() or mortal.write(source, [b"first"] * 2), "it has begun", 60)
        mortal.grow(source, 3)
        mortal.write(source, words)
        for task in ("spout-words-0", "b-0-0", "$spoutcoord-spout-words-0"):
            topology.faults.kill(task)
        mortal.stop()
        mortal.start()
        topology.until(lambda: sum(counted().values()) - counted().get(b"first", 0) >= len(words), "all is counted", 60)
    found = counted()
    found.pop(b"first")
    assert found == Counter(words)
