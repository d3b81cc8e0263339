"""The example on real processes: words of a growing directory, exact whatever is killed, and across runs."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ardea.drpc import DrpcClient
from ardea.errors import ArdeaError
from ardea.state import FileState
from ardea.supervision.records import read_status
from ardea.trident import SqliteState

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "trident_word_count.py"
TEXT = (ROOT / "LICENSE").read_text()


class Run:
    """``ardea run`` of the example, with temporary files and state of its own."""

    def __init__(self, folder: Path, deadline) -> None:
        self.state, self.deadline = folder / "state", deadline
        self.inputs = folder / "ardea-words" / "in"
        self.inputs.mkdir(parents=True, exist_ok=True)
        self.counts = SqliteState.opaque(folder / "ardea-words" / "counts.sqlite")
        command = [sys.executable, "-P", "-m", "ardea.cli", "run", EXAMPLE, "--containers", "2", "--state", self.state]
        environment = {**os.environ, "TMPDIR": str(folder), "TERM": "dumb"}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        self.process = subprocess.Popen([str(part) for part in command], env=environment, **streams)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.communicate(timeout=40)
        finally:
            self.process.kill()

    def write(self, name: str) -> None:
        with (self.inputs / name).open("a") as file:
            file.write(TEXT)

    def counted(self) -> dict[str, int]:
        try:
            return {key[0]: count for key, count in self.counts.items()}
        except sqlite3.OperationalError:
            return {}  # not there yet, or being made

    def ask(self, words: str) -> dict[str, int | None]:
        """What the topology answers; asked again while its task is not there."""

        def answer() -> list[list[Any]]:
            try:
                client = DrpcClient.find(str(self.state / "state"), "TridentWordCount", "counts")
                return client.execute("counts", words, 10)
            except ArdeaError:
                return []

        return dict(self.deadline(answer, "the topology answers"))

    def exact(self) -> None:
        """Waits until all words are counted, none of them twice."""
        files = sorted(self.inputs.iterdir())
        plain = Counter(word for file in files for word in re.findall(r"\w+", file.read_text().lower()))
        total = plain.total()
        self.deadline(lambda: sum(self.counted().values()) >= total, f"{total} words are counted", seconds=60)
        assert self.counted() == plain

    def pids(self) -> dict[str, int]:
        """Those of the tasks, by name."""
        found = {}
        for status in self.state.rglob("status.json"):
            for name, process in read_status(status.parent).get("processes", {}).items():
                if process.get("pid"):
                    found[name] = int(process["pid"])
        return found

    def kill(self, name: str) -> None:
        """SIGKILL, and the news that it has come back."""
        pid = self.deadline(lambda: self.pids().get(name), f"{name} runs")
        os.kill(pid, signal.SIGKILL)
        self.deadline(lambda: self.pids().get(name, pid) != pid, f"{name} is back")


VICTIMS = ["b-2-count-ask-0", "$mastercoord-bg0-0", "spout-counts0-0"]
"""test_under_fire.py kills the others, too."""


def test_exact_while_tasks_are_killed_and_across_runs(tmp_path, deadline, leaks):
    with Run(tmp_path, deadline) as run:
        run.write("first.txt")
        run.exact()
        assert run.ask("License THE xyzzy") == {**{w: run.counted()[w] for w in ("license", "the")}, "xyzzy": None}
        for victim in VICTIMS:
            for name in ("first.txt", f"{victim}.txt"):
                run.write(name)
            run.kill(victim)
            run.write("last.txt")
        run.exact()
        assert run.ask("the") == {"the": run.counted()["the"]}
    with Run(tmp_path, deadline) as run:
        run.write("last.txt")
        run.exact()
    with FileState(tmp_path / "state" / "state") as state:
        folder = "/trident/TridentWordCount/files/coordinator"
        current, lives = max(json.loads(state.get(f"{folder}/{name}").data) for name in state.children(folder))
    assert (lives, current > len(VICTIMS)) == (3, True), "a kill and a second run are remembered"
