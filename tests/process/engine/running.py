"""A topology on real processes, stepped by the test that runs it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ardea.scheduler.control import Status
from ardea.scheduler.home import Home
from ardea.scheduler.run import LocalRun, Outcome
from ardea.scheduler.submission import Submission
from ardea.state.records import RunState
from ardea.supervision.records import read_exits, read_status
from ardea.supervision.supervisor_state import BACKOFF
from tests.machine import out_of_patience

T = TypeVar("T")
TOPOLOGIES = Path(__file__).parent / "topologies"


class Running:
    """Runs ``FILE:Class`` of the folder ``topologies``; its tasks leave what they saw in ``out``."""

    def __init__(self, target: str, root: Path, settings: Mapping[str, Any] | None = None, *, state: str = "") -> None:
        """``settings`` win over the topology's configuration, whose ``test.out`` is the folder ``out``.

        ``state`` is where a ZooKeeper is; else the state lies below ``root``.

        ``module`` is the topology's file as imported here.
        """
        self.out = root / "out"
        self.out.mkdir()
        home = Home(state or root / "ardea", files=root / "ardea")
        overrides = {"test.out": str(self.out), **(settings or {})}
        submission = Submission.of(str(TOPOLOGIES / target), overrides, home.state_url)
        self.module = sys.modules[Path(target.partition(":")[0]).stem]
        self.packing = submission.packing
        self.run = LocalRun(submission, home, give_up=0)
        self.folder = self.run.folder

    def __enter__(self) -> Self:
        self.run.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.run.close()

    # --- waiting ----------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[], T], what: str, seconds: float = 120.0) -> T:
        """Steps the run until ``condition`` is true; fails with all logs if it ends or takes too long before."""
        began = time.monotonic()
        while not (value := condition()):
            if self.run.over:
                pytest.fail(f"the topology ended before {what}: {self.run.outcome()}\n{self.logs()}")
            if out_of_patience(began, seconds):
                pytest.fail(f"not within {seconds:g} s: {what}; last: {value!r}; {self.run.status}\n{self.logs()}")
            self.run.step()
        return value

    def running(self) -> Status:
        """Waits until every task has reported: beside other tests thirty processes need their time."""
        return self.until(lambda: (s := self.run.status) and s.complete and s, "every task has reported")

    def finish(self, seconds: float = 120.0, meanwhile: Callable[[], object] = bool) -> Outcome:
        """Steps until nothing of it is left, and calls ``meanwhile`` at each; it has to have succeeded."""
        began = time.monotonic()
        while not self.run.over:
            if out_of_patience(began, seconds):
                pytest.fail(f"not over within {seconds:g} s: {self.run.status}\n{self.logs()}")
            self.run.step()
            meanwhile()
        outcome = self.run.outcome()
        assert outcome.state is RunState.SUCCEEDED, f"{outcome}\n{self.logs()}"
        return outcome

    def total(self, counter: str, name: str) -> int:
        """``acked``, ``executed`` … of a component or of one task, as the metrics managers last said."""
        if (status := self.run.status) is None:
            return 0
        tasks = {process.process: process.totals for process in status.processes}
        totals = status.components.get(name) or tasks.get(name)
        return int(getattr(totals, counter) or 0) if totals is not None else 0

    def grows(self, counter: str, name: str, by: int = 1, seconds: float = 120.0) -> None:
        """Waits until the counter has grown by so much from now on."""
        goal = self.total(counter, name) + by
        self.until(lambda: self.total(counter, name) >= goal, f"{name} {counter} reaches {goal}", seconds)

    # --- what its tasks left ----------------------------------------------------------------------------------

    def left(self, component: str) -> list[Any]:
        """What each task of the component wrote by ``leave``, by index."""
        tasks = [i for i in self.packing.instances if i.component == component]
        return [json.loads((self.out / f"{component}-{i.index}.json").read_text()) for i in tasks]

    def raise_flag(self, name: str) -> None:
        """What a topology asks for by ``flag``."""
        (self.out / name).touch()

    # --- processes --------------------------------------------------------------------------------------------

    def processes(self) -> dict[str, dict[str, Any]]:
        """Every process that runs, by name: its pid and life; managers have their container's before theirs."""
        found: dict[str, dict[str, Any]] = {}
        for folder in (self.folder, *sorted(self.folder.glob("container-*"))):
            for name, process in read_status(folder).get("processes", {}).items():
                manager = folder != self.folder and "-manager" in name
                found[f"{folder.name}/{name}" if manager else name] = process
        return found

    def pid(self, name: str) -> int:
        """Waits for the process and returns its pid."""
        return int(self.until(lambda: self.processes().get(name, {}).get("pid"), f"{name} runs"))

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Sends it a signal; returns its life."""
        life = int(self.processes()[name]["life"])
        os.kill(self.pid(name), number)
        return life

    def returned(self, name: str, life: int, seconds: float = BACKOFF[-1] + 60) -> None:
        """Waits until the process has come back in place, in a later life, however often it was killed before."""
        self.until(
            lambda: (p := self.processes().get(name, {})).get("life", 0) > life and p.get("pid"),
            f"{name} is back in a life after {life}",
            seconds,
        )

    def ends(self, name: str, container: int) -> list[Any]:
        """The exit records of a process."""
        return read_exits(self.folder / f"container-{container}", name)

    def resident(self) -> dict[str, int]:
        """Bytes that each running process has resident."""
        found = {}
        for name, process in self.processes().items():
            with contextlib.suppress(OSError, TypeError):
                pages = int(Path(f"/proc/{int(process['pid'])}/statm").read_text().split()[1])
                found[name] = pages * os.sysconf("SC_PAGE_SIZE")
        return found

    # --- metrics ----------------------------------------------------------------------------------------------

    def port(self, container: int) -> int:
        """Where the container serves ``/metrics``."""
        file = self.folder / f"container-{container}" / "metrics.port"
        return int(self.until(lambda: file.exists() and file.read_text().strip(), f"container {container} has metrics"))

    def metrics(self, container: int, name: str) -> dict[tuple[str, ...], float]:
        """The series of that name: own label values, in the order of their names → value."""
        common = {"topology", "topology_id", "container"}
        found = {}
        with urlopen(f"http://127.0.0.1:{self.port(container)}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == name:
                    labels = tuple(v for k, v in sorted(sample.labels.items()) if k not in common)
                    found[labels] = sample.value
        return found

    # --- for people -------------------------------------------------------------------------------------------

    def log(self, task: str) -> str:
        """All that a task printed, and its supervisor wrote beside it."""
        [file] = self.folder.glob(f"container-*/logs/{task}.log")
        return file.read_text(errors="replace")

    def logs(self) -> str:
        """The last lines of every log."""
        files = sorted(self.folder.rglob("*.log"))
        return "\n".join(f"[{f.relative_to(self.folder)}]\n{f.read_text(errors='replace')[-1500:]}" for f in files)


def tcp_connections(pid: int) -> int:
    """How many established TCP connections a process holds."""
    inodes = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(str(fd.readlink()).removeprefix("socket:[").removesuffix("]"))
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[3] == "01" and row[9] in inodes for row in rows)


def unix_sockets(folder: Path) -> set[str]:
    """Names of the sockets in the abstract namespace on which the stream managers of that topology listen."""
    asked = {argument.removeprefix("ipc://") for argument in _arguments(folder) if argument.startswith("ipc://@")}
    there = {line.rpartition(" ")[2] for line in Path("/proc/net/unix").read_text().splitlines()}
    return asked & there


def _arguments(folder: Path) -> list[str]:
    specs = [json.loads(spec.read_text()) for spec in folder.glob("container-*/spec.json")]
    return [argument for spec in specs for process in spec["processes"] for argument in process["argv"]]


def all_arrived(topology: Running, outcome: Outcome) -> None:
    """Of ``survivors.py``, after its end: each number came, was acked, and none was given up."""
    spouts = topology.left("numbers")
    [arrived] = topology.left("arrived")
    assert arrived["different"] == arrived["ends"], "no number is missing below the highest"
    assert arrived["ends"] == {str(n): spout["end"] for n, spout in enumerate(spouts)}
    assert all(spout["acked"] == spout["end"] for spout in spouts)
    assert (outcome.components["numbers"].given_up, outcome.components["numbers"].timed_out) == (0, 0)
