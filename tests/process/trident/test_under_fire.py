"""Words of growing files, counted by transactional and by opaque spouts at once, while processes die or stand still.

A seed decides who and when; it is printed.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import redis

import ardea.scheduler.local_processes
from ardea.drpc import DrpcClient
from ardea.errors import ArdeaError
from ardea.state import FileState
from ardea.trident import MemcachedState, RedisState, SqliteState
from tests.process.patience import PatientTopology
from tests.process.waiting import eventually
from tests.sizes import size

from .servers import memcached, redis_server

pytestmark = [pytest.mark.cluster]

SEED = 7
KILLS, FREEZES = size(10, 100), size(4, 20)
WORDS = size(3_000, 10_000)
"""That are written before each fault."""
FILES = 3
VOCABULARY = [f"word{number}" for number in range(300)]
KINDS = ("transactional", "opaque")
COMMITTER = re.compile(r"b-[01]-(\w+)-(\d)")
OUTLIVING = Path(__file__).parent / "outliving.py"
SOURCE = """
import signal
import threading
from pathlib import Path

from ardea.trident import (
    Count, DirectorySpout, LRUMemoryMapState, MapGet, MemcachedState, MemoryMapState, RedisState, SqliteState,
    TridentTopology,
)
from ardea.trident.sqlite import SqliteMap


class Pausing(SqliteMap):
    def multi_put(self, keys, values):
        told = Path(f"{self._path}-{self._partition}")
        if told.exists():
            told.unlink()
            # It has read, and not yet written.  A signal to the process could reach another thread first.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        super().multi_put(keys, values)


class PausingState(SqliteState):
    def open(self, partition, partitions):
        return Pausing(self._path, partition, partitions, self._kind.wrap)


class Memory:  # of opaque values, whatever the spout
    transactional = opaque = MemoryMapState


class Lru:
    transactional = opaque = LRUMemoryMapState


HERE = Path(__file__).parent
topology = TridentTopology("Fire")
topology.set_config({"topology.max.spout.pending": 3, "topology.trident.batch.emit.interval.millis": 0})
spouts = {"transactional": DirectorySpout.transactional, "opaque": DirectorySpout.opaque_transactional}
counts = {}
for kind, spout in spouts.items():
    counts[kind] = (
        topology.new_stream(kind, spout(HERE / "in", lines=30, follow=True))
        .name(kind)
        .each("line", lambda tup: tup["line"].split(), "word")
        .group_by("word")
        .persistent_aggregate(getattr(STORE, kind)(*ARGUMENTS), Count(), "count")
        .parallelism_hint(2)
    )
QUERIES
Fire = topology.build()
"""
QUERIES = """
for kind in spouts:
    (
        topology.new_drpc_stream(kind)
        .each("args", lambda tup: tup["args"].split(), "word")
        .group_by("word")
        .state_query(counts[kind], "word", MapGet(), "count")
        .project(["word", "count"])
    )
