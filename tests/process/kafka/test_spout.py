"""Reading topics on real processes: nothing is passed over, whatever dies."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter

import pytest

from tests.process.kafka.conftest import HELD, lag, logs

THROUGH = """
class Made(Topology):
    lines = KafkaSpout({topics}, ["line"], lambda message: [message.value()]{more}).spec(par={par})
    out = KafkaSink("{out}", lambda tup: Record(tup["line"])).spec(inputs=[lines])
    config = {{"topology.message.timeout.secs": 10}}
"""


def through(topics, out, *, par=1, **more) -> str:
    names = "".join(f", {key}={value}" for key, value in more.items())
    named = topics if "(" in topics else repr(topics)
    return THROUGH.format(topics=named, out=out, par=par, more=names)


def values(count, what="record"):
    return [f"{what} {number}".encode() for number in range(count)]


def test_a_bounded_spout_reads_all_once_and_the_next_run_what_is_new(broker, running):
    source, out = broker.topic(4), broker.topic(2)
    broker.write(source, values(5000))
    body = through(source, out, par=2, end="'latest'")
    with running(body) as topology:
        assert topology.finish().state == "SUCCEEDED"
    assert Counter(broker.read(out)) == Counter(values(5000))
    assert sum(broker.committed("Made.lines", source).values()) == 5000
    broker.write(source, values(100, "new"))
    with running(body, lives="b") as topology:
        assert topology.finish().state == "SUCCEEDED"
    assert Counter(broker.read(out)) == Counter(values(5000) + values(100, "new"))


@pytest.mark.thorough
def test_a_spout_begins_and_ends_at_moments(broker, running):
    """What is as old as the first moment is read, what is as old as the last one is not."""
    source, out = broker.topic(2), broker.topic(1)
    began = int(time.time()) - 3600  # the broker removes what is a week old
    for second in range(8):
        broker.write(source, values(2, f"second {second}"), at=began + second)
    start, end = (f"datetime.fromtimestamp({began + second}, UTC)" for second in (2, 5))
    body = "from datetime import UTC, datetime\n" + through(source, out, start=start, end=end)
    with running(body) as topology:
        assert topology.finish().state == "SUCCEEDED"
    assert Counter(broker.read(out)) == Counter(v for second in (2, 3, 4) for v in values(2, f"second {second}"))


def test_tasks_killed_again_and_again_pass_nothing_over_and_go_on_where_they_were(broker, running):
    source, out = broker.topic(4), broker.topic(1)
    broker.write(source, values(2000))
    with running(through(source, out, par=2)) as topology:
        for round_ in range(2):
            expected = 2000 * (round_ + 1)
            topology.until(lambda: len(set(broker.read(out))) >= expected, "all is written")  # noqa: B023
            topology.until(lambda: sum(broker.committed("Made.lines", source).values()) >= expected, "committed")  # noqa: B023
            broker.write(source, [value + b"'" * (round_ + 1) for value in values(2000)])
            for task in ("lines-0", "out-0"):
                topology.faults.kill(task)
        topology.until(lambda: len(set(broker.read(out))) == 6000, "all is written")
        said = logs(topology, "lines-0") + logs(topology, "lines-1")
    assert said.count("from offset 0\n") == 4, "each partition was begun once"


@pytest.mark.thorough
def test_a_task_killed_between_poll_and_ack_begins_again_at_what_is_committed(broker, running, tmp_path):
    """The bolt that holds the records dies with it: only the topic has them."""
    source, out, gate = broker.topic(2), broker.topic(1), tmp_path / "gate"
    broker.write(source, values(200))
    with running(HELD.format(source=source, out=out, gate=gate)) as topology:
        committed = {0: 100, 1: 100}
        topology.until(lambda: broker.committed("Made.lines", source) == committed, "all is committed")
        gate.touch()
        broker.write(source, values(200, "held"))
        topology.until((tmp_path / "gate.held").exists, "a record is held")
        topology.until(lambda: lag(topology) == 200, "they are known, and none is taken for done")
        topology.faults.kill("lines-0")
        topology.faults.kill("hold-0")
        begun = [f"reads {source}[{number}] from offset 100\n" for number in committed]
        topology.until(lambda: all(line in logs(topology, "lines-0") for line in begun), "it has begun again")
        assert broker.committed("Made.lines", source) == committed
        gate.unlink()
        topology.until(lambda: set(broker.read(out)) == {*values(200), *values(200, "held")}, "all is written")


@pytest.mark.thorough
def test_partitions_are_shared_anew_when_tasks_come_and_go(broker, running):
    source, out = broker.topic(4), broker.topic(1)
    written = set()
    with running(through(source, out)) as topology:
        for tasks in (1, 3, 2):
            if tasks > 1:
                scale(topology, f"lines:{tasks}")
            new = values(400, f"with {tasks}:")
            broker.write(source, new)
            written.update(new)
            topology.until(lambda: set(broker.read(out)) == written, "all is written")
            if tasks == 3:
                topology.until(
                    lambda: read(topology, source, 1) and read(topology, source, 2), "they have their shares"
                )
                assert read(topology, source, 1).isdisjoint(read(topology, source, 2))
        topology.until(lambda: sum(broker.committed("Made.lines", source).values()) == 1200, "all is committed")


def read(topology, source: str, task: int) -> set[int]:
    """The partitions that a task of the spout has begun with."""
    return {number for number in range(4) if f"reads {source}[{number}]" in logs(topology, f"lines-{task}")}


def scale(topology, component: str) -> None:
    """The verb; the topology goes on meanwhile."""
    state = topology.folder.parents[1]
    command = [sys.executable, "-P", "-m", "ardea.cli", "update", topology.folder.name, "--state", str(state)]
    verb = subprocess.Popen([*command, "--component-parallelism", component])
    try:
        topology.until(lambda: verb.poll() is not None, f"{component} is there", 150)
        assert verb.returncode == 0
    finally:
        verb.kill()
        verb.wait()


@pytest.mark.thorough
def test_the_broker_is_killed_and_comes_back(mortal, running):
    source, out = mortal.topic(2), mortal.topic(1)
    mortal.write(source, values(20_000))
    with running(through(source, out), topology_max_spout_pending=500) as topology:
        topology.until(lambda: len(mortal.read(out)) > 500, "it works")
        mortal.stop()
        said = topology.until(
            lambda: f"no broker of {mortal.servers} answers" in logs(topology, "lines-0"), "the spout says so"
        )
        assert said
        mortal.start()
        topology.until(lambda: len(set(mortal.read(out))) == 20_000, "all is written", 60)


def test_partitions_and_topics_that_appear_are_read_from_their_first_record(broker, running):
    prefix = broker.topic(1)
    out = broker.topic(1)
    broker.write(prefix, values(10, "old"))
    body = through(f"re.compile('{prefix}(-.*)?')", out, par=2, start="'latest'")
    with running("import re\n" + body) as topology:
        topology.until(lambda: "from offset 10\n" in logs(topology, "lines-*"), "the end is found")
        broker.grow(prefix, 3)
        second = broker.topic(2, f"{prefix}-second")
        for topic in (prefix, second):
            broker.write(topic, values(100, topic))
        expected = Counter(values(100, prefix) + values(100, second))
        topology.until(lambda: Counter(broker.read(out)) == expected, "the new ones are read")
