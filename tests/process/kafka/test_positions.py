"""Effectively once: positions are in snapshots, and a killed spout goes on where the last one was taken."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ardea.snapshots.manifest import decode_manifest, manifest_name
from tests.process.kafka.conftest import logs
from tests.simulation.snapshots.counted import folded

PARTITIONS = 4
COUNTED = """
from ardea import KeyedState

class Count(Bolt):
    counts = KeyedState(default=0)
    def process(self, tup):
        self.counts[tup["line"]] += 1

class Made(Topology):
    lines = KafkaSpout("{source}", ["line"], lambda message: [message.value()]).spec(par=2)
    count = Count.spec(par=2, inputs={{lines: Grouping.fields("line")}})
    config = {{
        "topology.reliability.mode": "EFFECTIVELY_ONCE",
        "topology.stateful.checkpoint.interval.secs": 0.5,
    }}
"""


def lines(partition: int, first: int, end: int) -> list[bytes]:
    return [b"%d/%d" % (partition, number) for number in range(first, end)]


def last(folder: Path) -> tuple[dict[int, int], dict[bytes, int]] | None:
    """Of the newest snapshot that counts: position of each partition, and counts; None: it is being deleted."""
    numbers, positions, counts = {}, {}, {}
    with suppress(FileNotFoundError):
        for path in folder.rglob("*.manifest"):
            term, counter, _ = path.name.split(".")
            numbers[int(term) << 32 | int(counter)] = path
        number = max(numbers)
        manifest, store = decode_manifest(numbers[number].read_bytes(), number), numbers[number].parent
        assert numbers[number].name == manifest_name(number)
        for part in manifest.parts.values():
            tables = folded(((store / file.name).read_bytes(), file.name) for file in part.files)
            positions.update({partition: offset for _, partition, offset in tables.get("positions", ())})
            counts.update(tables.get("counts", {}))
        return positions, counts
    return None


def test_a_killed_spout_goes_on_where_the_last_snapshot_is(broker, running, tmp_path):
    source = broker.topic(PARTITIONS)

    def write(first: int, end: int) -> None:
        for partition in range(PARTITIONS):
            broker.write(source, lines(partition, first, end), partition)

    def told() -> int:
        return sum(broker.committed("Made.lines", source).values())

    write(0, 500)
    with running(COUNTED.format(source=source)) as topology:
        topology.until(lambda: told() == PARTITIONS * 500, "a snapshot with all counts, and the group knows")
        write(500, 1000)
        topology.faults.kill("lines-0")
        write(1000, 1500)
        topology.until(lambda: told() == PARTITIONS * 1500, "a snapshot with all counts")
        positions, counts = topology.until(lambda: last(tmp_path), "a snapshot is read before it is deleted")
        said = logs(topology, "lines-*")
    assert positions == dict.fromkeys(range(PARTITIONS), 1500)
    assert counts == {line: 1 for partition in range(PARTITIONS) for line in lines(partition, 0, 1500)}
    assert said.count("from offset 0\n") == PARTITIONS, "each partition was begun once"
