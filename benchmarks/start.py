"""How long it takes from the command `ardea run` until the last of ten tasks has begun."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.results import BenchmarkError

TASKS = 10
WITHIN = 60.0
_LOOK = 0.01
SOURCE = """\
import time
from pathlib import Path

from ardea import Bolt, Grouping, Spout, Topology


def begun(context):
    (Path({notes!r}) / str(context.this_task_id)).write_text(repr(time.time()))


class Silent(Spout):
    outputs = ("word",)

    def initialize(self, config, context):
        begun(context)

    def next_tuple(self):
        pass


class Idle(Bolt):
    def initialize(self, config, context):
        begun(context)

    def process(self, tup):
        pass


class Still(Topology):
    silent = Silent.spec(par={spouts})
    idle = Idle.spec(inputs={{silent: Grouping.fields("word")}}, par={bolts})
    config = {{"topology.stmgrs": {containers}}}
"""


@dataclass(frozen=True, slots=True)
class StartResult:
    """Seconds from the command to the last ``initialize``."""

    tasks: int
    containers: int
    seconds: float


def rounds(containers: int, count: int) -> list[StartResult]:
    """So many starts.

    Raises:
        BenchmarkError: it did not come up.
    """
    return [StartResult(TASKS, containers, _once(containers)) for _ in range(count)]


def _once(containers: int) -> float:
    folder = Path(tempfile.mkdtemp(prefix="ardea-benchmark-"))
    notes = folder / "notes"
    notes.mkdir()
    (folder / "still.py").write_text(SOURCE.format(notes=str(notes), spouts=2, bolts=8, containers=containers))
    command = [sys.executable, "-m", "ardea.cli", "run", str(folder / "still.py"), "--state", str(folder / "state")]
    began = time.time()
    with (folder / "output").open("wb") as output:
        run = subprocess.Popen([*command, "--containers", str(containers)], stdout=output, stderr=output)
    try:
        while len(times := [text for note in notes.iterdir() if (text := note.read_text())]) < TASKS:
            if run.poll() is not None or time.time() - began > WITHIN:
                raise BenchmarkError(f"ten tasks did not begin: {(folder / 'output').read_text()[-500:]}")
            time.sleep(_LOOK)
        return max(map(float, times)) - began
    finally:
        run.terminate()
        try:
            run.wait(WITHIN)
        except subprocess.TimeoutExpired:
            run.kill()  # and its processes with it
            run.wait()
        shutil.rmtree(folder)
