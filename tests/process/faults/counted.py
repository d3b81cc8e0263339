"""The topology of ``topologies/counted.py`` on real processes, and what it left."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from ardea.scheduler.run import Outcome
from ardea.state.records import RunState
from tests.process.patience import PatientTopology

TOPOLOGY = Path(__file__).parent / "topologies" / "counted.py"
SPOUTS = (0, 1)
PENDING = 500
QUIET = 40.0
"""A supervisor's back-off at its longest, and the message timeout: after that, everybody works again."""


class Counted:
    """Two spout tasks, ``first`` and ``second`` with two tasks each, one of ``written``; two containers."""

    def __init__(self, root: Path, *, machines: bool = False) -> None:
        self.out = root / "out"
        self.out.mkdir()
        self.journal = root / "journal.jsonl"
        config = {"test.out": str(self.out), "topology.max.spout.pending": PENDING}
        self.topology = PatientTopology(str(TOPOLOGY), root, config=config, machines=machines)
        self.faults = self.topology.faults

    def __enter__(self) -> Self:
        self.topology.__enter__()
        self.topology.ready()
        self.works()
        return self

    def __exit__(self, *_: object) -> None:
        self.topology.__exit__()

    def arrived(self) -> dict[int, set[int]]:
        """What the sink wrote: numbers by the spout's task.  A line that a kill has cut was not acked."""
        found: dict[int, set[int]] = {spout: set() for spout in SPOUTS}
        file = self.out / "arrived"
        for line in file.read_text().splitlines() if file.exists() else ():
            source, _, number = line.partition(" ")
            if source.isdigit() and number.isdigit():
                found[int(source)].add(int(number))
        return found

    def works(self, seconds: float = 2 * QUIET) -> None:
        """Waits until numbers of both spouts arrive that had not before, more than were open."""
        marks = {spout: len(numbers) for spout, numbers in self.arrived().items()}
        self.topology.until(
            lambda: all(len(n) > marks[spout] + 2 * PENDING for spout, n in self.arrived().items()),
            "new numbers of both spouts arrive",
            seconds,
        )

    def full(self) -> None:
        """Waits until both spouts have as many open trees as they may, nearly."""

        def pending() -> bool:
            processes = self.topology.status.processes if self.topology.status else []
            open_ = [p.totals.pending for p in processes if p.process.startswith("numbers-")]
            return len(open_) == len(SPOUTS) and min(open_) >= 0.8 * PENDING

        self.topology.until(pending, "the spouts have as many open trees as they may")

    def pauses(self, task: str) -> list[tuple[float, float]]:
        """When a task of ``first`` or ``second`` had nothing to do: from, to; from is 0 where a life begins."""
        lines = (self.out / f"pauses-{task}").read_text().splitlines(keepends=True)
        whole = [line.split() for line in lines if line.endswith("\n")]
        return [(float(begin), float(end)) for begin, end in whole]

    def lost(self) -> tuple[int, int]:
        """Trees that the spouts saw lost, and timed out."""
        totals = (self.topology.status.components if self.topology.status else {}).get("numbers")
        return (totals.lost, totals.timed_out) if totals else (-1, -1)

    def finish(self) -> Outcome:
        """Lets the spouts end; source and sink have to be equal then."""
        (self.out / "enough").touch()
        outcome = self.topology.finish(QUIET + 60)
        if outcome.state is RunState.FAILED:
            assert "after the end was declared" in outcome.reason
        else:
            assert (outcome.state, outcome.reason) == (RunState.SUCCEEDED, "")
        ends = {spout: int((self.out / f"end-{spout}").read_text()) for spout in SPOUTS}
        assert self.arrived() == {spout: set(range(end)) for spout, end in ends.items()}
        return outcome
