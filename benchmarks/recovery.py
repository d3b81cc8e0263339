"""How long a task is away after ``kill -9``, with a large state: until it processes rows again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from benchmarks.harness import Running, run_topology
from benchmarks.processes import ProcessTree
from benchmarks.recovery_topology import STORE, VALUE_BYTES, Begun
from benchmarks.results import MIB, BenchmarkError
from benchmarks.state import committed, files_of

ROW_BYTES = VALUE_BYTES + 9
"""Of a key and its value in a file, about."""
LOADED_WITHIN = 900.0
STORED_WITHIN = 600.0
BACK_WITHIN = 300.0
STEP = {"step": "restore"}


class RecoveryResult(msgspec.Struct, frozen=True, kw_only=True):
    """One kill.

    Attributes:
        keys: in the bolt's state.
        bytes: files of the snapshot that it went back to.
        seconds: from the kill to the first row that the next process processed.
        reading: of those, the seconds in which it read its state.
    """

    keys: int
    bytes: int
    seconds: float
    reading: float

    @property
    def rest(self) -> float:
        """Seconds in which it did not read."""
        return self.seconds - self.reading


def rounds(mib: int, count: int) -> list[RecoveryResult]:
    """So many topologies, in each of which the bolt's process is killed once, with about so many MiB of state.

    Raises:
        BenchmarkError: a run gave no result.
    """
    return [_run(mib * MIB // ROW_BYTES) for _ in range(count)]


def _run(keys: int) -> RecoveryResult:
    def source(notes: Path) -> str:
        return f"from benchmarks.recovery_topology import build\n\nTOPOLOGY = build({str(notes)!r}, {keys})\n"

    with run_topology(source) as topology:
        topology.wait_for(lambda: (topology.notes / "loaded").exists() or None, "all keys are there", LOADED_WITHIN)
        _stored(topology)
        size = sum(file.bytes for file in files_of(topology, STORE))
        [former] = [pid for pid, usage in ProcessTree(topology.components).usage().items() if usage.kind == STORE]
        if _noted(topology.notes, "first").keys() != {former}:
            raise BenchmarkError("the process of the bolt has ended before it was killed; its log says why")
        killed = time.monotonic()
        os.kill(former, signal.SIGKILL)
        begun = topology.wait_for(lambda: _next(topology, former), "it processes rows again", BACK_WITHIN)
        reading = topology.wait_for(lambda: _reading(topology, size), "the metrics say how long it read", BACK_WITHIN)
        topology.drain()
        held = [each.keys for each in (begun, *_noted(topology.notes, "last").values())]
        if set(held) != {keys}:
            raise BenchmarkError(f"{keys:,} keys were written, and the bolt holds {held}")
    return RecoveryResult(keys=keys, bytes=size, seconds=begun.at - killed, reading=reading)


def _stored(topology: Running) -> None:
    """Two snapshots later all keys are in the one that counts: one was under way, at most."""
    for _ in range(2):
        before = committed(topology)
        topology.wait_for(lambda: committed(topology) > before or None, "a snapshot counts", STORED_WITHIN)  # noqa: B023


def _next(topology: Running, former: int) -> Begun | None:
    """What the next process says; None: it has processed nothing yet."""
    return next((begun for pid, begun in _noted(topology.notes, "first").items() if pid != former), None)


def _noted(folder: Path, when: str) -> Mapping[int, Begun]:
    """By the pid of the process."""
    paths = [path for path in folder.glob(f"{when}-*") if not path.suffix]
    return {int(path.name.rpartition("-")[2]): msgspec.json.decode(path.read_bytes(), type=Begun) for path in paths}


def _reading(topology: Running, size: int) -> float | None:
    """Once the metrics know of the bolt's next process, which has read all: until then it says 0."""
    read = topology.metric(1, "ardea_instance_state_restored_bytes_total", {"component": STORE})
    if read is None or read < size:
        return None
    return topology.metric(1, "ardea_instance_snapshot_seconds", {"component": STORE, **STEP}) or None


def says(each: RecoveryResult) -> str:
    """For a terminal."""
    return (
        f"{each.keys:,} keys, {each.bytes / MIB:,.0f} MiB: rows are processed {each.seconds:.2f} s after kill -9;"
        f" reading the state took {each.reading:.2f} s of that, all else {each.rest:.2f} s"
    )
