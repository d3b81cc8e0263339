"""What five viewers of the console cost: ``python -m benchmarks.console_viewers``.

A topology of 200 tasks in eight containers runs at a pace; ``ardea ui`` shows it to five viewers, who read its events
and ask for its history as the page does.  A round has a while with them and a while without; a pair is what the
console's process needs, and the master more with them, against what all processes of the topology need without.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from ardea.console.desk import API
from benchmarks.harness import Running, run_topology
from benchmarks.processes import ProcessTree

VIEWERS = 5
HISTORY = 5.0
SETTLE = 6.0
STARTS_WITHIN = 300.0
ENDS_WITHIN = 20.0
SOURCE = """\
import time
from pathlib import Path

from ardea import Bolt, Grouping, Spout, Topology


class Lines(Spout):
    outputs = ("word",)

    def initialize(self, config, context):
        (Path({notes!r}) / str(context.this_task_id)).touch()
        self._due, self._next = time.monotonic(), 0

    def next_tuple(self):
        time.sleep(max(0.0, self._due - time.monotonic()))
        self._due += 1.0
        for _ in range({rows}):
            self._next += 1
            self.emit((f"word {{self._next % 1000}}",), tup_id=self._next)


class Passes(Bolt):
    outputs = ("word",)

    def initialize(self, config, context):
        (Path({notes!r}) / str(context.this_task_id)).touch()

    def process(self, tup):
        self.emit((tup["word"],))


class Looked(Topology):
    lines = Lines.spec(par=4)
    split = Passes.spec(inputs=[lines], par=96)
    count = Passes.spec(inputs={{split: Grouping.fields("word")}}, par=100)
    config = {{"topology.stmgrs": 8}}
"""


class Viewer(threading.Thread):
    """Reads events, and asks for the history each five seconds; ``events``: so many have come."""

    def __init__(self, link: str, topology: str) -> None:
        super().__init__(name="viewer", daemon=True)
        parts = urlsplit(link)
        self._where, self._path = parts.netloc, f"{API}/topologies/{topology}"
        self._headers = {"Authorization": f"Bearer {parse_qs(parts.fragment)['token'][0]}"}
        self._stream = http.client.HTTPConnection(self._where, timeout=30)
        self.events = 0

    def run(self) -> None:
        """Until the console is gone."""
        since, asked = 0.0, time.monotonic()
        try:
            self._stream.request("GET", f"{self._path}/events", headers=self._headers)
            for line in self._stream.getresponse():
                self.events += line.startswith(b"event:")
                if time.monotonic() > asked + HISTORY:
                    since, asked = self._history(since), time.monotonic()
        except (OSError, http.client.HTTPException):
            return

    def _history(self, since: float) -> float:
        asking = http.client.HTTPConnection(self._where, timeout=30)
        try:
            asking.request("GET", f"{self._path}/history?since={since}", headers=self._headers)
            times: list[float] = json.load(asking.getresponse())["times"]
            return times[-1] if times else since
        finally:
            asking.close()


@contextmanager
def shown(folder: Path, topology: str) -> Iterator[tuple[int, list[Viewer]]]:
    """A console with its viewers: its pid, and them."""
    command = [sys.executable, "-P", "-m", "ardea.cli", "ui", "--no-browser", "--state", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as console:
        assert console.stdout is not None, "it is a pipe"
        link = console.stdout.readline().strip()
        viewers = [Viewer(link, topology) for _ in range(VIEWERS)]
        for viewer in viewers:
            viewer.start()
        try:
            yield console.pid, viewers
        finally:
            console.terminate()
            console.wait(ENDS_WITHIN)
            for viewer in viewers:
                viewer.join(ENDS_WITHIN)


def cores(running: Running, seconds: float, console: int = 0) -> dict[str, float]:
    """CPU seconds a second, of the topology, of its master and of the console's process."""
    tree = ProcessTree(running.components)
    began, before = time.monotonic(), tree.usage()
    running.until(began + seconds)
    took, after = time.monotonic() - began, tree.usage()
    used = {pid: (after[pid].cpu - before[pid].cpu) / took for pid in before.keys() & after.keys()}
    return {
        "topology": sum(each for pid, each in used.items() if pid != console),
        "master": sum(each for pid, each in used.items() if after[pid].kind == "topology-master"),
        "console": used.get(console, 0.0),
    }


def rounds(running: Running, count: int, seconds: float) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    """Pairs: with viewers, and without."""
    for _ in range(count):
        with ExitStack() as stack:
            console, viewers = stack.enter_context(shown(running.notes.parent, running.name))
            running.until(time.monotonic() + SETTLE)
            before = [viewer.events for viewer in viewers]
            watched = cores(running, seconds, console)
            news = [viewer.events - first for viewer, first in zip(viewers, before, strict=True)]
            if min(news) < seconds / 6:
                raise SystemExit(f"the viewers got {news} events in {seconds:g} s: that is no measurement")
        running.until(time.monotonic() + SETTLE)
        yield watched, cores(running, seconds)


def main() -> None:
    """Prints each pair, and the median."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rows", type=int, default=10, help="a second, of each of four spouts")
    given = parser.parse_args()
    shares = []
    with run_topology(lambda notes: SOURCE.format(notes=str(notes), rows=given.rows)) as running:
        running.wait_for(lambda: len([*running.notes.iterdir()]) >= 200 or None, "all tasks had begun", STARTS_WITHIN)
        running.until(time.monotonic() + SETTLE)
        for watched, alone in rounds(running, given.rounds, given.seconds):
            more = watched["console"] + watched["master"] - alone["master"]
            shares.append(more / alone["topology"])
            print(
                f"console {watched['console']:.4f} cores, "
                f"master {watched['master']:.4f} and {alone['master']:.4f} without, "
                f"topology {alone['topology']:.3f}: {shares[-1]:.2%}",
                flush=True,
            )
        running.drain()
    print(f"median of {len(shares)} pairs: {statistics.median(shares):.2%} ({min(shares):.2%} to {max(shares):.2%})")


if __name__ == "__main__":
    main()