"""


class Store:
    """Where counts are.  ``queries``: how a topology that ``holds`` them itself is asked."""

    source: tuple[str, str]
    queries = ""
    holds = False
    outlives_server = False

    def close(self) -> None:
        """Most have no server."""


class InSqlite(Store):
    """Counts that outlive every process."""

    source = "PausingState", 'HERE / f"{kind}.sqlite"'

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def counted(self, kind: str) -> Counter[str]:
        try:
            items = getattr(SqliteState, kind)(self._folder / f"{kind}.sqlite").items()
            return Counter({word: count for (word,), count in items})
        except sqlite3.OperationalError:
            return Counter()  # not there yet, or being made


class InRedis(Store):
    """Counts that outlive every process, the server too."""

    outlives_server = True

    def __init__(self, folder: Path) -> None:
        (folder / "redis").mkdir()
        self._server = redis_server(folder / "redis")
        self._url = f"redis://127.0.0.1:{self._server.port}"
        self.source = "RedisState", f"'{self._url}', kind"

    def counted(self, kind: str) -> Counter[str]:
        try:
            return Counter({word: count for (word,), count in getattr(RedisState, kind)(self._url, kind).items()})
        except redis.RedisError:
            return Counter()  # it has just been started again

    def kill_server(self) -> None:
        """And another one in its place."""
        self._server.kill()
        self._server.start()

    def close(self) -> None:
        self._server.kill()


class InMemcached(Store):
    """Counts that outlive every process but the server."""

    def __init__(self, _folder: Path) -> None:
        self._server = memcached()
        self._address = f"127.0.0.1:{self._server.port}"
        self.source = "MemcachedState", f"'{self._address}', kind"

    def counted(self, kind: str) -> Counter[str]:
        values = getattr(MemcachedState, kind)(self._address, kind).get([(word,) for word in VOCABULARY])
        return Counter({word: count for word, count in zip(VOCABULARY, values, strict=True) if count is not None})

    def close(self) -> None:
        self._server.kill()


class InMemory(Store):
    """Counts that outlive every process but the tasks that hold them, which are asked for them."""

    source = "Memory", ""
    queries = QUERIES
    holds = True

    def __init__(self, folder: Path) -> None:
        self._state = str(folder / "ardea" / "state")

    def counted(self, kind: str) -> Counter[str]:
        try:
            rows = DrpcClient.find(self._state, "Fire", kind).execute(kind, " ".join(VOCABULARY), 10)
        except ArdeaError:
            return Counter()  # who asks, or who is asked, has just been killed
        return Counter({word: count for word, count in rows if count is not None})


class InLru(InMemory):
    """The same, with room for all of them."""

    source = "Lru", str(len(VOCABULARY))


STORES = {"sqlite": InSqlite, "redis": InRedis, "memcached": InMemcached, "memory": InMemory, "lru": InLru}


class Fire:
    """The topology, its growing input, and what it has counted of it."""

    def __init__(self, folder: Path, store: str = "sqlite") -> None:
        print(f"seed {SEED}")
        self.dice = random.Random(SEED)
        self.plain: Counter[str] = Counter()
        self.written = 0  # before the last words
        self.killed: list[str] = []
        self._folder = folder
        self.store: Any = STORES[store](folder)
        (folder / "in").mkdir()
        state, arguments = self.store.source
        source = SOURCE.replace("STORE", state).replace("*ARGUMENTS", arguments)
        (folder / "fire.py").write_text(source.replace("QUERIES", self.store.queries))
        self.topology = PatientTopology(f"{folder / 'fire.py'}:Fire", folder)

    def __enter__(self) -> Fire:
        self.topology.__enter__()
        self.topology.ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.topology.__exit__()
        self.store.close()

    def tasks(self, kind: str) -> list[str]:
        """Those that work on its batches."""
        names = f"$mastercoord-bg{KINDS.index(kind)}-", f"$spoutcoord-spout-{kind}-", f"spout-{kind}-", "b-"
        return [
            name
            for name in self.topology.targets.processes
            if name.startswith(names) and (kind in name or not name.startswith("b-"))
        ]

    def holders(self) -> list[str]:
        """Those that hold counts: a component of two tasks for each kind."""
        found = [task for kind in KINDS for task in self.tasks(kind) if task.startswith("b-")]
        two = {task.removesuffix("-1") for task in found if task.endswith("-1")}
        return [task for task in found if task.rpartition("-")[0] in two]

    def victims(self) -> list[str]:
        """Who may be killed without a loss."""
        tasks = [task for kind in KINDS for task in self.tasks(kind)]
        if self.store.holds:
            return [*(set(tasks) - set(self.holders())), "master", "manager-1", "manager-2"]
        return [*tasks, "master", "manager-1", "manager-2", "container-1", "container-2"]

    def write(self) -> None:
        """More words, by the line."""
        self.written = self.plain.total()
        weights = [1 / rank for rank in range(1, len(VOCABULARY) + 1)]
        words = self.dice.choices(VOCABULARY, weights, k=WORDS)
        self.plain.update(words)
        for number in range(FILES):
            part = words[number::FILES]
            with (self._folder / "in" / f"{number}.txt").open("a") as file:
                file.writelines(" ".join(part[start : start + 10]) + "\n" for start in range(0, len(part), 10))

    def works(self) -> None:
        """Waits until it is at the words that were written last, and has been for a moment."""
        self.topology.until(
            lambda: all(self.counted(kind).total() >= self.written for kind in KINDS), "it is at the last words", 120
        )
        self.go_on(self.dice.uniform(0.0, 0.3))

    def go_on(self, seconds: float) -> None:
        """Lets time pass."""
        end = time.monotonic() + seconds
        self.topology.until(lambda: time.monotonic() >= end, "time has passed")

    def counted(self, kind: str) -> Counter[str]:
        return self.store.counted(kind)

    def replaced(self, name: str, life: int, kind: str) -> None:
        """Waits until it runs in another life, and two batches have been committed since."""

        def again() -> bool:
            found = self.topology.processes.running().get(name)
            return found is not None and found.life > life

        self.topology.until(again, f"{name} is replaced", 60)
        mark = self.committed(kind)
        self.write()
        self.topology.until(lambda: self.committed(kind) >= mark + 2, f"two batches without the former {name}", 60)

    def exact(self) -> None:
        """Waits until every word is counted, and none of them more often than it was written."""

        def wrong() -> dict[str, dict[str, tuple[int, int]]]:
            found = {kind: self.counted(kind) for kind in KINDS}
            return {
                kind: {word: (counts[word], there) for word, there in self.plain.items() if counts[word] != there}
                for kind, counts in found.items()
                if counts != self.plain
            }

        try:
            self.topology.until(lambda: not wrong(), "all words are counted", 90)
        except TimeoutError:
            print(f"(counted, written) of {wrong()}")
            raise

    def loses(self) -> None:
        """One that holds counts dies with them, and the topology says so."""
        victim = self.dice.choice(self.holders())
        self.topology.faults.kill(victim)
        self.write()

        def told() -> list[str]:
            status = self.topology.status
            return [error for error in (status.errors if status else ()) if "the state in memory was lost" in error]

        assert victim in self.topology.until(told, "the loss is told", 60)[0]
        assert "the state in memory was lost" in self.described()

    def described(self) -> str:
        """What the verb prints; the topology goes on meanwhile."""
        state = str(self._folder / "ardea")
        command = [sys.executable, "-P", "-m", "ardea.cli", "describe", "Fire", "--state", state]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as verb:
            self.topology.until(lambda: verb.poll() is not None, "the verb has ended", 60)
            return verb.communicate()[0]

    def committed(self, kind: str) -> int:
        """The first transaction that is not known to be committed."""
        with FileState(self._folder / "ardea" / "state") as state:
            folder = f"/trident/Fire/{kind}/coordinator"
            return int(max(json.loads(state.get(f"{folder}/{name}").data)[0] for name in state.children(folder)))


@pytest.mark.sampled(5)
@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("store", STORES)
def test_each_word_counts_once_whoever_is_killed(tmp_path, store):
    """Tasks, managers, the master, whole containers; Redis itself."""
    with Fire(tmp_path, store) as fire:
        victims = fire.victims()
        for number in range(KILLS):
            fire.write()
            fire.works()
            if fire.store.outlives_server and number % 4 == 3:
                fire.store.kill_server()
                fire.killed.append("server")
            else:
                fire.killed.append(fire.dice.choice(victims))
                fire.topology.faults.kill(fire.killed[-1])
        fire.topology.disturbed(60)
        fire.exact()
        print(f"{fire.plain.total()} words, killed: {fire.killed}")
        print({kind: fire.committed(kind) - 1 for kind in KINDS})
        if fire.store.holds:
            fire.loses()


class CutOff:
    """Lets tasks outlive the kills of their supervisors, as on a machine that was cut off; none outlives this."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, leaks: Any) -> None:
        self._folder, self._leaks = folder, leaks
        self._late: list[int] = []
        fifo = folder / "parent-link"
        os.mkfifo(fifo)
        self._parent_link = os.open(fifo, os.O_RDWR)
        python = ardea.scheduler.local_processes._python
        command = (sys.executable, "-P", str(OUTLIVING), str(fifo), "-P", "-m", "ardea.heron_instance")
        monkeypatch.setattr(
            ardea.scheduler.local_processes, "_python", lambda name: command if name == command[-1] else python(name)
        )

    def __enter__(self) -> CutOff:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._parent_link)
        self.end()
        there = self._leaks.processes
        eventually(lambda: not [line for line in there().values() if "heron_instance" in line], 20, "all have ended")

    def freeze(self, topology: PatientTopology, names: Iterable[str]) -> None:
        """They stand still, committers between their read and their write; their supervisors take them for dead."""
        pids = {}
        for name in names:
            supervised = topology.until(lambda: topology.processes.running().get(name), f"{name} runs").pid  # noqa: B023
            [pids[name]] = map(int, Path(f"/proc/{supervised}/task/{supervised}/children").read_text().split())
        committers = {name: found for name in pids if (found := COMMITTER.fullmatch(name))}
        for kind, partition in (found.groups() for found in committers.values()):
            (self._folder / f"{kind}.sqlite-{partition}").touch()
        for name in committers:
            topology.until(lambda: stands_still(pids[name]), f"{name} stands still")  # noqa: B023
        for name in pids.keys() - committers:
            eventually(lambda: stops_without_a_lock(pids[name]), 20, f"{name} stands still")  # noqa: B023
        for name, pid in pids.items():
            self._late.append(pid)
            topology.faults.kill(name)

    def wake(self) -> None:
        """All of them."""
        for pid in self._late:
            os.kill(pid, signal.SIGCONT)

    def end(self) -> None:
        """All of them."""
        while self._late:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._late.pop(), signal.SIGKILL)


