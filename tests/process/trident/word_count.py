"""The example on real processes, and what it has counted."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from ardea.drpc import DrpcClient
from ardea.errors import ArdeaError
from ardea.supervision.records import read_status
from ardea.trident import SqliteState
from tests.machine import patient

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "trident_word_count.py"
TEXT = (ROOT / "LICENSE").read_text()


class Run:
    """``ardea run`` of the example, with temporary files and state of its own, or with the ZooKeeper at ``state``."""

    def __init__(self, folder: Path, deadline, state: str = "") -> None:
        self.folder, self.deadline = folder, deadline
        self.state = state or str(folder / "state" / "state")
        self.inputs = folder / "ardea-words" / "in"
        self.inputs.mkdir(parents=True, exist_ok=True)
        self.counts = SqliteState.opaque(folder / "ardea-words" / "counts.sqlite")
        command = [sys.executable, "-P", "-m", "ardea.cli", "run", EXAMPLE, "--containers", "2"]
        command += ["--state", state or folder / "state"]
        environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder), "TERM": "dumb"}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        self.process = subprocess.Popen([str(part) for part in command], env=environment, **streams)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.communicate(timeout=patient(40))
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
                client = DrpcClient.find(self.state, "TridentWordCount", "counts")
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
        for status in self.folder.glob("*/local/*/*/status.json"):
            for name, process in read_status(status.parent).get("processes", {}).items():
                if process.get("pid"):
                    found[name] = int(process["pid"])
        return found

    def kill(self, name: str) -> None:
        """SIGKILL, and the news that it has come back."""
        pid = self.deadline(lambda: self.pids().get(name), f"{name} runs")
        os.kill(pid, signal.SIGKILL)
        self.deadline(lambda: self.pids().get(name, pid) != pid, f"{name} is back")
