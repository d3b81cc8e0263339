"""How long work stands still after ``kill -9``, with as many trees open as there may be.

The numbers are printed; the medians are asserted, since on a busy machine one of them may be anything.  Pauses below
0.1 s are not counted.
"""

from __future__ import annotations

import itertools
import statistics
import time

import pytest

from tests.machine import patient
from tests.process.faults.counted import Counted
from tests.sizes import size

pytestmark = [pytest.mark.cluster, pytest.mark.alone]

TASKS = ("first-0", "first-1", "second-0", "second-1")
ASKED = {"instance": 2.0, "stream manager": 3.0, "master": 0.2}
"""Seconds, of the median, on a quick machine; for the master: none but what a busy machine makes."""
GENEROUS = 15.0
"""Seconds, of the longest, on a quick machine."""
REST = size(0.0, 61.0)
"""Seconds between two rounds: who has lived for a minute is started again without a pause."""


@pytest.mark.soak
@pytest.mark.timeout(2400)
def test_a_restarted_process_works_again_soon_and_nobody_waits_for_the_master(tmp_path):
    times: dict[str, list[float]] = {"instance": [], "stream manager": [], "master": []}
    undisturbed = []
    with Counted(tmp_path) as run:
        for _ in range(size(3, 10)):
            began = killed(run, "first-0")
            [end, *_] = run.topology.until(
                lambda: [end for begin, end in run.pauses("first-0") if begin == 0.0 and end > began],  # noqa: B023
                "the new life has processed a row",
            )
            times["instance"].append(end - began)
            run.works()

            began = killed(run, "manager-1")
            run.works()
            ends = [end for task in TASKS for begin, end in run.pauses(task) if begin <= began + 1.0 and end > began]
            times["stream manager"].append(max(ends) - began)

            began = killed(run, "master")
            former = run.faults.done[-1].life
            run.topology.until(lambda: master_after(run, former), "there is a master again")  # noqa: B023
            run.works()
            took, calm = time.monotonic() - began, time.monotonic()
            times["master"].append(longest(run, began, began + took))
            rest = max(REST, took)
            run.topology.until(lambda: time.monotonic() >= calm + rest, "they have lived for a while", 2 * rest + 1)  # noqa: B023
            undisturbed.append(longest(run, calm, calm + took))
        run.finish()
    for who, seconds in times.items():
        middle, worst = statistics.median(seconds), max(seconds)
        print(
            f"kill -9 of {who}: work stands still for {middle:.2f} s (median of {len(seconds)}), {worst:.2f} s at most"
        )
    print(f"undisturbed for as long as without a master, work stands still for {undisturbed} s")
    asked = {who: patient(seconds) for who, seconds in ASKED.items()}
    asked["master"] = max(asked["master"], 2 * statistics.median(undisturbed))
    assert {who: seconds for who, seconds in times.items() if statistics.median(seconds) >= asked[who]} == {}
    assert max(itertools.chain(*times.values())) < patient(GENEROUS)


def killed(run: Counted, name: str) -> float:
    """When; with as many trees open as there may be."""
    run.full()
    began = time.monotonic()
    run.faults.kill(name)
    return began


def master_after(run: Counted, life: int) -> bool:
    found = run.topology.processes.running().get("master")
    return found is not None and found.life > life


def longest(run: Counted, begin: float, end: float) -> float:
    """Seconds of the longest pause of a task that ended in that time; the first of a life is none."""
    pauses = [(since, until) for task in TASKS for since, until in run.pauses(task) if begin < until <= end]
    return max((until - since for since, until in pauses if since > 0.0), default=0.0)