def stands_still(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def stops_without_a_lock(pid: int) -> bool:
    """Another machine's locks do not hold up the replacement."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: stands_still(pid))
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    if all((lock[-5], lock[-4]) != ("WRITE", str(pid)) for lock in locks):
        return True
    os.kill(pid, signal.SIGCONT)
    return False


@pytest.mark.thorough
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_each_word_counts_once_though_processes_come_back_late(tmp_path, monkeypatch, leaks):
    """They stand still, are replaced, and go on for a while when their replacement has committed two batches."""
    with CutOff(tmp_path, monkeypatch, leaks) as cut_off, Fire(tmp_path) as fire:
        for _ in range(FREEZES // 4):
            fire.write()
            fire.works()
            victims = {name: kind for kind in KINDS for name in fire.dice.sample(fire.tasks(kind), 2)}
            lives = {name: fire.topology.processes.running()[name].life for name in victims}
            fire.write()
            cut_off.freeze(fire.topology, victims)
            for name, kind in victims.items():
                fire.replaced(name, lives[name], kind)
            cut_off.wake()
            fire.go_on(6.0)  # longer than three heartbeats: they say hello again
            cut_off.end()
            print(f"frozen, replaced and woken: {[*victims]}")
        fire.write()
        fire.exact()
        print({kind: fire.committed(kind) - 1 for kind in KINDS})
    assert {kind: fire.counted(kind) for kind in KINDS} == dict.fromkeys(KINDS, fire.plain)
