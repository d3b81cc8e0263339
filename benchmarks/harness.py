"""Starts a topology on this machine, lets it run, and ends it: the one place that knows how."""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from ardea.errors import ArdeaError
from ardea.metrics import Totals
from ardea.scheduler.home import Home
from ardea.scheduler.run import LocalRun
from ardea.scheduler.submission import Submission
from ardea.state.records import RunState
from benchmarks.results import BenchmarkError

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[1]
ENDS_WITHIN = 60.0
ANSWERS_WITHIN = 10.0


class Running:
    """A topology that was started; ``components`` says whose each task is, ``notes`` where its tasks write.

    ``state`` is its state manager's address, ``name`` what it is called there.
    """

    def __init__(self, run: LocalRun, notes: Path, state: str) -> None:
        self._run = run
        self.notes, self.state = notes, state
        self.name = run.submission.definition.topology
        self.components = {task.task: task.component for task in run.submission.packing.instances}

    def wait_for(self, condition: Callable[[], T | None], what: str, seconds: float) -> T:
        """The first value that is not None.

        Raises:
            BenchmarkError: ``seconds`` have passed, or the topology has ended.
        """
        end = time.monotonic() + seconds
        while (value := condition()) is None:
            self._run.step()
            if self._run.over:
                raise BenchmarkError(f"the topology ended before {what}: {self._run.outcome().reason}")
            if time.monotonic() > end:
                raise BenchmarkError(f"waited {seconds:g} s in vain until {what}")
        return value

    def until(self, at: float) -> None:
        """Lets it run until about ``at``, of the steady clock."""
        self.wait_for(lambda: time.monotonic() >= at or None, "its time had passed", math.inf)

    def totals(self, component: str) -> Totals:
        """What the tasks of a component have done, as the master last told: half a second ago or two."""
        status = self._run.status
        return Totals() if status is None else status.components.get(component, Totals())

    def metric(self, container: int, name: str, labels: Mapping[str, str]) -> float | None:
        """The value of the series with these labels, as the container serves it; None: there is none yet."""
        port = (self._run.folder / f"container-{container}" / "metrics.port").read_text().strip()
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=ANSWERS_WITHIN) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        series = (sample for family in families for sample in family.samples if sample.name == name)
        return next((sample.value for sample in series if labels.items() <= sample.labels.items()), None)

    def finish(self, seconds: float, look: Callable[[], None]) -> None:
        """Lets a bounded topology run to its end; ``look`` is called every now and then.

        Raises:
            BenchmarkError: it does not end, or not well.
        """
        end = time.monotonic() + seconds
        while not self._run.over:
            self._run.step()
            look()
            if time.monotonic() > end:
                raise BenchmarkError(f"waited {seconds:g} s in vain until the topology had ended")
        outcome = self._run.outcome()
        if outcome.state is not RunState.SUCCEEDED:
            raise BenchmarkError(f"the topology is {outcome.state}: {outcome.reason}")

    def drain(self) -> None:
        """Stops the spouts, and waits until nothing is open and everything has ended.

        Raises:
            BenchmarkError: something was left, or it does not end.
        """
        self._run.stop()
        end = time.monotonic() + ENDS_WITHIN
        while not self._run.over:
            self._run.step()
            if time.monotonic() > end:
                raise BenchmarkError(f"waited {ENDS_WITHIN:g} s in vain until the topology had drained")
        outcome = self._run.outcome()
        if outcome.state is not RunState.KILLED or outcome.reason:
            raise BenchmarkError(f"the topology did not drain, but is {outcome.state}: {outcome.reason}")


@contextmanager
def run_topology(source: Callable[[Path], str], state: str | None = None) -> Iterator[Running]:
    """A topology in a temporary folder; ``source`` writes its file, given the folder that its tasks may write to.

    ``state`` is the state manager's address; None: files in that folder.  The folder, with all logs, is kept and named
    when there is no result.
    """
    folder = Path(tempfile.mkdtemp(prefix="ardea-benchmark-"))
    notes = folder / "notes"
    notes.mkdir()
    location = folder / f"{folder.name.replace('-', '_')}.py"  # a module's name: each is imported once in this process
    location.write_text(f"import sys\n\nsys.path.append({str(ROOT)!r})\n{source(notes)}")
    kept = False
    home = Home(state or folder, files=folder)
    try:
        with LocalRun(Submission.of(str(location), {}, home.state_url), home) as run:
            run.start()
            yield Running(run, notes, home.state_url)
    except ArdeaError as error:
        kept = True
        raise BenchmarkError(
            error.message, hint=f"{error.hint or 'There is no result.'}  The logs are in {home.root / 'local'}."
        ) from error
    finally:
        if not kept:
            shutil.rmtree(folder)
