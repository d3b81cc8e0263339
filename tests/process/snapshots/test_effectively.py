"""Real processes are killed and frozen: all go back together, nobody else's life ends, and the counts are exact."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from ardea.errors import NotFound
from ardea.snapshots.manifest import decode_manifest, manifest_name
from ardea.snapshots.place import files_at
from ardea.snapshots.retention import superfluous
from ardea.state import open_state, paths, records
from ardea.state.records import TimelineRecord
from tests.process.engine.running import Running
from tests.simulation.snapshots.counted import folded

TOPOLOGY = Path(__file__).parent / "topologies" / "effectively.py"
ROOT = Path(__file__).parents[3]
ARDEA = sys.executable, "-P", "-m", "ardea.cli"
WORDS = 16_000


class Kept:
    """What a topology has in the state and in the store of its snapshots; ``word``: what a spout emits at a place."""

    def __init__(self, state: str, topology: str, word: Callable[[int, int], str], storage: str | None = None) -> None:
        """``storage``: ``topology.stateful.storage``."""
        self.topology, self._word = topology, word
        self._state = open_state(state)
        self.store = files_at(storage, state, topology)

    def record(self) -> TimelineRecord:
        path = paths.timeline(self.topology)
        try:
            return records.decode(self._state.get(path).data, TimelineRecord, path)
        except NotFound:
            return TimelineRecord()

    def committed(self, number: int) -> tuple[list[int], Counter[str]]:
        """Positions of the spouts, and counts, in a snapshot."""
        manifest = decode_manifest(self.store.read(manifest_name(number)), number)
        positions, counts = [], Counter[str]()
        for _, part in sorted(manifest.parts.items()):
            tables = folded((self.store.read(file.name), file.name) for file in part.files)
            if "position" in tables:
                positions.append(tables["position"])
            else:
                counts.update(tables.get("counts", {}))
        return positions, counts

    def check(self) -> list[int]:
        """The last committed snapshot is exact; returns its positions."""
        if not (number := self.record().committed):
            return [0, 0]
        try:
            positions, counts = self.committed(number)
        except OSError:  # a bucket does not always say that what it was about to send is gone
            assert self.record().committed > number, "files of the last snapshot cannot be read"
            return self.check()
        assert counts == self.counted(positions)
        return positions

    def counted(self, positions: list[int]) -> Counter[str]:
        """What the spouts have emitted before these places."""
        return Counter(self._word(spout, p) for spout, most in enumerate(positions) for p in range(most))

    def went_back(self) -> str:
        """The kind of the last rollback that is over, as the master says."""
        said = self.run.status.snapshots if self.run.status is not None else None
        over = said is not None and said.rollback is not None and said.rollback.restored is not None
        return said.rollback.kind if over else ""

    def superfluous(self) -> list[str]:
        """Files that nobody needs since the last commit."""
        number = self.record().committed
        with contextlib.suppress(FileNotFoundError):
            return superfluous(self.store.names(), decode_manifest(self.store.read(manifest_name(number)), number))
        return ["something is being deleted"]


class Counted(Running, Kept):
    """A topology that the test runs, and what it has stored."""

    FILE = "effectively.py"

    def __init__(
        self, root: Path, words: int = WORDS, *, ends: bool = False, storage: str | None = None, backend: str = "memory"
    ) -> None:
        """``storage``: ``topology.stateful.storage``; ``backend``: ``topology.stateful.backend``."""
        self._words = words
        config = {"test.words": words, "test.ends": ends, "topology.stateful.storage": storage}
        config["topology.stateful.backend"] = backend
        Running.__init__(self, str(TOPOLOGY.with_name(self.FILE)), root, config)
        self._root = root / "ardea"
        definition = self.run.submission.definition
        Kept.__init__(self, definition.state, definition.topology, self.module.word, storage)

    def lives(self) -> dict[str, tuple[int, int]]:
        return {name: (process["life"], process["pid"]) for name, process in self.processes().items()}

    def update(self, change: str) -> subprocess.Popen[str]:
        command = [*ARDEA, "update", self.folder.name, "--component-parallelism", change, "--state", self._root]
        piped = subprocess.PIPE
        return subprocess.Popen([*map(str, command)], cwd=ROOT, stdout=piped, stderr=piped, text=True)

    def goes_on(self) -> None:
        """Waits until a snapshot counts that covers more, or all."""
        before = self.check()
        self.until(lambda: self.check() > before or before == [self._words] * 2, "a snapshot covers more words")


@pytest.fixture
def topology(tmp_path):
    with Counted(tmp_path) as topology:
        topology.running()
        topology.until(lambda: min(topology.check()) > 0, "a snapshot has words")
        yield topology


def test_whoever_is_killed_all_is_counted_once(topology):
    causes = {"count-1": "task", "words-0": "task", "container-1/stream-manager": "manager", "topology-master": ""}
    for name, cause in causes.items():
        lives, timeline = topology.lives(), topology.record().timeline
        topology.returned(name, topology.kill(name))
        if cause:
            topology.until(lambda last=timeline: topology.record().timeline > last, f"a rollback after {name} died")
            topology.until(lambda cause=cause: topology.went_back() == cause, "the master says so, and that it is over")
        topology.goes_on()
        now = topology.lives()
        assert {each for each in lives if now[each] != lives[each]} == {name}
    topology.until(lambda: topology.check() == [WORDS, WORDS], "all words are counted")
    topology.until(lambda: topology.superfluous() == [], "what no snapshot needs is deleted")


def test_the_end_is_in_a_snapshot(tmp_path):
    """Somebody dies before it, and the store is what is left."""
    with Counted(tmp_path, 4000, ends=True) as topology:
        topology.running()
        topology.until(lambda: min(topology.check()) > 0, "a snapshot has words")
        topology.kill("count-1")
        topology.finish()
        lists = [name for name in topology.store.names() if name.endswith(".manifest")]
        number = max(int(term) << 32 | int(counter) for term, counter, _ in (name.split(".") for name in lists))
        positions, counts = topology.committed(number)
        assert (positions, sum(counts.values())) == ([4000, 4000], 8000)


def test_keys_move_to_more_and_to_fewer_tasks(topology):
    for tasks in (3, 1):
        lives = topology.lives()
        with topology.update(f"count:{tasks}") as verb:
            topology.until(lambda verb=verb: verb.poll() is not None, "the verb has ended", 150.0)
            assert verb.returncode == 0, verb.communicate()
        now = topology.lives()
        stay = {name for name in lives if not name.startswith("count-") or int(name[6:]) < tasks}
        assert {name for name in stay if now[name] != lives[name]} == set(), "nobody else starts again"
        topology.goes_on()
        topology.returned("count-0", topology.kill("count-0"))
    topology.until(lambda: topology.check() == [WORDS, WORDS], "all words are counted")


def test_who_was_frozen_goes_on_where_all_are(topology):
    topology.kill("count-0", signal.SIGSTOP)
    before = topology.record()
    topology.kill("count-1")
    topology.until(lambda: topology.record().timeline > before.timeline, "the others went back")
    topology.kill("count-0", signal.SIGCONT)
    topology.until(lambda: topology.check() == [WORDS, WORDS], "all words are counted")
