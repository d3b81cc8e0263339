"""Savepoints of real processes, by the verbs: while rows flow, and with the end; another topology begins from one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from ardea.snapshots.folder import Folder
from ardea.snapshots.savepoint import read
from ardea.state.records import RunState
from tests.process.snapshots.test_effectively import ARDEA, ROOT, TOPOLOGY, Counted, Kept
from tests.process.waiting import eventually

MOST = 6000


def verb(state: Path, *words: str | Path) -> subprocess.Popen[str]:
    piped = subprocess.PIPE
    command = [*ARDEA, *map(str, words), "--state", str(state)]
    return subprocess.Popen(command, cwd=ROOT, stdout=piped, stderr=piped, text=True)


def done(state: Path, *words: str | Path) -> str:
    """What a verb prints on stdout, which has to succeed."""
    with verb(state, *words) as ran:
        said, errors = ran.communicate(timeout=150.0)
    assert ran.returncode == 0, errors
    return said


def test_another_topology_goes_on_where_one_was_killed(tmp_path):
    """With more counters, a new state, and words that no one counts twice."""
    state, last = tmp_path / "ardea", tmp_path / "last"
    with Counted(tmp_path, MOST) as topology:
        topology.running()
        topology.until(lambda: min(topology.check()) > 0, "a snapshot has words")
        lives = topology.lives()
        with verb(state, "savepoint", topology.topology, "-o", "json") as saving:
            topology.until(lambda: saving.poll() is not None, "the savepoint is there", 90.0)
            document = json.loads(saving.communicate()[0])
        first = read(Folder.at(document["folder"]))
        assert (first.topology, first.manifest.bytes) == (topology.topology, document["bytes"])
        topology.goes_on()
        assert topology.lives() == lives
        with verb(state, "kill", topology.topology, "--savepoint", "--to", last) as killing:
            while not topology.run.over:
                topology.run.step()
            assert topology.run.outcome().state is RunState.KILLED
            topology.run.close()
            assert killing.wait(150.0) == 0, killing.communicate()
        assert topology.store.names() == [], "what it remembered is gone with it"
        assert read(Folder.at(document["folder"])) == first
    words = "--set", f"test.words={MOST}", "--set", "test.ends=false", "--name", "Again"
    started = json.loads(
        done(state, "submit", "local", TOPOLOGY.with_name("wider.py"), *words, "--from", last, "-o", "json")
    )
    kept = Kept(str(state / "state"), started["id"], topology.module.word)
    try:
        assert kept.record().timeline > 0
        eventually(lambda: kept.check() == [MOST, MOST], 120.0, lambda: f"{kept.record()}")
        assert len(json.loads(done(state, "snapshots", "Effectively", "-o", "json"))["savepoints"]) == 1
    finally:
        done(state, "kill", started["id"], "--wait-secs", "0")
    assert kept.store.names() == []
